/* SPDX-License-Identifier: Apache-2.0
 *
 * A session of the driver: its participants, its end points and its waits.
 */
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "endpoint.hpp"

namespace tb {

class Session
{
public:
    Session(const Options &options, const tb_host &host);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /* Creates an end point and returns its number. Numbers start at 1 and are never used twice. */
    uint32_t create(const Wanted &wanted);

    /* Returns the end point with this number, closed or not; null if it never existed. Takes no lock. */
    Endpoint *find(uint32_t id) const;

    int destroy(uint32_t id);

    /* Deletes a destroyed reader after its last sample was released. */
    void settle(Endpoint &endpoint);

    /* All end points that are not closed. Takes no lock, because a running call may use this function. */
    std::vector<Endpoint *> alive() const;

    const Options options;
    const tb_host host;
    Participant participant;
    std::unique_ptr<Participant> second; /* only if the options request two participants */
    Guards guards;
    Sets sets;

private:
    static constexpr size_t CHUNK = 64, CHUNKS = 256;
    using Chunk = std::array<std::atomic<Endpoint *>, CHUNK>;

    std::mutex creating_;
    std::atomic<uint32_t> created_{0};
    std::array<std::atomic<Chunk *>, CHUNKS> chunks_{};
};

/* Answers the question `what` about an end point, or about the session if it is null, as JSON. Throws. */
std::string answer(Session &session, Endpoint *endpoint, const std::string &what);

/* Returns the JSON of the driver's function `describe`; every call returns the same text. */
const char *describe();

} // namespace tb

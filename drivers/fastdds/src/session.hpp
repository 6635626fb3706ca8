/* SPDX-License-Identifier: Apache-2.0
 *
 * A session: one participant, its end points, its waits.
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

    /* The number of the new end point, from 1, never given twice. */
    uint32_t create(const Wanted &wanted);

    /* The end point, closed or not; null if there was never one. Takes no lock. */
    Endpoint *find(uint32_t id) const;

    int destroy(uint32_t id);

    /* A destroyed reader whose last sample came back is deleted now. */
    void settle(Endpoint &endpoint);

    /* Those that are not closed. Takes no lock: a call that is inside may ask. */
    std::vector<Endpoint *> alive() const;

    const Options options;
    const tb_host host;
    Participant participant;
    std::unique_ptr<Participant> second; /* where the options ask for two */
    Guards guards;
    Sets sets;

private:
    static constexpr size_t CHUNK = 64, CHUNKS = 256;
    using Chunk = std::array<std::atomic<Endpoint *>, CHUNK>;

    std::mutex creating_;
    std::atomic<uint32_t> created_{0};
    std::array<std::atomic<Chunk *>, CHUNKS> chunks_{};
};

/* Answers `what` about an end point, or with null about the session, as JSON. Throws. */
std::string answer(Session &session, Endpoint *endpoint, const std::string &what);

/* The JSON of `describe`; the same each time. */
const char *describe();

} // namespace tb

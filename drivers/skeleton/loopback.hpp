/* SPDX-License-Identifier: Apache-2.0
 *
 * The middleware of the skeleton in C++: a network inside one process. In your own driver, your middleware's library
 * replaces it.
 */
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tailbound_driver.h"

namespace loopback {

constexpr std::uint64_t MAX_PAYLOAD = 1 << 20;
constexpr std::size_t QUEUE = 16;

/* One queued sample. A place is in use from the sample's arrival until its release. */
struct Place {
    bool used = false;  /* whether the place has a sample */
    bool taken = false; /* whether the host has a view of the sample */
    std::uint64_t order = 0;
    tb_view view{};
    std::vector<std::uint8_t> data;
};

struct Endpoint {
    int kind, mode;
    long domain;
    std::string topic, reliability;
    std::uint64_t max_len, tag;
    tb_host host;
    std::uint64_t wakes_seen = 0, arrived = 0, sent = 0, received = 0;
    int inside = 0; /* callbacks that run */
    bool closed = false;
    std::array<Place, QUEUE> places; /* readers in mode block and spin */

    bool meets(const Endpoint &other) const
    {
        return !closed && !other.closed && kind != other.kind && domain == other.domain && topic == other.topic;
    }

    /* Puts a sample into the queue of the reader; returns false if the queue is full. */
    bool enqueue(const tb_view &view)
    {
        auto place = std::find_if(places.begin(), places.end(), [](const Place &p) { return !p.used; });
        if (place == places.end())
            return false;
        place->used = true;
        place->taken = false;
        place->order = arrived++;
        place->view = view;
        place->view.data = place->data.data();
        place->view.loan = static_cast<std::uint64_t>(place - places.begin()) + 1;
        if (view.len != 0)
            std::memcpy(place->data.data(), view.data, view.len);
        received++;
        return true;
    }

    /* Returns the oldest sample of the reader that is not taken yet, or null. */
    Place *oldest()
    {
        Place *found = nullptr;
        for (Place &p : places)
            if (p.used && !p.taken && (!found || p.order < found->order))
                found = &p;
        return found;
    }
};

/* One lock and one condition for everything, because a skeleton need not be fast. */
class Network {
public:
    using Lock = std::unique_lock<std::mutex>;

    Lock lock() { return Lock(mutex); }
    void tell() { changed.notify_all(); }

    /* Waits for a change; returns true if the deadline has passed. */
    bool wait(Lock &held, std::int64_t deadline_ns)
    {
        using Clock = std::chrono::steady_clock; /* CLOCK_MONOTONIC, which the ABI uses for deadlines */
        if (deadline_ns == TB_FOREVER) {
            changed.wait(held);
            return false;
        }
        const Clock::time_point at{std::chrono::nanoseconds(std::max<std::int64_t>(deadline_ns, 0))};
        return changed.wait_until(held, at) == std::cv_status::timeout;
    }

    std::uint32_t peers(const Endpoint &e) const
    {
        return static_cast<std::uint32_t>(
            std::count_if(members.begin(), members.end(), [&](const Endpoint *m) { return e.meets(*m); }));
    }

    void join(Endpoint &e)
    {
        members.push_back(&e);
        tell();
    }

    /* Closes an end point, and waits until no callback of it runs. */
    void leave(Lock &held, Endpoint &e)
    {
        e.closed = true;
        members.erase(std::remove(members.begin(), members.end(), &e), members.end());
        tell();
        while (e.inside != 0)
            wait(held, TB_FOREVER);
    }

    const std::vector<Endpoint *> &all() const { return members; }

private:
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Endpoint *> members;
};

} // namespace loopback

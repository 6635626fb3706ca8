/* SPDX-License-Identifier: Apache-2.0 */
#include "send.hpp"

#include <deque>
#include <vector>

#include "endpoint.hpp"
#include "fail.hpp"

namespace tb {

/* Writes a sample; returns the code of DDS. */
static uint32_t write(Endpoint &e, uint64_t seq, const uint8_t *data, uint64_t len)
{
    Sample sample{seq, data, len, nullptr};
    return number(e.writer->write(&sample, rtps::c_InstanceHandle_Unknown));
}

/* A write that a listener requested while this thread was inside another write. */
struct Later {
    Endpoint *endpoint;
    uint64_t seq;
    std::vector<uint8_t> payload;
};

static thread_local bool writing = false;
static thread_local std::vector<Later> later;
static thread_local size_t waiting = 0;

/* Keeps a write until the outer write is complete. The elements are used again, so memory is allocated only at
 * first. */
static void postpone(Endpoint &e, uint64_t seq, const uint8_t *data, uint64_t len)
{
    if (waiting == later.size())
        later.emplace_back();
    Later &place = later[waiting++];
    place.endpoint = &e;
    place.seq = seq;
    place.payload.assign(data, data + len);
}

/* Writes with delivery inside the process: a write runs the listeners of its readers on this thread, with the locks
 * of writer and reader held. A write from such a listener is postponed until the outer write is complete: if writes
 * were nested, two ends that answer each other would deadlock. */
static uint32_t write_inside(Endpoint &e, uint64_t seq, const uint8_t *data, uint64_t len)
{
    if (writing) {
        postpone(e, seq, data, len);
        return RET_OK;
    }
    writing = true;
    uint32_t code = write(e, seq, data, len);
    for (size_t i = 0; i < waiting; i++) {
        Later next = std::move(later[i]);
        Inside inside(*next.endpoint);
        if (inside.open())
            write(*next.endpoint, next.seq, next.payload.data(), next.payload.size());
        later[i].payload = std::move(next.payload);
    }
    waiting = 0;
    writing = false;
    return code;
}

int send(Endpoint &e, uint64_t seq, const uint8_t *data, uint64_t len)
{
    if (!e.writer)
        return fail(TB_EINVAL, "end point %u is a reader", e.id);
    if (len > e.max_len)
        return fail(TB_ETOOBIG, "%llu B of payload; end point %u was made for %llu B",
                    static_cast<unsigned long long>(len), e.id, static_cast<unsigned long long>(e.max_len));
    bool inside = e.options.transport == Transport::intra_process || !e.options.config.empty();
    uint32_t code = inside ? write_inside(e, seq, data, len) : write(e, seq, data, len);
    switch (code) {
    case RET_OK:
        e.sent.fetch_add(1, std::memory_order_relaxed);
        return TB_OK;
    case RET_TIMEOUT:
        return e.never_blocks
                   ? fail(TB_EWOULDBLOCK, "the writer's history is full")
                   : fail(TB_ETIMEDOUT, "the writer's history stayed full for reliability.max_blocking_time");
    case RET_OUT_OF_RESOURCES:
        return fail(TB_EWOULDBLOCK, "the writer has no memory left for another sample");
    default:
        return fail(TB_EIO, "write: Fast DDS returned code %u", code);
    }
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "session.hpp"

#include <cstring>

#include "fail.hpp"
#include "log.hpp"
#include "value.hpp"

namespace tb {

Session::Session(const Options &options, const tb_host &host) : options(options), host(host), participant(this->options)
{
    if (options.participants == 2)
        second = std::make_unique<Participant>(this->options);
    log::listen(host);
    std::string all;
    for (const std::string &key : options.ignored)
        all += (all.empty() ? "" : ", ") + key;
    if (!all.empty() && host.log)
        host.log(host.ctx, 1, ("`config` is used unchanged; these driver options have no effect: " + all).c_str());
}

Session::~Session()
{
    for (Endpoint *endpoint : alive()) {
        sets.without(endpoint);
        endpoint->close();
    }
    for (auto &chunk : chunks_) {
        Chunk *places = chunk.load();
        for (size_t i = 0; places && i < CHUNK; i++)
            delete (*places)[i].load();
        delete places;
    }
    log::forget(host);
}

Endpoint *Session::find(uint32_t id) const
{
    size_t index = static_cast<size_t>(id) - 1;
    if (id == 0 || index / CHUNK >= CHUNKS)
        return nullptr;
    Chunk *chunk = chunks_[index / CHUNK].load(std::memory_order_acquire);
    return chunk ? (*chunk)[index % CHUNK].load(std::memory_order_acquire) : nullptr;
}

uint32_t Session::create(const Wanted &wanted)
{
    std::lock_guard<std::mutex> lock(creating_);
    uint32_t created = created_.load(), id = created + 1;
    if (created == CHUNK * CHUNKS)
        throw Fail{TB_ENOMEM, "a session creates at most " + std::to_string(CHUNK * CHUNKS) + " end points"};
    Participant *home = &participant;
    std::vector<tb_kv> qos;
    for (size_t i = 0; i < wanted.qos_count; i++) {
        const tb_kv &kv = wanted.qos[i];
        if (!kv.key || std::strcmp(kv.key, "participant") != 0)
            qos.push_back(kv);
        else if (word(kv, TB_EINVAL, {"0", "1"}) == 1)
            home = second.get();
    }
    if (!home)
        throw Fail{TB_EINVAL, "participant=1: the session has one participant; open it with participants=2"};
    Wanted rest = wanted;
    rest.qos = qos.data();
    rest.qos_count = qos.size();
    auto endpoint = std::make_unique<Endpoint>(id, rest, host, options, *home, guards);
    auto &chunk = chunks_[created / CHUNK];
    if (!chunk.load())
        chunk.store(new Chunk{}, std::memory_order_release);
    (*chunk.load())[created % CHUNK].store(endpoint.release(), std::memory_order_release);
    created_.store(id);
    return id;
}

int Session::destroy(uint32_t id)
{
    Endpoint *endpoint = find(id);
    if (!endpoint || endpoint->closed.load())
        return closed(id);
    /* End points are destroyed one at a time, because entities and topics of Fast DDS are counted here. */
    std::lock_guard<std::mutex> lock(creating_);
    sets.without(endpoint);
    endpoint->close();
    return TB_OK;
}

void Session::settle(Endpoint &endpoint)
{
    std::lock_guard<std::mutex> lock(creating_);
    if (!endpoint.loans.out())
        endpoint.finish();
}

std::vector<Endpoint *> Session::alive() const
{
    std::vector<Endpoint *> all;
    for (uint32_t id = 1; id <= created_.load(); id++) {
        Endpoint *endpoint = find(id);
        if (endpoint && !endpoint->closed.load())
            all.push_back(endpoint);
    }
    return all;
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "fail.hpp"
#include "log.hpp"

namespace tb {

int closed(uint32_t id)
{
    return fail(TB_ECLOSED, "end point %u does not exist (any more)", id);
}

Endpoint::Endpoint(uint32_t id, const Wanted &wanted, const tb_host &host, const Options &options,
                   Participant &participant, Guards &guards)
    : id(id), kind(wanted.kind), mode(wanted.mode), max_len(wanted.max_len), tag(wanted.tag), host(host),
      topic(options.topic(wanted.topic)), options(options), participant(participant), guards_(guards)
{
    Policies policies = Policies::parse(wanted.qos, wanted.qos_count, kind == TB_WRITER);
    never_blocks = policies.max_blocking_time_ns == 0;
    topic_ = participant.topic(topic);
    try {
        if (kind == TB_WRITER)
            make_writer(policies);
        else
            make_reader(policies);
    } catch (...) {
        delete_entities();
        throw;
    }
}

Endpoint::~Endpoint()
{
    close();
    finish();
}

void Endpoint::delete_entities()
{
    waits.reset();
    if (condition)
        reader->delete_readcondition(condition);
    condition = nullptr;
    if (writer)
        participant.publisher->delete_datawriter(writer);
    if (reader)
        participant.subscriber->delete_datareader(reader);
    writer = nullptr;
    reader = nullptr;
    if (topic_)
        participant.give_back(topic_);
    topic_ = nullptr;
}

void Endpoint::close()
{
    if (closed.exchange(true))
        return;
    /* The trigger stays set until the last wait has seen it. */
    do {
        {
            std::lock_guard<std::mutex> lock(matched_mutex_);
            matched_changed_.notify_all();
        }
        guards_.closing.set_trigger_value(true);
        usleep(100);
    } while (inside.load());
    guards_.closing.set_trigger_value(false);
    if (writer)
        writer->set_listener(nullptr);
    if (reader)
        reader->set_listener(nullptr);
    if (!loans.out())
        delete_entities();
}

void Endpoint::finish()
{
    if (reader)
        loans.return_all(*reader);
    delete_entities();
}

/* If memory is not shared, data sharing uses the transport of Fast DDS instead, so such a peer does not count. */
bool Endpoint::counts(const Guid &peer) const
{
    if (options.transport != Transport::data_sharing || !options.config.empty())
        return true;
    Remote remote = participant.discovery.find(peer);
    const auto &shared = remote.data_sharing;
    return std::find(shared.begin(), shared.end(), memory_identity()) != shared.end();
}

void Endpoint::set_matched(const Guid &peer, bool there)
{
    int32_t now;
    {
        std::lock_guard<std::mutex> lock(matched_mutex_);
        matched_.erase(std::remove(matched_.begin(), matched_.end(), peer), matched_.end());
        if (there && counts(peer))
            matched_.push_back(peer);
        now = static_cast<int32_t>(matched_.size());
        matched_changed_.notify_all();
    }
    if (host.on_match)
        host.on_match(host.ctx, tag, now);
}

void Endpoint::on_publication_matched(Writer *, const fdds::PublicationMatchedStatus &status)
{
    set_matched(Guid(rtps::iHandle2GUID(status.last_subscription_handle)),
                status.current_count_change > 0);
}

void Endpoint::on_subscription_matched(Reader *, const fdds::SubscriptionMatchedStatus &status)
{
    set_matched(Guid(rtps::iHandle2GUID(status.last_publication_handle)),
                status.current_count_change > 0);
}

void Endpoint::on_data_available(Reader *from)
{
    Inside inside(*this);
    /* The member `reader` is not used, because a sample may arrive before create_datareader has returned. */
    if (inside.open())
        deliver(*this, *from);
}

std::vector<Guid> Endpoint::matched() const
{
    std::lock_guard<std::mutex> lock(matched_mutex_);
    return matched_;
}

int Endpoint::wait_matched(uint32_t peers, int64_t deadline_ns)
{
    Inside inside(*this);
    using Clock = std::chrono::steady_clock;
    std::unique_lock<std::mutex> lock(matched_mutex_);
    for (;;) {
        if (!inside.open())
            return tb::closed(id);
        if (matched_.size() >= peers)
            return TB_OK;
        int64_t now = now_ns();
        if (now >= deadline_ns)
            return fail(TB_ETIMEDOUT, "%zu of %u peers matched on %s", matched_.size(), peers, topic.c_str());
        int64_t step = std::min(deadline_ns - now, int64_t{3600} * 1000000000);
        matched_changed_.wait_until(lock, Clock::now() + std::chrono::nanoseconds(step));
    }
}

int Endpoint::wait_acked(int64_t deadline_ns)
{
    constexpr int64_t STEP = 20000000;
    if (!writer)
        return TB_OK;
    for (;;) {
        Inside inside(*this);
        if (!inside.open())
            return tb::closed(id);
        int64_t step = std::min(STEP, std::max(int64_t{0}, deadline_ns - now_ns()));
        uint32_t code = number(writer->wait_for_acknowledgments(Duration(0, static_cast<uint32_t>(step))));
        if (code == RET_OK)
            return TB_OK;
        if (code != RET_TIMEOUT)
            return fail(TB_EIO, "wait_for_acknowledgments: Fast DDS returned code %u", code);
        if (step < STEP)
            return fail(TB_ETIMEDOUT, "not all samples were acknowledged before the deadline");
    }
}

} // namespace tb

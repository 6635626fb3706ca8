/* SPDX-License-Identifier: Apache-2.0 */
#include "qos.hpp"

#include "value.hpp"

namespace tb {

static Duration native(int64_t ns)
{
    if (ns == INFINITE)
        return endless();
    return Duration(static_cast<int32_t>(ns / 1000000000), static_cast<uint32_t>(ns % 1000000000));
}

static int64_t duration(const tb_kv &kv)
{
    /* Durations on the wire have 32 bits of seconds. */
    return std::string(kv.value) == "infinite" ? INFINITE : number(kv, TB_EQOS, 0, int64_t{INT32_MAX} * 1000000000 - 1);
}

void Policies::set(const tb_kv &kv, bool writer)
{
    const std::string key = kv.key;
    given.insert(key);
    if (!writer && (key == "transport_priority" || key == "lifespan"))
        throw bad(TB_EQOS, kv, "this is a policy of writers, which readers do not have");
    if (key == "reliability")
        reliable = word(kv, TB_EQOS, {"best-effort", "reliable"}) == 1;
    else if (key == "reliability.max_blocking_time")
        max_blocking_time_ns = duration(kv);
    else if (key == "durability")
        transient_local = word(kv, TB_EQOS, {"volatile", "transient-local"}) == 1;
    else if (key == "history")
        keep_all = word(kv, TB_EQOS, {"keep-last", "keep-all"}) == 1;
    else if (key == "history.depth")
        depth = static_cast<int32_t>(number(kv, TB_EQOS, 1, INT32_MAX));
    else if (key == "deadline")
        deadline_ns = duration(kv);
    else if (key == "latency_budget")
        latency_budget_ns = duration(kv);
    else if (key == "resource_limits.max_samples")
        max_samples = std::string(kv.value) == "unlimited"
                          ? -1
                          : static_cast<int32_t>(number(kv, TB_EQOS, 1, INT32_MAX));
    else if (key == "transport_priority")
        transport_priority = static_cast<int32_t>(number(kv, TB_EQOS, 0, INT32_MAX));
    else if (key == "lifespan")
        lifespan_ns = duration(kv);
    else
        throw bad(TB_EQOS, kv, "the fastdds driver has no such QoS policy");
}

Policies Policies::parse(const tb_kv *kv, size_t n, bool writer)
{
    Policies p;
    if (n && !kv)
        throw Fail{TB_EQOS, "the list of policies is null"};
    for (size_t i = 0; i < n; i++) {
        if (!kv[i].key || !kv[i].value)
            throw Fail{TB_EQOS, "a policy is null"};
        p.set(kv[i], writer);
    }
    std::string depth = "history.depth=" + std::to_string(p.depth);
    if (p.keep_all && p.given.count("history.depth"))
        throw Fail{TB_EQOS, depth + ": contradicts history=keep-all"};
    if (!p.keep_all && p.max_samples > 0 && p.depth > p.max_samples)
        throw Fail{TB_EQOS, depth + " is more than resource_limits.max_samples=" + std::to_string(p.max_samples)};
    return p;
}

static void apply_writer_only(const Policies &p, fdds::DataWriterQos &qos, bool lifespan, bool priority)
{
    if (lifespan)
        qos.lifespan().duration = native(p.lifespan_ns);
    if (priority)
        qos.transport_priority().value = static_cast<uint32_t>(p.transport_priority);
}

static void apply_writer_only(const Policies &, fdds::DataReaderQos &, bool, bool) {}

template <class Qos> void Policies::apply(Qos &qos, bool only_given) const
{
    auto set = [&](const char *key) { return !only_given || given.count(key); };
    if (set("reliability"))
        qos.reliability().kind = reliable ? fdds::RELIABLE_RELIABILITY_QOS : fdds::BEST_EFFORT_RELIABILITY_QOS;
    if (set("reliability.max_blocking_time"))
        qos.reliability().max_blocking_time = native(max_blocking_time_ns);
    if (set("durability"))
        qos.durability().kind = transient_local ? fdds::TRANSIENT_LOCAL_DURABILITY_QOS : fdds::VOLATILE_DURABILITY_QOS;
    if (set("history"))
        qos.history().kind = keep_all ? fdds::KEEP_ALL_HISTORY_QOS : fdds::KEEP_LAST_HISTORY_QOS;
    if (set("history.depth"))
        qos.history().depth = depth;
    if (set("deadline"))
        qos.deadline().period = native(deadline_ns);
    if (set("latency_budget"))
        qos.latency_budget().duration = native(latency_budget_ns);
    if (set("resource_limits.max_samples"))
        qos.resource_limits().max_samples = max_samples;
    apply_writer_only(*this, qos, set("lifespan"), set("transport_priority"));
}

template void Policies::apply(fdds::DataWriterQos &, bool) const;
template void Policies::apply(fdds::DataReaderQos &, bool) const;

} // namespace tb

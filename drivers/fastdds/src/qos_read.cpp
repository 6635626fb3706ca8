/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts QoS policies from Fast DDS to strings.
 */
#include <map>

#include "qos.hpp"

using Texts = std::map<std::string, std::string>;

namespace tb::qos {

static std::string text(const Duration &duration)
{
    return duration == endless() ? "infinite" : std::to_string(duration.to_ns());
}

static std::string count(int32_t n)
{
    return n <= 0 ? "unlimited" : std::to_string(n);
}

/* The QoS policies that discovery transmits to the other side. */
static Texts common(const fdds::ReliabilityQosPolicy &reliability, const fdds::DurabilityQosPolicy &durability,
                    const fdds::DeadlineQosPolicy &deadline, const fdds::LatencyBudgetQosPolicy &budget)
{
    const char *durabilities[] = {"volatile", "transient-local", "transient", "persistent"};
    return {
        {"reliability", reliability.kind == fdds::RELIABLE_RELIABILITY_QOS ? "reliable" : "best-effort"},
        {"reliability.max_blocking_time", text(reliability.max_blocking_time)},
        {"durability", durabilities[durability.kind & 3]},
        {"deadline", text(deadline.period)},
        {"latency_budget", text(budget.duration)},
    };
}

Texts discovered(const EndpointData &d)
{
    Texts all = common(d.reliability, d.durability, d.deadline, d.latency_budget);
    if (d.lifespan)
        all["lifespan"] = text(d.lifespan->duration);
    return all;
}

template <class Qos> static Texts local(const Qos &q)
{
    Texts all = common(q.reliability(), q.durability(), q.deadline(), q.latency_budget());
    bool keep_all = q.history().kind == fdds::KEEP_ALL_HISTORY_QOS;
    all["history"] = keep_all ? "keep-all" : "keep-last";
    if (!keep_all)
        all["history.depth"] = std::to_string(q.history().depth);
    all["resource_limits.max_samples"] = count(q.resource_limits().max_samples);
    return all;
}

Texts own(const fdds::DataWriterQos &q)
{
    Texts all = local(q);
    all["lifespan"] = text(q.lifespan().duration);
    all["transport_priority"] = std::to_string(q.transport_priority().value);
    return all;
}

Texts own(const fdds::DataReaderQos &q)
{
    return local(q);
}

static std::string json(const Texts &texts)
{
    Object object;
    for (const auto &[key, value] : texts)
        object.put(key, value);
    return object.str();
}

std::string effective(const fdds::DataWriterQos &q)
{
    return json(own(q));
}

std::string effective(const fdds::DataReaderQos &q)
{
    return json(own(q));
}

std::string policy_name(uint32_t id)
{
    const char *names[] = {"invalid",           "user_data",         "durability",
                           "presentation",      "deadline",          "latency_budget",
                           "ownership",         "ownership_strength", "liveliness",
                           "time_based_filter", "partition",         "reliability",
                           "destination_order", "history",           "resource_limits"};
    return id < sizeof names / sizeof *names ? names[id] : "policy " + std::to_string(id);
}

static std::string policy(const char *key, const std::vector<std::string> &values, bool open_ended)
{
    Object object;
    object.put("policy", key).raw("values", strings(values));
    if (open_ended)
        object.raw("open_ended", "true");
    return object.str();
}

std::string described()
{
    return array({
        policy("reliability", {"reliable", "best-effort"}, false),
        policy("reliability.max_blocking_time", {"0", "100000000", "infinite"}, true),
        policy("durability", {"volatile", "transient-local"}, false),
        policy("history", {"keep-last", "keep-all"}, false),
        policy("history.depth", {"1", "16"}, true),
        policy("deadline", {"1000000000", "infinite"}, true),
        policy("latency_budget", {"0", "1000000"}, true),
        policy("transport_priority", {"0", "10"}, true),
        policy("lifespan", {"1000000000", "infinite"}, true),
        policy("resource_limits.max_samples", {"1000", "unlimited"}, true),
    });
}

} // namespace tb::qos

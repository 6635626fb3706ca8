/* SPDX-License-Identifier: Apache-2.0
 *
 * Send settings of a writer, as Fast DDS reports these settings.
 */
#include "flow.hpp"

#include "endpoint.hpp"
#include "fail.hpp"
#include "json.hpp"

namespace tb {

static bool waits_for_acknowledgements(const fdds::DataWriterQos &qos)
{
    return qos.reliability().kind == fdds::RELIABLE_RELIABILITY_QOS && qos.history().kind == fdds::KEEP_ALL_HISTORY_QOS;
}

void limit_unacked(const Options &options, const Policies &policies, fdds::DataWriterQos &qos)
{
    if (!options.unacked_limit || !waits_for_acknowledgements(qos))
        return;
    auto limit = static_cast<int32_t>(options.unacked_limit);
    if (policies.given.count("resource_limits.max_samples") && policies.max_samples != limit)
        throw Fail{TB_EQOS, "resource_limits.max_samples: contradicts unacked_limit=" + std::to_string(limit) +
                                ", which is the same setting here"};
    qos.resource_limits().max_samples = limit;
}

/* Whether a matched reader announces a multicast locator. Only the user's own configuration can cause this, because
 * this driver announces no multicast locators. */
static bool multicast_is_announced(Endpoint &e)
{
    for (const Guid &guid : e.matched())
        for (const std::string &locator : e.participant.discovery.find(guid).locators)
            if (locator.compare(0, 6, "udp:22") == 0 || locator.compare(0, 6, "udp:23") == 0)
                return true;
    return false;
}

std::string flow(Endpoint &e)
{
    if (!e.writer)
        throw Fail{TB_EINVAL, "query flow: end point " + std::to_string(e.id) + " is a reader"};
    const auto &qos = e.writer->get_qos();
    Object all, by;
    all.put("matched", static_cast<int64_t>(e.matched().size())).put("batching", "none");
    by.put("batching", qos.publish_mode().kind == fdds::ASYNCHRONOUS_PUBLISH_MODE
                           ? "Fast DDS has no batches; with publish_mode async, messages that wait may "
                             "share a datagram"
                           : "Fast DDS has no batches: every write sends its message");
    int32_t max_samples = qos.resource_limits().max_samples;
    if (!waits_for_acknowledgements(qos)) {
        by.put("unacked_limit", "none: only a reliable writer with history keep-all waits for acknowledgements");
    } else if (max_samples <= 0) {
        by.put("unacked_limit", "none: resource_limits.max_samples unlimited");
    } else {
        all.put("unacked_limit", static_cast<int64_t>(max_samples));
        by.put("unacked_limit", "resource_limits.max_samples of the writer, history keep-all");
    }
    bool multicast = multicast_is_announced(e);
    all.put("data", multicast ? "either" : "unicast");
    by.put("data", multicast ? "a matched reader announces a multicast locator"
                             : "no matched reader announces a multicast locator");
    by.put("retransmitted", "Fast DDS reports this only in statistics topics, which would send further messages "
                            "over the path");
    by.put("throttled", "Fast DDS does not count how often write waits");
    return all.raw("by", by.str()).str();
}

} // namespace tb

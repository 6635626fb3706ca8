/* SPDX-License-Identifier: Apache-2.0 */
#include "unmatched.hpp"

#include "endpoint.hpp"
#include "json.hpp"

namespace tb {

/* Name of the policy because of which Fast DDS last refused a match; empty if there is none. */
static std::string last_policy(const Endpoint &e)
{
    fdds::IncompatibleQosStatus status;
    if (e.writer)
        e.writer->get_offered_incompatible_qos_status(status);
    else
        e.reader->get_requested_incompatible_qos_status(status);
    return status.total_count ? qos::policy_name(status.last_policy_id) : "";
}

static std::string reason(const char *reason, const std::string &detail, const std::string &policy = "")
{
    Object all;
    all.put("reason", reason);
    if (!policy.empty())
        all.put("policy", policy);
    return all.put("detail", detail).str();
}

static std::string value(const std::map<std::string, std::string> &all, const std::string &policy)
{
    auto found = all.find(policy);
    return found == all.end() ? "another value" : found->second;
}

std::string unmatched(Endpoint &e)
{
    size_t matched = e.matched().size();
    if (matched)
        return reason("matched", std::to_string(matched) + " matched on " + e.topic);
    bool writer = e.kind == TB_WRITER;
    const std::string what = writer ? "reader" : "writer";
    const Discovery &discovery = e.participant.discovery;
    std::vector<Remote> found = discovery.on_topic(e.topic, writer);
    if (found.empty()) {
        std::string silent;
        for (const std::string &server : e.participant.silent_servers())
            silent += "; the discovery server at " + server + " has not answered";
        return reason("nothing seen", "no " + what + " of " + e.topic + " was discovered; " +
                                          std::to_string(discovery.participants()) + " other participants were discovered" +
                                          security_remark(e.participant, e.options.secured()) + silent);
    }
    const std::string own_type = e.options.type_name();
    const Remote *same = nullptr;
    for (const Remote &remote : found)
        if (!same && remote.type == own_type)
            same = &remote;
    auto who = [&](const Remote &r) { return "the " + what + " " + text(r.guid) + " of " + e.topic; };
    if (!same)
        return reason("type differs",
                      who(found[0]) + " has type " + found[0].type + ", but this end point has type " + own_type);
    std::string policy = last_policy(e);
    if (!policy.empty()) {
        auto own = writer ? qos::own(e.writer->get_qos()) : qos::own(e.reader->get_qos());
        std::string offered = value(writer ? own : same->qos, policy);
        std::string requested = value(writer ? same->qos : own, policy);
        return reason("incompatible QoS", policy + ": offered " + offered + ", requested " + requested, policy);
    }
    if (e.options.transport == Transport::data_sharing && e.options.config.empty())
        return reason("memory not shared",
                      who(*same) + (same->data_sharing.empty() ? " has data sharing off; use transport=data-sharing there"
                                                               : " sees another /dev/shm than this end point"));
    return reason("nothing seen",
                  who(*same) + " has the same type and no incompatible policy: the match is not complete yet");
}

} // namespace tb

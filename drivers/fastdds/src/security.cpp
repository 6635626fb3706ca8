/* SPDX-License-Identifier: Apache-2.0 */
#include "security.hpp"

#include "json.hpp"
#include "session.hpp"

namespace tb {

#if TB_FASTDDS_SHOWS_SECURITY
static std::string kind(bool is_protected, bool is_encrypted)
{
    return !is_protected ? "NONE" : is_encrypted ? "ENCRYPT" : "SIGN";
}

template <class Data> static EndpointProtection of_end_point(const Data &data)
{
    if (!(data.security_attributes_ & ENDPOINT_SECURITY_ATTRIBUTES_FLAG_IS_VALID))
        return {};
    rtps::security::EndpointSecurityAttributes is(data.security_attributes_);
    rtps::security::PluginEndpointSecurityAttributes by(data.plugin_security_attributes_);
    return {kind(is.is_submessage_protected, by.is_submessage_encrypted),
            kind(is.is_payload_protected, by.is_payload_encrypted)};
}

ParticipantProtection announced(const ParticipantData &data)
{
    if (!(data.security_attributes_ & PARTICIPANT_SECURITY_ATTRIBUTES_FLAG_IS_VALID))
        return {};
    rtps::security::ParticipantSecurityAttributes is(data.security_attributes_);
    rtps::security::PluginParticipantSecurityAttributes by(data.plugin_security_attributes_);
    return {kind(is.is_rtps_protected, by.is_rtps_encrypted),
            kind(is.is_discovery_protected, by.is_discovery_encrypted),
            kind(is.is_liveliness_protected, by.is_liveliness_encrypted)};
}
#else
template <class Data> static EndpointProtection of_end_point(const Data &)
{
    return {};
}

ParticipantProtection announced(const ParticipantData &)
{
    return {};
}
#endif

EndpointProtection announced(const ReaderData &data)
{
    return of_end_point(data);
}

EndpointProtection announced(const WriterData &data)
{
    return of_end_point(data);
}

/* The protection that the first matched end point of another participant announces, as members of JSON. */
static bool announced_by_peer(Session &session, Object &parts)
{
    for (Endpoint *e : session.alive()) {
        Inside inside(*e);
        if (!inside.open())
            continue;
        for (const Guid &guid : e->matched()) {
            const Discovery &discovery = e->participant.discovery;
            ParticipantProtection participant = discovery.protection(guid.guidPrefix);
            EndpointProtection end_point = discovery.find(guid).protection;
            if (participant.rtps.empty() || end_point.data.empty())
                continue;
            parts.put("rtps", participant.rtps)
                .put("discovery", participant.discovery)
                .put("liveliness", participant.liveliness)
                .put("metadata", end_point.metadata)
                .put("data", end_point.data);
            return true;
        }
    }
    return false;
}

std::string security(Session &session)
{
    if (!session.options.secured())
        return "null";
    Object all, parts;
    all.put("plugins", "PKI-DH, Access-Permissions, AES-GCM-GMAC");
    if (announced_by_peer(session, parts))
        all.raw("in_force", parts.str()).put("from", "announced by the matched participant");
    return all.str();
}

std::string security_remark(const Participant &participant, bool secured)
{
    size_t refused = participant.discovery.refused(), with = participant.discovery.secured();
    if (!secured)
        return with ? "; " + std::to_string(with) + " of them have DDS Security, and this participant has none" : "";
    std::string text = "; this participant has DDS Security";
    if (refused)
        text += ", and did not authenticate " + std::to_string(refused) +
                " participants: they have none, or their certificate or permissions are not accepted";
    return text;
}

} // namespace tb

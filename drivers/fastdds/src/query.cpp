/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to the queries that the loading program may make outside the hot path; every answer is JSON.
 */
#include "fail.hpp"
#include "flow.hpp"
#include "json.hpp"
#include "library.hpp"
#include "network.hpp"
#include "session.hpp"
#include "threads.hpp"
#include "unmatched.hpp"

namespace tb {

static std::string stats(Endpoint &e)
{
    Object all;
    all.put("matched", static_cast<int64_t>(e.matched().size()));
    if (e.writer)
        return all.put("sent", static_cast<int64_t>(e.sent.load())).str();
    all.put("received", static_cast<int64_t>(e.received.load()));
    all.put("damaged", static_cast<int64_t>(e.damaged.load()));
    all.put("overwritten", static_cast<int64_t>(e.overwritten.load()));
    if (e.reader) {
        fdds::SampleLostStatus lost;
        fdds::SampleRejectedStatus rejected;
        e.reader->get_sample_lost_status(lost);
        e.reader->get_sample_rejected_status(rejected);
        all.put("lost", lost.total_count).put("rejected", static_cast<int64_t>(rejected.total_count));
    }
    return all.str();
}

static std::string peers(Endpoint &e)
{
    std::vector<std::string> all;
    const Guid &own = e.participant.guid();
    for (const Guid &guid : e.matched()) {
        Remote remote = e.participant.discovery.find(guid);
        Guid participant(guid.guidPrefix, rtps::c_EntityId_RTPSParticipant);
        Object policies;
        for (const auto &[key, value] : remote.qos)
            policies.put(key, value);
        all.push_back(Object()
                          .put("guid", text(guid))
                          .put("participant", text(participant))
                          .put("type", remote.type)
                          .raw("locators", strings(remote.locators))
                          .raw("same_process", own.is_on_same_process_as(guid) ? "true" : "false")
                          .raw("data_sharing", remote.data_sharing.empty() ? "false" : "true")
                          .raw("qos", policies.str())
                          .str());
    }
    return array(all);
}

/* The locators to which a writer sends or at which a reader listens, as Fast DDS reports them. */
static std::string locators(Endpoint &e)
{
    eprosima::fastdds::rtps::LocatorList native;
    if (e.writer)
        e.writer->get_sending_locators(native);
    else
        e.reader->get_listening_locators(native);
    std::vector<std::string> texts;
    for (const auto &locator : native)
        texts.push_back(text(locator));
    fdds::DataSharingKind sharing =
        e.writer ? e.writer->get_qos().data_sharing().kind() : e.reader->get_qos().data_sharing().kind();
    const char *word = sharing == fdds::DataSharingKind::ON    ? "on"
                       : sharing == fdds::DataSharingKind::OFF ? "off"
                                                               : "auto";
    Object all;
    all.put("topic", e.topic).put("kind", e.writer ? "writer" : "reader").raw("locators", strings(texts));
    all.put("data_sharing", word);
    if (e.writer) {
        const auto &qos = e.writer->get_qos();
        bool async = qos.publish_mode().kind == fdds::ASYNCHRONOUS_PUBLISH_MODE;
        all.put("publish_mode", async ? "async" : "sync");
        all.put("heartbeat_period_ns", heartbeat_period(qos.reliable_writer_qos().times).to_ns());
    }
    return all.str();
}

static std::string transport(Session &session)
{
    const Options &o = session.options;
    fdds::DomainParticipantQos qos;
    session.participant.participant->get_qos(qos);
    const auto &wire = qos.wire_protocol();
    uint16_t first = static_cast<uint16_t>(wire.port.getMulticastPort(o.domain));
    std::vector<std::string> transports;
    for (const auto &t : qos.transport().user_transports)
        transports.push_back(Object()
                                 .put("max_message_size", static_cast<int64_t>(t->max_message_size()))
                                 .put("send_buffer", static_cast<int64_t>(t->min_send_buffer_size()))
                                 .str());
    Object ends;
    for (Endpoint *e : session.alive()) {
        Inside inside(*e);
        if (inside.open())
            ends.raw(std::to_string(e->id), locators(*e));
    }
    std::vector<std::string> participants{text(session.participant.guid())};
    if (session.second)
        participants.push_back(text(session.second->guid()));
    bool shared = o.config.empty() && o.transport != Transport::udp;
    return Object()
        .put("transport", o.transport_name())
        .put("library", "Fast DDS " TB_FASTDDS_VERSION)
        .put("domain", o.domain)
        .put("participant", text(session.participant.guid()))
        .raw("participants", strings(participants))
        .raw("builtin_transports", qos.transport().use_builtin_transports ? "true" : "false")
        .raw("transports", array(transports))
        .put("intra_process", library::intra_process())
        .raw("shared_memory", o.config.empty() ? (shared ? "true" : "false") : "null")
        .raw("discovery", session.participant.found_by())
        .raw("security", security(session))
        .raw("end_points", ends.str())
        .raw("sockets", array(udp_sockets(first, static_cast<uint16_t>(first + 249))))
        .str();
}

std::string answer(Session &session, Endpoint *e, const std::string &what)
{
    if (what == "transport")
        return transport(session);
    if (what == "threads")
        return threads::json();
    if (what == "peers")
        return e ? peers(*e) : session.participant.discovery.json();
    if (what == "stats") {
        if (e)
            return stats(*e);
        Object all;
        for (Endpoint *each : session.alive()) {
            Inside inside(*each);
            if (inside.open())
                all.raw(std::to_string(each->id), stats(*each));
        }
        return all.str();
    }
    if (what != "qos" && what != "unmatched" && what != "flow")
        throw Fail{TB_EUNSUPPORTED,
                   "query " + what + ": this question is not known; the known questions are qos stats peers unmatched transport threads flow"};
    if (!e)
        throw Fail{TB_EINVAL, "query " + what + " needs an end point"};
    if (what == "unmatched")
        return unmatched(*e);
    if (what == "flow")
        return flow(*e);
    return e->writer ? qos::effective(e->writer->get_qos()) : qos::effective(e->reader->get_qos());
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "participant.hpp"

#include <set>

#include "fail.hpp"
#include "json.hpp"
#include "library.hpp"
#include "log.hpp"

namespace tb {

static std::mutex indices_mutex;
static std::set<uint32_t> indices;

Participant::Index::Index() : value(0)
{
    std::lock_guard<std::mutex> lock(indices_mutex);
    while (!indices.insert(value).second)
        value++;
}

Participant::Index::~Index()
{
    std::lock_guard<std::mutex> lock(indices_mutex);
    indices.erase(value);
}

Participant::Participant(const Options &options) : type_name_(options.type_name())
{
    library::enter(options);
    try {
        make(options);
    } catch (...) {
        unmake();
        throw;
    }
}

void Participant::make(const Options &options)
{
    log::Capture capture;
    auto *factory = fdds::DomainParticipantFactory::get_instance();
    participant = factory->create_participant(options.domain, participant_qos(options, index_.value),
                                              &discovery, fdds::StatusMask::none());
    if (!participant)
        throw Fail{TB_EIO, "create_participant: " + capture.complaints("Fast DDS refuses and does not say why")};
    auto type = std::make_unique<SampleType>(type_name_.c_str());
    SampleType *observed = type.get();
    fdds::TypeSupport support(type.release());
    if (number(support.register_type(participant)) != RET_OK)
        throw Fail{TB_EIO, "register_type: " + capture.complaints("Fast DDS refuses the type")};
    type_ = observed;
    publisher = participant->create_publisher(fdds::PUBLISHER_QOS_DEFAULT);
    subscriber = participant->create_subscriber(fdds::SUBSCRIBER_QOS_DEFAULT);
    if (!publisher || !subscriber)
        throw Fail{TB_EIO, "create_publisher: " + capture.complaints("Fast DDS refuses and does not say why")};
}

void Participant::unmake()
{
    if (participant) {
        participant->set_listener(nullptr, fdds::StatusMask::none());
        participant->delete_contained_entities();
        fdds::DomainParticipantFactory::get_instance()->delete_participant(participant);
    }
    library::leave();
}

Participant::~Participant()
{
    unmake();
}

rtps::BuiltinAttributes Participant::builtin() const
{
    fdds::DomainParticipantQos qos;
    participant->get_qos(qos);
    return qos.wire_protocol().builtin;
}

std::vector<std::string> Participant::silent_servers() const
{
    std::vector<std::string> all;
    each_server(builtin().discovery_config, [&](const Locator &locator, const Prefix *prefix) {
        if (prefix ? !discovery.knows(*prefix) : !discovery.participants())
            all.push_back(text(locator));
    });
    return all;
}

std::string Participant::found_by() const
{
    using Protocol = rtps::DiscoveryProtocol;
    auto all = builtin();
    Protocol is = all.discovery_config.discoveryProtocol;
    std::vector<std::string> servers, asked;
    each_server(all.discovery_config,
                [&](const Locator &locator, const Prefix *) { servers.push_back(text(locator)); });
    for (const auto &locator : all.initialPeersList)
        asked.push_back(text(locator));
    return Object()
        .put("protocol", is == Protocol::CLIENT   ? "client"
                         : is == Protocol::SERVER ? "server"
                         : is == Protocol::SIMPLE ? "simple"
                                                  : "other")
        .raw("servers", strings(servers))
        .raw("silent_servers", strings(silent_servers()))
        .raw("asked", strings(asked))
        .str();
}

fdds::Topic *Participant::topic(const std::string &name)
{
    auto *known = dynamic_cast<fdds::Topic *>(participant->lookup_topicdescription(name));
    if (!known) {
        log::Capture capture;
        known = participant->create_topic(name, type_name_, fdds::TOPIC_QOS_DEFAULT);
        if (!known)
            throw Fail{TB_EIO, "create_topic " + name + ": " + capture.complaints("Fast DDS refuses the topic")};
    }
    topics_[name]++;
    return known;
}

void Participant::give_back(fdds::Topic *topic)
{
    auto found = topics_.find(topic->get_name());
    if (found != topics_.end() && --found->second == 0) {
        topics_.erase(found);
        participant->delete_topic(topic);
    }
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a participant of Fast DDS from the options. Every setting is explicit, because defaults could change.
 */
#pragma once

#include <memory>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>

#include "discovery.hpp"
#include "options.hpp"
#include "sample.hpp"

namespace tb {

/* A participant with publisher, subscriber and type; the destructor deletes all of them. */
class Participant
{
public:
    explicit Participant(const Options &options);
    ~Participant();
    Participant(const Participant &) = delete;
    Participant &operator=(const Participant &) = delete;

    /* Returns the topic with this name, which all end points with the name share. A topic must be released as often
     * as it was acquired. */
    eprosima::fastdds::dds::Topic *topic(const std::string &name);
    void give_back(eprosima::fastdds::dds::Topic *topic);

    /* Prepares the type object for the next end point. */
    void prepare_type(uint64_t max_len, bool bounded) { type_->prepare(max_len, bounded); }

    const Guid &guid() const { return participant->guid(); }

    /* Discovery settings of the participant as JSON: the settings given to Fast DDS, read back. */
    std::string found_by() const;

    /* Locators of the discovery servers that have not answered. */
    std::vector<std::string> silent_servers() const;

    Discovery discovery;
    eprosima::fastdds::dds::DomainParticipant *participant = nullptr;
    eprosima::fastdds::dds::Publisher *publisher = nullptr;
    eprosima::fastdds::dds::Subscriber *subscriber = nullptr;

private:
    rtps::BuiltinAttributes builtin() const;
    void make(const Options &options);
    void unmake();

    /* The lowest index that no other participant of this process has. The index of Fast DDS itself only grows, so in
     * a long-lived process the ports would reach the ports of other domains, and peers would not find the
     * participant. */
    class Index
    {
    public:
        Index();
        ~Index();
        Index(const Index &) = delete;
        Index &operator=(const Index &) = delete;
        uint32_t value;
    };

    Index index_;
    std::string type_name_;
    SampleType *type_ = nullptr; /* owned by the participant's registry */
    std::map<std::string, uint32_t> topics_;
};

/* Makes the QoS of a participant from the options; `index` is the number of the participant in its process. */
eprosima::fastdds::dds::DomainParticipantQos participant_qos(const Options &options, uint32_t index);

/* Identity of the shared memory of this process: data sharing needs equal identities on both sides. */
uint64_t memory_identity();

} // namespace tb

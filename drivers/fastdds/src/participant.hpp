/* SPDX-License-Identifier: Apache-2.0
 *
 * From options to a participant of Fast DDS. Nothing is left to a default that could change.
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

/* A participant with publisher, subscriber and type; the destructor takes all of it back. */
class Participant
{
public:
    explicit Participant(const Options &options);
    ~Participant();
    Participant(const Participant &) = delete;
    Participant &operator=(const Participant &) = delete;

    /* A topic, one object for all end points of its name; given back as often as it was taken. */
    eprosima::fastdds::dds::Topic *topic(const std::string &name);
    void give_back(eprosima::fastdds::dds::Topic *topic);

    /* Prepares the type for the next end point. */
    void prepare_type(uint64_t max_len, bool bounded) { type_->prepare(max_len, bounded); }

    const Guid &guid() const { return participant->guid(); }

    /* How others are found, as JSON: what Fast DDS was given, read back. */
    std::string found_by() const;

    /* Discovery servers that it has not heard, as locators. */
    std::vector<std::string> silent_servers() const;

    Discovery discovery;
    eprosima::fastdds::dds::DomainParticipant *participant = nullptr;
    eprosima::fastdds::dds::Publisher *publisher = nullptr;
    eprosima::fastdds::dds::Subscriber *subscriber = nullptr;

private:
    eprosima::fastrtps::rtps::BuiltinAttributes builtin() const;
    void make(const Options &options);
    void unmake();

    /* The lowest number that no other participant of this process has. Fast DDS counts on for ever, so that in a long
     * life ports would run into those of other domains and peers would look for them in vain. */
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

/* What Fast DDS is asked for; `index` is the participant's among those of its process. */
eprosima::fastdds::dds::DomainParticipantQos participant_qos(const Options &options, uint32_t index);

/* The identity of the shared memory that this process sees: data sharing needs the same on both sides. */
uint64_t memory_identity();

} // namespace tb

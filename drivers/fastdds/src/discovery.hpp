/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is there: participants and end points as discovery tells of them.
 */
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fastdds/dds/domain/DomainParticipantListener.hpp>

namespace tb {

using Guid = eprosima::fastrtps::rtps::GUID_t;
using Prefix = eprosima::fastrtps::rtps::GuidPrefix_t;

/* As 32 hexadecimal digits in four groups. */
std::string text(const Guid &guid);

/* A locator as `udp:192.0.2.1:7411` or `shm:7411`. */
std::string text(const eprosima::fastrtps::rtps::Locator_t &locator);

/* An end point of another participant. */
struct Remote {
    Guid guid;
    std::string topic, type;
    std::map<std::string, std::string> qos;
    std::vector<std::string> locators;
    std::vector<uint64_t> data_sharing; /* the memories that it shares; none where data sharing is off */
};

class Discovery : public eprosima::fastdds::dds::DomainParticipantListener
{
public:
    /* The readers, or else the writers, of a topic. */
    std::vector<Remote> on_topic(const std::string &topic, bool readers) const;

    /* One end point; without a topic if it is not known. */
    Remote find(const Guid &guid) const;

    size_t participants() const;

    /* A participant with this prefix is there. */
    bool knows(const Prefix &prefix) const;

    /* All participants, as a JSON object by their GUID. */
    std::string json() const;

private:
    using Participant = eprosima::fastdds::dds::DomainParticipant;
    void on_participant_discovery(Participant *, eprosima::fastrtps::rtps::ParticipantDiscoveryInfo &&info) override;
    void on_subscriber_discovery(Participant *, eprosima::fastrtps::rtps::ReaderDiscoveryInfo &&info) override;
    void on_publisher_discovery(Participant *, eprosima::fastrtps::rtps::WriterDiscoveryInfo &&info) override;
    void keep(bool gone, Remote remote, bool reader);

    struct Known {
        std::string name;
        std::vector<std::string> locators;
    };
    mutable std::mutex mutex_;
    std::map<Guid, Known> participants_;
    std::map<Guid, Remote> readers_, writers_;
};

} // namespace tb

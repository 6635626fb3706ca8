/* SPDX-License-Identifier: Apache-2.0
 *
 * Participants and end points that discovery has reported.
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

/* Formats a GUID as 32 hexadecimal digits in four groups. */
std::string text(const Guid &guid);

/* Formats a locator as `udp:192.0.2.1:7411` or `shm:7411`. */
std::string text(const eprosima::fastrtps::rtps::Locator_t &locator);

/* An end point of another participant, as discovery reports it. */
struct Remote {
    Guid guid;
    std::string topic, type;
    std::map<std::string, std::string> qos;
    std::vector<std::string> locators;
    std::vector<uint64_t> data_sharing; /* identities of shared memory; empty if data sharing is off */
};

class Discovery : public eprosima::fastdds::dds::DomainParticipantListener
{
public:
    /* All readers of a topic, or all writers of the topic. */
    std::vector<Remote> on_topic(const std::string &topic, bool readers) const;

    /* One end point of another participant; its topic is empty if the end point is not known. */
    Remote find(const Guid &guid) const;

    size_t participants() const;

    /* Whether a participant with this prefix exists. */
    bool knows(const Prefix &prefix) const;

    /* All known participants as a JSON object, with their GUIDs as keys. */
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * Participants and end points that discovery has reported.
 */
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "security.hpp"
#include "versions.hpp"

namespace tb {

/* Formats a GUID as 32 hexadecimal digits in four groups. */
std::string text(const Guid &guid);

/* Formats a locator as `udp:192.0.2.1:7411` or `shm:7411`. */
std::string text(const Locator &locator);

/* An end point of another participant, as discovery reports it. */
struct Remote {
    Guid guid;
    std::string topic, type;
    std::map<std::string, std::string> qos;
    std::vector<std::string> locators;
    std::vector<uint64_t> data_sharing; /* identities of shared memory; empty if data sharing is off */
    EndpointProtection protection;
};

class Discovery : public ParticipantListener
{
public:
    /* All readers of a topic, or all writers of the topic. */
    std::vector<Remote> on_topic(const std::string &topic, bool readers) const;

    /* One end point of another participant; its topic is empty if the end point is not known. */
    Remote find(const Guid &guid) const;

    size_t participants() const;

    /* Whether a participant with this prefix exists. */
    bool knows(const Prefix &prefix) const;

    /* What the participant with this prefix announces about DDS Security. */
    ParticipantProtection protection(const Prefix &prefix) const;

    /* Number of participants that announce DDS Security. */
    size_t secured() const;

    /* Number of participants that were not authenticated. */
    size_t refused() const;

    /* All known participants as a JSON object, with their GUIDs as keys. */
    std::string json() const;

private:
    void participant(const ParticipantData &data, bool gone) override;
    void reader(const ReaderData &data, bool gone) override;
    void writer(const WriterData &data, bool gone) override;
#if HAVE_SECURITY
    void onParticipantAuthentication(fdds::DomainParticipant *, rtps::ParticipantAuthenticationInfo &&info) override;
#endif
    void keep(bool gone, Remote remote, bool reader);

    struct Known {
        std::string name;
        std::vector<std::string> locators;
        ParticipantProtection protection;
    };
    mutable std::mutex mutex_;
    std::map<Guid, Known> participants_;
    std::map<Guid, Remote> readers_, writers_;
    std::set<Guid> refused_;
};

} // namespace tb

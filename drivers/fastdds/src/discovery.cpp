/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery.hpp"

#include <cstdio>

#include <fastrtps/utils/IPLocator.h>

#include "json.hpp"
#include "qos.hpp"

using namespace eprosima::fastrtps::rtps;
namespace fdds = eprosima::fastdds::dds;

namespace tb {

std::string text(const Guid &guid)
{
    std::string out;
    char hex[4];
    for (int i = 0; i < 16; i++) {
        uint8_t octet = i < 12 ? guid.guidPrefix.value[i] : guid.entityId.value[i - 12];
        std::snprintf(hex, sizeof hex, "%02x", octet);
        out += (i && i % 4 == 0 ? ":" : "") + std::string(hex);
    }
    return out;
}

std::string text(const Locator_t &locator)
{
    std::string port = std::to_string(IPLocator::getPhysicalPort(locator));
    switch (locator.kind) {
    case LOCATOR_KIND_UDPv4:
        return "udp:" + IPLocator::toIPv4string(locator) + ":" + port;
    case LOCATOR_KIND_SHM:
        return "shm:" + std::to_string(locator.port);
    default:
        return "kind " + std::to_string(locator.kind) + ":" + port;
    }
}

template <class Data> static Remote remote(const Data &data)
{
    Remote r;
    r.guid = data.guid();
    r.topic = data.topicName().to_string();
    r.type = data.typeName().to_string();
    r.qos = qos::discovered(data.m_qos);
    for (const Locator_t &locator : data.remote_locators().unicast)
        r.locators.push_back(text(locator));
    for (const Locator_t &locator : data.remote_locators().multicast)
        r.locators.push_back(text(locator));
    r.data_sharing = data.m_qos.data_sharing.domain_ids();
    return r;
}

void Discovery::keep(bool gone, Remote remote, bool reader)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto &all = reader ? readers_ : writers_;
    if (gone)
        all.erase(remote.guid);
    else
        all[remote.guid] = std::move(remote);
}

void Discovery::on_subscriber_discovery(Participant *, ReaderDiscoveryInfo &&info)
{
    keep(info.status == ReaderDiscoveryInfo::REMOVED_READER, remote(info.info), true);
}

void Discovery::on_publisher_discovery(Participant *, WriterDiscoveryInfo &&info)
{
    keep(info.status == WriterDiscoveryInfo::REMOVED_WRITER, remote(info.info), false);
}

void Discovery::on_participant_discovery(Participant *, ParticipantDiscoveryInfo &&info)
{
    using Info = ParticipantDiscoveryInfo;
    std::lock_guard<std::mutex> lock(mutex_);
    if (info.status == Info::REMOVED_PARTICIPANT || info.status == Info::DROPPED_PARTICIPANT) {
        participants_.erase(info.info.m_guid);
        return;
    }
    Known known{info.info.m_participantName.to_string(), {}};
    for (const Locator_t &locator : info.info.default_locators.unicast)
        known.locators.push_back(text(locator));
    participants_[info.info.m_guid] = known;
}

std::vector<Remote> Discovery::on_topic(const std::string &topic, bool readers) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Remote> found;
    for (const auto &[guid, remote] : readers ? readers_ : writers_)
        if (remote.topic == topic)
            found.push_back(remote);
    return found;
}

Remote Discovery::find(const Guid &guid) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto *all : {&readers_, &writers_}) {
        auto found = all->find(guid);
        if (found != all->end())
            return found->second;
    }
    Remote unknown;
    unknown.guid = guid;
    return unknown;
}

size_t Discovery::participants() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return participants_.size();
}

bool Discovery::knows(const Prefix &prefix) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[guid, known] : participants_)
        if (guid.guidPrefix == prefix)
            return true;
    return false;
}

std::string Discovery::json() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    Object all;
    for (const auto &[guid, known] : participants_)
        all.raw(text(guid), Object().put("name", known.name).raw("locators", strings(known.locators)).str());
    return all.str();
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "discovery.hpp"

#include <cstdio>

#include "json.hpp"
#include "qos.hpp"

namespace tb {

using rtps::IPLocator;

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

std::string text(const Locator &locator)
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
    EndpointData found = end_point(data);
    Remote r;
    r.guid = found.guid;
    r.topic = found.topic;
    r.type = found.type;
    r.qos = qos::discovered(found);
    for (const Locator &locator : found.locators.unicast)
        r.locators.push_back(text(locator));
    for (const Locator &locator : found.locators.multicast)
        r.locators.push_back(text(locator));
    r.data_sharing = found.data_sharing.domain_ids();
    r.protection = announced(data);
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

void Discovery::reader(const ReaderData &data, bool gone)
{
    keep(gone, remote(data), true);
}

void Discovery::writer(const WriterData &data, bool gone)
{
    keep(gone, remote(data), false);
}

void Discovery::participant(const ParticipantData &data, bool gone)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const Guid &guid = guid_of(data);
    if (gone) {
        participants_.erase(guid);
        return;
    }
    Known known{name_of(data), {}, announced(data)};
    for (const Locator &locator : data.default_locators.unicast)
        known.locators.push_back(text(locator));
    participants_[guid] = known;
}

#if HAVE_SECURITY
void Discovery::onParticipantAuthentication(fdds::DomainParticipant *, rtps::ParticipantAuthenticationInfo &&info)
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (info.status == rtps::ParticipantAuthenticationInfo::UNAUTHORIZED_PARTICIPANT)
        refused_.insert(info.guid);
    else
        refused_.erase(info.guid);
}
#endif

ParticipantProtection Discovery::protection(const Prefix &prefix) const
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto &[guid, known] : participants_)
        if (guid.guidPrefix == prefix)
            return known.protection;
    return {};
}

size_t Discovery::secured() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    size_t count = 0;
    for (const auto &[guid, known] : participants_)
        count += !known.protection.rtps.empty();
    return count;
}

size_t Discovery::refused() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return refused_.size();
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

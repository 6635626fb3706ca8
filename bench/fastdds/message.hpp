/* SPDX-License-Identifier: Apache-2.0
 *
 * The common parts of the plain programs over Fast DDS 2.9: the message, the clock, and a participant without built-in
 * transports.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

struct Message {
    uint64_t number = 0;
    std::vector<uint8_t> octets;
};

/* The type struct { unsigned long long number; sequence<octet> octets; } in plain CDR, little-endian. */
struct MessageType : TopicDataType {
    explicit MessageType(uint32_t most)
    {
        setName("bench::Message");
        m_typeSize = 4 + 8 + 4 + most + 4;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *to) override
    {
        const auto &m = *static_cast<Message *>(data);
        const uint32_t n = static_cast<uint32_t>(m.octets.size());
        if (to->max_size < 16 + n)
            return false;
        const uint8_t head[4] = {0, CDR_LE, 0, 0};
        std::memcpy(to->data, head, 4);
        std::memcpy(to->data + 4, &m.number, 8);
        std::memcpy(to->data + 12, &n, 4);
        std::memcpy(to->data + 16, m.octets.data(), n);
        to->encapsulation = CDR_LE;
        to->length = 16 + n;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *from, void *data) override
    {
        auto &m = *static_cast<Message *>(data);
        uint32_t n = 0;
        if (from->length < 16)
            return false;
        std::memcpy(&m.number, from->data + 4, 8);
        std::memcpy(&n, from->data + 12, 4);
        if (n > from->length - 16)
            return false;
        m.octets.resize(n);
        std::memcpy(m.octets.data(), from->data + 16, n);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override
    {
        return [data] { return static_cast<uint32_t>(16 + static_cast<Message *>(data)->octets.size()); };
    }
    void *createData() override { return new Message; }
    void deleteData(void *data) override { delete static_cast<Message *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
};

inline int64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Makes a participant over UDP between two addresses, or over shared memory (OWN `shm`), with the sizes that the
 * driver `fastdds` sets. */
inline DomainParticipant *participant(uint32_t domain, const std::string &own, const std::string &other)
{
    using namespace eprosima::fastdds::rtps;
    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    qos.transport().use_builtin_transports = false;
    if (own == "shm") {
        auto shm = std::make_shared<SharedMemTransportDescriptor>();
        shm->segment_size(16u << 20);
        shm->max_message_size(65500);
        qos.transport().user_transports.push_back(shm);
        qos.wire_protocol().builtin.avoid_builtin_multicast = true;
        return DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    }
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    udp->interfaceWhiteList = {own};
    udp->maxMessageSize = 65500;
    udp->receiveBufferSize = 4u << 20;
    udp->non_blocking_send = false;
    qos.transport().user_transports.push_back(udp);
    rtps::Locator_t peer(LOCATOR_KIND_UDPv4, 0);
    rtps::IPLocator::setIPv4(peer, other);
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    return DomainParticipantFactory::get_instance()->create_participant(domain, qos);
}

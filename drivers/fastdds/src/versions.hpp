/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that differs between Fast DDS 2.9, 2.14 and 3.x: the other files of the driver are the same for all of them.
 */
#pragma once

#if __has_include(<fastdds/config.hpp>)
#define TB_FASTDDS_3 1
#include <fastdds/LibrarySettings.hpp>
#include <fastdds/config.hpp>
#include <fastdds/dds/core/ReturnCode.hpp>
#include <fastdds/rtps/attributes/RTPSParticipantAttributes.hpp>
#include <fastdds/rtps/common/Locator.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.hpp>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.hpp>
#include <fastdds/utils/IPLocator.hpp>
#else
#define TB_FASTDDS_3 0
#include <fastdds/rtps/attributes/ServerAttributes.h>
#include <fastdds/rtps/builtin/data/ParticipantProxyData.h>
#include <fastdds/rtps/builtin/data/ReaderProxyData.h>
#include <fastdds/rtps/builtin/data/WriterProxyData.h>
#include <fastdds/rtps/common/Locator.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/attributes/LibrarySettingsAttributes.h>
#include <fastrtps/config.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>
#endif

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>

#if TB_FASTDDS_3
#define TB_FASTDDS_VERSION FASTDDS_VERSION_STR
#define TB_FASTDDS_NAMES_THREADS 1
#else
#define TB_FASTDDS_VERSION FASTRTPS_VERSION_STR
/* Since 2.13, Fast DDS itself gives names to its threads. */
#define TB_FASTDDS_NAMES_THREADS (FASTRTPS_VERSION_MAJOR == 2 && FASTRTPS_VERSION_MINOR >= 13)
#endif

/* Whether participants show what they announce about DDS Security: the listener of 3.x does not get it. */
#define TB_FASTDDS_SHOWS_SECURITY (HAVE_SECURITY && !TB_FASTDDS_3)

/* Whether a white list of interfaces can be used. Fast DDS 3 takes two network namespaces of one machine for one host, and drops
 * addresses of this host that are not in its own white list, so that ends in two namespaces never match. */
#define TB_FASTDDS_HAS_WHITE_LIST (!TB_FASTDDS_3)

namespace tb {

namespace fdds = eprosima::fastdds::dds;

#if TB_FASTDDS_3
namespace rtps = eprosima::fastdds::rtps;
using Duration = fdds::Duration_t;
using LibrarySettings = eprosima::fastdds::LibrarySettings;
using ReturnCode = fdds::ReturnCode_t;
using ParticipantData = rtps::ParticipantBuiltinTopicData;
using ReaderData = rtps::SubscriptionBuiltinTopicData;
using WriterData = rtps::PublicationBuiltinTopicData;
using eprosima::fastdds::INTRAPROCESS_FULL;
using eprosima::fastdds::INTRAPROCESS_OFF;
using eprosima::fastdds::INTRAPROCESS_USER_DATA_ONLY;
#else
namespace rtps = eprosima::fastrtps::rtps;
using Duration = eprosima::fastrtps::Duration_t;
using LibrarySettings = eprosima::fastrtps::LibrarySettingsAttributes;
using ReturnCode = eprosima::fastrtps::types::ReturnCode_t;
using ParticipantData = rtps::ParticipantProxyData;
using ReaderData = rtps::ReaderProxyData;
using WriterData = rtps::WriterProxyData;
using eprosima::fastrtps::INTRAPROCESS_FULL;
using eprosima::fastrtps::INTRAPROCESS_OFF;
using eprosima::fastrtps::INTRAPROCESS_USER_DATA_ONLY;
#endif

using Guid = rtps::GUID_t;
using Prefix = rtps::GuidPrefix_t;
using Locator = rtps::Locator_t;

/* Return codes of DDS (OMG DDS 1.4, 2.3.3), which all versions use. */
constexpr uint32_t RET_OK = 0, RET_OUT_OF_RESOURCES = 5, RET_TIMEOUT = 10, RET_NO_DATA = 11;

inline uint32_t number(const ReturnCode &code)
{
#if TB_FASTDDS_3
    return static_cast<uint32_t>(code);
#else
    return code();
#endif
}

inline Duration endless()
{
#if TB_FASTDDS_3
    return fdds::c_TimeInfinite;
#else
    return eprosima::fastrtps::c_TimeInfinite;
#endif
}

template <class Times> auto &heartbeat_period(Times &times)
{
#if TB_FASTDDS_3
    return times.heartbeat_period;
#else
    return times.heartbeatPeriod;
#endif
}

/* Settings of the whole process. Fast DDS 3 refuses to set them while a participant exists; the settings of open sessions
 * are equal then, or `load` of a configuration only reads them. */
inline LibrarySettings library_settings()
{
#if TB_FASTDDS_3
    LibrarySettings settings;
    fdds::DomainParticipantFactory::get_instance()->get_library_settings(settings);
    return settings;
#else
    return eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings();
#endif
}

inline void library_settings(const LibrarySettings &settings)
{
#if TB_FASTDDS_3
    fdds::DomainParticipantFactory::get_instance()->set_library_settings(settings);
#else
    eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
#endif
}

/* Makes a participant a client of the server number `id` at `locator`. */
inline void add_server(rtps::DiscoverySettings &discovery, int id, const Locator &locator)
{
#if TB_FASTDDS_3
    static_cast<void>(id);
    discovery.m_DiscoveryServers.push_back(locator);
#else
    eprosima::fastdds::rtps::RemoteServerAttributes server;
    eprosima::fastdds::rtps::get_server_client_default_guidPrefix(id, server.guidPrefix);
    server.metatrafficUnicastLocatorList.push_back(locator);
    discovery.m_DiscoveryServers.push_back(server);
#endif
}

/* The locators of the servers of a participant, each with the prefix of the server's GUID, which clients of Fast DDS 3 do
 * not know (null). */
template <class Visit> void each_server(const rtps::DiscoverySettings &discovery, Visit visit)
{
    for (const auto &server : discovery.m_DiscoveryServers)
#if TB_FASTDDS_3
        visit(server, nullptr);
#else
        for (const auto &locator : server.metatrafficUnicastLocatorList)
            visit(locator, &server.guidPrefix);
#endif
}

/* Switches off the exchange of types, which 3.x never does for a type without a type object. */
inline void without_type_lookup(rtps::BuiltinAttributes &builtin)
{
#if TB_FASTDDS_3
    static_cast<void>(builtin);
#else
    builtin.typelookup_config.use_client = builtin.typelookup_config.use_server = false;
#endif
}

/* What discovery reports about an end point; `lifespan` is null for a reader. */
struct EndpointData {
    const Guid guid;
    const std::string topic, type;
    const rtps::RemoteLocatorList &locators;
    const fdds::ReliabilityQosPolicy &reliability;
    const fdds::DurabilityQosPolicy &durability;
    const fdds::DeadlineQosPolicy &deadline;
    const fdds::LatencyBudgetQosPolicy &latency_budget;
    const fdds::LifespanQosPolicy *lifespan;
    const fdds::DataSharingQosPolicy &data_sharing;
};

inline const fdds::LifespanQosPolicy *lifespan_of(const ReaderData &)
{
    return nullptr;
}

#if TB_FASTDDS_3
inline const fdds::LifespanQosPolicy *lifespan_of(const WriterData &data)
{
    return &data.lifespan;
}

template <class Data> EndpointData end_point(const Data &d)
{
    return {d.guid,       d.topic_name.to_string(), d.type_name.to_string(), d.remote_locators, d.reliability,
            d.durability, d.deadline,               d.latency_budget,        lifespan_of(d),    d.data_sharing};
}

inline const Guid &guid_of(const ParticipantData &data)
{
    return data.guid;
}

inline std::string name_of(const ParticipantData &data)
{
    return data.participant_name.to_string();
}
#else
inline const fdds::LifespanQosPolicy *lifespan_of(const WriterData &data)
{
    return &data.m_qos.m_lifespan;
}

template <class Data> EndpointData end_point(const Data &d)
{
    const auto &q = d.m_qos;
    return {d.guid(),       d.topicName().to_string(), d.typeName().to_string(), d.remote_locators(), q.m_reliability,
            q.m_durability, q.m_deadline,              q.m_latencyBudget,        lifespan_of(d),      q.data_sharing};
}

inline const Guid &guid_of(const ParticipantData &data)
{
    return data.m_guid;
}

inline std::string name_of(const ParticipantData &data)
{
    return data.m_participantName.to_string();
}
#endif

/* The listener of a participant: the functions of Fast DDS call the same ones for all versions. */
class ParticipantListener : public fdds::DomainParticipantListener
{
protected:
    virtual void participant(const ParticipantData &data, bool gone) = 0;
    virtual void reader(const ReaderData &data, bool gone) = 0;
    virtual void writer(const WriterData &data, bool gone) = 0;

private:
    using Participant = fdds::DomainParticipant;
#if TB_FASTDDS_3
    using Change = rtps::ParticipantDiscoveryStatus;
    void on_participant_discovery(Participant *, Change is, const ParticipantData &data, bool &) override
    {
        participant(data, is == Change::REMOVED_PARTICIPANT || is == Change::DROPPED_PARTICIPANT);
    }
    void on_data_reader_discovery(Participant *, rtps::ReaderDiscoveryStatus is, const ReaderData &data, bool &) override
    {
        reader(data, is == rtps::ReaderDiscoveryStatus::REMOVED_READER);
    }
    void on_data_writer_discovery(Participant *, rtps::WriterDiscoveryStatus is, const WriterData &data, bool &) override
    {
        writer(data, is == rtps::WriterDiscoveryStatus::REMOVED_WRITER);
    }
#else
    void on_participant_discovery(Participant *, rtps::ParticipantDiscoveryInfo &&info) override
    {
        using Info = rtps::ParticipantDiscoveryInfo;
        participant(info.info, info.status == Info::REMOVED_PARTICIPANT || info.status == Info::DROPPED_PARTICIPANT);
    }
    void on_subscriber_discovery(Participant *, rtps::ReaderDiscoveryInfo &&info) override
    {
        reader(info.info, info.status == rtps::ReaderDiscoveryInfo::REMOVED_READER);
    }
    void on_publisher_discovery(Participant *, rtps::WriterDiscoveryInfo &&info) override
    {
        writer(info.info, info.status == rtps::WriterDiscoveryInfo::REMOVED_WRITER);
    }
#endif
};

/* A type with the same functions for all versions; `Type` has `write`, `read`, `size_of`, `make` and `unmake`. Sizes are in
 * bytes and contain the header of 4 bytes. */
template <class Type> class DataType : public fdds::TopicDataType
{
protected:
    using Payload = rtps::SerializedPayload_t;
#if TB_FASTDDS_3
    void name(const char *name) { set_name(name); }
    void set_largest(uint32_t bytes) { max_serialized_type_size = bytes; }

private:
    using Handle = rtps::InstanceHandle_t;
    bool serialize(const void *const data, Payload &payload, fdds::DataRepresentationId_t) override
    {
        return Type::write(data, payload);
    }
    bool deserialize(Payload &payload, void *data) override { return Type::read(payload, data); }
    uint32_t calculate_serialized_size(const void *const data, fdds::DataRepresentationId_t) override
    {
        return Type::size_of(data);
    }
    void *create_data() override { return Type::make(); }
    void delete_data(void *data) override { Type::unmake(data); }
    bool compute_key(Payload &, Handle &, bool) override { return false; }
    bool compute_key(const void *const, Handle &, bool) override { return false; }
#else
    void name(const char *name)
    {
        setName(name);
        m_isGetKeyDefined = false;
        /* Only the name identifies the type, as between DDS implementations of different vendors. */
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    void set_largest(uint32_t bytes) { m_typeSize = bytes; }

private:
    using fdds::TopicDataType::getSerializedSizeProvider; /* 2.14 has a second one */
    using fdds::TopicDataType::serialize;
    bool serialize(void *data, Payload *payload) override { return Type::write(data, *payload); }
    bool deserialize(Payload *payload, void *data) override { return Type::read(*payload, data); }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override
    {
        return [data] { return Type::size_of(data); };
    }
    void *createData() override { return Type::make(); }
    void deleteData(void *data) override { Type::unmake(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
#endif
};

} // namespace tb

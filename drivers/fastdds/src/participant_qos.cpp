/* SPDX-License-Identifier: Apache-2.0
 *
 * Transports, discovery and addresses of a participant.
 */
#include <sys/stat.h>

#include "fail.hpp"
#include "network.hpp"
#include "participant.hpp"
#include "value.hpp"

namespace tb {

using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using rtps::IPLocator;

static Locator udp(const std::string &address, uint32_t port)
{
    Locator locator(LOCATOR_KIND_UDPv4, port);
    IPLocator::setIPv4(locator, address);
    return locator;
}

static Locator multicast(uint32_t port)
{
    return udp("239.255.0.1", port);
}

static std::string own_address(const Options &o)
{
    if (!o.address.empty()) {
        check_address(o.address);
        return o.address;
    }
    return o.interface.empty() ? "" : address_of(o.interface);
}

static void find_by_server(const Options &o, rtps::BuiltinAttributes &builtin)
{
    auto &discovery = builtin.discovery_config;
    discovery.discoveryProtocol = rtps::DiscoveryProtocol::CLIENT;
    int id = 0;
    for (const std::string &server : list(o.discovery_server)) {
        Place at = place("discovery_server", server);
        add_server(discovery, id++,
                   udp(at.address, at.port ? at.port : eprosima::fastdds::rtps::DEFAULT_ROS2_SERVER_PORT));
    }
}

/* Makes the participant a discovery server: clients come to it by themselves. It has the id of the first server in a
 * client's list. */
static void be_server(const Options &o, fdds::WireProtocolConfigQos &wire)
{
    Place at = place("discovery_listen", o.discovery_listen);
    wire.builtin.discovery_config.discoveryProtocol = rtps::DiscoveryProtocol::SERVER;
    eprosima::fastdds::rtps::get_server_client_default_guidPrefix(0, wire.prefix);
    wire.builtin.metatrafficUnicastLocatorList.push_back(
        udp(at.address, at.port ? at.port : eprosima::fastdds::rtps::DEFAULT_ROS2_SERVER_PORT));
}

static void use_udp(const Options &o, uint32_t index, fdds::DomainParticipantQos &qos)
{
    auto transport = std::make_shared<UDPv4TransportDescriptor>();
    transport->maxMessageSize = o.max_message_size;
    transport->receiveBufferSize = o.receive_buffer;
    transport->sendBufferSize = o.send_buffer;
    transport->TTL = static_cast<uint8_t>(o.multicast_ttl);
    transport->maxInitialPeersRange = o.max_participant_index + 1;
    transport->non_blocking_send = false;
    std::string own = own_address(o);
    if (!own.empty() && TB_FASTDDS_HAS_WHITE_LIST)
        transport->interfaceWhiteList = {own};
    qos.transport().user_transports.push_back(transport);

    auto &wire = qos.wire_protocol();
    auto &builtin = wire.builtin;
    if (!o.discovery_listen.empty()) {
        be_server(o, wire);
        return;
    }
    uint32_t port = wire.port.getMulticastPort(o.domain), unicast = wire.port.getUnicastPort(o.domain, index);
    /* Without an own address, all addresses are used. If another process has the port, Fast DDS uses the port of the
     * next participant. */
    std::string here = own.empty() ? "0.0.0.0" : own;
    builtin.metatrafficUnicastLocatorList.push_back(udp(here, unicast));
    wire.default_unicast_locator_list.push_back(udp(here, unicast - wire.port.offsetd1 + wire.port.offsetd3));
    /* The server reports all participants, so neither peers nor multicast are used. */
    if (!o.discovery_server.empty()) {
        find_by_server(o, builtin);
        return;
    }
    for (const std::string &peer : o.peers)
        for (const Place &at : places("peers", peer)) /* port 0: the first participants on that host */
            builtin.initialPeersList.push_back(udp(at.address, at.port));
    if (o.multicast) {
        builtin.metatrafficMulticastLocatorList.push_back(multicast(port));
        builtin.initialPeersList.push_back(multicast(port));
    }
}

static void use_shared_memory(const Options &o, fdds::DomainParticipantQos &qos)
{
    auto transport = std::make_shared<SharedMemTransportDescriptor>();
    transport->segment_size(o.shm_segment);
    transport->max_message_size(o.max_message_size);
    qos.transport().user_transports.push_back(transport);
}

static void use_security(const Options &o, fdds::DomainParticipantQos &qos)
{
    auto &properties = qos.properties().properties();
    properties.emplace_back("dds.sec.auth.plugin", "builtin.PKI-DH");
    properties.emplace_back("dds.sec.access.plugin", "builtin.Access-Permissions");
    properties.emplace_back("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
    for (size_t i = 0; i < SECURITY_FILES; i++)
        properties.emplace_back(SECURITY_OPTIONS[i].property, o.security[i]);
}

fdds::DomainParticipantQos participant_qos(const Options &o, uint32_t index)
{
    if (!o.config.empty())
        return fdds::DomainParticipantFactory::get_instance()->get_default_participant_qos();
    fdds::DomainParticipantQos qos = fdds::PARTICIPANT_QOS_DEFAULT;
    qos.name("tailbound");
    qos.transport().use_builtin_transports = false;
    auto &builtin = qos.wire_protocol().builtin;
    builtin.avoid_builtin_multicast = true;
    builtin.use_WriterLivelinessProtocol = true;
    without_type_lookup(builtin);
    builtin.discovery_config.discoveryProtocol = rtps::DiscoveryProtocol::SIMPLE;
    if (o.transport == Transport::udp)
        use_udp(o, index, qos);
    else
        use_shared_memory(o, qos);
    if (o.secured())
        use_security(o, qos);
    /* A participant in another process cannot be reached by delivery inside the process, so it must not match. */
    if (o.transport == Transport::intra_process)
        builtin.discovery_config.ignoreParticipantFlags = rtps::ParticipantFilteringFlags::FILTER_DIFFERENT_PROCESS;
    return qos;
}

uint64_t memory_identity()
{
    struct stat directory {};
    stat("/dev/shm", &directory);
    return (static_cast<uint64_t>(directory.st_dev) << 32) ^ directory.st_ino;
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver's description of itself, as data.
 */
#include "json.hpp"
#include "qos.hpp"
#include "session.hpp"
#include "threads.hpp"

namespace tb {

/* The package of the library, where a distribution has one. */
static const std::vector<std::string> PACKAGES =
#if TB_FASTDDS_3
    {};
#else
    {"libfastrtps" + std::to_string(FASTRTPS_VERSION_MAJOR) + "." + std::to_string(FASTRTPS_VERSION_MINOR)};
#endif

static std::string option(const char *key, const char *type, const std::string &fallback, const char *unit,
                          const std::vector<std::string> &values, const char *help)
{
    Object all;
    all.put("key", key).put("type", type);
    if (!fallback.empty())
        all.put("default", fallback);
    if (*unit)
        all.put("unit", unit);
    if (!values.empty())
        all.raw("values", strings(values));
    return all.put("help", help).str();
}

static std::string options()
{
    const Options o;
    auto text = [](const char *key, const char *type, const char *help) { return option(key, type, "", "", {}, help); };
    auto number = [](const char *key, uint32_t fallback, const char *unit, const char *help) {
        return option(key, "integer", std::to_string(fallback), unit, {}, help);
    };
    std::vector<std::string> all{
        number("domain", o.domain, "", "DDS domain on the network, 0 to 230."),
        option("transport", "enum", "udp", "", {"udp", "shm", "data-sharing", "intra-process"},
               "The only transport of samples: UDPv4; shared memory; data sharing (the reader reads the writer's "
               "memory, discovery uses shared memory); calls inside one process. All except udp stay on this "
               "machine, whatever the path is."),
        option("publish_mode", "enum", "sync", "", {"sync", "async"},
               "Whether the thread that calls send sends the message over the network, or a thread of Fast DDS."),
        text("interface", "string", "Name of the network interface; without it and without address Fast DDS uses all."),
        text("address", "string", "IPv4 address of the network interface, in place of its name."),
        text("peers", "list", "IPv4 addresses at which participants are searched, with or without a port; a name means "
             "all its addresses."),
        option("multicast", "enum", "spdp", "", {"spdp", "off"},
               "Use of multicast; spdp means for discovery only, and samples are never sent by multicast; off needs "
               "peers or a discovery server."),
        number("multicast_ttl", o.multicast_ttl, "",
               "Maximum number of hops of multicast; 0 stays on the host, 1 on the link."),
        option("data", "enum", "unicast", "", {"unicast"},
               "How a sample is sent to several readers: one message for each reader. Multicast is not possible, "
               "because an assertion in Fast DDS 2.9.1 fails."),
        text("unacked_limit", "integer",
             "Number of unacknowledged messages at which a reliable writer with history keep-all waits "
             "(resource_limits.max_samples)."),
        text("discovery_server", "list",
             "IPv4 addresses with :PORT of the discovery servers of which the participant is a client; the first has "
             "the server id 0, the next 1. The default port is 11811."),
        text("discovery_listen", "string",
             "IPv4 address with :PORT at which the participant is itself a discovery server with the id 0; 0.0.0.0 "
             "means all interfaces."),
        option("naming", "enum", "dds", "", {"dds", "ros2"},
               "Names of topics and type on the wire: plain, or as in ROS 2."),
        number("max_message_size", o.max_message_size, "B", "Largest message of the transport, 512 to 65500."),
        number("socket_receive_buffer_size", o.receive_buffer, "B",
               "Size of the receive buffer that is requested from the kernel (SO_RCVBUF); the granted size is in the "
               "record."),
        text("socket_send_buffer_size", "integer",
             "Size of the send buffer that is requested from the kernel (SO_SNDBUF). If not given, the default of the "
             "kernel applies."),
        number("shm_segment_size", o.shm_segment, "B",
               "Shared memory of each participant, for all transports except udp."),
        number("heartbeat_period", o.heartbeat_ms, "ms",
               "Interval at which a reliable writer asks for missing messages, which is the delay if the last message "
               "is lost."),
        number("max_participant_index", o.max_participant_index, "",
               "Number of participants of one host that are searched without multicast."),
        number("participants", o.participants, "",
               "Number of participants of the session, 1 or 2; the policy `participant` of an end point chooses its "
               "participant, from 0."),
        text("config", "config",
             "Your own profiles (XML of Fast DDS), used exactly as they are: the default profiles of participant, "
             "data_writer and data_reader. Environment variables of Fast DDS are never used."),
    };
    for (const SecurityOption &file : SECURITY_OPTIONS)
        all.push_back(text(file.key, "string", file.help));
    return array(all);
}

static std::string description()
{
    std::vector<std::string> roles;
    for (const threads::Role &role : threads::ROLES)
        roles.push_back(Object().put("role", role.role).put("name_glob", role.name).str());
    return Object()
        .put("name", "fastdds")
        .put("version", TB_FASTDDS_VERSION)
        .raw("versions", Object().put("driver", TAILBOUND_VERSION).put("fastdds", TB_FASTDDS_VERSION).str())
        .put("abi", std::to_string(TB_ABI_MAJOR) + "." + std::to_string(TB_ABI_MINOR))
        .raw("capabilities", strings({"source_timestamps"}))
        .raw("limits", Object().put("max_payload_bytes", static_cast<int64_t>(MAX_PAYLOAD)).str())
        .raw("options", options())
        .raw("qos", qos::described())
        .raw("receive_modes", strings({"listener", "block", "spin"}))
        .raw("packages", strings(PACKAGES))
        .raw("roles", array(roles))
        .str();
}

const char *describe()
{
    static const std::string *text = new std::string(description());
    return text->c_str();
}

} // namespace tb

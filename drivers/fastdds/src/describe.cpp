/* SPDX-License-Identifier: Apache-2.0
 *
 * What the driver says of itself, as data.
 */
#include <fastrtps/config.h>

#include "json.hpp"
#include "qos.hpp"
#include "session.hpp"
#include "threads.hpp"

namespace tb {

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
    return array({
        number("domain", o.domain, "", "DDS domain on the network, 0 to 230."),
        option("transport", "enum", "udp", "", {"udp", "shm", "data-sharing", "intra-process"},
               "By what samples travel, and nothing else: UDPv4; shared memory; data sharing (the reader reads the "
               "writer's memory, discovery by shared memory); calls inside one process. All but udp stay on this "
               "machine, whatever the path is."),
        option("publish_mode", "enum", "sync", "", {"sync", "async"},
               "The thread that sends puts the message on the wire, or a thread of Fast DDS does."),
        text("interface", "string", "Name of the network interface; without it and without address Fast DDS uses all."),
        text("address", "string", "IPv4 address of the network interface, in place of its name."),
        text("peers", "list", "IPv4 addresses where participants are looked for, with or without a port; a name stands for "
             "all its addresses."),
        option("multicast", "enum", "spdp", "", {"spdp", "off"},
               "Use of multicast; spdp: for discovery only, samples are never sent so; off needs peers or a discovery "
               "server."),
        number("multicast_ttl", o.multicast_ttl, "", "Hops that multicast may go; 0 stays on the host, 1 on the link."),
        option("data", "enum", "unicast", "", {"unicast"},
               "Way of samples to several readers: one each. There is no multicast: Fast DDS 2.9.1 asserts."),
        text("unacked_limit", "integer",
             "Messages that a reliable writer with history keep-all has unacknowledged before it waits "
             "(resource_limits.max_samples)."),
        text("discovery_server", "list",
             "IPv4 addresses with :PORT of discovery servers, of which this is a client; the first has server id 0, the "
             "next 1. Port 11811 when none is given."),
        text("discovery_listen", "string",
             "IPv4 address with :PORT, where this is itself a discovery server with the id 0, for others; 0.0.0.0 is all "
             "interfaces."),
        option("naming", "enum", "dds", "", {"dds", "ros2"},
               "Names of topics and type on the wire: plain, or as ROS 2 has them."),
        number("max_message_size", o.max_message_size, "B", "Largest message of the transport, 512 to 65500."),
        number("socket_receive_buffer_size", o.receive_buffer, "B",
               "Receive buffer asked of the kernel (SO_RCVBUF); what it gave is in the record."),
        text("socket_send_buffer_size", "integer", "Send buffer asked of the kernel (SO_SNDBUF); else the kernel's."),
        number("shm_segment_size", o.shm_segment, "B", "Shared memory of each participant, for all transports but udp."),
        number("heartbeat_period", o.heartbeat_ms, "ms",
               "How often a reliable writer asks for what is missing: the delay of a lost last message."),
        number("max_participant_index", o.max_participant_index, "",
               "How many participants of one host are looked for without multicast."),
        number("participants", o.participants, "",
               "Participants of the session, 1 or 2; an end point is in that which `participant` of its creation names, "
               "from 0."),
        text("config", "config",
             "Your own profiles (XML of Fast DDS), used exactly as they are: the default profiles of participant, "
             "data_writer and data_reader. Environment variables of Fast DDS are never followed."),
    });
}

static std::string description()
{
    std::vector<std::string> roles;
    for (const threads::Role &role : threads::ROLES)
        roles.push_back(Object().put("role", role.role).put("name_glob", role.name).str());
    return Object()
        .put("name", "fastdds")
        .put("version", FASTRTPS_VERSION_STR)
        .raw("versions", Object().put("driver", TAILBOUND_VERSION).put("fastdds", FASTRTPS_VERSION_STR).str())
        .put("abi", std::to_string(TB_ABI_MAJOR) + "." + std::to_string(TB_ABI_MINOR))
        .raw("capabilities", strings({"source_timestamps"}))
        .raw("limits", Object().put("max_payload_bytes", static_cast<int64_t>(MAX_PAYLOAD)).str())
        .raw("options", options())
        .raw("qos", qos::described())
        .raw("receive_modes", strings({"listener", "block", "spin"}))
        .raw("packages", strings({"libfastrtps2.9"}))
        .raw("roles", array(roles))
        .str();
}

const char *describe()
{
    static const std::string *text = new std::string(description());
    return text->c_str();
}

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "options.hpp"

#include <cstring>

#include "value.hpp"

namespace tb {

static uint32_t size(const tb_kv &kv, int64_t low, int64_t high)
{
    return static_cast<uint32_t>(number(kv, TB_EINVAL, low, high));
}

void Options::set(const tb_kv &kv)
{
    const std::string key = kv.key;
    if (key == "domain")
        domain = size(kv, 0, MAX_DOMAIN);
    else if (key == "transport")
        transport = static_cast<Transport>(word(kv, TB_EINVAL, {"udp", "shm", "data-sharing", "intra-process"}));
    else if (key == "multicast")
        multicast = word(kv, TB_EINVAL, {"spdp", "off"}) == 0;
    else if (key == "naming")
        ros2 = word(kv, TB_EINVAL, {"dds", "ros2"}) == 1;
    else if (key == "publish_mode")
        async = word(kv, TB_EINVAL, {"sync", "async"}) == 1;
    else if (key == "interface")
        interface = trimmed(kv.value);
    else if (key == "address")
        address = trimmed(kv.value);
    else if (key == "peers")
        peers = list(kv.value);
    else if (key == "discovery_server")
        discovery_server = trimmed(kv.value);
    else if (key == "discovery_listen")
        discovery_listen = trimmed(kv.value);
    else if (key == "multicast_ttl")
        multicast_ttl = size(kv, 0, 255);
    else if (key == "max_message_size")
        max_message_size = size(kv, 512, 65500);
    else if (key == "socket_receive_buffer_size")
        receive_buffer = size(kv, 1, INT32_MAX);
    else if (key == "socket_send_buffer_size")
        send_buffer = size(kv, 1, INT32_MAX);
    else if (key == "shm_segment_size")
        shm_segment = size(kv, 1 << 17, 1 << 30);
    else if (key == "heartbeat_period")
        heartbeat_ms = size(kv, 1, 3600000);
    else if (key == "max_participant_index")
        max_participant_index = size(kv, 0, 119);
    else if (key == "participants")
        participants = size(kv, 1, 2);
    else if (key == "unacked_limit")
        unacked_limit = size(kv, 1, 1000000);
    else if (key == "data") {
        if (word(kv, TB_EINVAL, {"unicast", "multicast"}) == 1)
            throw bad(TB_EUNSUPPORTED, kv, "an assertion in Fast DDS 2.9.1 ends the process if a writer sends "
                                           "samples to several readers by multicast");
    } else if (key == "config")
        config = kv.value;
    else if (!set_security(kv))
        throw bad(TB_EINVAL, kv, "the fastdds driver has no such option");
}

/* Sets the address of a file of DDS Security; returns false if the option is another one. */
bool Options::set_security(const tb_kv &kv)
{
    for (size_t i = 0; i < SECURITY_FILES; i++)
        if (std::strcmp(SECURITY_OPTIONS[i].key, kv.key) == 0) {
            security[i] = trimmed(kv.value);
            if (security[i].compare(0, 7, "file://") != 0)
                throw bad(TB_EINVAL, kv, "Fast DDS reads addresses that begin with file://");
            return true;
        }
    return false;
}

/* DDS Security needs all of its files, and a transport on which Fast DDS protects messages. */
static void check_security(const Options &o)
{
    size_t given = 0;
    std::string missing;
    for (size_t i = 0; i < SECURITY_FILES; i++) {
        given += !o.security[i].empty();
        if (o.security[i].empty())
            missing += (missing.empty() ? "" : ", ") + std::string(SECURITY_OPTIONS[i].key);
    }
    if (given && !missing.empty())
        throw Fail{TB_EINVAL, "DDS Security needs six files, and these are missing: " + missing};
    if (given && o.transport != Transport::udp && o.transport != Transport::shared_memory)
        throw Fail{TB_EUNSUPPORTED, "DDS Security protects nothing with transport=" + std::string(o.transport_name()) +
                                        ": use udp or shm"};
    if (given && !(o.discovery_server.empty() && o.discovery_listen.empty()))
        throw Fail{TB_EUNSUPPORTED, "the driver uses no discovery server together with DDS Security"};
}

void Options::check() const
{
    check_security(*this);
    if (!discovery_server.empty() && transport != Transport::udp)
        throw Fail{TB_EINVAL, "discovery_server=" + discovery_server + ": needs transport=udp; with shared memory, "
                              "Fast DDS finds peers by shared memory"};
    if (!discovery_listen.empty() && (transport != Transport::udp || !discovery_server.empty()))
        throw Fail{TB_EINVAL, "discovery_listen=" + discovery_listen + ": a discovery server needs transport=udp, and "
                              "cannot be a client of a discovery_server"};
    if (transport == Transport::udp && !multicast && peers.empty() && discovery_server.empty() &&
        discovery_listen.empty())
        throw Fail{TB_EINVAL, "multicast=off: without multicast no peer is found; give peers, or a discovery_server"};
    if (transport != Transport::udp && shm_segment < 2 * max_message_size)
        throw Fail{TB_EINVAL, "shm_segment_size=" + std::to_string(shm_segment) +
                                  ": must be at least twice max_message_size"};
}

Options Options::parse(const tb_kv *kv, size_t n)
{
    Options o;
    if (n && !kv)
        throw Fail{TB_EINVAL, "the list of options is null"};
    bool own = false;
    for (size_t i = 0; i < n; i++) {
        if (!kv[i].key || !kv[i].value)
            throw Fail{TB_EINVAL, "an option is null"};
        o.set(kv[i]);
        own = own || std::strcmp(kv[i].key, "config") == 0;
    }
    if (own) {
        if (trimmed(o.config).empty())
            throw Fail{TB_EINVAL, "config: empty; give the XML of Fast DDS profiles"};
        for (size_t i = 0; i < n; i++)
            if (std::strcmp(kv[i].key, "domain") != 0 && std::strcmp(kv[i].key, "naming") != 0 &&
                std::strcmp(kv[i].key, "participants") != 0 && std::strcmp(kv[i].key, "config") != 0)
                o.ignored.push_back(kv[i].key);
    } else {
        o.check();
    }
    return o;
}

const char *Options::transport_name() const
{
    const char *names[] = {"udp", "shm", "data-sharing", "intra-process"};
    return config.empty() ? names[static_cast<int>(transport)] : "config";
}

const char *Options::type_name() const
{
    return ros2 ? "tailbound_msgs::msg::dds_::Sample_" : "tailbound::Sample";
}

std::string Options::topic(const std::string &name) const
{
    return ros2 ? "rt/" + name.substr(name.find_first_not_of('/') == std::string::npos ? 0 : name.find_first_not_of('/'))
                : name;
}

} // namespace tb

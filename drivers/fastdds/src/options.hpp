/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of the driver's function `open`, checked.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tailbound_driver.h"

namespace tb {

constexpr uint32_t DEFAULT_DOMAIN = 77, MAX_DOMAIN = 230;
constexpr uint64_t MAX_PAYLOAD = 100u << 20;

/* How samples are transported. */
enum class Transport { udp, shared_memory, data_sharing, intra_process };

struct Options {
    uint32_t domain = DEFAULT_DOMAIN;
    Transport transport = Transport::udp;
    bool multicast = true; /* whether discovery uses multicast */
    bool ros2 = false;
    bool async = false;
    std::string interface, address;
    std::vector<std::string> peers;
    std::string discovery_server; /* discovery servers of which this is a client */
    std::string discovery_listen; /* address at which this is a discovery server */
    uint32_t multicast_ttl = 1;
    uint32_t max_message_size = 65500;
    uint32_t receive_buffer = 4u << 20, send_buffer = 0;
    uint32_t shm_segment = 16u << 20;
    uint32_t heartbeat_ms = 3000;
    uint32_t max_participant_index = 9;
    uint32_t participants = 1; /* participants of the session */
    uint32_t unacked_limit = 0; /* limit in messages; 0 means no limit */
    std::string config;
    std::vector<std::string> ignored; /* options that have no effect because of the user's configuration */

    /* Reads and checks the options. Throws a failure that names the key of the option. */
    static Options parse(const tb_kv *kv, size_t n);

    const char *transport_name() const;
    const char *type_name() const;
    std::string topic(const std::string &name) const;

private:
    void set(const tb_kv &kv);
    void check() const;
};

} // namespace tb

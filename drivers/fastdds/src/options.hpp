/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of `open`, checked.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tailbound_driver.h"

namespace tb {

constexpr uint32_t DEFAULT_DOMAIN = 77, MAX_DOMAIN = 230;
constexpr uint64_t MAX_PAYLOAD = 100u << 20;

/* By what samples travel. */
enum class Transport { udp, shared_memory, data_sharing, intra_process };

struct Options {
    uint32_t domain = DEFAULT_DOMAIN;
    Transport transport = Transport::udp;
    bool multicast = true; /* for discovery */
    bool ros2 = false;
    bool async = false;
    std::string interface, address;
    std::vector<std::string> peers;
    std::string discovery_server; /* of these a client */
    std::string discovery_listen; /* itself a server there */
    uint32_t multicast_ttl = 1;
    uint32_t max_message_size = 65500;
    uint32_t receive_buffer = 4u << 20, send_buffer = 0;
    uint32_t shm_segment = 16u << 20;
    uint32_t heartbeat_ms = 3000;
    uint32_t max_participant_index = 9;
    uint32_t participants = 1; /* of the session */
    uint32_t unacked_limit = 0; /* messages; 0: none */
    std::string config;
    std::vector<std::string> ignored; /* what a configuration of the user's puts out of effect */

    /* Throws the refusal that names its key. */
    static Options parse(const tb_kv *kv, size_t n);

    const char *transport_name() const;
    const char *type_name() const;
    std::string topic(const std::string &name) const;

private:
    void set(const tb_kv &kv);
    void check() const;
};

} // namespace tb

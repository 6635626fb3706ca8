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

/* The options with the addresses of the files of DDS Security; each is also the last part of the property of DDS
 * Security that takes the address. */
struct SecurityOption {
    const char *key, *property, *help;
};
constexpr SecurityOption SECURITY_OPTIONS[] = {
    {"identity_ca", "dds.sec.auth.builtin.PKI-DH.identity_ca",
     "Certificate of the authority that proves the identities (PEM), as file://PATH; all six files, or none."},
    {"identity_certificate", "dds.sec.auth.builtin.PKI-DH.identity_certificate",
     "Certificate of the participant (PEM), as file://PATH."},
    {"private_key", "dds.sec.auth.builtin.PKI-DH.private_key",
     "Private key of the participant's certificate (PEM), as file://PATH."},
    {"permissions_ca", "dds.sec.access.builtin.Access-Permissions.permissions_ca",
     "Certificate of the authority that signed governance and permissions (PEM), as file://PATH."},
    {"governance", "dds.sec.access.builtin.Access-Permissions.governance",
     "Signed governance document (S/MIME), as file://PATH."},
    {"permissions", "dds.sec.access.builtin.Access-Permissions.permissions",
     "Signed permissions document (S/MIME), as file://PATH."},
};
constexpr size_t SECURITY_FILES = sizeof SECURITY_OPTIONS / sizeof *SECURITY_OPTIONS;

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
    std::string security[SECURITY_FILES]; /* addresses of the files of DDS Security; empty if there is no security */
    std::vector<std::string> ignored; /* options that have no effect because of the user's configuration */

    /* Reads and checks the options. Throws a failure that names the key of the option. */
    static Options parse(const tb_kv *kv, size_t n);

    bool secured() const { return !security[0].empty(); }
    const char *transport_name() const;
    const char *type_name() const;
    std::string topic(const std::string &name) const;

private:
    void set(const tb_kv &kv);
    bool set_security(const tb_kv &kv);
    void check() const;
};

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0
 *
 * Interfaces, addresses and sockets of this process, as the system tells.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tb {

/* The IPv4 address of an interface. Throws when there is none. */
std::string address_of(const std::string &interface);

/* Throws unless an interface has this IPv4 address. */
void check_address(const std::string &address);

/* An address with an optional port, `192.0.2.1` or `192.0.2.1:7410`; port 0 when none is given. */
struct Place {
    std::string address;
    uint16_t port;
};
Place place(const std::string &key, const std::string &text);

/* The same, and a name in the place of the address stands for all the IPv4 addresses that it has now. */
std::vector<Place> places(const std::string &key, const std::string &text);

/* The UDP sockets of this process with a port in the range, each as JSON: address, port, buffer sizes as the kernel has
 * them. */
std::vector<std::string> udp_sockets(uint16_t first, uint16_t last);

} // namespace tb

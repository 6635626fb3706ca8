/* SPDX-License-Identifier: Apache-2.0
 *
 * Interfaces, addresses and sockets of this process, as the operating system reports them.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tb {

/* Returns the IPv4 address of an interface. Throws if the interface does not exist or has no IPv4 address. */
std::string address_of(const std::string &interface);

/* Throws if no interface has this IPv4 address. */
void check_address(const std::string &address);

/* An address with an optional port, `192.0.2.1` or `192.0.2.1:7410`; the port is 0 if no port is given. */
struct Place {
    std::string address;
    uint16_t port;
};
Place place(const std::string &key, const std::string &text);

/* Reads addresses with an optional port. A name in place of an address means all IPv4 addresses that the name has
 * now. */
std::vector<Place> places(const std::string &key, const std::string &text);

/* The UDP sockets of this process with a port in the range, each as JSON: address, port, and the buffer sizes that
 * the kernel reports. */
std::vector<std::string> udp_sockets(uint16_t first, uint16_t last);

} // namespace tb

/* SPDX-License-Identifier: Apache-2.0 */
#include "network.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "fail.hpp"
#include "json.hpp"
#include "value.hpp"

namespace tb {

static std::string text(const in_addr &address)
{
    char buffer[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &address, buffer, sizeof buffer);
    return buffer;
}

struct Interface {
    std::string name, address; /* empty if the interface has no IPv4 address */
};

static std::vector<Interface> interfaces()
{
    ifaddrs *first = nullptr;
    if (getifaddrs(&first) != 0)
        throw Fail{TB_EIO, "interface: the interfaces of this machine cannot be listed"};
    std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
    std::vector<Interface> all;
    for (const ifaddrs *i = first; i; i = i->ifa_next) {
        bool v4 = i->ifa_addr && i->ifa_addr->sa_family == AF_INET;
        all.push_back({i->ifa_name, v4 ? text(reinterpret_cast<const sockaddr_in *>(i->ifa_addr)->sin_addr) : ""});
    }
    return all;
}

std::string address_of(const std::string &interface)
{
    bool there = false;
    for (const Interface &i : interfaces()) {
        if (i.name == interface && !i.address.empty())
            return i.address;
        there = there || i.name == interface;
    }
    throw Fail{TB_EIO, there ? "interface: `" + interface + "` has no IPv4 address; give it one"
                             : "interface: there is no interface `" + interface + "` in this network namespace"};
}

void check_address(const std::string &address)
{
    for (const Interface &i : interfaces())
        if (i.address == address)
            return;
    throw Fail{TB_EIO, "address: no interface in this network namespace has the IPv4 address `" + address + "`"};
}

Place place(const std::string &key, const std::string &text)
{
    size_t colon = text.find(':');
    Place p{text.substr(0, colon), 0};
    in_addr parsed;
    if (inet_pton(AF_INET, p.address.c_str(), &parsed) != 1)
        throw Fail{TB_EINVAL, key + "=" + text + ": an IPv4 address is expected, with or without :PORT"};
    if (colon != std::string::npos) {
        std::string port = text.substr(colon + 1);
        p.port = static_cast<uint16_t>(number({key.c_str(), port.c_str()}, TB_EINVAL, 1, 65535));
    }
    return p;
}

std::vector<Place> places(const std::string &key, const std::string &text)
{
    size_t colon = text.find(':');
    std::string name = text.substr(0, colon), port = colon == std::string::npos ? "" : text.substr(colon);
    in_addr parsed;
    if (inet_pton(AF_INET, name.c_str(), &parsed) == 1)
        return {place(key, text)};
    addrinfo wanted{}, *first = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_DGRAM;
    int why = getaddrinfo(name.c_str(), nullptr, &wanted, &first);
    if (why != 0)
        throw Fail{TB_EINVAL, key + "=" + text + ": the name " + name + " has no address: " + gai_strerror(why)};
    std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(first, freeaddrinfo);
    std::vector<Place> all;
    for (const addrinfo *at = first; at; at = at->ai_next)
        all.push_back(place(key, tb::text(reinterpret_cast<const sockaddr_in *>(at->ai_addr)->sin_addr) + port));
    return all;
}

struct CloseDirectory {
    void operator()(DIR *directory) const { closedir(directory); }
};

std::vector<std::string> udp_sockets(uint16_t first, uint16_t last)
{
    std::vector<std::string> all;
    std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc/self/fd"));
    for (const dirent *entry; directory && (entry = readdir(directory.get()));) {
        int fd = std::atoi(entry->d_name), type = 0, receive = 0, send = 0;
        sockaddr_in local{};
        socklen_t local_size = sizeof local, size = sizeof(int);
        if (entry->d_name[0] == '.' || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_DGRAM ||
            getsockname(fd, reinterpret_cast<sockaddr *>(&local), &local_size) != 0 || local.sin_family != AF_INET)
            continue;
        uint16_t port = ntohs(local.sin_port);
        if (port < first || port > last)
            continue;
        getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, &size);
        getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send, &size);
        all.push_back(Object()
                          .put("address", text(local.sin_addr))
                          .put("port", port)
                          .put("receive_buffer_bytes", receive)
                          .put("send_buffer_bytes", send)
                          .str());
    }
    std::sort(all.begin(), all.end());
    return all;
}

} // namespace tb

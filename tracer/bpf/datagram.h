// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Reads the headers of IP packets with UDP datagrams, or fragments of them.

#pragma once
#include "kernel.h"

enum { UDP = 17, FRAGMENT = 44 };
struct udp {
  u16 from_port, to_port, length, sum;
};
struct ipv4 {
  u8 version_length, service;
  u16 length, id, fragment;
  u8 hops, protocol;
  u16 sum;
  u32 from, to;
  struct udp udp;
};
struct ipv6 {
  u8 version, flow[3];
  u16 length;
  u8 next, hops;
  u32 from[4], to[4];
  union {
    struct udp udp;
    struct {
      u8 next, unused;
      u16 fragment;
      u32 id;
    } later;
  };
};

// A UDP datagram in an IP packet, or a fragment of one.
struct datagram {
  u32 from[4], to[4];  // as in struct packet
  u32 id;
  u16 from_port, to_port;
  u16 bytes;   // length of the UDP datagram with its header; 0 in later fragments
  u16 offset;  // of the fragment, bytes
  u16 header;  // length of the headers before the payload
  u16 end;     // length of the packet
  u8 more;     // whether later fragments follow
};

INLINE u16 swapped(u16 number) { return number << 8 | number >> 8; }

INLINE void address(u32 *into, const u32 *from) {
  for (int word = 0; word < 4; word++) into[word] = from[word];
}

INLINE void of_udp(struct datagram *datagram, const struct udp *udp) {
  datagram->from_port = udp->from_port;
  datagram->to_port = udp->to_port;
  datagram->bytes = datagram->offset ? 0 : swapped(udp->length);
  if (!datagram->offset) datagram->header += sizeof(*udp);
}

// An IPv4 packet without options.
INLINE int of_ipv4(struct datagram *datagram, const struct ipv4 *ip) {
  if (ip->version_length != 0x45 || ip->protocol != UDP) return 0;
  u16 fragment = swapped(ip->fragment);
  datagram->from[0] = datagram->from[1] = datagram->to[0] = datagram->to[1] = 0;
  datagram->from[2] = datagram->to[2] = 0xffff0000;
  datagram->from[3] = ip->from;
  datagram->to[3] = ip->to;
  datagram->id = ip->id;
  datagram->offset = fragment << 3;
  datagram->more = fragment >> 13 & 1;
  datagram->header = sizeof(*ip) - sizeof(ip->udp);
  datagram->end = swapped(ip->length);
  of_udp(datagram, &ip->udp);
  return 1;
}

// An IPv6 packet without extension headers but that of fragments.
INLINE int of_ipv6(struct datagram *datagram, const unsigned char *at) {
  struct ipv6 ip;
  if (read_kernel(&ip, sizeof(ip), at) || ip.version >> 4 != 6) return 0;
  struct udp udp = ip.udp;
  datagram->id = datagram->offset = datagram->more = 0;
  datagram->header = sizeof(ip) - sizeof(udp);
  if (ip.next == FRAGMENT) {
    if (ip.later.next != UDP || read_kernel(&udp, sizeof(udp), at + sizeof(ip))) return 0;
    u16 fragment = swapped(ip.later.fragment);
    datagram->id = ip.later.id;
    datagram->offset = fragment & 0xfff8;
    datagram->more = fragment & 1;
    datagram->header = sizeof(ip);
  } else if (ip.next != UDP) {
    return 0;
  }
  address(datagram->from, ip.from);
  address(datagram->to, ip.to);
  datagram->end = sizeof(ip) - sizeof(udp) + swapped(ip.length);
  of_udp(datagram, &udp);
  return 1;
}

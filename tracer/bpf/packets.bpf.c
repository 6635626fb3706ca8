// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Records where in the kernel the UDP datagrams of the watched ports are: at queue disciplines, devices, soft interrupts
// and sockets. IPv4 without options is followed, and IPv6 without extension headers other than the one of fragments. See
// machine.bpf.c for how objects are built.

#include "datagram.h"
#include "kernel.h"
#include "thread_id.h"

// The members of the kernel's structures that are read; their offsets are relocated.
struct ns_common {
  u32 inum;
} RELOCATED;
struct net {
  struct ns_common ns;
} RELOCATED;
typedef struct {
  struct net *net;
} RELOCATED possible_net_t;
struct Qdisc_ops {
  char id[16];
} RELOCATED;
struct Qdisc {
  const struct Qdisc_ops *ops;
} RELOCATED;
struct net_device {
  char name[16];
  struct Qdisc *qdisc;
  possible_net_t nd_net;
} RELOCATED;
struct sk_buff {
  struct net_device *dev;
  unsigned char *head, *data;
  u32 len, data_len;
  u16 network_header;
  u16 protocol;
} RELOCATED;
struct task_struct {
  unsigned flags;
} RELOCATED;
struct sock_common {
  u16 skc_num;
  possible_net_t skc_net;
} RELOCATED;
struct sock {
  struct sock_common __sk_common;
} RELOCATED;

// Where a datagram is: the same numbers are in crates/abi/src/tracer.rs.
enum { QUEUED = 1, TRANSMITTED = 2, BACKLOG = 3, RECEIVED = 4, IN_SOCKET = 5, READ = 6, DROPPED = 7 };

// Number of bytes of a datagram's payload that are recorded: the headers of RTPS up to the first bytes of a sample. One
// bit more is the size of their array, so that the verifier sees that the length is bounded.
#define PAYLOAD 112
#define MASK 127

struct packet {
  u64 at_ns;
  u64 buffer;       // address of the kernel's packet buffer
  u32 cpu;
  s32 thread;       // thread that ran on the CPU
  u32 namespace;    // network namespace of the device or socket
  u32 id;           // of the fragments of a datagram, network byte order
  u32 from[4], to[4];      // addresses, network byte order; IPv4 as ::ffff:a.b.c.d
  u16 from_port, to_port;  // network byte order
  u16 offset;       // of the fragment in the datagram, bytes
  u8 kind, payload_bytes;
  u32 number;       // READ: bytes that were read; DROPPED: the reason; otherwise the length of the UDP datagram
  u32 run;          // number of the run of soft interrupts of this CPU that handled the packet; 0 = none did
  u8 more;          // whether later fragments of the datagram follow
  u8 unused[7];
  char device[16];
  char discipline[16];
  u8 payload[MASK + 1];
};

// Ports of the watched sockets, network byte order.
struct {
  UINT(type, MAP_HASH);
  UINT(max_entries, 4096);
  TYPE(key, u16);
  TYPE(value, u8);
} ports SEC(".maps");

// Fragmented datagrams of the watched ports: later fragments have no ports.
struct fragmented {
  u32 from[4], to[4];
  u32 id;
};
struct both_ports {
  u16 from, to;
};
struct {
  UINT(type, MAP_LRU_HASH);
  UINT(max_entries, 4096);
  TYPE(key, struct fragmented);
  TYPE(value, struct both_ports);
} fragments SEC(".maps");

// One entry for each CPU, in a cache line of its own.
struct receiving {
  u64 buffer;  // packet buffer that the CPU receives now, if it belongs to a watched datagram; 0 = another packet
  u64 lost;    // number of records for which the ring buffer had no room
  u32 run;     // number of this run of soft interrupts, or of the next one
  u32 thread;  // id of the thread in whose time soft interrupts run now, plus 1; 0 = none runs
  u16 to_port; // destination port of the datagram in `buffer`, network byte order
  u16 unused[19];
} __attribute__((aligned(64)));
struct {
  UINT(type, MAP_ARRAY);
  UINT(max_entries, 1);  // the loader sets the number of CPUs
  TYPE(key, u32);
  TYPE(value, struct receiving);
} receivers SEC(".maps");

struct {
  UINT(type, MAP_RINGBUF);
  UINT(max_entries, 4 << 20);
} packets SEC(".maps");

// The loader sets this to half of the size of the ring buffer: a full half wakes the reader.
const volatile u64 packets_wake_at_bytes = 2 << 20;

// True while datagrams are followed. Only the loader changes it.
u32 following;

// Number of the run of soft interrupts in which the CPU is; 0 = it is in none. A run ends when a device has been polled:
// two places of a packet in one run have no program between them. A thread of the kernel may poll devices instead of soft
// interrupts; with PREEMPT_RT, another thread may run while soft interrupts are preempted.
INLINE u32 run_of(const struct receiving *receiving) {
  enum { PF_KTHREAD = 0x200000 };
  int in_softirq = receiving->thread == (u32)this_thread() + 1;
  return in_softirq || this_task()->flags & PF_KTHREAD ? receiving->run + 1 : 0;
}

INLINE struct packet *reserve(struct receiving *receiving) {
  struct packet *packet = ring_reserve(&packets, sizeof(*packet), 0);
  if (!packet) receiving->lost++;
  return packet;
}

INLINE void submit(struct packet *packet) {
  u64 full = ring_query(&packets, AVAILABLE_DATA);
  int wake = full >= packets_wake_at_bytes && full < packets_wake_at_bytes + WAKE_SPAN_BYTES;
  ring_submit(packet, wake ? FORCE_WAKEUP : NO_WAKEUP);
}

// Reads the headers of a packet. Returns whether it is a UDP datagram of a watched port, or a fragment of one.
INLINE int is_watched(const unsigned char *at, struct datagram *datagram) {
  struct ipv4 ip;
  if (read_kernel(&ip, sizeof(ip), at)) return 0;
  if (!(ip.version_length >> 4 == 4 ? of_ipv4(datagram, &ip) : of_ipv6(datagram, at))) return 0;
  if (!datagram->offset) {
    u16 port = datagram->from_port;
    if (!map_lookup(&ports, &port)) return 0;
    if (!datagram->more) return 1;
  }
  struct fragmented key = {.id = datagram->id};
  address(key.from, datagram->from);
  address(key.to, datagram->to);
  if (!datagram->offset) {
    struct both_ports both = {datagram->from_port, datagram->to_port};
    map_update(&fragments, &key, &both, 0);
    return 1;
  }
  struct both_ports *both = map_lookup(&fragments, &key);
  if (!both) return 0;
  datagram->from_port = both->from;
  datagram->to_port = both->to;
  return 1;
}

// Records where a packet is, if it belongs to a watched datagram. `offset`: of its IP header in the buffer.
INLINE int seen(struct sk_buff *skb, u32 offset, u8 kind, u32 number) {
  if (!following) return 0;
  u32 cpu = this_cpu();
  struct receiving *receiving = map_lookup(&receivers, &cpu);
  if (!receiving) return 0;
  const unsigned char *at = skb->head + offset;
  struct datagram datagram;
  int watched = is_watched(at, &datagram);
  if (kind == RECEIVED) {
    receiving->buffer = watched ? (u64)skb : 0;
    if (watched) receiving->to_port = datagram.to_port;
  }
  if (!watched) return 0;
  struct packet *packet = reserve(receiving);
  if (!packet) return 0;
  packet->at_ns = now_ns();
  packet->buffer = (u64)skb;
  packet->cpu = cpu;
  packet->thread = own_id();
  address(packet->from, datagram.from);
  address(packet->to, datagram.to);
  packet->from_port = datagram.from_port;
  packet->to_port = datagram.to_port;
  packet->id = datagram.id;
  packet->offset = datagram.offset;
  packet->more = datagram.more;
  packet->number = kind == DROPPED ? number : datagram.bytes;
  packet->kind = kind;
  packet->run = run_of(receiving);
  packet->namespace = 0;
  packet->device[0] = 0;
  packet->discipline[0] = 0;
  struct net_device *device = skb->dev;
  if (device) {
    read_kernel(packet->device, sizeof(packet->device), device->name);
    packet->namespace = device->nd_net.net->ns.inum;
    if (kind == QUEUED) read_kernel(packet->discipline, sizeof(packet->discipline), device->qdisc->ops->id);
  }
  // The bytes after the headers that lie in the first piece of the buffer.
  u32 linear = skb->data_len ? (u32)(skb->data - skb->head) + skb->len - skb->data_len : offset + datagram.end;
  u32 begin = offset + datagram.header;
  u32 bytes = linear > begin ? linear - begin : 0;
  if (bytes > PAYLOAD) bytes = PAYLOAD;
  if (datagram.offset) bytes = 0;
  asm volatile("" : "+r"(bytes));
  bytes &= MASK;
  if (bytes && read_kernel(packet->payload, bytes, at + datagram.header)) bytes = 0;
  packet->payload_bytes = bytes;
  submit(packet);
  return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(u64 *ctx) {
  u32 cpu = this_cpu();
  struct receiving *receiving = map_lookup(&receivers, &cpu);
  if (receiving) receiving->thread = (u32)this_thread() + 1;
  return 0;
}

INLINE struct receiving *end_run(void) {
  u32 cpu = this_cpu();
  struct receiving *receiving = map_lookup(&receivers, &cpu);
  if (receiving) receiving->run++;
  return receiving;
}

SEC("tp_btf/softirq_exit") int on_softirq_exit(u64 *ctx) {
  struct receiving *receiving = end_run();
  if (receiving) receiving->thread = 0;
  return 0;
}

SEC("tp_btf/napi_poll") int on_poll(u64 *ctx) {
  end_run();
  return 0;
}

SEC("tp_btf/net_dev_queue") int on_queue(u64 *ctx) {
  struct sk_buff *skb = (void *)ctx[0];
  return seen(skb, skb->network_header, QUEUED, 0);
}

SEC("tp_btf/net_dev_start_xmit") int on_transmit(u64 *ctx) {
  struct sk_buff *skb = (void *)ctx[0];
  return seen(skb, skb->network_header, TRANSMITTED, 0);
}

// When a device has received a packet, its data begin with the IP header.
SEC("tp_btf/netif_rx") int on_backlog(u64 *ctx) {
  struct sk_buff *skb = (void *)ctx[0];
  return seen(skb, skb->data - skb->head, BACKLOG, 0);
}

SEC("tp_btf/netif_receive_skb") int on_receive(u64 *ctx) {
  struct sk_buff *skb = (void *)ctx[0];
  return seen(skb, skb->data - skb->head, RECEIVED, 0);
}

SEC("tp_btf/kfree_skb") int on_drop(u64 *ctx) {
  struct sk_buff *skb = (void *)ctx[0];
  return seen(skb, skb->network_header, DROPPED, ctx[2]);
}

INLINE void at_socket(struct receiving *receiving, u32 cpu, const struct sock *sock, u8 kind, u64 buffer, u32 number) {
  struct packet *packet = reserve(receiving);
  if (!packet) return;
  packet->at_ns = now_ns();
  packet->buffer = buffer;
  packet->cpu = cpu;
  packet->thread = own_id();
  packet->namespace = sock->__sk_common.skc_net.net->ns.inum;
  const u32 none[4] = {0};
  address(packet->from, none);
  address(packet->to, none);
  packet->from_port = 0;
  packet->to_port = swapped(sock->__sk_common.skc_num);
  packet->id = 0;
  packet->offset = 0;
  packet->more = 0;
  packet->number = number;
  packet->kind = kind;
  packet->run = run_of(receiving);
  packet->payload_bytes = 0;
  packet->device[0] = 0;
  packet->discipline[0] = 0;
  submit(packet);
}

// The socket of the datagram that the CPU receives now has it. Since Linux 6.3.
SEC("tp_btf/sk_data_ready") int on_data_ready(u64 *ctx) {
  if (!following) return 0;
  const struct sock *sock = (void *)ctx[0];
  u32 cpu = this_cpu();
  struct receiving *receiving = map_lookup(&receivers, &cpu);
  if (!receiving || !receiving->buffer || swapped(sock->__sk_common.skc_num) != receiving->to_port) return 0;
  at_socket(receiving, cpu, sock, IN_SOCKET, receiving->buffer, 0);
  return 0;
}

// A thread has read a datagram from a watched socket. Since Linux 6.3.
SEC("tp_btf/sock_recv_length") int on_read(u64 *ctx) {
  if (!following) return 0;
  const struct sock *sock = (void *)ctx[0];
  s32 bytes = ctx[1];
  u16 port = swapped(sock->__sk_common.skc_num);
  if (bytes < 0 || !map_lookup(&ports, &port)) return 0;
  u32 cpu = this_cpu();
  struct receiving *receiving = map_lookup(&receivers, &cpu);
  if (receiving) at_socket(receiving, cpu, sock, READ, 0, bytes);
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";

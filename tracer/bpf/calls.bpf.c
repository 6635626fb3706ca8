// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Records the calls with which programs of ROS 2 publish and take messages, at the interface between rcl and the middleware (rmw),
// and how long rclcpp executes subscriptions. The programs are attached to functions of libraries (uprobes). See machine.bpf.c
// for how objects are built.

#include "kernel.h"
#include "thread_id.h"

// Helper functions of the kernel that read the memory of the program, by their numbers in linux/bpf.h.
static long (*const read_user)(void *into, u32 bytes, const void *from) = (void *)112;
static long (*const read_user_text)(void *into, u32 bytes, const void *from) = (void *)114;

struct sched_info {
  u64 run_delay;
} RELOCATED;
struct task_struct {
  int pid, tgid;
  char comm[16];
  struct task_struct *group_leader;
  struct sched_info sched_info;
} RELOCATED;

// Kinds of records: the same numbers are in crates/abi/src/tracer.rs.
enum { PUBLISH = 1, TAKE = 2, EXECUTE = 3, WAITED = 4 };

// Shorter waits for a CPU are not recorded.
#define SHORTEST_WAIT_NS 100000

// The longest name of a topic of ROS 2 has 255 characters.
#define NAME 256

struct call {
  u64 begin_ns, end_ns;
  s64 source_ns;  // TAKE: source timestamp of the message, as the middleware gives it; WAITED: how long the other thread had the CPU
  s32 process, thread;
  u8 kind;
  u8 unused[7];
  char topic[NAME];  // WAITED: 16 bytes with the name of the thread, and 16 bytes with the name of the thread that had the CPU
};

// A call that has begun.
struct begun {
  u64 begin_ns;
  const char *topic;
  const void *taken, *information;
  u32 kind;
  u32 depth;  // calls of the same function inside it: one library passes the call to another one
};
struct {
  UINT(type, MAP_LRU_HASH);
  UINT(max_entries, 8192);
  TYPE(key, u64);
  TYPE(value, struct begun);
} begun SEC(".maps");

// Threads that execute a subscription: when the message was taken, 0 = no message yet.
struct {
  UINT(type, MAP_LRU_HASH);
  UINT(max_entries, 8192);
  TYPE(key, u64);
  TYPE(value, u64);
} executing SEC(".maps");

// Processes that publish or take messages: the waits of all their threads for a CPU are recorded.
struct {
  UINT(type, MAP_LRU_HASH);
  UINT(max_entries, 4096);
  TYPE(key, s32);
  TYPE(value, u8);
} callers SEC(".maps");

// A thread of such a process: when it got a CPU last, and how long it had waited for CPUs until it left one, since it exists. In
// between, the kernel adds to the latter more than once if the waiting thread is moved to another CPU.
struct got {
  u64 at_ns;
  u64 waited_ns;
  u64 by_from_ns, by_to_ns;
  char by[16];  // the thread that had this CPU longest in the last second, and when
};
struct {
  UINT(type, MAP_LRU_HASH);
  UINT(max_entries, 16384);
  TYPE(key, s32);
  TYPE(value, struct got);
} on_cpu SEC(".maps");

struct {
  UINT(type, MAP_RINGBUF);
  UINT(max_entries, 4 << 20);
} calls SEC(".maps");

// Number of records for which the ring buffer had no room.
u64 lost = 0;

// A CPU: since when the running thread has it, and the longest time that a thread had it in the last second.
struct cpu {
  u64 since_ns;
  u64 by_from_ns, by_to_ns;
  char by[16];
};
struct {
  UINT(type, MAP_ARRAY);
  UINT(max_entries, 4096);
  TYPE(key, u32);
  TYPE(value, struct cpu);
} cpus SEC(".maps");
#define RECENTLY_NS 1000000000

// Whether this is a CPU of Arm, whose registers have other places. Only the loader changes it.
const volatile u32 is_arm = 0;

// A register of the thread that called. The helper takes any address: the verifier permits loads at constant offsets alone, and the
// compiler joins the loads of two kinds of CPU.
INLINE u64 word(const u64 *registers, u32 at) {
  u64 value = 0;
  return read_kernel(&value, sizeof(value), registers + at) ? 0 : value;
}
// The places of the first four arguments and of the result among the registers (struct pt_regs), in words.
INLINE u64 argument(const u64 *registers, u32 number) {
  return word(registers, is_arm ? number : number == 0 ? 14 : number == 1 ? 13 : number == 2 ? 12 : 11);
}
INLINE u64 result(const u64 *registers) { return word(registers, is_arm ? 0 : 10); }

INLINE s32 own_process(void) {
  return pid_namespace ? id_of(this_task()->group_leader) : (s32)(this_thread() >> 32);
}

INLINE int begins(const u64 *registers, u32 kind) {
  u64 thread = this_thread();
  struct begun *outer = map_lookup(&begun, &thread);
  if (outer && outer->kind == kind) {
    outer->depth++;
    return 0;
  }
  s32 process = (s32)(thread >> 32);
  u8 is = 1;
  map_update(&callers, &process, &is, 0);
  struct begun new = {.kind = kind};
  // rmw_publisher_t and rmw_subscription_t begin with two pointers, and then have the name of the topic.
  const char *handle = (const char *)argument(registers, 0);
  if (read_user(&new.topic, sizeof(new.topic), handle + 16)) return 0;
  if (kind == TAKE) {
    new.taken = (const void *)argument(registers, 2);
    new.information = (const void *)argument(registers, 3);
  }
  new.begin_ns = now_ns();
  map_update(&begun, &thread, &new, 0);
  return 0;
}

INLINE struct call *record(u32 kind) {
  struct call *call = ring_reserve(&calls, sizeof(*call), 0);
  if (!call) {
    __sync_fetch_and_add(&lost, 1);
    return 0;
  }
  call->kind = kind;
  call->process = own_process();
  call->thread = own_id();
  call->source_ns = 0;
  call->topic[0] = 0;
  return call;
}

SEC("uprobe") int on_publish(const u64 *registers) { return begins(registers, PUBLISH); }
SEC("uprobe") int on_take(const u64 *registers) { return begins(registers, TAKE); }

SEC("uretprobe") int on_return(const u64 *registers) {
  u64 end_ns = now_ns();
  u64 thread = this_thread();
  struct begun *ended = map_lookup(&begun, &thread);
  if (!ended) return 0;
  if (ended->depth) {
    ended->depth--;
    return 0;
  }
  struct begun of = *ended;
  map_delete(&begun, &thread);
  // RMW_RET_OK
  if ((u32)result(registers) != 0) return 0;
  s64 source_ns = 0;
  if (of.kind == TAKE) {
    u8 taken = 0;
    if (read_user(&taken, sizeof(taken), of.taken) || !taken) return 0;
    // rmw_message_info_t begins with the source timestamp.
    if (read_user(&source_ns, sizeof(source_ns), of.information)) source_ns = 0;
    u64 *took = map_lookup(&executing, &thread);
    if (took) *took = end_ns;
  }
  struct call *call = record(of.kind);
  if (!call) return 0;
  call->begin_ns = of.begin_ns;
  call->end_ns = end_ns;
  call->source_ns = source_ns;
  if (read_user_text(call->topic, NAME, of.topic) < 0) call->topic[0] = 0;
  ring_submit(call, NO_WAKEUP);
  return 0;
}

SEC("uprobe") int on_execute(const u64 *registers) {
  u64 thread = this_thread(), none = 0;
  map_update(&executing, &thread, &none, 0);
  return 0;
}

SEC("uretprobe") int on_executed(const u64 *registers) {
  u64 end_ns = now_ns();
  u64 thread = this_thread();
  u64 *took = map_lookup(&executing, &thread);
  if (!took) return 0;
  u64 begin_ns = *took;
  map_delete(&executing, &thread);
  if (!begin_ns) return 0;
  struct call *call = record(EXECUTE);
  if (!call) return 0;
  call->begin_ns = begin_ns;
  call->end_ns = end_ns;
  ring_submit(call, NO_WAKEUP);
  return 0;
}

// A thread leaves the CPU and another one gets it. The kernel knows how long a thread has waited once it is on the CPU.
SEC("tp_btf/sched_switch") int on_switch(u64 *arguments) {
  const struct task_struct *out = (const void *)arguments[1], *in = (const void *)arguments[2];
  s32 process = in->tgid, thread = in->pid;
  u32 number = this_cpu();
  u64 now = now_ns();
  struct cpu *cpu = map_lookup(&cpus, &number);
  if (!cpu) return 0;
  // The idle thread keeps nobody from the CPU.
  if (out->pid && cpu->since_ns &&
      (now - cpu->since_ns >= cpu->by_to_ns - cpu->by_from_ns || now - cpu->by_to_ns > RECENTLY_NS)) {
    cpu->by_from_ns = cpu->since_ns;
    cpu->by_to_ns = now;
    read_kernel(cpu->by, sizeof(cpu->by), out->comm);
  }
  cpu->since_ns = now;
  if (map_lookup(&callers, &process)) {
    const struct got *old = map_lookup(&on_cpu, &thread);
    u64 waited_ns = in->sched_info.run_delay;
    // The compiler must not join the two loads: the verifier permits one kind of pointer for each.
    __asm__ volatile("" : "+r"(waited_ns));
    if (old) waited_ns = old->waited_ns;
    struct got new = {.at_ns = now, .waited_ns = waited_ns};
    new.by_from_ns = cpu->by_from_ns;
    new.by_to_ns = cpu->by_to_ns;
    __builtin_memcpy(new.by, cpu->by, sizeof(new.by));
    map_update(&on_cpu, &thread, &new, 0);
  }
  process = out->tgid;
  thread = out->pid;
  if (!map_lookup(&callers, &process)) return 0;
  struct got *got = map_lookup(&on_cpu, &thread);
  if (!got) return 0;
  u64 waited_ns = out->sched_info.run_delay - got->waited_ns, at_ns = got->at_ns;
  if (waited_ns >= SHORTEST_WAIT_NS && waited_ns < at_ns) {
    struct call *call = ring_reserve(&calls, sizeof(*call), 0);
    if (call) {
      call->kind = WAITED;
      call->process = pid_namespace ? id_of(out->group_leader) : out->tgid;
      call->thread = id_of(out);
      call->begin_ns = at_ns - waited_ns;
      call->end_ns = at_ns;
      u64 from_ns = got->by_from_ns > call->begin_ns ? got->by_from_ns : call->begin_ns;
      call->source_ns = got->by_to_ns > from_ns ? got->by_to_ns - from_ns : 0;
      read_kernel(call->topic, 16, out->comm);
      __builtin_memcpy(call->topic + 16, got->by, 16);
      ring_submit(call, NO_WAKEUP);
    } else
      __sync_fetch_and_add(&lost, 1);
  }
  got->waited_ns = out->sched_info.run_delay;
  return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Records context switches, wake-ups, interrupts, missing ticks and frequencies of the watched CPUs, page faults of the
// watched threads on these CPUs, and the times in which these threads had to free memory, into a ring buffer.
//
// The object is compiled once and committed (dev/bpf). Offsets of the kernel's structures are relocated when the object
// is loaded (CO-RE). No header of the kernel is needed: everything that is used of the kernel is declared here and in
// kernel.h. The kernel lets only programs with a licence that is compatible with the GPL trace it; this licence applies
// to the files of this directory alone.

#include "kernel.h"
#include "thread_id.h"

// The members of the kernel's structures that are read; their offsets are relocated.
struct thread_info {
  u32 cpu;
} RELOCATED;
struct cfs_rq {
  int throttle_count;
} RELOCATED;
struct rt_rq {
  int rt_throttled;
} RELOCATED;
struct sched_entity {
  struct cfs_rq *cfs_rq;
} RELOCATED;
struct sched_rt_entity {
  struct rt_rq *rt_rq;
} RELOCATED;
struct sched_dl_entity {
  unsigned dl_throttled : 1;
  unsigned dl_yielded : 1;
} RELOCATED;
struct task_struct {
  struct thread_info thread_info;
  int wake_cpu;
  int pid;
  unsigned policy;
  struct sched_entity se;
  struct sched_rt_entity rt;
  struct sched_dl_entity dl;
  void *dl_server;
  unsigned in_iowait : 1;
  unsigned in_user_fault : 1;
  unsigned frozen : 1;
} RELOCATED;

// States of a thread (linux/sched.h); frozen since Linux 6.1.
enum {
  TASK_INTERRUPTIBLE = 0x1,
  TASK_UNINTERRUPTIBLE = 0x2,
  TASK_STOPPED = 0x4,
  TASK_TRACED = 0x8,
  EXIT_DEAD = 0x10,
  EXIT_ZOMBIE = 0x20,
  TASK_DEAD = 0x80,
  TASK_NOLOAD = 0x400,
  TASK_RTLOCK_WAIT = 0x1000,
  TASK_FROZEN = 0x8000,
};

// Records: the same numbers are in crates/abi/src/tracer.rs.
enum { SWITCH = 1, WAKE = 2, IRQ = 3, VECTOR = 4, SOFTIRQ = 5, MOVE = 6, FAULT = 7, SERVED = 8, LIMITED = 9 };
enum { RECLAIM = 10, NO_TICK = 11, FREQUENCY = 12 };
enum { PREEMPTED = 1, BY_INTERRUPT = 2, BY_PACKET = 4, FROM_DISK = 8 };
enum { UNKNOWN = 0, INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, STOPPED = 3, FROZEN = 4, ENDED = 5 };
enum { IO = 6, PAGE_FAULT = 7, OUT_OF_QUOTA = 8, RT_THROTTLED = 9, DEADLINE_THROTTLED = 10 };

// Policies of a thread (linux/sched.h) that have real-time priorities, and the one with a run time in each period.
enum { SCHED_FIFO = 1, SCHED_RR = 2, SCHED_DEADLINE = 6 };

struct record {
  u64 at_ns;
  u32 cpu;
  u8 kind, flags, state, unused;
  s32 one, two;
};

// Interrupts that take less time are left out: SHORTEST_NS of crates/host/src/switches/pairs.rs.
#define SHORTEST_NS 2000
// Times without an interrupt of the timer of at most this length are left out.
#define SHORTEST_GAP_NS 500000

// One entry for each CPU, in a cache line of its own.
struct slot {
  // Begin of the soft interrupt, interrupt of a device, and interrupt of the CPU that run now; 0 = none. On CPUs that
  // are not watched it is 1 while one of them runs. Interrupts of the same kind are never inside each other.
  u64 softirq_ns, irq_ns, vector_ns;
  u64 lost;       // number of records for which the ring buffer had no room
  u32 softirq;    // number of the soft interrupt that runs now
  u32 preempted;  // number of threads of this CPU that were preempted within a soft interrupt (PREEMPT_RT)
  u64 limit_at;   // address of the kernel's number that is above 0 while a limit keeps `limited` from this CPU; 0 = none
  s32 limited;    // watched thread that was ready last although a limit of CPU time kept it from this CPU
  u32 limit;      // OUT_OF_QUOTA or RT_THROTTLED
  // Time of the last interrupt of the CPU's timer, or since which threads have the CPU, whichever was later; 0 while the CPU
  // is idle, and as long as this is not known. Time of the last interrupt of the timer or context switch.
  u64 timer_ns, alive_ns;
  u64 has_timer;  // 1 if an interrupt of the timer was seen on this CPU: other machines have other timers
} __attribute__((aligned(64)));

struct {
  UINT(type, MAP_ARRAY);
  UINT(max_entries, 1);  // the loader sets the number of CPUs
  TYPE(key, u32);
  TYPE(value, struct slot);
} slots SEC(".maps");

// One bit for each CPU: its records are written. Only the loader changes it.
#define MAX_CPUS 1024
u64 watched[MAX_CPUS / 64];

// Threads whose wake-ups are recorded on all CPUs, and whose page faults are recorded on the watched ones.
struct {
  UINT(type, MAP_HASH);
  UINT(max_entries, 4096);
  TYPE(key, u32);
  TYPE(value, u8);
} threads SEC(".maps");

// Soft interrupts in which a thread was preempted, by the kernel's thread id.
struct {
  UINT(type, MAP_HASH);
  UINT(max_entries, 4096);
  TYPE(key, u32);
  TYPE(value, u32);
} preempted SEC(".maps");

// Begin of the page fault in which a watched thread is, by thread id. A page fault that the kernel cannot handle has no
// end: the next one of the thread replaces it.
struct {
  UINT(type, MAP_HASH);
  UINT(max_entries, 4096);
  TYPE(key, u32);
  TYPE(value, u64);
} faults SEC(".maps");

// Begin of the time in which a watched thread frees memory, by thread id.
struct {
  UINT(type, MAP_HASH);
  UINT(max_entries, 4096);
  TYPE(key, u32);
  TYPE(value, u64);
} reclaims SEC(".maps");

struct {
  UINT(type, MAP_RINGBUF);
  UINT(max_entries, 4 << 20);
} records SEC(".maps");

// The loader sets this to half of the size of the ring buffer: a full half wakes the reader.
const volatile u64 wake_at_bytes = 2 << 20;
// The loader sets this to the period of the scheduler's tick; 0 = a CPU that runs threads can be without ticks.
const volatile u64 tick_ns = 0;

INLINE struct slot *slot_of(u32 cpu) { return map_lookup(&slots, &cpu); }

INLINE int is_watched(u32 cpu) { return cpu < MAX_CPUS && (watched[(cpu / 64) % (MAX_CPUS / 64)] >> (cpu % 64) & 1); }

INLINE void write(struct slot *slot, u64 at_ns, u32 cpu, u8 kind, u8 flags, u8 state, s32 one, s32 two) {
  struct record *record = ring_reserve(&records, sizeof(*record), 0);
  if (!record) {
    slot->lost++;
    return;
  }
  record->at_ns = at_ns;
  record->cpu = cpu;
  record->kind = kind;
  record->flags = flags;
  record->state = state;
  record->unused = 0;
  record->one = one;
  record->two = two;
  u64 full = ring_query(&records, AVAILABLE_DATA);
  int wake = full >= wake_at_bytes && full < wake_at_bytes + WAKE_SPAN_BYTES;
  ring_submit(record, wake ? FORCE_WAKEUP : NO_WAKEUP);
}

INLINE s32 at_most_s32(u64 ns) { return ns > 0x7fffffff ? 0x7fffffff : ns; }

INLINE void interrupted(struct slot *slot, u32 cpu, u8 kind, u32 number, u64 begin_ns, u64 end_ns) {
  u64 ns = end_ns - begin_ns;
  // The watch began within this interrupt if its begin is 1.
  if (begin_ns <= 1 || ns < SHORTEST_NS || !is_watched(cpu)) return;
  write(slot, begin_ns, cpu, kind, 0, 0, number, at_most_s32(ns));
}

// Writes the begin of a time without an interrupt of the timer: a record has room for two seconds.
INLINE void write_part(struct slot *slot, u32 cpu, u64 from_ns, u64 to_ns) {
  if (from_ns < to_ns) write(slot, from_ns, cpu, NO_TICK, 0, 0, 0, at_most_s32(to_ns - from_ns));
}

// Writes that no interrupt of the timer came to a CPU that runs threads, since the CPU was alive last. The interrupt comes at
// least once in each tick. If a whole tick is missing, the CPU stood still (a hypervisor or the firmware had it), or the kernel
// ran with interrupts disabled.
INLINE void check_tick(struct slot *slot, u32 cpu, u64 now) {
  u64 alive_ns = slot->alive_ns;
  slot->alive_ns = now;
  if (!tick_ns || !slot->timer_ns || now <= slot->timer_ns + 2 * tick_ns) return;
  if (now <= alive_ns + SHORTEST_GAP_NS) return;
  write_part(slot, cpu, alive_ns, now);
  write_part(slot, cpu, alive_ns + 0x7fffffffull, now);
  write_part(slot, cpu, alive_ns + 2 * 0x7fffffffull, now);
  write_part(slot, cpu, alive_ns + 3 * 0x7fffffffull, now);
}

INLINE u64 begin_on(u32 cpu) { return is_watched(cpu) ? now_ns() : 1; }

// Reads one bit of a thread; 0 if the kernel's structure does not have it.
#define BIT(task, field)                                                                \
  ({                                                                                    \
    u64 value = 0;                                                                      \
    if (__builtin_preserve_field_info((task)->field, 2)) {                              \
      u32 bytes = __builtin_preserve_field_info((task)->field, 1);                      \
      const void *at = (const void *)(task) + __builtin_preserve_field_info((task)->field, 0); \
      asm volatile("" : "+r"(at)); /* computes the address from the relocated offset */ \
      if (bytes == 1) value = *(const u8 *)at;                                          \
      if (bytes == 2) value = *(const unsigned short *)at;                              \
      if (bytes == 4) value = *(const u32 *)at;                                         \
      if (bytes == 8) value = *(const u64 *)at;                                         \
      value <<= __builtin_preserve_field_info((task)->field, 4);                        \
      value >>= __builtin_preserve_field_info((task)->field, 5);                        \
    }                                                                                   \
    value != 0;                                                                         \
  })

// Why the scheduler does not run a thread that is ready: its control group has used up its CPU quota or its real-time
// run time, or the thread has used up its run time of this period. Writes the address of the kernel's number that is above
// 0 as long as the limit holds; none for a run time of the thread itself, which is a single bit.
INLINE u8 throttled(struct task_struct *task, u64 *at) {
  if (task->policy == SCHED_DEADLINE) {
    // A thread that yields waits for its next period too, although it has run time left.
    return BIT(task, dl.dl_throttled) && !BIT(task, dl.dl_yielded) ? DEADLINE_THROTTLED : UNKNOWN;
  }
  if (task->policy == SCHED_FIFO || task->policy == SCHED_RR) {
    if (!__builtin_preserve_field_info(task->rt.rt_rq, 2)) return UNKNOWN;
    struct rt_rq *queue = task->rt.rt_rq;
    if (!queue || !queue->rt_throttled) return UNKNOWN;
    *at = (u64)&queue->rt_throttled;
    return RT_THROTTLED;
  }
  if (!__builtin_preserve_field_info(task->se.cfs_rq, 2)) return UNKNOWN;
  struct cfs_rq *queue = task->se.cfs_rq;
  if (!queue || !__builtin_preserve_field_info(queue->throttle_count, 2) || queue->throttle_count <= 0) return UNKNOWN;
  *at = (u64)&queue->throttle_count;
  return OUT_OF_QUOTA;
}

// Notes that a limit keeps a thread from a CPU, if the thread is watched.
INLINE void note_limit(u32 cpu, s32 thread, u8 limit, u64 at) {
  struct slot *slot = !at || !map_lookup(&threads, &thread) ? 0 : slot_of(cpu);
  if (!slot) return;
  slot->limited = thread;
  slot->limit = limit;
  slot->limit_at = at;
}

// Writes that the limit of a thread of this CPU still holds. If its control group is gone, the number can be any other one.
INLINE void check_limit(struct slot *slot, u32 cpu) {
  s32 number = 0;
  if (!slot->limit_at) return;
  if (read_kernel(&number, sizeof(number), (void *)slot->limit_at) || number <= 0) {
    slot->limit_at = 0;
    return;
  }
  write(slot, now_ns(), cpu, LIMITED, 0, slot->limit, slot->limited, 0);
}

INLINE u8 state_of(struct task_struct *task, u32 state) {
  if (state & TASK_FROZEN) return FROZEN;
  if (state & (TASK_STOPPED | TASK_TRACED)) return STOPPED;
  if (state & (TASK_DEAD | EXIT_DEAD | EXIT_ZOMBIE)) return ENDED;
  // The freezer of a control group of version 2 lets its threads sleep interruptibly.
  if (state & TASK_INTERRUPTIBLE) return BIT(task, frozen) ? FROZEN : INTERRUPTIBLE;
  // A thread of the kernel that waits for work waits for no disk and no lock.
  if (state & TASK_NOLOAD) return UNKNOWN;
  if (!(state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT))) return UNKNOWN;
  if (BIT(task, in_user_fault)) return PAGE_FAULT;
  return BIT(task, in_iowait) ? IO : UNINTERRUPTIBLE;
}

SEC("tp_btf/sched_switch") int on_switch(u64 *ctx) {
  struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
  u32 state = ctx[3], cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  u64 at_ns = begin_on(cpu);
  s32 out = prev->pid, into = next->pid;
  if (slot->softirq_ns) {
    // Only PREEMPT_RT preempts soft interrupts. The time of other threads does not belong to the soft interrupt.
    interrupted(slot, cpu, SOFTIRQ, slot->softirq, slot->softirq_ns, at_ns);
    u32 number = slot->softirq;
    slot->softirq_ns = 0;
    if (!map_update(&preempted, &out, &number, 0)) slot->preempted++;
  }
  if (slot->preempted) {
    u32 *number = map_lookup(&preempted, &into);
    if (number) {
      slot->softirq = *number;
      slot->softirq_ns = at_ns;
      slot->preempted--;
      map_delete(&preempted, &into);
    }
  }
  if (!is_watched(cpu)) {
    slot->timer_ns = 0;
    return 0;
  }
  check_tick(slot, cpu, at_ns);
  // An idle CPU may be without ticks.
  if (!next->pid) slot->timer_ns = 0;
  else if (!prev->pid && slot->has_timer) slot->timer_ns = at_ns;
  check_limit(slot, cpu);
  int runnable = (u8)ctx[0] || state == 0;
  u64 limit_at = 0;
  u8 why = runnable ? throttled(prev, &limit_at) : state_of(prev, state);
  write(slot, at_ns, cpu, SWITCH, runnable ? PREEMPTED : 0, why, id_of(prev), id_of(next));
  if (limit_at) note_limit(cpu, id_of(prev), why, limit_at);
  if (slot->limit_at && slot->limited == id_of(next)) slot->limit_at = 0;
  // The fair server (Linux 6.12) lends its run time to the thread that it chooses.
  if (__builtin_preserve_field_info(next->dl_server, 2) && next->dl_server) write(slot, at_ns, cpu, SERVED, 0, 0, id_of(next), 0);
  return 0;
}

SEC("tp_btf/sched_waking") int on_waking(u64 *ctx) {
  struct task_struct *task = (void *)ctx[0];
  s32 thread = id_of(task);
  u32 last_cpu = __builtin_preserve_field_info(task->thread_info.cpu, 2) ? task->thread_info.cpu : task->wake_cpu;
  if (!is_watched(last_cpu) && !map_lookup(&threads, &thread)) return 0;
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  // The number of the soft interrupt that receives packets (linux/interrupt.h).
  enum { NET_RX = 3 };
  int hard = slot->irq_ns || slot->vector_ns, interrupt = hard || slot->softirq_ns;
  int packet = !hard && slot->softirq_ns && slot->softirq == NET_RX;
  u64 limit_at = 0;
  u8 limit = throttled(task, &limit_at);
  write(slot, now_ns(), cpu, WAKE, (interrupt ? BY_INTERRUPT : 0) | (packet ? BY_PACKET : 0), limit, thread, own_id());
  note_limit(last_cpu, thread, limit, limit_at);
  return 0;
}

SEC("tp_btf/sched_migrate_task") int on_move(u64 *ctx) {
  struct task_struct *task = (void *)ctx[0];
  s32 thread = id_of(task);
  if (!map_lookup(&threads, &thread)) return 0;
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (slot) write(slot, now_ns(), cpu, MOVE, 0, 0, thread, (s32)ctx[1]);
  return 0;
}

SEC("tp_btf/softirq_entry") int on_softirq_entry(u64 *ctx) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  slot->softirq = ctx[0];
  slot->softirq_ns = begin_on(cpu);
  return 0;
}

SEC("tp_btf/softirq_exit") int on_softirq_exit(u64 *ctx) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  u64 begin_ns = slot->softirq_ns;
  slot->softirq_ns = 0;
  if (begin_ns > 1) interrupted(slot, cpu, SOFTIRQ, ctx[0], begin_ns, now_ns());
  return 0;
}

SEC("tp_btf/irq_handler_entry") int on_irq_entry(u64 *ctx) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (slot) slot->irq_ns = begin_on(cpu);
  return 0;
}

SEC("tp_btf/irq_handler_exit") int on_irq_exit(u64 *ctx) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  u64 begin_ns = slot->irq_ns;
  slot->irq_ns = 0;
  if (begin_ns > 1) interrupted(slot, cpu, IRQ, ctx[0], begin_ns, now_ns());
  return 0;
}

// The interrupt that ends a limit (timer, or call from another CPU) comes to the CPU of the thread: a look at its begin sees
// the limit at its end.
INLINE int vector_entry(void) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  slot->vector_ns = begin_on(cpu);
  if (is_watched(cpu)) check_limit(slot, cpu);
  return 0;
}

INLINE int vector_exit(u32 vector) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  u64 begin_ns = slot->vector_ns;
  slot->vector_ns = 0;
  if (begin_ns > 1) interrupted(slot, cpu, VECTOR, vector, begin_ns, now_ns());
  return 0;
}

// Interrupts of the CPU itself; tracepoints of x86.
#define VECTOR_POINTS(name)                                                                        \
  SEC("tp_btf/" #name "_entry") int on_##name##_entry(u64 *ctx) { return vector_entry(); }         \
  SEC("tp_btf/" #name "_exit") int on_##name##_exit(u64 *ctx) { return vector_exit(ctx[0]); }
VECTOR_POINTS(reschedule)
VECTOR_POINTS(call_function)
VECTOR_POINTS(call_function_single)
VECTOR_POINTS(irq_work)
VECTOR_POINTS(thermal_apic)

SEC("tp_btf/local_timer_entry") int on_local_timer_entry(u64 *ctx) {
  u32 cpu = this_cpu();
  struct slot *slot = slot_of(cpu);
  if (!slot) return 0;
  u64 now = begin_on(cpu);
  slot->vector_ns = now;
  // The CPU is not watched.
  if (now == 1) {
    slot->timer_ns = 0;
    return 0;
  }
  check_limit(slot, cpu);
  check_tick(slot, cpu, now);
  slot->has_timer = 1;
  slot->timer_ns = (u32)this_thread() ? now : 0;
  return 0;
}
SEC("tp_btf/local_timer_exit") int on_local_timer_exit(u64 *ctx) { return vector_exit(ctx[0]); }

SEC("tp_btf/cpu_frequency") int on_frequency(u64 *ctx) {
  u32 khz = ctx[0], cpu = ctx[1];
  struct slot *slot = slot_of(this_cpu());
  if (slot && is_watched(cpu)) write(slot, now_ns(), cpu, FREQUENCY, 0, 0, at_most_s32(khz), 0);
  return 0;
}

// A thread that needs memory frees some itself, if the machine or the control group of the thread has none left.
INLINE int reclaim_begin(void) {
  s32 thread = own_id();
  if (!map_lookup(&threads, &thread)) return 0;
  u64 at_ns = now_ns();
  map_update(&reclaims, &thread, &at_ns, 0);
  return 0;
}

INLINE int reclaim_end(void) {
  s32 thread = own_id();
  u32 cpu = this_cpu();
  u64 *begin = map_lookup(&reclaims, &thread);
  struct slot *slot = slot_of(cpu);
  if (!begin || !slot) return 0;
  u64 begin_ns = *begin;
  map_delete(&reclaims, &thread);
  write(slot, begin_ns, cpu, RECLAIM, 0, 0, thread, at_most_s32(now_ns() - begin_ns));
  return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin") int on_machine_reclaim_begin(u64 *ctx) { return reclaim_begin(); }
SEC("tp_btf/mm_vmscan_direct_reclaim_end") int on_machine_reclaim_end(u64 *ctx) { return reclaim_end(); }
SEC("tp_btf/mm_vmscan_memcg_reclaim_begin") int on_group_reclaim_begin(u64 *ctx) { return reclaim_begin(); }
SEC("tp_btf/mm_vmscan_memcg_reclaim_end") int on_group_reclaim_end(u64 *ctx) { return reclaim_end(); }

// Page faults: perf events of software, which the kernel counts when it begins to handle a fault, and when the page is
// there. They belong to CPUs and not to threads, so that they cost nothing at context switches.
SEC("perf_event") int on_fault_begin(void *ctx) {
  s32 thread = own_id();
  if (!map_lookup(&threads, &thread)) return 0;
  u64 at_ns = now_ns();
  map_update(&faults, &thread, &at_ns, 0);
  return 0;
}

INLINE int fault_end(u8 flags) {
  s32 thread = own_id();
  u32 cpu = this_cpu();
  u64 *begin = map_lookup(&faults, &thread);
  struct slot *slot = slot_of(cpu);
  if (!begin || !slot) return 0;
  u64 begin_ns = *begin, ns = now_ns() - begin_ns;
  map_delete(&faults, &thread);
  write(slot, begin_ns, cpu, FAULT, flags, 0, thread, at_most_s32(ns));
  return 0;
}

SEC("perf_event") int on_fault_minor(void *ctx) { return fault_end(0); }
SEC("perf_event") int on_fault_major(void *ctx) { return fault_end(FROM_DISK); }

char _license[] SEC("license") = "Dual BSD/GPL";

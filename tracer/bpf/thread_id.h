// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// Ids of threads in the PID namespace of the process that loaded the programs. The kernel's own ids are those of the first
// PID namespace, which a process in another one cannot connect with its threads.

struct ns_common___id {
  u32 inum;
} RELOCATED;
struct pid_namespace {
  struct ns_common___id ns;
} RELOCATED;
struct upid {
  s32 nr;
  struct pid_namespace *ns;
} RELOCATED;
// The ids of a thread: in the first PID namespace, and in each one below it down to the one of the thread.
struct pid {
  u32 level;
  struct upid numbers[1];
} RELOCATED;
struct task_struct___id {
  s32 pid;
  struct pid *thread_pid;
} RELOCATED;

// Number of the PID namespace whose ids are recorded; 0 = the first one. Only the loader changes it.
const volatile u32 pid_namespace = 0;

// A PID namespace has at most 32 levels (MAX_PID_NS_LEVEL); containers use one or two.
#define MOST_LEVELS 8

// Id of a thread; 0 = the idle thread, -1 = a thread that has ended, or that is not in the PID namespace.
INLINE s32 id_of(const void *any) {
  const struct task_struct___id *task = any;
  if (!pid_namespace || !task->pid) return task->pid;
  const struct pid *pid = task->thread_pid;
  u32 level = 0;
  if (!pid || read_kernel(&level, sizeof(level), &pid->level)) return -1;
  const struct upid *first = &pid->numbers[0];
#pragma unroll
  for (u32 up = 0; up < MOST_LEVELS; up++) {
    struct {
      s32 nr;
      u32 unused;
      const struct pid_namespace *ns;
    } id;
    u32 inum = 0;
    if (up > level) return -1;
    const void *at = (const char *)first + (u64)(level - up) * sizeof(id);
    if (read_kernel(&id, sizeof(id), at) || read_kernel(&inum, sizeof(inum), &id.ns->ns.inum)) return -1;
    if (inum == pid_namespace) return id.nr;
  }
  return -1;
}

// Id of the thread that runs now.
INLINE s32 own_id(void) { return pid_namespace ? id_of(this_task()) : (s32)this_thread(); }

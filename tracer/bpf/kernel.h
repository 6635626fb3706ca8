// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
//
// What the BPF programs of this directory use of the kernel: types, forms of maps, and helper functions.

#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline))
#define RELOCATED __attribute__((preserve_access_index))

// Forms of a map's members that the loader reads from BTF.
#define UINT(name, value) int (*name)[value]
#define TYPE(name, value) typeof(value) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_LRU_HASH = 9, MAP_RINGBUF = 27 };
enum { NO_WAKEUP = 1, FORCE_WAKEUP = 2, AVAILABLE_DATA = 0 };

// Helper functions of the kernel, by their numbers in linux/bpf.h.
static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const map_delete)(void *map, const void *key) = (void *)3;
static u64 (*const now_ns)(void) = (void *)5;
static u32 (*const this_cpu)(void) = (void *)8;
static u64 (*const this_thread)(void) = (void *)14;
static struct task_struct *(*const this_task)(void) = (void *)158;
static long (*const read_kernel)(void *into, u32 bytes, const void *from) = (void *)113;
static void *(*const ring_reserve)(void *ring, u64 bytes, u64 flags) = (void *)131;
static void (*const ring_submit)(void *record, u64 flags) = (void *)132;
static u64 (*const ring_query)(void *ring, u64 flags) = (void *)134;

// The reader of a ring buffer is woken by each record of this span, so that one missed wake-up does no harm, and not by
// all that follow.
#define WAKE_SPAN_BYTES 8192

// A plugin of QEMU 7.2 for `bench/counted --functions`: counts the instructions of each task of the guest by address.
//
// Arguments: ram=FILE (memory of the guest, shared), switch=ADDRESS and size=BYTES of __switch_to, current=OFFSET of the
// per-CPU variable current_task, offsets=ADDRESS of __per_cpu_offset, out=FILE. The guest has one CPU, at most 2 GiB of
// memory, and no KASLR.
//
// QEMU 7.2 does not let a plugin read registers or memory. The plugin therefore watches the stores of __switch_to to
// current_task, and reads the new task from the file that is the memory of the guest.
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

// The part of the plugin interface (version 1) that is used here; Debian's package of QEMU has no header.
typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
extern void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int, int, void *);
extern void qemu_plugin_register_atexit_cb(plugin_id, void (*)(plugin_id, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
enum { NO_REGISTERS = 0, STORES = 2 };
#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

#define TASKS 4096                       // tasks with a name: a task that changes its name counts as another task
#define BLOCKS (1 << 20)
#define IMAGE 0xffffffff80000000ull      // where a kernel without KASLR maps its image, from physical address 0
#define DIRECT_MAP 0xffff888000000000ull // where a kernel without KASLR maps all memory
#define TASK_BYTES 8192                  // struct task_struct is not longer

struct block { uint64_t address; uint32_t instructions; uint32_t used; uint32_t *executed[TASKS / 64]; };
static struct block *blocks;
static struct { uint64_t task; char name[16]; } tasks[TASKS];
static unsigned known = 1, now;          // task 0: before the first switch, and tasks above the limit
static uint8_t *ram;
static uint64_t ram_bytes, switch_at, switch_bytes, current_at, offsets_at;
static int name_at = -1;
static const char *out;

// Counts of 64 tasks are allocated together, when the first of them executes the block.
static void executed(unsigned cpu, void *data) {
    struct block *b = data;
    uint32_t **group = &b->executed[now / 64];
    if (!*group) *group = calloc(64, sizeof **group);
    (*group)[now % 64]++;
}

static void switched(unsigned cpu, uint32_t info, uint64_t address, void *data) {
    uint64_t offset, at, task, base;
    memcpy(&offset, ram + offsets_at - IMAGE, 8);
    if (address != offset + current_at || (at = address - DIRECT_MAP) + 8 > ram_bytes) return;
    memcpy(&task, ram + at, 8);
    base = task - DIRECT_MAP;
    now = 0;
    if (base + TASK_BYTES > ram_bytes) return;   // the idle task, which is in the image of the kernel
    for (int i = 0; name_at < 0 && i < TASK_BYTES - 16; i += 8)
        if (!memcmp(ram + base + i, "kthreadd", 9)) name_at = i;
    char name[16] = "";
    if (name_at >= 0) memcpy(name, ram + base + name_at, 15);
    // A name that a program chose must not divide a line of the output.
    for (char *c = name; *c; c++) if (*c < ' ') *c = '?';
    for (now = 1; now < known; now++)
        if (tasks[now].task == task && !strncmp(tasks[now].name, name, 16)) return;
    if (known == TASKS) { now = 0; return; }
    tasks[now].task = task;
    memcpy(tasks[now].name, name, 16);
    known++;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb) {
    uint64_t address = qemu_plugin_tb_vaddr(tb);
    uint32_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t i = (address * 0x9e3779b97f4a7c15ull + n * 0x94d049bb133111ebull) >> 44;
    for (unsigned tries = 0; blocks[i].used && (blocks[i].address != address || blocks[i].instructions != n); i = (i + 1) % BLOCKS)
        if (++tries == BLOCKS) { fprintf(stderr, "functions.c: more than %d blocks\n", BLOCKS); abort(); }
    blocks[i].used = 1, blocks[i].address = address, blocks[i].instructions = n;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, NO_REGISTERS, &blocks[i]);
    if (address - switch_at < switch_bytes)
        for (size_t k = 0; k < n; k++)
            qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, k), switched, NO_REGISTERS, STORES, NULL);
}

static void ended(plugin_id id, void *data) {
    FILE *f = fopen(out, "w");
    if (!f) { perror(out); return; }
    for (unsigned t = 0; t < known; t++) fprintf(f, "task %u %.16s\n", t, t ? tasks[t].name : "other");
    for (unsigned i = 0; i < BLOCKS; i++)
        for (unsigned t = 0; t < known; t++)
            if (blocks[i].executed[t / 64] && blocks[i].executed[t / 64][t % 64])
                fprintf(f, "%u %llx %u %u\n", t, (unsigned long long)blocks[i].address, blocks[i].instructions,
                        blocks[i].executed[t / 64][t % 64]);
    fclose(f);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int count, char **arguments) {
    for (int i = 0; i < count; i++) {
        char *value = strchr(arguments[i], '=');
        if (!value) return 1;
        *value++ = 0;
        if (!strcmp(arguments[i], "out")) out = strdup(value);
        else if (!strcmp(arguments[i], "switch")) switch_at = strtoull(value, NULL, 16);
        else if (!strcmp(arguments[i], "size")) switch_bytes = strtoull(value, NULL, 10);
        else if (!strcmp(arguments[i], "current")) current_at = strtoull(value, NULL, 16);
        else if (!strcmp(arguments[i], "offsets")) offsets_at = strtoull(value, NULL, 16);
        else if (!strcmp(arguments[i], "ram")) {
            int fd = open(value, O_RDONLY);
            struct stat s;
            if (fd < 0 || fstat(fd, &s)) { perror(value); return 1; }
            ram_bytes = s.st_size;
            ram = mmap(NULL, ram_bytes, PROT_READ, MAP_SHARED, fd, 0);
            if (ram == MAP_FAILED) { perror(value); return 1; }
        }
    }
    blocks = calloc(BLOCKS, sizeof *blocks);
    if (!out || !ram || !switch_at || !switch_bytes || !current_at || offsets_at < IMAGE || !blocks) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}

/* A driver for bench/why.py: the driver `udp`, whose send call sleeps, waits for a lock that another thread holds, or uses memory
 * whose pages are on a disk, at ordered times. The driver `udp` is a file beside this object. The orders are in the directory
 * `orders` beside it, one file per end, which `plant.c` writes; there is also the file with the pages.
 */
#define _GNU_SOURCE
#include "held.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <tailbound_driver.h>
#include <time.h>
#include <unistd.h>

static const tb_driver *base;
static const char BASE_DRIVER[] = "libtailbound_driver_udp_so.so";
static tb_driver table;
static struct order *orders;
/* Memory of a file whose pages were never used before. */
static const volatile char *pages;
static size_t page_bytes, unused_page, page_count;
enum { PATH_BYTES = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *description;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(int64_t ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static const char *describe(void) { return description; }

/* The thread that holds the lock. It looks for new orders every 10 ms; orders are written long before they begin. */
static void *keep(void *unused) {
    prctl(PR_SET_NAME, KEEPER);
    for (int next = 0; next < ORDERS;) {
        struct order *o = &orders[next];
        int64_t from = __atomic_load_n(&o->from_ns, __ATOMIC_ACQUIRE);
        if (!from) {
            sleep_until(now() + 10000000);
            continue;
        }
        next++;
        if (o->kind != HOLD_LOCK) continue;
        sleep_until(from);
        pthread_mutex_lock(&lock);
        o->began_ns = now();
        sleep_until(o->until_ns);
        o->ended_ns = now();
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Memory from `path`, unlocked, of which the kernel reads one page at a time. */
static void map_pages(const char *path) {
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &about) != 0) return;
    void *map = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) return;
    munlock(map, about.st_size);
    madvise(map, about.st_size, MADV_RANDOM);
    /* mlockall has read the pages: they are given back, and the file's pages with them. */
    madvise(map, about.st_size, MADV_DONTNEED);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    page_bytes = sysconf(_SC_PAGESIZE);
    page_count = about.st_size / page_bytes;
    pages = map;
}

/* Uses pages that the kernel has to read, until the time `until`. */
static void read_pages(int64_t until) {
    while (now() < until)
        /* Little work between the pages. */
        for (int i = 0; i < 8 && unused_page < page_count; i++) (void)pages[page_bytes * unused_page++];
}

/* Writes the path of a file beside this object to `path`, of PATH_BYTES. */
static void beside(char *path, const char *directory, const char *name) {
    Dl_info about;
    const char *own = dladdr(&base, &about) ? about.dli_fname : "", *slash = strrchr(own, '/');
    snprintf(path, PATH_BYTES, "%.*s%s%s", slash ? (int)(slash - own) + 1 : 0, own, directory, name);
}

/* At the first message, because the process has the name of its end only then. Without orders the driver is `udp`. */
static void begin(void) {
    char name[32] = "", pages_name[64], path[PATH_BYTES];
    FILE *comm = fopen("/proc/self/comm", "re");
    if (comm && fgets(name, sizeof name, comm)) name[strcspn(name, "\n")] = 0;
    if (comm) fclose(comm);
    beside(path, "orders/", name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, ORDERS * sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_t thread;
    if (map == MAP_FAILED) return;
    orders = map;
    snprintf(pages_name, sizeof pages_name, "pages-%s", name);
    beside(path, "orders/", pages_name);
    map_pages(path);
    if (pthread_create(&thread, NULL, keep, NULL) == 0) pthread_detach(thread);
}

static int send_held(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *options) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local int next;
    pthread_once(&once, begin);
    int64_t t = now();
    while (orders && next < ORDERS && orders[next].from_ns && (orders[next].until_ns <= t || orders[next].kind == HOLD_LOCK)) next++;
    struct order *o = orders && next < ORDERS ? &orders[next] : NULL;
    if (o && o->from_ns && o->from_ns <= t && (o->kind == SLEEP || unused_page < page_count)) {
        o->began_ns = t;
        if (o->kind == SLEEP) sleep_until(o->until_ns);
        else read_pages(o->until_ns);
        o->ended_ns = now();
    }
    pthread_mutex_lock(&lock);
    int result = base->send(session, ep, seq, data, len, options);
    pthread_mutex_unlock(&lock);
    return result;
}

const tb_driver *tailbound_driver_v1(void) {
    if (base) return &table;
    char path[PATH_BYTES];
    beside(path, "", BASE_DRIVER);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tb_driver *(*entry)(void) = library ? (const tb_driver *(*)(void))dlsym(library, "tailbound_driver_v1") : NULL;
    if (!entry) return NULL;
    base = entry();
    table = *base;
    static const char NAME[] = "\"name\":\"udp\"";
    const char *text = base->describe(), *name = strstr(text, NAME);
    if (!name || asprintf(&description, "%.*s\"name\":\"held\"%s", (int)(name - text), text, name + strlen(NAME)) < 0) return NULL;
    table.describe = describe;
    table.send = send_held;
    return &table;
}

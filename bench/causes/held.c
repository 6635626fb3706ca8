/* A driver for bench/why.py: the driver `udp`, whose send call sleeps, or waits for a lock that another thread holds, at ordered
 * times. The orders are in a file beside this object, one file per end, which `plant.c` writes.
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
#include <tailbound_driver.h>
#include <time.h>

static const tb_driver *base;
static tb_driver table;
static struct order *orders;
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

/* At the first message, because the process has the name of its end only then. Without orders the driver is `udp`. */
static void begin(void) {
    char name[32] = "", path[4096];
    FILE *comm = fopen("/proc/self/comm", "re");
    if (comm && fgets(name, sizeof name, comm)) name[strcspn(name, "\n")] = 0;
    if (comm) fclose(comm);
    snprintf(path, sizeof path, "%s/%s", ORDERS_DIRECTORY, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, ORDERS * sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    pthread_t thread;
    if (map == MAP_FAILED) return;
    orders = map;
    if (pthread_create(&thread, NULL, keep, NULL) == 0) pthread_detach(thread);
}

static int send_held(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *options) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local int next;
    pthread_once(&once, begin);
    int64_t t = now();
    while (orders && next < ORDERS && orders[next].from_ns && (orders[next].until_ns <= t || orders[next].kind != SLEEP)) next++;
    struct order *o = orders && next < ORDERS ? &orders[next] : NULL;
    if (o && o->from_ns && o->from_ns <= t) {
        o->began_ns = t;
        sleep_until(o->until_ns);
        o->ended_ns = now();
    }
    pthread_mutex_lock(&lock);
    int result = base->send(session, ep, seq, data, len, options);
    pthread_mutex_unlock(&lock);
    return result;
}

const tb_driver *tailbound_driver_v1(void) {
    if (base) return &table;
    void *library = dlopen(BASE_DRIVER, RTLD_NOW | RTLD_LOCAL);
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

/* Does things to other processes at given times, and logs when it did them: the faults of bench/why.py.
 *
 * Input: one command per line on standard input, fields separated by tabs: id, operation, begin, duration, arguments. Times
 * are CLOCK_MONOTONIC ns. Each command gets a thread at once, which sleeps until its begin, so that nothing is created,
 * allocated or paged in while messages are measured. Output at the end: one line per command, `id begin end key=value...`, with
 * the times at which the harm really began and ended. The program ends when its input has ended and all commands are done. Until
 * then finished threads sleep, because the end of a thread costs its CPU some time too.
 *
 * This is C because a hog, a flood and a signal storm must not be slowed by an interpreter, and because an interpreter that
 * wakes on a measured CPU would itself be a fault.
 */
#define _GNU_SOURCE
#include "held.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FIELDS = 12, LINE = 4096, STACK = 128 * 1024 };
/* No fault lasts longer: a mistake in a command must not block a CPU of the machine. */
static const int64_t LONGEST_NS = 2000000000;
/* Above every hog, so that a stopped process is continued in time. */
static const int ACTOR_PRIORITY = 95;

struct command {
    char *line, *field[FIELDS], log[512];
    int fields, fd, leaves;
    int64_t begin, duration;
    void (*run)(struct command *);
};

static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) { return now_ns(CLOCK_MONOTONIC); }

static void sleep_until(int64_t ns) {
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static const char *arg(struct command *c, int at) { return at + 4 < c->fields ? c->field[at + 4] : ""; }
static long number(struct command *c, int at) { return atol(arg(c, at)); }

static void done(struct command *c, int64_t begin, int64_t end, const char *more) {
    snprintf(c->log, sizeof c->log, "%s\t%lld\t%lld\t%s\n", c->field[0], (long long)begin, (long long)end, more);
}

static void failed(struct command *c, const char *what) {
    char more[256];
    snprintf(more, sizeof more, "error=%s: %s", what, strerror(errno));
    done(c, 0, 0, more);
}

static void stay_on(long cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (cpu >= 0) sched_setaffinity(0, sizeof set, &set);
}

static int set_policy(pid_t tid, const char *policy, int priority) {
    struct sched_param p = {0};
    if (!strcmp(policy, "fifo")) {
        p.sched_priority = priority;
        return sched_setscheduler(tid, SCHED_FIFO, &p);
    }
    int result = sched_setscheduler(tid, strcmp(policy, "idle") ? SCHED_OTHER : SCHED_IDLE, &p);
    return strcmp(policy, "other") ? result : setpriority(PRIO_PROCESS, tid, priority);
}

/* An actor that only makes one system call at begin and one at end, on time even if a hog has its CPU. */
static void be_on_time(void) { set_policy(0, "fifo", ACTOR_PRIORITY); }

/* hog: name, policy (fifo, other, idle), priority or nice value, cpu, whether its thread ends at once. Logs also its CPU time and
 * its longest gap: the time for which something kept the hog from running. */
static void hog(struct command *c) {
    prctl(PR_SET_NAME, arg(c, 0));
    stay_on(number(c, 3));
    if (set_policy(0, arg(c, 1), number(c, 2)) != 0) return failed(c, "policy");
    c->leaves = number(c, 4);
    sleep_until(c->begin);
    /* A gap can begin before the hog has run at all. */
    int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), begin = now(), last = c->begin, gap[2] = {0, 0}, t = begin;
    int64_t end = c->begin + c->duration;
    while ((t = now()) < end) {
        if (t - last > gap[1] - gap[0]) gap[0] = last, gap[1] = t;
        last = t;
    }
    if (t - last > gap[1] - gap[0]) gap[0] = last, gap[1] = t;
    char more[160];
    snprintf(more, sizeof more, "cpu_ns=%lld gap_begin=%lld gap_end=%lld",
             (long long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu), (long long)gap[0], (long long)gap[1]);
    done(c, begin, t, more);
}

/* signal: pid, signal at the begin, signal at the end. */
static void send_signals(struct command *c) {
    be_on_time();
    sleep_until(c->begin);
    if (kill(number(c, 0), number(c, 1)) != 0) return failed(c, "kill");
    int64_t begin = now();
    sleep_until(c->begin + c->duration);
    kill(number(c, 0), number(c, 2));
    done(c, begin, now(), "");
}

/* write: path, value at the begin, value at the end ("" = none), cpu (may be absent). The file is opened before. */
static void write_values(struct command *c) {
    be_on_time();
    if (*arg(c, 3)) stay_on(number(c, 3));
    c->fd = open(arg(c, 0), O_WRONLY | O_CLOEXEC);
    if (c->fd < 0) return failed(c, arg(c, 0));
    sleep_until(c->begin);
    int64_t asked = now();
    if (write(c->fd, arg(c, 1), strlen(arg(c, 1))) < 0) return failed(c, arg(c, 1));
    int64_t begin = now();
    sleep_until(c->begin + c->duration);
    int64_t ending = now();
    if (*arg(c, 2) && write(c->fd, arg(c, 2), strlen(arg(c, 2))) < 0) return failed(c, arg(c, 2));
    char more[96];
    snprintf(more, sizeof more, "begin_took_ns=%lld end_took_ns=%lld", (long long)(begin - asked), (long long)(now() - ending));
    done(c, begin, now(), more);
    close(c->fd);
}

/* storm: pid, signal, cpu, policy, priority. Sends the signal without pause, from a thread of this policy. */
static void storm(struct command *c) {
    stay_on(number(c, 2));
    if (set_policy(0, arg(c, 3), number(c, 4)) != 0) return failed(c, "policy");
    sleep_until(c->begin);
    int64_t begin = now(), t = begin;
    long sent = 0;
    for (; t < c->begin + c->duration; t = now(), sent++)
        if (kill(number(c, 0), number(c, 1)) != 0) return failed(c, "kill");
    char more[48];
    snprintf(more, sizeof more, "sent=%ld", sent);
    done(c, begin, t, more);
}

/* policy: tid, real-time priority for the duration; then the thread is time-sharing again. */
static void borrow_policy(struct command *c) {
    be_on_time();
    sleep_until(c->begin);
    if (set_policy(number(c, 0), "fifo", number(c, 1)) != 0) return failed(c, "policy");
    int64_t begin = now();
    sleep_until(c->begin + c->duration);
    set_policy(number(c, 0), "other", 0);
    done(c, begin, now(), "");
}

static int move_all(const char *tids, long cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    int moved = 0;
    for (const char *at = tids; *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "")
        moved += sched_setaffinity(atoi(at), sizeof set, &set) == 0;
    return moved;
}

/* move: cpu for the duration, cpu afterwards, thread ids with commas. */
static void move(struct command *c) {
    be_on_time();
    sleep_until(c->begin);
    int moved = move_all(arg(c, 2), number(c, 0));
    int64_t begin = now();
    sleep_until(c->begin + c->duration);
    move_all(arg(c, 2), number(c, 1));
    char more[32];
    snprintf(more, sizeof more, "moved=%d", moved);
    done(c, begin, now(), more);
}

/* send: address, port, bytes, number of datagrams. Fills a socket; never waits. */
static void fill_socket(struct command *c) {
    static const char junk[65536];
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(number(c, 1))};
    inet_pton(AF_INET, arg(c, 0), &to.sin_addr);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to) != 0) return failed(c, "connect");
    sleep_until(c->begin);
    int64_t begin = now();
    long sent = 0, count = number(c, 3);
    for (; sent < count && now() < c->begin + c->duration; sent++) send(fd, junk, number(c, 2), MSG_DONTWAIT);
    char more[48];
    snprintf(more, sizeof more, "sent=%ld", sent);
    done(c, begin, now(), more);
    close(fd);
}

/* A packet socket that sees only frames of one length: the last one of a burst. */
static int open_marker(const char *interface, int bytes) {
    struct sock_filter code[] = {{BPF_LD | BPF_W | BPF_LEN, 0, 0, 0}, {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, bytes},
                                 {BPF_RET | BPF_K, 0, 0, 64}, {BPF_RET | BPF_K, 0, 0, 0}};
    struct sock_fprog program = {4, code};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(interface)};
    struct timeval wait = {1, 0};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 || bind(fd, (void *)&at, sizeof at) != 0)
        return -1;
    return fd;
}

/* flood: interface that sends, interface that receives, number of frames, cpu of the sender. The frames cost the receiving CPU
 * much time in its soft interrupt; the last frame is longer, and its arrival is the end of the flood. */
static void flood(struct command *c) {
    enum { SHORT = 60, LONG = 124 };
    be_on_time();
    stay_on(number(c, 3));
    unsigned char frame[LONG] = {0};
    /* IPv4 and UDP, because the kernel steers only frames with a flow hash to another CPU. */
    static const unsigned char header[] = {0x45, 0, 0, 46, 0, 0, 0, 0, 1, IPPROTO_UDP, 0,  0, 192, 0,
                                           2,    1, 192, 0, 2, 2, 0, 9, 0, 9, 0, 26, 0, 0};
    frame[0] = 0x02, frame[6] = 0x02, frame[12] = 0x08;
    memcpy(frame + 14, header, sizeof header);
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(arg(c, 0)), .sll_halen = 6};
    int out = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), in = open_marker(arg(c, 1), LONG);
    if (out < 0 || in < 0) return failed(c, "packet socket");
    sleep_until(c->begin);
    int64_t begin = now();
    char got[LONG], more[96];
    /* The socket has also seen the floods before this one. */
    while (recv(in, got, sizeof got, MSG_DONTWAIT) > 0) {}
    long count = number(c, 2), refused = 0;
    for (long i = 0; i < count; i++)
        refused += sendto(out, frame, i + 1 < count ? SHORT : LONG, 0, (void *)&to, sizeof to) < 0;
    int64_t sent = now();
    ssize_t n = recv(in, got, sizeof got, 0);
    snprintf(more, sizeof more, "sent_ns=%lld refused=%ld seen=%d", (long long)(sent - begin), refused, n > 0);
    done(c, begin, now(), more);
    close(out);
    close(in);
}

/* order: file of orders, number, kind. Orders the driver `held` of an end to do something, and logs when it did. The times in the
 * file are written by another process. */
static void order(struct command *c) {
    c->fd = open(arg(c, 0), O_RDWR | O_CLOEXEC);
    struct order *orders = c->fd < 0 ? MAP_FAILED : mmap(NULL, ORDERS * sizeof *orders, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (orders == MAP_FAILED || number(c, 1) >= ORDERS) return failed(c, arg(c, 0));
    struct order *mine = &orders[number(c, 1)];
    mine->until_ns = c->begin + c->duration;
    mine->kind = number(c, 2);
    __atomic_store_n(&mine->from_ns, c->begin, __ATOMIC_RELEASE);
    sleep_until(c->begin + c->duration + 20000000);
    done(c, mine->began_ns, mine->ended_ns, mine->ended_ns ? "" : "error=the driver did not obey");
    close(c->fd);
}

static void nothing(int signal) { (void)signal; }

/* Interrupts the system calls of this thread from `at` on, again and again. */
static timer_t interrupt_from(int64_t at) {
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGUSR1, &action, NULL);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = gettid();
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec when = {{0, 1000000}, {at / 1000000000, at % 1000000000}};
    timer_settime(timer, TIMER_ABSTIME, &when, NULL);
    return timer;
}

/* reclaim: path of a control group's file, value. Makes the kernel drop the pages of the group, until the fault ends. */
static void reclaim(struct command *c) {
    set_policy(0, "other", 19);
    c->fd = open(arg(c, 0), O_WRONLY | O_CLOEXEC);
    if (c->fd < 0) return failed(c, arg(c, 0));
    timer_t timer = interrupt_from(c->begin + c->duration);
    sleep_until(c->begin);
    int64_t begin = now();
    long times = 0;
    for (; times == 0 || now() < c->begin + c->duration; times++)
        /* The file complains if it could not drop everything, or was interrupted. */
        if (write(c->fd, arg(c, 1), strlen(arg(c, 1))) < 0 && errno != EBUSY && errno != EAGAIN && errno != EINTR)
            return failed(c, arg(c, 0));
    int64_t end = now();
    timer_delete(timer);
    char more[48];
    snprintf(more, sizeof more, "times=%ld", times);
    done(c, begin, end, more);
    close(c->fd);
}

static pthread_mutex_t finishing = PTHREAD_MUTEX_INITIALIZER;

static void *thread(void *given) {
    struct command *c = given;
    c->run(c);
    if (!c->leaves) {
        /* The main thread holds the lock until all commands are done. */
        pthread_mutex_lock(&finishing);
        pthread_mutex_unlock(&finishing);
    }
    return NULL;
}

static const struct { const char *name; void (*run)(struct command *); } OPERATIONS[] = {
    {"hog", hog}, {"signal", send_signals}, {"write", write_values}, {"storm", storm}, {"policy", borrow_policy},
    {"move", move}, {"send", fill_socket}, {"flood", flood}, {"reclaim", reclaim}, {"order", order},
};

/* `\\n` in a field is a newline, which ends a command of tc. */
static char *unescape(char *field) {
    char *from = field, *to = field;
    for (; *from; from++) {
        int newline = from[0] == '\\' && from[1] == 'n';
        from += newline;
        *to++ = newline ? '\n' : *from;
    }
    *to = 0;
    return field;
}

static struct command *parse(const char *line) {
    struct command *c = calloc(1, sizeof *c);
    char *rest = c->line = strdup(line);
    while (rest && c->fields < FIELDS) c->field[c->fields++] = unescape(strsep(&rest, "\t\n"));
    if (c->fields < 4) return NULL;
    c->begin = atoll(c->field[2]);
    c->duration = atoll(c->field[3]);
    if (c->duration > LONGEST_NS) c->duration = LONGEST_NS;
    for (size_t i = 0; i < sizeof OPERATIONS / sizeof *OPERATIONS; i++)
        if (!strcmp(OPERATIONS[i].name, c->field[1])) c->run = OPERATIONS[i].run;
    return c->run ? c : NULL;
}

int main(void) {
    enum { MOST = 1024 };
    static struct command *commands[MOST];
    static pthread_t threads[MOST];
    char line[LINE];
    size_t count = 0;
    int64_t last = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mlockall(MCL_CURRENT | MCL_FUTURE);
    pthread_mutex_lock(&finishing);
    for (; count < MOST && fgets(line, sizeof line, stdin); count++) {
        struct command *c = commands[count] = parse(line);
        if (!c || pthread_create(&threads[count], &attributes, thread, c) != 0) {
            fprintf(stderr, "plant: cannot run the command: %s", line);
            return 1;
        }
        if (c->begin + c->duration > last) last = c->begin + c->duration;
    }
    sleep_until(last + 50000000);
    pthread_mutex_unlock(&finishing);
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        fputs(commands[i]->log, stdout);
    }
    return 0;
}

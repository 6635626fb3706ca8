/* SPDX-License-Identifier: Apache-2.0
 *
 * The middleware of the skeleton: a network inside one process. In your own driver, use your middleware's library.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tailbound_driver.h"

enum { MAX_PAYLOAD = 1 << 20, MAX_ENDPOINTS = 256, QUEUE = 16 };

/* One queued sample. A place is in use from the sample's arrival until its release. */
struct place {
    int used;    /* whether the place has a sample */
    int taken;   /* whether the host has a view of the sample */
    uint64_t order;
    tb_view view;
    uint8_t *data;
};

struct endpoint {
    struct endpoint *next; /* next end point in the network */
    struct session *session;
    int kind, mode, closed;
    int busy;            /* calls and callbacks that are inside */
    char *topic;
    const char *reliability;
    uint64_t max_len, tag, arrived, sent, received;
    struct place place[QUEUE]; /* queue of a reader in mode block or spin */
};

struct session {
    tb_host host;
    long domain;
    uint64_t wakes;                      /* number of calls of wake */
    uint64_t wakes_seen[MAX_ENDPOINTS];  /* for each reader, the value of wakes at its last wait */
    uint32_t created;
    struct endpoint *endpoint[MAX_ENDPOINTS]; /* by number - 1; kept until close, so late calls find them closed */
};

/* One lock and one condition for everything, because a skeleton need not be fast. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct endpoint *network;
static _Thread_local char error_text[256];

static void init(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* deadlines of the ABI are on this clock */
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
}

static int fail(int code, const char *text, const char *about)
{
    snprintf(error_text, sizeof error_text, "%s: %s", about, text);
    return code;
}

/* Waits for a change; returns nonzero if the deadline has passed. */
static int wait_change(int64_t deadline_ns)
{
    if (deadline_ns == TB_FOREVER)
        return pthread_cond_wait(&changed, &lock);
    if (deadline_ns < 0)
        deadline_ns = 0;
    struct timespec at = { .tv_sec = deadline_ns / 1000000000, .tv_nsec = deadline_ns % 1000000000 };
    return pthread_cond_timedwait(&changed, &lock, &at) == ETIMEDOUT;
}

/* Returns the open end point with this number, or NULL. */
static struct endpoint *find(struct session *s, uint32_t ep)
{
    struct endpoint *e = ep >= 1 && ep <= MAX_ENDPOINTS ? s->endpoint[ep - 1] : NULL;
    return e && !e->closed ? e : NULL;
}

static int same_topic(const struct endpoint *a, const struct endpoint *b)
{
    return !a->closed && !b->closed && a->kind != b->kind && a->session->domain == b->session->domain &&
           strcmp(a->topic, b->topic) == 0;
}

static uint32_t peers_of(const struct endpoint *e)
{
    uint32_t n = 0;
    for (const struct endpoint *other = network; other; other = other->next)
        n += same_topic(e, other);
    return n;
}

static void forget(struct endpoint *e)
{
    for (int i = 0; i < QUEUE; i++)
        free(e->place[i].data);
    free(e->topic);
    free(e);
}

/* Puts a sample into a reader's queue; returns zero if the queue is full. */
static int enqueue(struct endpoint *r, const tb_view *view)
{
    for (int i = 0; i < QUEUE; i++) {
        struct place *p = &r->place[i];
        if (p->used)
            continue;
        p->used = 1;
        p->taken = 0;
        p->order = r->arrived++;
        p->view = *view;
        p->view.data = p->data;
        p->view.loan = (uint64_t)i + 1;
        if (view->len)
            memcpy(p->data, view->data, view->len);
        r->received++;
        return 1;
    }
    return 0;
}

/* Returns the oldest sample of a reader that is not taken yet, or NULL. */
static struct place *oldest(struct endpoint *r)
{
    struct place *found = NULL;
    for (int i = 0; i < QUEUE; i++) {
        struct place *p = &r->place[i];
        if (p->used && !p->taken && (!found || p->order < found->order))
            found = p;
    }
    return found;
}

/* Closes an end point and waits until no callback of it runs. The caller holds the lock. */
static void shut(struct endpoint *e)
{
    e->closed = 1;
    pthread_cond_broadcast(&changed);
    while (e->busy)
        wait_change(TB_FOREVER);
    for (struct endpoint **at = &network; *at; at = &(*at)->next)
        if (*at == e) {
            *at = e->next;
            break;
        }
}

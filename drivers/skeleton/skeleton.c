/* SPDX-License-Identifier: Apache-2.0
 *
 * A Tailbound driver to start from, in plain C. Its middleware is loopback.h, a network inside one process.
 *
 *   cc -std=c11 -Wall -Wextra -O2 -shared -fPIC -pthread -o libtailbound_driver_skeleton.so skeleton.c
 *   tailbound driver check ./libtailbound_driver_skeleton.so
 *
 * Replace the bodies of the functions by calls of your middleware, and loopback.h by its header. Each comment says
 * if the function is Required, or what to return if the middleware lacks the feature. The ABI's rules are at the top
 * of tailbound_driver.h; these rules are broken most often:
 *   - on_sample is called while the driver holds no lock, because the callback may call send.
 *   - destroy first ends waits on the end point; no callback about the end point runs afterwards.
 *   - The driver never prints. Text goes to tb_host.log or into last_error.
 */
#include "loopback.h"

/* Required. Describes the driver as JSON. Tailbound checks options and QoS with it before anything runs. */
static const char *describe(void)
{
    return "{\"name\":\"skeleton\",\"versions\":{\"driver\":\"0.1.0\"},\"capabilities\":[],"
           "\"limits\":{\"max_payload_bytes\":1048576},"
           "\"options\":[{\"key\":\"domain\",\"type\":\"integer\",\"default\":\"77\","
           "\"help\":\"Sessions with the same number communicate with each other.\"}],"
           "\"qos\":[{\"policy\":\"reliability\",\"values\":[\"reliable\",\"best-effort\"]}],"
           "\"receive_modes\":[\"listener\",\"block\",\"spin\"],\"packages\":[],\"roles\":[]}";
}

/* Required. Opens one participant. Refuse every key that describe() does not list, with an error that names the key. */
static int open_session(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    pthread_once(&once, init);
    if (!host || !session || host->size < sizeof(tb_host))
        return fail(TB_EINVAL, "null, or too short for this ABI", "host");
    long domain = 77;
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        if (strcmp(kv[i].key, "domain") != 0)
            return fail(TB_EINVAL, "the driver has no such option", kv[i].key);
        domain = strtol(kv[i].value, &end, 10);
        if (end == kv[i].value || *end)
            return fail(TB_EINVAL, "not a number", kv[i].key);
    }
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return fail(TB_ENOMEM, "out of memory", "open");
    s->host = *host;
    s->domain = domain;
    *session = s;
    return TB_OK;
}

/* Required. Creates a writer or reader. Allocate here the memory that the hot path needs. */
static int create(void *session, int kind, int mode, const char *topic, uint64_t max_len, const tb_kv *qos, size_t n,
                  uint64_t tag, uint32_t *ep)
{
    struct session *s = session;
    const char *reliability = "reliable";
    for (size_t i = 0; i < n; i++) {
        if (strcmp(qos[i].key, "reliability") != 0)
            return fail(TB_EQOS, "the driver has no such policy", qos[i].key);
        if (strcmp(qos[i].value, "reliable") != 0 && strcmp(qos[i].value, "best-effort") != 0)
            return fail(TB_EQOS, "neither reliable nor best-effort", qos[i].key);
        reliability = strcmp(qos[i].value, "reliable") == 0 ? "reliable" : "best-effort";
    }
    if (max_len > MAX_PAYLOAD)
        return fail(TB_ETOOBIG, "above the limit of the driver", "max_len");
    struct endpoint *e = calloc(1, sizeof *e);
    if (!e || !(e->topic = strdup(topic))) {
        free(e);
        return fail(TB_ENOMEM, "out of memory", "create");
    }
    *e = (struct endpoint){ .session = s, .kind = kind, .mode = mode, .topic = e->topic, .reliability = reliability,
                            .max_len = max_len, .tag = tag };
    for (int i = 0; kind == TB_READER && mode != TB_LISTENER && i < QUEUE; i++)
        if (!(e->place[i].data = calloc(1, max_len + 1))) {
            forget(e);
            return fail(TB_ENOMEM, "out of memory", "create");
        }
    pthread_mutex_lock(&lock);
    if (s->created == MAX_ENDPOINTS) {
        pthread_mutex_unlock(&lock);
        forget(e);
        return fail(TB_ENOMEM, "too many end points", "create");
    }
    s->wakes_seen[s->created] = s->wakes;
    s->endpoint[s->created] = e;
    *ep = ++s->created; /* a number is never used again, not even after destroy */
    e->next = network;
    network = e;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return TB_OK;
}

/* Required. Blocks until the end point has enough matched peers. If possible, it also calls tb_host.on_match. */
static int wait_matched(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns)
{
    int code = TB_OK, over = 0;
    pthread_mutex_lock(&lock);
    for (;;) {
        struct endpoint *e = find(session, ep);
        if (!e)
            code = fail(TB_ECLOSED, "no such end point", "wait_matched");
        else if (peers_of(e) < peers && over)
            code = fail(TB_ETIMEDOUT, "too few peers in this process", e->topic);
        else if (peers_of(e) < peers) {
            over = wait_change(deadline_ns);
            continue;
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Required. Hot path: no allocation, no log. Never blocks forever: return TB_EWOULDBLOCK instead. */
static int send_sample(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    struct endpoint *listener[MAX_ENDPOINTS];
    int listeners = 0, code = TB_OK;
    if (opt && opt->txtime_ns)
        return fail(TB_EUNSUPPORTED, "no launch time", "send");
    pthread_mutex_lock(&lock);
    struct endpoint *w = find(session, ep);
    if (!w || len > w->max_len) {
        pthread_mutex_unlock(&lock);
        return w ? fail(TB_ETOOBIG, "payload above max_len", w->topic) : fail(TB_ECLOSED, "no such end point", "send");
    }
    tb_view view = { .size = sizeof view, .seq = seq, .data = data, .len = len, .writer = w->tag };
    for (struct endpoint *r = network; r; r = r->next) {
        if (r->kind != TB_READER || !same_topic(w, r) || len > r->max_len)
            continue;
        if (r->mode != TB_LISTENER && !enqueue(r, &view))
            code = fail(TB_EWOULDBLOCK, "the queue of a reader is full", r->topic);
        if (r->mode == TB_LISTENER && listeners < MAX_ENDPOINTS) {
            r->busy++; /* destroy waits for the callback */
            listener[listeners++] = r;
        }
    }
    w->sent++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < listeners; i++)
        listener[i]->session->host.on_sample(listener[i]->session->host.ctx, listener[i]->tag, &view);
    if (listeners) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < listeners; i++) {
            listener[i]->received++;
            listener[i]->busy--;
        }
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return code;
}

/* Required for mode block (otherwise TB_EUNSUPPORTED). If a reader is destroyed, the wait returns TB_ECLOSED. */
static int wait_samples(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    struct session *s = session;
    int over = 0, code = TB_OK;
    *ready = 0;
    if (n == 0 || n > 64)
        return fail(TB_EINVAL, "takes 1 to 64 readers", "wait");
    pthread_mutex_lock(&lock);
    for (;;) {
        int woken = 0;
        for (size_t i = 0; i < n && code == TB_OK; i++) {
            struct endpoint *r = find(s, ep[i]);
            if (!r)
                code = fail(TB_ECLOSED, "no such end point", "wait");
            else if (r->kind != TB_READER || r->mode == TB_LISTENER)
                code = fail(TB_EINVAL, "not a reader that can be waited for", r->topic);
            else {
                *ready |= (uint64_t)(oldest(r) != NULL) << i;
                woken |= s->wakes_seen[ep[i] - 1] != s->wakes;
                s->wakes_seen[ep[i] - 1] = s->wakes;
            }
        }
        if (code == TB_OK && !*ready && woken)
            code = TB_WOKEN;
        else if (code == TB_OK && !*ready && over)
            code = TB_ETIMEDOUT;
        else if (code == TB_OK && !*ready) {
            over = wait_change(deadline_ns);
            continue;
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Required for modes block and spin (otherwise TB_EUNSUPPORTED). Never blocks; if there is no sample: TB_OK, n = 0. */
static int take(void *session, uint32_t ep, tb_view *out, uint32_t cap, uint32_t *n)
{
    struct place *p;
    *n = 0;
    pthread_mutex_lock(&lock);
    struct endpoint *r = find(session, ep);
    while (r && *n < cap && (p = oldest(r))) {
        p->taken = 1;
        out[(*n)++] = p->view;
    }
    pthread_mutex_unlock(&lock);
    return r ? TB_OK : fail(TB_ECLOSED, "no such end point", "take");
}

/* Required with take. The memory of a view must not change until the view is released. */
static int release(void *session, uint32_t ep, tb_view *views, uint32_t n)
{
    pthread_mutex_lock(&lock);
    struct endpoint *r = find(session, ep);
    for (uint32_t i = 0; r && i < n; i++)
        if (views[i].loan >= 1 && views[i].loan <= QUEUE)
            r->place[views[i].loan - 1].used = 0;
    pthread_mutex_unlock(&lock);
    return r ? TB_OK : fail(TB_ECLOSED, "no such end point", "release");
}

/* Required. Any thread may call it; a wait that begins after it must return too, or the host may sleep forever. */
static int wake(void *session)
{
    pthread_mutex_lock(&lock);
    ((struct session *)session)->wakes++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return TB_OK;
}

/* Optional, with the capability batch; otherwise return TB_OK, because no message waits. */
static int flush(void *session, uint32_t ep, int64_t deadline_ns)
{
    (void)session, (void)ep, (void)deadline_ns;
    return TB_OK;
}

/* Optional, for reliable writers; otherwise return TB_OK, because there is nothing to wait for. */
static int wait_acked(void *session, uint32_t ep, int64_t deadline_ns)
{
    (void)session, (void)ep, (void)deadline_ns;
    return TB_OK;
}

/* Required: qos (effective, not requested), unmatched. Others may be {} or []. Unknown question: TB_EUNSUPPORTED. */
static int query(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
    char json[512];
    pthread_mutex_lock(&lock);
    struct endpoint *e = find(session, ep);
    int matched = e ? (int)peers_of(e) : 0, code = TB_OK;
    if (ep != 0 && !e)
        code = fail(TB_ECLOSED, "no such end point", "query");
    else if (strcmp(what, "qos") == 0)
        snprintf(json, sizeof json, "{\"reliability\":\"%s\"}", e ? e->reliability : "reliable");
    else if (strcmp(what, "stats") == 0)
        snprintf(json, sizeof json, "{\"sent\":%llu,\"received\":%llu}", e ? (unsigned long long)e->sent : 0,
                 e ? (unsigned long long)e->received : 0);
    else if (strcmp(what, "peers") == 0)
        snprintf(json, sizeof json, "{\"matched\":%d}", matched);
    else if (strcmp(what, "unmatched") == 0)
        snprintf(json, sizeof json, matched ? "[]" : "[{\"reason\":\"nothing seen\"}]");
    else if (strcmp(what, "transport") == 0)
        snprintf(json, sizeof json, "{\"kind\":\"in-process\"}");
    else if (strcmp(what, "threads") == 0)
        snprintf(json, sizeof json, "[]");
    else
        code = fail(TB_EUNSUPPORTED, "the driver does not know it", what);
    pthread_mutex_unlock(&lock);
    if (code == TB_OK)
        sink(ctx, json, strlen(json));
    return code;
}

/* Required. Later calls with the number of the destroyed end point return TB_ECLOSED. */
static int destroy(void *session, uint32_t ep)
{
    pthread_mutex_lock(&lock);
    struct endpoint *e = find(session, ep);
    if (e)
        shut(e);
    pthread_mutex_unlock(&lock);
    return e ? TB_OK : fail(TB_ECLOSED, "no such end point", "destroy");
}

/* Required. Called once, while no other call runs; destroys everything that still exists. */
static void close_session(void *session)
{
    struct session *s = session;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < s->created; i++)
        if (!s->endpoint[i]->closed)
            shut(s->endpoint[i]);
    pthread_mutex_unlock(&lock);
    for (uint32_t i = 0; i < s->created; i++)
        forget(s->endpoint[i]);
    free(s);
}

/* Required. Returns the text of the last error of the calling thread. */
static const char *last_error(void)
{
    return error_text;
}

static const tb_driver table = {
    .abi_major = TB_ABI_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .size = sizeof(tb_driver),
    .describe = describe,
    .open = open_session,
    .create = create,
    .wait_matched = wait_matched,
    .send = send_sample,
    .wait = wait_samples,
    .take = take,
    .release = release,
    .wake = wake,
    .flush = flush,
    .wait_acked = wait_acked,
    .query = query,
    .destroy = destroy,
    .close = close_session,
    .last_error = last_error,
    /* Optional, with the capability loan: .loan and .commit. */
};

#ifndef SKELETON_WITHOUT_ENTRY
const tb_driver *tailbound_driver_v1(void)
{
    return &table;
}
#endif

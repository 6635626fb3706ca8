/* SPDX-License-Identifier: Apache-2.0
 *
 * Drivers with one fault each, to prove that the conformance suite finds every fault: the skeleton, with one function
 * replaced. Compile with -DBREAK_<CHECK>; the test of the crate tailbound-driver does so for every check. Faults that
 * must already stop the loader: BREAK_ABI_MAJOR, BREAK_SIZE, BREAK_POINTER, BREAK_DESCRIBE. With BREAK_HANG, a call
 * never returns. With BREAK_CRASH, a call crashes.
 */
#define SKELETON_WITHOUT_ENTRY
#include "../skeleton/skeleton.c"

#include <stdlib.h>
#include <unistd.h>

static tb_driver broken;

#ifdef BREAK_DESCRIPTION
static const char *faulty_describe(void)
{
    return "{\"name\":\"skeleton\",\"versions\":{\"driver\":\"0.1.0\"},\"limits\":{\"max_payload_bytes\":1048576},"
           "\"options\":[{\"key\":\"domain\",\"type\":\"integer\",\"help\":\"\"}],"
           "\"qos\":[{\"policy\":\"reliability\",\"values\":[\"reliable\"]}],"
           "\"receive_modes\":[\"listener\",\"block\",\"spin\"]}";
}
#endif

#ifdef BREAK_DESCRIBE
static const char *no_json(void)
{
    return "skeleton";
}
#endif

#ifdef BREAK_UNKNOWN_OPTION
/* Ignores every option that it does not know. */
static int faulty_open(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(kv[i].key, "domain") == 0)
            return open_session(&kv[i], 1, host, session);
    return open_session(NULL, 0, host, session);
}
#endif

#ifdef BREAK_MATCH
static int faulty_wait_matched(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns)
{
    (void)session, (void)ep, (void)peers, (void)deadline_ns;
    return fail(TB_ETIMEDOUT, "saw nobody", "wait_matched");
}
#endif

#ifdef BREAK_BOTH_WAYS
/* Changes one byte of one sample in ten thousand. */
static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    uint8_t copy[64];
    if ((seq & 0xffffffffffff) != 7777 || len == 0 || len > sizeof copy)
        return send_sample(session, ep, seq, data, len, opt);
    memcpy(copy, data, len);
    copy[len / 2] ^= 1;
    return send_sample(session, ep, seq, copy, len, opt);
}
#endif

#if defined BREAK_MODE_LISTENER || defined BREAK_SEND_FROM_CALLBACK
static tb_host real_host;
static _Thread_local int in_callback;

static void faulty_on_sample(void *ctx, uint64_t tag, const tb_view *view)
{
    tb_host *host = ctx; /* never freed: one for each session */
    in_callback++;
#ifdef BREAK_MODE_LISTENER
    tag++;
#endif
    host->on_sample(host->ctx, tag, view);
    in_callback--;
}

static void faulty_on_match(void *ctx, uint64_t tag, int32_t now)
{
    tb_host *host = ctx;
    host->on_match(host->ctx, tag, now);
}

static int faulty_open(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    tb_host *copy = malloc(sizeof *copy);
    *copy = *host;
    real_host = *host;
    real_host.ctx = copy;
    real_host.on_sample = faulty_on_sample;
    real_host.on_match = faulty_on_match;
    return open_session(kv, n, &real_host, session);
}
#endif

#ifdef BREAK_SEND_FROM_CALLBACK
static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    if (in_callback)
        return fail(TB_EIO, "the middleware is busy", "send");
    return send_sample(session, ep, seq, data, len, opt);
}
#endif

#ifdef BREAK_MODE_BLOCK
/* Returns the same buffer again and again: the second take changes the data that the first take returned. */
static int faulty_take(void *session, uint32_t ep, tb_view *out, uint32_t cap, uint32_t *n)
{
    static uint8_t buffer[MAX_PAYLOAD];
    int code = take(session, ep, out, cap > 1 ? 1 : cap, n);
    if (code == TB_OK && *n == 1) {
        memcpy(buffer, out->data, out->len);
        out->data = buffer;
    }
    return code;
}
#endif

#ifdef BREAK_MODE_SPIN
static int faulty_take(void *session, uint32_t ep, tb_view *out, uint32_t cap, uint32_t *n)
{
    int code = take(session, ep, out, cap, n);
    return code == TB_OK && *n == 0 ? fail(TB_EWOULDBLOCK, "nothing there", "take") : code;
}
#endif

#ifdef BREAK_WAIT_DEADLINE
static int faulty_wait(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    return wait_samples(session, ep, n, deadline_ns == TB_FOREVER ? deadline_ns : deadline_ns + 1500000000, ready);
}
#endif

#ifdef BREAK_SEVERAL_READERS
static int faulty_wait(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    int code = wait_samples(session, ep, n, deadline_ns, ready);
    if (code == TB_OK)
        *ready = 1;
    return code;
}
#endif

#ifdef BREAK_WAKE
static int faulty_wake(void *session)
{
    (void)session;
    return TB_OK;
}
#endif

#ifdef BREAK_DESTROY_ENDS_WAIT
/* Continues to wait although the end point was destroyed. */
static int faulty_wait(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    struct timespec now;
    int code;
    do {
        code = wait_samples(session, ep, n, deadline_ns, ready);
        usleep(1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (code == TB_ECLOSED && now.tv_sec < deadline_ns / 1000000000);
    return code;
}
#endif

#ifdef BREAK_SEND_AFTER_DESTROY
static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    int code = send_sample(session, ep, seq, data, len, opt);
    return code == TB_ECLOSED ? TB_OK : code;
}
#endif

#ifdef BREAK_LARGEST_PAYLOAD
/* Shortens a payload that is too long, without an error. */
static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    int code = send_sample(session, ep, seq, data, len, opt);
    return code == TB_ETOOBIG ? send_sample(session, ep, seq, data, len - 1, opt) : code;
}
#endif

#ifdef BREAK_TWO_SESSIONS
/* Shuts the whole middleware down when the first session closes. Sessions are closed by several threads. */
static int sessions, shut_down;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static int faulty_open(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    int code = open_session(kv, n, host, session);
    pthread_mutex_lock(&counting);
    sessions += code == TB_OK;
    pthread_mutex_unlock(&counting);
    return code;
}

static void faulty_close(void *session)
{
    close_session(session);
    pthread_mutex_lock(&counting);
    shut_down = --sessions > 0;
    pthread_mutex_unlock(&counting);
}

static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    return shut_down ? fail(TB_EIO, "already shut down", "send") : send_sample(session, ep, seq, data, len, opt);
}
#endif

#ifdef BREAK_BATCH
/* Never sends a sample that may wait in a batch. */
static int faulty_send(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    return opt && opt->flags & TB_SEND_BATCH ? TB_OK : send_sample(session, ep, seq, data, len, opt);
}
#endif

#ifdef BREAK_SEVERAL_SUBSCRIBERS
/* Never notices that a peer has ended. */
static int faulty_wait_matched(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns)
{
    static uint32_t most;
    if (peers <= most)
        return TB_OK;
    int code = wait_matched(session, ep, peers, deadline_ns);
    if (code == TB_OK)
        most = peers;
    return code;
}
#endif

#if defined BREAK_QOS_READ_BACK || defined BREAK_QUERIES || defined BREAK_UNMATCHED || \
    defined BREAK_UNKNOWN_QUESTION || defined BREAK_FLOW
static int faulty_query(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
#ifdef BREAK_QOS_READ_BACK /* returns a fixed value, not the value that was set */
    const char *key = "qos", *answer = "{\"reliability\":\"reliable\"}";
#elif defined BREAK_QUERIES
    const char *key = "stats", *answer = "sent=1 received=1";
#elif defined BREAK_UNMATCHED
    const char *key = "unmatched", *answer = "nobody there";
#elif defined BREAK_FLOW /* reports batches, but does not declare the capability */
    const char *key = "flow",
               *answer = "{\"matched\":1,\"batching\":\"on\",\"data\":\"unicast\",\"by\":{\"batching\":\"a\","
                         "\"unacked_limit\":\"b\",\"data\":\"c\",\"retransmitted\":\"d\",\"throttled\":\"e\"}}";
#else
    const char *key = "tailbound_no_such_question", *answer = "{}";
#endif
    if (strcmp(what, key) != 0)
        return query(session, ep, what, sink, ctx);
    sink(ctx, answer, strlen(answer));
    return TB_OK;
}
#endif

#ifdef BREAK_CRASH
static int faulty_query(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
    if (strcmp(what, "stats") == 0)
        abort();
    return query(session, ep, what, sink, ctx);
}
#endif

#ifdef BREAK_HANG
static int faulty_query(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
    while (strcmp(what, "stats") == 0)
        pause();
    return query(session, ep, what, sink, ctx);
}
#endif

#ifdef BREAK_OPEN_CLOSE
static int faulty_open(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    if (dup(0) < 0)
        return fail(TB_EIO, "dup", "open");
    return open_session(kv, n, host, session);
}
#endif

#ifdef BREAK_SILENT
static int faulty_open(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    printf("skeleton: opening a session\n");
    return open_session(kv, n, host, session);
}
#endif

const tb_driver *tailbound_driver_v1(void)
{
    broken = table;
#if defined BREAK_ABI_MAJOR
    broken.abi_major = TB_ABI_MAJOR + 1;
#elif defined BREAK_SIZE
    broken.size = offsetof(tb_driver, query);
#elif defined BREAK_POINTER
    broken.wake = NULL;
#elif defined BREAK_DESCRIBE
    broken.describe = no_json;
#elif defined BREAK_TABLE
    broken.reserved[3] = &broken;
#elif defined BREAK_DESCRIPTION
    broken.describe = faulty_describe;
#elif defined BREAK_UNKNOWN_OPTION || defined BREAK_MODE_LISTENER || defined BREAK_OPEN_CLOSE || defined BREAK_SILENT
    broken.open = faulty_open;
#elif defined BREAK_MATCH || defined BREAK_SEVERAL_SUBSCRIBERS
    broken.wait_matched = faulty_wait_matched;
#elif defined BREAK_BOTH_WAYS || defined BREAK_SEND_AFTER_DESTROY || defined BREAK_LARGEST_PAYLOAD || defined BREAK_BATCH
    broken.send = faulty_send;
#elif defined BREAK_SEND_FROM_CALLBACK
    broken.open = faulty_open;
    broken.send = faulty_send;
#elif defined BREAK_MODE_BLOCK || defined BREAK_MODE_SPIN
    broken.take = faulty_take;
#elif defined BREAK_WAIT_DEADLINE || defined BREAK_SEVERAL_READERS || defined BREAK_DESTROY_ENDS_WAIT
    broken.wait = faulty_wait;
#elif defined BREAK_WAKE
    broken.wake = faulty_wake;
#elif defined BREAK_TWO_SESSIONS
    broken.open = faulty_open;
    broken.close = faulty_close;
    broken.send = faulty_send;
#elif defined BREAK_QOS_READ_BACK || defined BREAK_QUERIES || defined BREAK_UNMATCHED || defined BREAK_UNKNOWN_QUESTION || \
    defined BREAK_FLOW || defined BREAK_HANG || defined BREAK_CRASH
    broken.query = faulty_query;
#else
#error "define the fault: -DBREAK_<CHECK>"
#endif
    return &broken;
}

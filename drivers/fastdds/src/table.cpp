/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver table: C functions that check their arguments, call the session, and catch all exceptions.
 */
#include <cstring>
#include <exception>
#include <new>

#include "fail.hpp"
#include "send.hpp"
#include "session.hpp"

using namespace tb;

/* Runs a function that may throw; converts an exception into an error code. */
template <class Run> static int guarded(Run run)
{
    try {
        return run();
    } catch (const Fail &f) {
        return fail(f.code, "%s", f.text.c_str());
    } catch (const std::bad_alloc &) {
        return fail(TB_ENOMEM, "out of memory");
    } catch (const std::exception &e) {
        return fail(TB_EIO, "Fast DDS: %s", e.what());
    }
}

/* Runs `call` on an open end point, and keeps the end point open during the call. */
template <class Call> static int on(void *session, uint32_t ep, Call call)
{
    Endpoint *endpoint = session ? static_cast<Session *>(session)->find(ep) : nullptr;
    if (!endpoint)
        return closed(ep);
    Inside inside(*endpoint);
    return inside.open() ? guarded([&] { return call(*endpoint); }) : closed(ep);
}

static int open_session(const tb_kv *kv, size_t n, const tb_host *host, void **session)
{
    return guarded([&] {
        if (!session || !host || host->size < sizeof(tb_host))
            throw Fail{TB_EINVAL, "host or session: null, or too short for ABI 1.0"};
        *session = new Session(Options::parse(kv, n), *host);
        return TB_OK;
    });
}

static int create(void *session, int kind, int mode, const char *topic, uint64_t max_len, const tb_kv *qos, size_t n,
                  uint64_t tag, uint32_t *ep)
{
    return guarded([&] {
        if (!session || !topic || !ep)
            throw Fail{TB_EINVAL, "session, topic or ep: null"};
        auto *s = static_cast<Session *>(session);
        if (kind != TB_WRITER && kind != TB_READER)
            throw Fail{TB_EINVAL, "kind " + std::to_string(kind) + " is neither TB_WRITER nor TB_READER"};
        if (kind == TB_READER && (mode < TB_LISTENER || mode > TB_SPIN))
            throw Fail{TB_EUNSUPPORTED, "receive mode " + std::to_string(mode) + " does not exist"};
        if (kind == TB_READER && mode == TB_LISTENER && !s->host.on_sample)
            throw Fail{TB_EINVAL, "the receive mode listener needs the callback on_sample of the loading program"};
        if (max_len > MAX_PAYLOAD)
            throw Fail{TB_ETOOBIG, "max_len " + std::to_string(max_len) + " B is more than the driver's limit of " +
                                       std::to_string(MAX_PAYLOAD) + " B"};
        *ep = s->create(Wanted{kind, mode, topic, max_len, qos, n, tag});
        return TB_OK;
    });
}

static int wait_matched(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns)
{
    return on(session, ep, [&](Endpoint &e) { return e.wait_matched(peers, deadline_ns); });
}

static int send_sample(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const tb_send *opt)
{
    if (opt && (opt->size < sizeof(tb_send) || opt->txtime_ns))
        return opt->size < sizeof(tb_send) ? fail(TB_EINVAL, "the options of send are too short for ABI 1.0")
                                           : fail(TB_EUNSUPPORTED, "the driver cannot send a message at a given time");
    if (len && !data)
        return fail(TB_EINVAL, "data is null");
    return on(session, ep, [&](Endpoint &e) { return tb::send(e, seq, data, len); });
}

static int wait_samples(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    if (!session || !ep || !ready || n < 1 || n > 64)
        return fail(TB_EINVAL, "wait takes 1 to 64 readers, and a place for its answer");
    *ready = 0;
    auto *s = static_cast<Session *>(session);
    Endpoint *readers[64];
    size_t in = 0;
    int code = TB_OK;
    for (; in < n && code == TB_OK; in++) {
        readers[in] = s->find(ep[in]);
        if (!readers[in])
            break;
        readers[in]->inside.fetch_add(1);
        if (readers[in]->closed.load())
            code = closed(ep[in]);
    }
    if (code == TB_OK)
        code = in < n ? closed(ep[in])
                      : guarded([&] { return tb::wait(s->sets, s->guards, readers, n, deadline_ns, ready); });
    while (in)
        readers[--in]->inside.fetch_sub(1);
    return code;
}

static int take_samples(void *session, uint32_t ep, tb_view *out, uint32_t cap, uint32_t *n)
{
    if (!n || (cap && !out))
        return fail(TB_EINVAL, "take: null");
    *n = 0;
    return on(session, ep, [&](Endpoint &e) { return tb::take(e, out, cap, n); });
}

/* Releases samples, also for a destroyed end point: its reader exists until all lent samples are released. */
static int release_samples(void *session, uint32_t ep, tb_view *views, uint32_t n)
{
    Endpoint *e = session ? static_cast<Session *>(session)->find(ep) : nullptr;
    if (!e)
        return closed(ep);
    return guarded([&] {
        int code = tb::release(*e, views, n);
        if (e->closed.load() && !e->loans.out())
            static_cast<Session *>(session)->settle(*e);
        return code;
    });
}

static int wake(void *session)
{
    if (!session)
        return fail(TB_EINVAL, "the session is null");
    static_cast<Session *>(session)->guards.woken.set_trigger_value(true);
    return TB_OK;
}

/* Returns immediately, because Fast DDS keeps no messages for a batch. */
static int flush(void *session, uint32_t ep, int64_t)
{
    return on(session, ep, [](Endpoint &) { return TB_OK; });
}

static int wait_acked(void *session, uint32_t ep, int64_t deadline_ns)
{
    return on(session, ep, [&](Endpoint &e) { return e.wait_acked(deadline_ns); });
}

static int query(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
    if (!session || !what || !sink)
        return fail(TB_EINVAL, "query: null");
    auto tell = [&](Endpoint *e) {
        std::string text = answer(*static_cast<Session *>(session), e, what);
        sink(ctx, text.data(), text.size());
        return TB_OK;
    };
    return ep ? on(session, ep, [&](Endpoint &e) { return tell(&e); }) : guarded([&] { return tell(nullptr); });
}

static int destroy(void *session, uint32_t ep)
{
    return session ? guarded([&] { return static_cast<Session *>(session)->destroy(ep); }) : closed(ep);
}

static void close_session(void *session)
{
    guarded([&] {
        delete static_cast<Session *>(session);
        return TB_OK;
    });
}

static const tb_driver table = {
    TB_ABI_MAJOR, TB_ABI_MINOR, sizeof(tb_driver), 0, describe, open_session, create, wait_matched, send_sample,
    wait_samples, take_samples, release_samples, wake, flush, wait_acked, query, destroy, close_session, last_error,
    nullptr, nullptr, {},
};

extern "C" __attribute__((visibility("default"))) const tb_driver *tailbound_driver_v1(void)
{
    return &table;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * A Tailbound driver to start from, in C++17. Its middleware is loopback.hpp, a network inside one process.
 *
 *   c++ -std=c++17 -Wall -Wextra -O2 -shared -fPIC -pthread -o libtailbound_driver_skeleton.so skeleton.cpp
 *   tailbound driver check ./libtailbound_driver_skeleton.so
 *
 * Replace the bodies of the functions by calls of your middleware, and loopback.hpp by its headers. Each comment says
 * if the function is Required, or what to return if the middleware lacks the feature. The ABI's rules are at the top
 * of tailbound_driver.h; these rules are broken most often:
 *   - No exception leaves a function of the table: `guarded` converts exceptions into error codes.
 *   - on_sample is called while the driver holds no lock, because the callback may call send.
 *   - destroy first ends waits on the end point; no callback about the end point runs afterwards.
 *   - The driver never prints. Text goes to tb_host.log or into last_error.
 */
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "loopback.hpp"

namespace {

using loopback::Endpoint;
using loopback::Network;
using loopback::Place;

constexpr std::size_t MAX_LISTENERS = 64;

Network network;
thread_local char error_text[256]; /* not a std::string, because the hot path must not allocate memory */

struct Session {
    tb_host host;
    long domain;
    std::uint64_t wakes = 0;                          /* number of calls of wake */
    std::vector<std::unique_ptr<Endpoint>> endpoints; /* by number - 1; null once destroyed, never used again */

    /* Returns the open end point with this number, or null. */
    Endpoint *find(std::uint32_t ep) const
    {
        Endpoint *e = ep >= 1 && ep <= endpoints.size() ? endpoints[ep - 1].get() : nullptr;
        return e && !e->closed ? e : nullptr;
    }
};

Session &of(void *session)
{
    return *static_cast<Session *>(session);
}

int fail(int code, const char *about, const char *text) noexcept
{
    std::snprintf(error_text, sizeof error_text, "%s: %s", about, text);
    return code;
}

int closed(const char *about) noexcept
{
    return fail(TB_ECLOSED, about, "no such end point");
}

/* The table is C, so every exception is converted here into an error code and a text. */
template <class Body> int guarded(const char *about, Body body) noexcept
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return fail(TB_ENOMEM, about, "out of memory");
    } catch (const std::exception &e) {
        return fail(TB_EIO, about, e.what());
    } catch (...) {
        return fail(TB_EIO, about, "an exception of unknown type");
    }
}

/* Required. Describes the driver as JSON. Tailbound checks options and QoS with it before anything runs. */
const char *describe()
{
    return R"({"name": "skeleton", "versions": {"driver": "0.1.0"}, "capabilities": [],
        "limits": {"max_payload_bytes": 1048576},
        "options": [{"key": "domain", "type": "integer", "default": "77",
                     "help": "Sessions with the same number communicate with each other."}],
        "qos": [{"policy": "reliability", "values": ["reliable", "best-effort"]}],
        "receive_modes": ["listener", "block", "spin"], "packages": [], "roles": []})";
}

/* Required. Opens one participant. Refuse every key that describe() does not list, with an error that names the key. */
int open(const tb_kv *kv, std::size_t n, const tb_host *host, void **session)
{
    return guarded("open", [&] {
        if (!host || !session || host->size < sizeof(tb_host))
            return fail(TB_EINVAL, "host", "null, or too short for this ABI");
        long domain = 77;
        for (std::size_t i = 0; i < n; i++) {
            if (std::strcmp(kv[i].key, "domain") != 0)
                return fail(TB_EINVAL, kv[i].key, "the driver has no such option");
            char *end = nullptr;
            domain = std::strtol(kv[i].value, &end, 10);
            if (end == kv[i].value || *end != 0)
                return fail(TB_EINVAL, kv[i].key, "not a number");
        }
        *session = new Session{*host, domain, 0, {}};
        return TB_OK;
    });
}

/* Required. Creates a writer or reader. Allocate here the memory that the hot path needs. */
int create(void *session, int kind, int mode, const char *topic, std::uint64_t max_len, const tb_kv *qos, std::size_t n,
           std::uint64_t tag, std::uint32_t *ep)
{
    return guarded("create", [&] {
        const char *reliability = "reliable";
        for (std::size_t i = 0; i < n; i++) {
            if (std::strcmp(qos[i].key, "reliability") != 0)
                return fail(TB_EQOS, qos[i].key, "the driver has no such policy");
            reliability = qos[i].value;
            if (std::strcmp(reliability, "reliable") != 0 && std::strcmp(reliability, "best-effort") != 0)
                return fail(TB_EQOS, qos[i].key, "neither reliable nor best-effort");
        }
        if (max_len > loopback::MAX_PAYLOAD)
            return fail(TB_ETOOBIG, "max_len", "above the limit of the driver");
        Session &s = of(session);
        auto e = std::make_unique<Endpoint>();
        e->kind = kind;
        e->mode = mode;
        e->domain = s.domain;
        e->topic = topic;
        e->reliability = reliability;
        e->max_len = max_len;
        e->tag = tag;
        e->host = s.host;
        if (kind == TB_READER && mode != TB_LISTENER)
            for (Place &p : e->places)
                p.data.resize(max_len + 1);
        const Network::Lock held = network.lock();
        e->wakes_seen = s.wakes;
        s.endpoints.push_back(std::move(e));
        network.join(*s.endpoints.back());
        *ep = static_cast<std::uint32_t>(s.endpoints.size());
        return TB_OK;
    });
}

/* Required. Blocks until the end point has enough matched peers. If possible, it also calls tb_host.on_match. */
int wait_matched(void *session, std::uint32_t ep, std::uint32_t peers, std::int64_t deadline_ns)
{
    return guarded("wait_matched", [&] {
        Network::Lock held = network.lock();
        for (bool over = false;; over = network.wait(held, deadline_ns)) {
            const Endpoint *e = of(session).find(ep);
            if (!e)
                return closed("wait_matched");
            if (network.peers(*e) >= peers)
                return TB_OK;
            if (over)
                return fail(TB_ETIMEDOUT, e->topic.c_str(), "too few peers in this process");
        }
    });
}

/* Required. Hot path: no allocation, no log. Never blocks forever: return TB_EWOULDBLOCK instead. */
int send(void *session, std::uint32_t ep, std::uint64_t seq, const std::uint8_t *data, std::uint64_t len,
         const tb_send *opt)
{
    return guarded("send", [&] {
        if (opt && opt->txtime_ns != 0)
            return fail(TB_EUNSUPPORTED, "send", "no launch time");
        std::array<Endpoint *, MAX_LISTENERS> listeners;
        std::size_t listening = 0;
        int code = TB_OK;
        Network::Lock held = network.lock();
        Endpoint *w = of(session).find(ep);
        if (!w)
            return closed("send");
        if (len > w->max_len)
            return fail(TB_ETOOBIG, w->topic.c_str(), "payload above max_len");
        tb_view view{};
        view.size = sizeof view;
        view.seq = seq;
        view.data = data;
        view.len = len;
        view.writer = w->tag;
        for (Endpoint *r : network.all()) {
            if (r->kind != TB_READER || !w->meets(*r) || len > r->max_len)
                continue;
            if (r->mode != TB_LISTENER && !r->enqueue(view))
                code = fail(TB_EWOULDBLOCK, r->topic.c_str(), "the queue of a reader is full");
            if (r->mode == TB_LISTENER && listening < MAX_LISTENERS) {
                r->inside++; /* destroy waits for the callback */
                listeners[listening++] = r;
            }
        }
        w->sent++;
        network.tell();
        held.unlock();
        for (std::size_t i = 0; i < listening; i++)
            listeners[i]->host.on_sample(listeners[i]->host.ctx, listeners[i]->tag, &view);
        if (listening != 0) {
            held.lock();
            for (std::size_t i = 0; i < listening; i++) {
                listeners[i]->received++;
                listeners[i]->inside--;
            }
            network.tell();
        }
        return code;
    });
}

/* Required for mode block (otherwise TB_EUNSUPPORTED). If a reader is destroyed, the wait returns TB_ECLOSED. */
int wait(void *session, const std::uint32_t *ep, std::size_t n, std::int64_t deadline_ns, std::uint64_t *ready)
{
    return guarded("wait", [&] {
        *ready = 0;
        if (n == 0 || n > 64)
            return fail(TB_EINVAL, "wait", "takes 1 to 64 readers");
        Session &s = of(session);
        Network::Lock held = network.lock();
        for (bool over = false;; over = network.wait(held, deadline_ns)) {
            bool woken = false;
            for (std::size_t i = 0; i < n; i++) {
                Endpoint *r = s.find(ep[i]);
                if (!r)
                    return closed("wait");
                if (r->kind != TB_READER || r->mode == TB_LISTENER)
                    return fail(TB_EINVAL, r->topic.c_str(), "not a reader that can be waited for");
                *ready |= static_cast<std::uint64_t>(r->oldest() != nullptr) << i;
                woken |= r->wakes_seen != s.wakes;
                r->wakes_seen = s.wakes;
            }
            if (*ready != 0)
                return TB_OK;
            if (woken)
                return TB_WOKEN;
            if (over)
                return TB_ETIMEDOUT;
        }
    });
}

/* Required for modes block and spin (otherwise TB_EUNSUPPORTED). Never blocks; if there is no sample: TB_OK, n = 0. */
int take(void *session, std::uint32_t ep, tb_view *out, std::uint32_t cap, std::uint32_t *n)
{
    return guarded("take", [&] {
        *n = 0;
        const Network::Lock held = network.lock();
        Endpoint *r = of(session).find(ep);
        if (!r)
            return closed("take");
        for (Place *p; *n < cap && (p = r->oldest());) {
            p->taken = true;
            out[(*n)++] = p->view;
        }
        return TB_OK;
    });
}

/* Required with take. The memory of a view must not change until the view is released. */
int release(void *session, std::uint32_t ep, tb_view *views, std::uint32_t n)
{
    return guarded("release", [&] {
        const Network::Lock held = network.lock();
        Endpoint *r = of(session).find(ep);
        if (!r)
            return closed("release");
        for (std::uint32_t i = 0; i < n; i++)
            if (views[i].loan >= 1 && views[i].loan <= loopback::QUEUE)
                r->places[views[i].loan - 1].used = false;
        return TB_OK;
    });
}

/* Required. Any thread may call it; a wait that begins after it must return too, or the host may sleep forever. */
int wake(void *session)
{
    return guarded("wake", [&] {
        const Network::Lock held = network.lock();
        of(session).wakes++;
        network.tell();
        return TB_OK;
    });
}

/* Optional, with the capability batch; otherwise return TB_OK, because no message waits. */
int flush(void *, std::uint32_t, std::int64_t)
{
    return TB_OK;
}

/* Optional, for reliable writers; otherwise return TB_OK, because there is nothing to wait for. */
int wait_acked(void *, std::uint32_t, std::int64_t)
{
    return TB_OK;
}

/* Required: qos (effective, not requested), unmatched. Others may be {} or []. Unknown question: TB_EUNSUPPORTED. */
int query(void *session, std::uint32_t ep, const char *what, tb_sink sink, void *ctx)
{
    return guarded("query", [&] {
        const std::string asked = what;
        std::string json;
        {
            const Network::Lock held = network.lock();
            const Endpoint *e = of(session).find(ep);
            if (ep != 0 && !e)
                return closed("query");
            const std::uint32_t matched = e ? network.peers(*e) : 0;
            if (asked == "qos")
                json = R"({"reliability": ")" + (e ? e->reliability : "reliable") + "\"}";
            else if (asked == "stats")
                json = R"({"sent": )" + std::to_string(e ? e->sent : 0) + R"(, "received": )" +
                       std::to_string(e ? e->received : 0) + "}";
            else if (asked == "peers")
                json = R"({"matched": )" + std::to_string(matched) + "}";
            else if (asked == "unmatched")
                json = matched != 0 ? "[]" : R"([{"reason": "nothing seen"}])";
            else if (asked == "transport")
                json = R"({"kind": "in-process"})";
            else if (asked == "threads")
                json = "[]";
            else
                return fail(TB_EUNSUPPORTED, what, "the driver does not know it");
        }
        sink(ctx, json.c_str(), json.size());
        return TB_OK;
    });
}

/* Required. Later calls with the number of the destroyed end point return TB_ECLOSED. */
int destroy(void *session, std::uint32_t ep)
{
    return guarded("destroy", [&] {
        Session &s = of(session);
        Network::Lock held = network.lock();
        Endpoint *e = s.find(ep);
        if (!e)
            return closed("destroy");
        network.leave(held, *e);
        s.endpoints[ep - 1].reset();
        return TB_OK;
    });
}

/* Required. Called once, while no other call runs; destroys everything that still exists. */
void close(void *session)
{
    const std::unique_ptr<Session> s(&of(session));
    guarded("close", [&] {
        Network::Lock held = network.lock();
        for (auto &e : s->endpoints)
            if (e)
                network.leave(held, *e);
        return TB_OK;
    });
}

/* Required. Returns the text of the last error of the calling thread. */
const char *last_error()
{
    return error_text;
}

constexpr tb_driver table()
{
    tb_driver t{};
    t.abi_major = TB_ABI_MAJOR;
    t.abi_minor = TB_ABI_MINOR;
    t.size = sizeof(tb_driver);
    t.describe = describe;
    t.open = open;
    t.create = create;
    t.wait_matched = wait_matched;
    t.send = send;
    t.wait = wait;
    t.take = take;
    t.release = release;
    t.wake = wake;
    t.flush = flush;
    t.wait_acked = wait_acked;
    t.query = query;
    t.destroy = destroy;
    t.close = close;
    t.last_error = last_error;
    return t; /* Optional, with the capability loan: t.loan and t.commit. */
}

constexpr tb_driver TABLE = table();

} // namespace

const tb_driver *tailbound_driver_v1()
{
    return &TABLE;
}

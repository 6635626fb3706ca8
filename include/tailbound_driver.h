/* SPDX-License-Identifier: Apache-2.0
 *
 * The Tailbound driver ABI. Generated from crates/abi by cbindgen; a test keeps it so. Do not edit.
 *
 * Rules of the seam:
 * - Every struct starts with `size`, the number of bytes that its writer knows; a reader never touches a byte beyond it.
 * - Nothing prints. Strings are UTF-8 and NUL-terminated. 0 is success, negative values are TB_E*.
 * - Deadlines are absolute CLOCK_MONOTONIC nanoseconds; TB_FOREVER waits without limit.
 * - A sample is a sequence number and a payload, separate in every call.
 * - Every function may be called from any thread. A callback may call `send` and `take`, nothing else.
 */

#ifndef TAILBOUND_DRIVER_H
#define TAILBOUND_DRIVER_H

#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
struct tb_driver;
/* The one symbol that a driver exports. The table is constant data and lives as long as the process. */
const struct tb_driver *tailbound_driver_v1(void);
#ifdef __cplusplus
}
#endif

// Major version of the ABI: a driver of another major version is refused.
#define TB_ABI_MAJOR 1

// Minor version of the ABI: a driver of a lower minor version is accepted, its missing tail is not called.
#define TB_ABI_MINOR 0

// Success.
#define TB_OK 0

// A wait ended because `wake` was called. Not an error.
#define TB_WOKEN 1

// An argument or option is not valid; `last_error` names it.
#define TB_EINVAL -1

// Memory or another resource ran out.
#define TB_ENOMEM -2

// The deadline passed.
#define TB_ETIMEDOUT -3

// The call would have to block and was told not to.
#define TB_EWOULDBLOCK -4

// The driver does not have this function, mode or option.
#define TB_EUNSUPPORTED -5

// The payload is longer than the end point's `max_len` or the driver's limit.
#define TB_ETOOBIG -6

// The end point or session does not exist (any more).
#define TB_ECLOSED -7

// The middleware or the operating system refused; `last_error` carries its text.
#define TB_EIO -8

// A QoS policy is not supported or contradictory; `last_error` names it.
#define TB_EQOS -9

// No deadline.
#define TB_FOREVER 9223372036854775807

// Kind of end point: a data writer.
#define TB_WRITER 0

// Kind of end point: a data reader.
#define TB_READER 1

// Receive mode: `tb_host.on_sample` is called on the middleware's thread.
#define TB_LISTENER 0

// Receive mode: a thread of the host blocks in `wait`, then calls `take`.
#define TB_BLOCK 1

// Receive mode: a thread of the host calls `take` without pause.
#define TB_SPIN 2

// Flag of `tb_view`: the middleware marked the sample as delivered inside the process.
#define TB_VIEW_LOCAL 1

// Flag of `tb_send`: the message may wait in a batch until `flush`.
#define TB_SEND_BATCH 1

// A key and a value, both NUL-terminated UTF-8.
typedef struct tb_kv {
    // Key. Well-known for `open`: domain interface address peers multicast discovery_server transport naming config
    // data unacked_limit payload.
    const char *key;
    // Value.
    const char *value;
} tb_kv;

// One received sample, valid until the callback returns or until `release`.
typedef struct tb_view {
    // Bytes of this struct that the writer filled.
    uint32_t size;
    // `TB_VIEW_*`.
    uint32_t flags;
    // Sequence number that the sender gave.
    uint64_t seq;
    // Payload octets (the sequence number is not among them).
    const uint8_t *data;
    // Number of payload octets.
    uint64_t len;
    // Identity of the writer within the session; 0 = not known.
    uint64_t writer;
    // Source time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    int64_t source_ns;
    // Kernel software receive time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    int64_t kernel_rx_ns;
    // Hardware receive time stamp, ns of the NIC's clock; 0 = not known.
    int64_t hw_rx_ns;
    // The driver's own handle for `release`; 0 = nothing to release.
    uint64_t loan;
} tb_view;

// What the host offers to a driver. It outlives the session.
typedef struct tb_host {
    // Bytes of this struct that the host filled.
    uint32_t size;
    // Reserved, 0.
    uint32_t reserved;
    // Passed back in every call.
    void *ctx;
    // A sample arrived (listener mode), on the middleware's thread; it may call `send` and `take`, nothing else.
    void (*on_sample)(void *ctx, uint64_t tag, const struct tb_view *view);
    // The number of matched peers of an end point changed to `now`.
    void (*on_match)(void *ctx, uint64_t tag, int32_t now);
    // A message of the middleware; level 0 error, 1 warning, 2 info, 3 debug.
    void (*log)(void *ctx, int level, const char *text);
} tb_host;

// Options of one `send`; a null pointer means none.
typedef struct tb_send {
    // Bytes of this struct that the writer filled.
    uint32_t size;
    // `TB_SEND_*`.
    uint32_t flags;
    // Launch time, `CLOCK_TAI` ns; 0 = at once.
    int64_t txtime_ns;
} tb_send;

// Receives the answer of `query`: UTF-8 JSON, or for `clock` and `far_clock` the bytes of a `tb_clock`. The far clock
// stamps what the ends do that receive, where a calibration gives them another clock than that of the session.
typedef void (*tb_sink)(void *ctx, const char *bytes, size_t len);

// One driver. Every pointer of the first block is mandatory; `loan` and `commit` are null without the capability `loan`.
//
// A session is one participant; many may exist in one process. End points are numbers that the driver hands out, never
// reused within a session. `send`, `take`, `release` and `wait` are the hot path: no allocation, no lock that another
// end point holds, no log.
typedef struct tb_driver {
    // Major ABI version (`TB_ABI_MAJOR`). Checked before anything else is touched.
    uint32_t abi_major;
    // Minor ABI version.
    uint32_t abi_minor;
    // Bytes of this table that the driver fills.
    uint32_t size;
    // Reserved, 0.
    uint32_t flags;
    // JSON by `schema/driver.json`: name, versions, capabilities, limits, options, qos, receive_modes, packages, roles.
    const char *(*describe)(void);
    // Opens one participant.
    int (*open)(const struct tb_kv *kv, size_t n, const struct tb_host *host, void **session);
    // Creates a writer or reader of `topic` for payloads up to `max_len`; `tag` comes back in callbacks.
    int (*create)(void *session,
                  int kind,
                  int mode,
                  const char *topic,
                  uint64_t max_len,
                  const struct tb_kv *qos,
                  size_t n,
                  uint64_t tag,
                  uint32_t *ep);
    // Waits until `ep` has at least `peers` matched peers.
    int (*wait_matched)(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns);
    // Sends one sample: `TB_OK`, `TB_EWOULDBLOCK`, `TB_ETIMEDOUT`, `TB_ETOOBIG` or another error.
    int (*send)(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const struct tb_send *opt);
    // Blocks until a reader of `ep[0..n]` has a sample; bit i of `ready` is `ep[i]` (n <= 64).
    int (*wait)(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready);
    // Takes up to `cap` samples without blocking.
    int (*take)(void *session, uint32_t ep, struct tb_view *out, uint32_t cap, uint32_t *n);
    // Gives taken samples back.
    int (*release)(void *session, uint32_t ep, struct tb_view *views, uint32_t n);
    // From any thread: a blocked `wait` of this session returns `TB_WOKEN` within 100 ms.
    int (*wake)(void *session);
    // Pushes a pending batch out.
    int (*flush)(void *session, uint32_t ep, int64_t deadline_ns);
    // Waits until all that a reliable writer sent is acknowledged.
    int (*wait_acked)(void *session, uint32_t ep, int64_t deadline_ns);
    // Answers `what` (qos stats peers unmatched transport threads clock flow) into `sink`; `ep` 0 is the session.
    int (*query)(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx);
    // Destroys an end point; a `wait` on it ends first.
    int (*destroy)(void *session, uint32_t ep);
    // Closes the participant and all that is left in it.
    void (*close)(void *session);
    // Text of the last error of the calling thread.
    const char *(*last_error)(void);
    // Lends a buffer for `len` payload octets (capability `loan`).
    int (*loan)(void *session, uint32_t ep, uint64_t len, void **buf);
    // Sends a lent buffer.
    int (*commit)(void *session, uint32_t ep, uint64_t seq, void *buf);
    // Null.
    void *reserved[8];
} tb_driver;

// A clock that a driver brings along (only the calibration driver does), in place of the machine's.
//
// `now` and `sleep_until` stand for `CLOCK_MONOTONIC`, `realtime` for `CLOCK_REALTIME`. The functions and `ctx` stay
// valid until the process ends, so that a thread may read the clock while its session closes.
typedef struct tb_clock {
    // Bytes of this struct that the driver filled.
    uint32_t size;
    // Reserved, 0.
    uint32_t reserved;
    // Passed back in every call.
    void *ctx;
    // Monotonic time, ns.
    int64_t (*now)(void *ctx);
    // Lets time pass until `deadline_ns`; callbacks may run in it.
    void (*sleep_until)(void *ctx, int64_t deadline_ns);
    // Wall-clock time, ns since 1970.
    int64_t (*realtime)(void *ctx);
} tb_clock;

#endif  /* TAILBOUND_DRIVER_H */

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

// Major version of the ABI. A driver with another major version is refused.
#define TB_ABI_MAJOR 1

// Minor version of the ABI. A driver with a lower minor version is accepted; the functions that its table lacks are
// not called.
#define TB_ABI_MINOR 0

// Result code of a driver's function: success.
#define TB_OK 0

// Result code: a wait ended because `wake` was called. This is not an error.
#define TB_WOKEN 1

// Error code: an argument or option is not valid; the text of `last_error` names it.
#define TB_EINVAL -1

// Error code of a driver's function: memory or another resource ran out.
#define TB_ENOMEM -2

// Error code of a driver's function: the deadline of the call passed.
#define TB_ETIMEDOUT -3

// Error code: the call would have to block, but the caller does not want to block.
#define TB_EWOULDBLOCK -4

// Error code: the driver does not have the function, mode or option.
#define TB_EUNSUPPORTED -5

// Error code: the payload is longer than the end point's `max_len` or the driver's limit.
#define TB_ETOOBIG -6

// Error code: the end point or the driver's session does not exist, or was closed.
#define TB_ECLOSED -7

// Error code: the middleware or the operating system refused the call; `last_error` returns its text.
#define TB_EIO -8

// Error code: a QoS policy is not supported or contradicts another policy; the text of `last_error` names it.
#define TB_EQOS -9

// Deadline for calls of a driver's function that wait without a time limit.
#define TB_FOREVER 9223372036854775807

// Kind of end point: a writer, which sends samples.
#define TB_WRITER 0

// Kind of end point: a reader, which receives samples.
#define TB_READER 1

// Receive mode: the driver calls `tb_host.on_sample` on a thread of the middleware.
#define TB_LISTENER 0

// Receive mode: a thread of the loading program blocks in `wait`, then calls `take`.
#define TB_BLOCK 1

// Receive mode: a thread of the loading program calls `take` without pause.
#define TB_SPIN 2

// Flag of `tb_view`: the middleware marked the sample as delivered inside the process.
#define TB_VIEW_LOCAL 1

// Flag of `tb_send`: the message may wait in a batch until `flush`.
#define TB_SEND_BATCH 1

// Key and value of an option or QoS policy, both UTF-8 strings that end with a NUL byte.
typedef struct tb_kv {
    // Key of an option or QoS policy. Every driver may get these keys in `open`: domain interface address peers
    // multicast discovery_server transport naming config data unacked_limit payload.
    const char *key;
    // Value of the driver option or QoS policy.
    const char *value;
} tb_kv;

// One received sample. The sample is valid until the callback returns or until `release` is called.
typedef struct tb_view {
    // Number of bytes of this struct that were filled in.
    uint32_t size;
    // Flags of the received sample: a combination of `TB_VIEW_*`.
    uint32_t flags;
    // Sequence number that the sender wrote into the sample.
    uint64_t seq;
    // Payload bytes of the sample; the sequence number is not part of the payload.
    const uint8_t *data;
    // Length of the sample's payload in bytes.
    uint64_t len;
    // Identity of the sample's writer within the session; 0 if the writer is not known.
    uint64_t writer;
    // Source timestamp of the sample in ns of `CLOCK_REALTIME`; 0 if not known.
    int64_t source_ns;
    // Software receive timestamp of the kernel for the sample, in ns of `CLOCK_REALTIME`; 0 if not known.
    int64_t kernel_rx_ns;
    // Hardware receive timestamp of the sample, in ns of the clock of the network card; 0 if not known.
    int64_t hw_rx_ns;
    // Handle of the received sample that the driver needs in `release`; 0 if nothing must be released.
    uint64_t loan;
} tb_view;

// Functions of the loading program that a driver may call. The functions exist longer than the session.
typedef struct tb_host {
    // Number of bytes of this struct that the loading program filled in.
    uint32_t size;
    // Reserved member of the table of callbacks that the loading program gives to a driver; always 0.
    uint32_t reserved;
    // Pointer of the loading program that the driver passes back in every call.
    void *ctx;
    // Receives a sample (listener mode). The driver calls this function on a thread of the middleware; the function
    // may call `send` and `take` of the driver, but no other function.
    void (*on_sample)(void *ctx, uint64_t tag, const struct tb_view *view);
    // Receives the new number of matched peers, `now`, of an end point.
    void (*on_match)(void *ctx, uint64_t tag, int32_t now);
    // Receives a log message of the middleware; level 0 is an error, 1 a warning, 2 information, 3 debugging output.
    void (*log)(void *ctx, int level, const char *text);
} tb_host;

// Options of one `send` call. A null pointer means that there are no options.
typedef struct tb_send {
    // Number of bytes of this struct that were filled in.
    uint32_t size;
    // Flags of the `send` call: a combination of `TB_SEND_*`.
    uint32_t flags;
    // Time at which the sample is to be sent, in ns of `CLOCK_TAI`; 0 means immediately.
    int64_t txtime_ns;
} tb_send;

// Receives the answer of `query`: UTF-8 JSON, or for `clock` and `far_clock` the bytes of a `tb_clock`. The far
// clock is the clock of the receiving ends, if a calibration gives these ends another clock than the clock of the
// session.
typedef void (*tb_sink)(void *ctx, const char *bytes, size_t len);

// The table of functions of one driver. All functions except `loan` and `commit` are mandatory; these two are null
// pointers if the driver lacks the capability `loan`.
//
// A session is one participant; one process may have many sessions. End points are numbers that the driver assigns and
// never uses again within a session. `send`, `take`, `release` and `wait` are the hot path: they allocate nothing,
// take no lock that another end point uses, and log nothing.
typedef struct tb_driver {
    // Major version of the ABI (`TB_ABI_MAJOR`). The loading program checks this member before it reads any
    // other member.
    uint32_t abi_major;
    // Minor version of the ABI for which the driver was built.
    uint32_t abi_minor;
    // Number of bytes of the driver's table of functions that the driver filled in.
    uint32_t size;
    // Reserved member of the table of functions that a driver provides; always 0.
    uint32_t flags;
    // Returns the driver's description, JSON that follows `schema/driver.json`: name, versions, capabilities, limits,
    // options, qos, receive_modes, packages, roles.
    const char *(*describe)(void);
    // Opens one participant of the middleware, with the driver options `kv`.
    int (*open)(const struct tb_kv *kv, size_t n, const struct tb_host *host, void **session);
    // Creates a writer or reader of `topic` for payloads of at most `max_len` bytes. Callbacks about this end point
    // get `tag` as an argument.
    int (*create)(void *session,
                  int kind,
                  int mode,
                  const char *topic,
                  uint64_t max_len,
                  const struct tb_kv *qos,
                  size_t n,
                  uint64_t tag,
                  uint32_t *ep);
    // Waits until the end point `ep` has at least `peers` matched peers.
    int (*wait_matched)(void *session, uint32_t ep, uint32_t peers, int64_t deadline_ns);
    // Sends one sample of a writer. Returns `TB_OK`, `TB_EWOULDBLOCK`, `TB_ETIMEDOUT`, `TB_ETOOBIG` or another error
    // code.
    int (*send)(void *session, uint32_t ep, uint64_t seq, const uint8_t *data, uint64_t len, const struct tb_send *opt);
    // Blocks until one of the readers `ep[0..n]` has a sample (n <= 64). Bit i of `ready` is set if the reader `ep[i]`
    // has a sample.
    int (*wait)(void *session, const uint32_t *ep, size_t n, int64_t deadline_ns, uint64_t *ready);
    // Takes at most `cap` samples of a reader without blocking.
    int (*take)(void *session, uint32_t ep, struct tb_view *out, uint32_t cap, uint32_t *n);
    // Returns taken samples to the driver, which may then use their memory again.
    int (*release)(void *session, uint32_t ep, struct tb_view *views, uint32_t n);
    // Makes a blocked `wait` of this session return `TB_WOKEN` within 100 ms. Any thread may call this function.
    int (*wake)(void *session);
    // Sends the messages of an end point that wait in a batch.
    int (*flush)(void *session, uint32_t ep, int64_t deadline_ns);
    // Waits until every message that a reliable writer sent is acknowledged.
    int (*wait_acked)(void *session, uint32_t ep, int64_t deadline_ns);
    // Passes the answer to the query `what` (qos stats peers unmatched transport threads clock far_clock flow) to
    // `sink`; `ep` 0 means that the query is about the session.
    int (*query)(void *session, uint32_t ep, const char *what, tb_sink sink, void *ctx);
    // Destroys an end point. A `wait` on the end point ends before this call returns.
    int (*destroy)(void *session, uint32_t ep);
    // Closes the participant and all end points that still exist in the driver's session.
    void (*close)(void *session);
    // Returns the text of the last error of the calling thread.
    const char *(*last_error)(void);
    // Lends the caller a buffer for `len` payload bytes (capability `loan`).
    int (*loan)(void *session, uint32_t ep, uint64_t len, void **buf);
    // Sends the sample in a buffer that the driver's function `loan` lent.
    int (*commit)(void *session, uint32_t ep, uint64_t seq, void *buf);
    // Reserved members of the table of functions that a driver provides; always null pointers.
    void *reserved[8];
} tb_driver;

// A clock that a driver provides in place of the machine's clock. Only the calibration driver provides such a clock.
//
// `now` and `sleep_until` replace `CLOCK_MONOTONIC`, `realtime` replaces `CLOCK_REALTIME`. These functions and `ctx`
// stay valid until the process ends, so a thread may read the clock while its session closes.
typedef struct tb_clock {
    // Number of bytes of this struct that the driver filled in.
    uint32_t size;
    // Reserved member of the struct that describes a driver's own clock; always 0.
    uint32_t reserved;
    // Pointer of the driver that the loading program passes back in every call of the clock.
    void *ctx;
    // Reads the monotonic time of the driver's own clock in ns.
    int64_t (*now)(void *ctx);
    // Lets the time of the driver's own clock pass until `deadline_ns`. Callbacks may run during this call.
    void (*sleep_until)(void *ctx, int64_t deadline_ns);
    // Reads the wall-clock time of the driver's own clock, in ns since 1970.
    int64_t (*realtime)(void *ctx);
} tb_clock;

#endif  /* TAILBOUND_DRIVER_H */

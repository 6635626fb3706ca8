/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of rclcpp that the driver `rclcpp` calls. The driver is in Rust; what needs the headers of ROS 2 is in
 * shim.cpp, which is compiled on the machine of the user. Both sides compare TBR_VERSION, which changes with this file.
 */
#pragma once

#include <rmw/types.h>
#include <stddef.h>
#include <stdint.h>

#define TBR_VERSION 1u

/* Results of functions. */
#define TBR_OK 0
#define TBR_FAILED (-1)   /* last_error has the text */
#define TBR_FULL (-2)     /* too many messages wait for the timer */
#define TBR_TIMED_OUT (-3)

/* Options of a session. Words are numbers in the order of the comments. */
struct tbr_options {
    uint64_t domain;
    const char *node;
    int32_t executor;        /* single, multi, events */
    uint32_t threads;        /* of the executor `multi`; 0 = as many as the machine has CPUs */
    int32_t callback_groups; /* shared, own, reentrant */
    int32_t send_by;         /* call, timer */
    uint8_t intra_process, loan, serialized, reserved;
};

/* A message that was received, valid during the callback. Times are ns; 0 = not known. */
struct tbr_message {
    uint64_t seq;
    const uint8_t *data;
    uint64_t len;
    uint64_t writer;    /* a number for the publisher */
    int64_t source_ns;  /* CLOCK_REALTIME at the publisher */
    int64_t taken_ns;   /* CLOCK_MONOTONIC after the executor took the message from the middleware */
};

/* What is known about a publisher or subscription. */
struct tbr_status {
    rmw_qos_profile_t qos;   /* in effect */
    uint64_t matched;
    uint64_t matched_inside; /* subscriptions that get the messages inside this process; of a publisher only */
    uint64_t discovered;     /* entities of the other kind with this topic */
    int32_t incompatible;    /* number of peers with incompatible QoS; -1 = the middleware does not say */
    int32_t policy;          /* the policy, as in rmw_qos_policy_kind_t */
    uint64_t failed;         /* messages that a timer could not publish */
};

/* Called on a thread of the executor. */
typedef void (*tbr_on_message)(void *context, const tbr_message *message);
/* Called once, when nothing uses the context any more. */
typedef void (*tbr_drop)(void *context);

struct tbr_table {
    uint32_t version; /* TBR_VERSION */
    uint32_t reserved;
    const char *distribution, *rclcpp; /* ROS_DISTRO and version of rclcpp for which the library was built */
    const char *(*last_error)(void);   /* of the calling thread */
    void *(*open)(const tbr_options *options);
    void (*close)(void *session);
    void *(*writer)(void *session, const char *topic, const rmw_qos_profile_t *qos, uint64_t max_len);
    void *(*reader)(void *session, const char *topic, const rmw_qos_profile_t *qos, tbr_on_message on_message,
                    void *context, tbr_drop drop);
    int (*send)(void *writer, uint64_t seq, const uint8_t *data, uint64_t len);
    int (*acked)(void *writer, int64_t timeout_ns);
    int (*status)(void *end, tbr_status *status);
    void (*destroy)(void *end);
};

extern "C" __attribute__((visibility("default"))) const tbr_table *tailbound_rclcpp_v1(void);

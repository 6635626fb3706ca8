#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./ros2_events.h"
#if !defined(ROS2_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define ROS2_EVENTS_H
#include <lttng/tracepoint.h>
#include <stdint.h>

#define HANDLE(name) lttng_ust_field_integer_hex(const void *, name, name##_arg)
#define ONE(event, one) \
  LTTNG_UST_TRACEPOINT_EVENT(ros2, event, LTTNG_UST_TP_ARGS(const void *, one##_arg), LTTNG_UST_TP_FIELDS(HANDLE(one)))
#define TWO(event, one, two)                                                                                   \
  LTTNG_UST_TRACEPOINT_EVENT(ros2, event, LTTNG_UST_TP_ARGS(const void *, one##_arg, const void *, two##_arg), \
                             LTTNG_UST_TP_FIELDS(HANDLE(one) HANDLE(two)))
#define ENDPOINT(event, one, two)                                                                       \
  LTTNG_UST_TRACEPOINT_EVENT(ros2, event,                                                               \
                             LTTNG_UST_TP_ARGS(const void *, one##_arg, const void *, two##_arg,        \
                                               const char *, topic_name_arg),                           \
                             LTTNG_UST_TP_FIELDS(HANDLE(one) HANDLE(two)                                \
                                                 lttng_ust_field_string(topic_name, topic_name_arg)))

ENDPOINT(rcl_publisher_init, publisher_handle, rmw_publisher_handle)
ENDPOINT(rcl_subscription_init, subscription_handle, rmw_subscription_handle)
TWO(rclcpp_subscription_init, subscription_handle, subscription)
TWO(rclcpp_subscription_callback_added, subscription, callback)
ONE(rclcpp_publish, message)
TWO(rcl_publish, publisher_handle, message)
ONE(rcl_take, message)
ONE(rclcpp_take, message)
ONE(callback_end, callback)
LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_publish,
                           LTTNG_UST_TP_ARGS(const void *, rmw_publisher_handle_arg, const void *, message_arg, int64_t,
                                             timestamp_arg),
                           LTTNG_UST_TP_FIELDS(HANDLE(rmw_publisher_handle) HANDLE(message)
                                                   lttng_ust_field_integer(int64_t, timestamp, timestamp_arg)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, rmw_take,
                           LTTNG_UST_TP_ARGS(const void *, rmw_subscription_handle_arg, const void *, message_arg, int64_t,
                                             source_timestamp_arg, int, taken_arg),
                           LTTNG_UST_TP_FIELDS(HANDLE(rmw_subscription_handle) HANDLE(message)
                                                   lttng_ust_field_integer(int64_t, source_timestamp, source_timestamp_arg)
                                                       lttng_ust_field_integer(int, taken, taken_arg)))
LTTNG_UST_TRACEPOINT_EVENT(ros2, callback_start, LTTNG_UST_TP_ARGS(const void *, callback_arg, int, is_intra_process_arg),
                           LTTNG_UST_TP_FIELDS(HANDLE(callback)
                                                   lttng_ust_field_integer(int, is_intra_process, is_intra_process_arg)))
#endif
#include <lttng/tracepoint-event.h>

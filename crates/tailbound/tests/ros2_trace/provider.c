// Makes a trace with events of the names and members of ros2_tracing, by LTTng, of a talker and a listener whose times are planted:
// the trace in the directory trace/ was made with it (its files lay in ust/uid/0/64-bit/). No ROS 2 is in it. Message 30 of 60 waits 40 ms before it is taken, and the callback of message 45
// takes 25 ms. How to make the trace again, with the packages lttng-tools and liblttng-ust-dev:
//
//   cc -I. -o provider provider.c -llttng-ust -ldl
//   lttng create planted --output=$PWD/made && lttng enable-event --userspace 'ros2:*'
//   lttng add-context --userspace --type=vpid --type=vtid --type=procname
//   lttng start && ./provider && lttng destroy
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "ros2_events.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 60, WAITS = 30, WORKS = 45 };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void talk(int to) {
  void *publisher = (void *)1, *of_rmw = (void *)2, *message = (void *)7;
  lttng_ust_tracepoint(ros2, rcl_publisher_init, publisher, of_rmw, "/chatter");
  for (int n = 0; n < MESSAGES; n++) {
    usleep(60000);
    lttng_ust_tracepoint(ros2, rclcpp_publish, message);
    lttng_ust_tracepoint(ros2, rcl_publish, publisher, message);
    int64_t at_ns = now_ns();
    lttng_ust_tracepoint(ros2, rmw_publish, of_rmw, message, at_ns);
    if (write(to, &at_ns, sizeof(at_ns)) < 0) return;
  }
}

static void listen_to(int from) {
  void *subscription = (void *)1, *of_rmw = (void *)3, *of_rclcpp = (void *)4, *callback = (void *)5, *message = (void *)8;
  lttng_ust_tracepoint(ros2, rcl_subscription_init, subscription, of_rmw, "/chatter");
  lttng_ust_tracepoint(ros2, rclcpp_subscription_init, subscription, of_rclcpp);
  lttng_ust_tracepoint(ros2, rclcpp_subscription_callback_added, of_rclcpp, callback);
  int64_t at_ns;
  for (int n = 0; read(from, &at_ns, sizeof(at_ns)) > 0; n++) {
    usleep(n == WAITS ? 40000 : 100);
    lttng_ust_tracepoint(ros2, rmw_take, of_rmw, message, at_ns, 1);
    lttng_ust_tracepoint(ros2, rcl_take, message);
    lttng_ust_tracepoint(ros2, rclcpp_take, message);
    lttng_ust_tracepoint(ros2, callback_start, callback, 0);
    usleep(n == WORKS ? 25000 : 200);
    lttng_ust_tracepoint(ros2, callback_end, callback);
    lttng_ust_tracepoint(ros2, rmw_take, of_rmw, message, 0, 0);
  }
}

int main(int count, char **words) {
  (void)count;
  if (words[0][0] == 't' || words[0][0] == 'l') {
    prctl(PR_SET_NAME, words[0]);
    sleep(1);
    if (words[0][0] == 't') talk(1); else listen_to(0);
    return 0;
  }
  int pipes[2];
  if (pipe(pipes)) return 1;
  // LTTng does not follow a process over fork without a library for it: each end is started anew.
  if (fork() == 0) {
    dup2(pipes[0], 0);
    close(pipes[1]);
    return execl("/proc/self/exe", "listener", (char *)0);
  }
  dup2(pipes[1], 1);
  close(pipes[0]);
  return execl("/proc/self/exe", "talker", (char *)0);
}

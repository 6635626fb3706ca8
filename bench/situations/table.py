"""The situations as data: study, planted cause, remedies, and decoys that answer the same cause word."""
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Callable
from . import planted


@dataclass(frozen=True)
class Situation:
    """`plant`: makes a context manager, which gives the control group in which Tailbound runs, or None. `remedies`: beginnings of settings
    of which at least one must be kept. `decoys`: settings of which none may be kept; `tune` tries them with --try, beside the candidates
    of its own rules. `cause`: a word of the first cause of the receipt. `netns`: network namespace in which Tailbound runs."""
    name: str
    study: str
    plant: Callable
    cause: str
    remedies: tuple
    decoys: tuple
    netns: str = ""


def udp(driver):
    """A study of two namespaces, the ping on CPU 0 and the pong on CPU 1."""
    ends = "\n".join(f"  {end}: {{ place: netns, cpus: {cpu} }}" for cpu, end in enumerate(("ping", "pong")))
    return f"measure: {{ ping-pong: {{ duration: 2s, warm_up: 50, receive: block }} }}\nrate: 1 kHz\npath: veth\nends:\n{ends}\ndriver: {driver}\n"


@contextmanager
def a_hog():
    with planted.hog(1, 4, 20, priority=50):
        planted.settle()
        yield None


@contextmanager
def two_hogs():
    """Nothing comes before them: a study gives at most priority 98."""
    with planted.hog(0, 8, 200, priority=99), planted.hog(1, 8, 200, priority=99):
        planted.settle()
        yield None


@contextmanager
def a_quota():
    with ExitStack() as stack:
        group = stack.enter_context(planted.quota(40, 100))
        # A second program of the same group, which alone uses up the quota in each period.
        stack.enter_context(planted.hog(0, 90, 100, group=group))
        planted.settle()
        yield group


@contextmanager
def a_long_queue():
    queue = ("root handle 1: tbf rate 200mbit burst 100k limit 20m", "parent 1:1 handle 10: pfifo_fast")
    with planted.bridge(queue), planted.bursts(0.5, 60):
        planted.settle()
        yield None


def scheduling(end, role, text):
    return f"ends.{end}.scheduling={{ {role}: {{ {text} }} }}" if role else f"ends.{end}.scheduling={{ {text} }}"


FIFO = "policy: fifo, priority: {}"
NICE = "policy: other, nice: -20"

SITUATIONS = (
    Situation(
        "hog", udp("udp"), a_hog, "waiting for a CPU",
        ("ends.pong.scheduling={ policy: fifo", "ends.pong.cpus", "ends.pong.scheduling={ receive: { policy: fifo",
         "ends.pong.scheduling={ main: { policy: fifo"),
        (scheduling("ping", "", FIFO.format(60)), scheduling("ping", "", NICE), scheduling("pong", "", FIFO.format(40)),
         scheduling("pong", "", NICE), "host.kernel_threads.ksoftirqd/1={ policy: fifo, priority: 60 }", "ends.ping.cpus=any",
         "host.sysctl.kernel.sched_autogroup_enabled=0")),
    Situation(
        "middleware",
        "measure: { ping-pong: { duration: 2s, warm_up: 50, receive: block } }\nrate: 500 Hz\npath: veth\ndriver: cyclonedds\nends:\n"
        "  ping: { place: netns, cpus: 0 }\n"
        "  pong: { place: netns, cpus: 1, scheduling: { main: { policy: fifo, priority: 80 } } }\n",
        a_hog, "waiting for a CPU",
        ("ends.pong.scheduling=", "ends.pong.cpus"),
        (scheduling("ping", "", FIFO.format(60)), scheduling("ping", "receive", FIFO.format(60)),
         "ends.pong.scheduling={ main: { policy: fifo, priority: 80 }, receive: { policy: fifo, priority: 40 } }",
         "ends.pong.scheduling={ main: { policy: fifo, priority: 80 }, receive: { policy: other, nice: -20 } }",
         "ends.pong.scheduling={ main: { policy: fifo, priority: 90 } }",
         "ends.pong.scheduling={ main: { policy: fifo, priority: 80 }, discovery: { policy: fifo, priority: 60 } }",
         "host.kernel_threads.ksoftirqd/1={ policy: fifo, priority: 60 }")),
    Situation(
        "quota", udp("udp"), a_quota, "quota",
        # A quota does not apply to real-time threads.
        ("host.cpu_quota=off", "ends.ping.scheduling={ policy: fifo", "ends.pong.scheduling={ policy: fifo"),
        (scheduling("ping", "", NICE), scheduling("pong", "", NICE), "ends.pong.cpus=0", "driver.udp.sndbuf=65536",
         "middleware.timer_slack=least", "host.sysctl.kernel.sched_autogroup_enabled=0", "host.sysctl.net.core.busy_read=50")),
    Situation(
        "buffer", udp("{ udp: { rcvbuf: 2304 } }"), two_hogs, "",
        ("driver.udp.rcvbuf=",),
        ("driver.udp.sndbuf=65536", "host.sysctl.net.core.rmem_max=16777216", "host.sysctl.net.core.rmem_default=8388608",
         "host.sysctl.net.core.netdev_max_backlog=10000", "measure.hand_off=thread", scheduling("ping", "", NICE),
         "host.kernel_threads.ksoftirqd/1={ policy: fifo, priority: 60 }")),
    Situation(
        "queue",
        "measure: { ping-pong: { duration: 2s, warm_up: 50, receive: block } }\nrate: 1 kHz\ndriver: udp\n"
        "path: { existing: { ping: { interface: eth0 }, pong: { interface: eth0 } } }\nends:\n"
        f"  ping: {{ place: {{ existing-netns: {planted.PING} }} }}\n  pong: {{ place: {{ existing-netns: {planted.PONG} }} }}\n",
        a_long_queue, "queue",
        ("host.queue.to-pong=",),
        ("driver.udp.priority=6", "driver.udp.sndbuf=65536", "driver.udp.rcvbuf=1048576", scheduling("ping", "", FIFO.format(60)),
         scheduling("pong", "", FIFO.format(60)), "middleware.timer_slack=least", "ends.pong.cpus=1",
         "host.sysctl.kernel.sched_autogroup_enabled=0", scheduling("pong", "", NICE)), planted.BRIDGE),
)

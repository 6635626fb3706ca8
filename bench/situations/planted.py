"""What is planted: programs that keep CPUs busy, a control group with a quota, and a bridge with a long queue. Each is a context
manager that undoes everything."""
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from causes import groups

# Keeps its CPU busy for `busy` seconds of each `period`, from whole multiples of the period on, until its standard input ends.
HOG = """
import sys, threading, time
busy, period = float(sys.argv[1]), float(sys.argv[2])
threading.Thread(target=lambda: (sys.stdin.read(), __import__('os')._exit(0)), daemon=True).start()
while True:
    until = time.monotonic() + busy
    while time.monotonic() < until: pass
    time.sleep(period - time.monotonic() % period)
"""


@contextmanager
def hog(cpu, busy_ms, period_ms, priority=None, group=None):
    """A program that keeps a CPU busy in bursts. `priority`: of SCHED_FIFO; None = time-sharing; `group`: its control group."""
    policy = ["chrt", "--fifo", str(priority)] if priority else []
    words = [*policy, "taskset", "--cpu-list", str(cpu), sys.executable, "-c", HOG, str(busy_ms / 1e3), str(period_ms / 1e3)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE)
    try:
        if group:
            group.join(process.pid)
        yield process
    finally:
        process.stdin.close()
        process.wait()


@contextmanager
def quota(quota_ms, period_ms):
    """A control group that has this CPU time in each period."""
    group = groups.Group(f"tailbound-tune-{os.getpid()}", ["cpu"])
    try:
        if found := group.file("cpu", "cpu.cfs_quota_us"):
            group.file("cpu", "cpu.cfs_period_us").write_text(str(1000 * period_ms))
            found.write_text(str(1000 * quota_ms))
        else:
            group.file("cpu", "cpu.max").write_text(f"{1000 * quota_ms} {1000 * period_ms}")
        yield group
    finally:
        group.close()


PING, PONG, OTHER, BRIDGE = "tbt-ping", "tbt-pong", "tbt-other", "tbt-bridge"


def ip(*words, netns=None):
    subprocess.run(["ip", *(["-n", netns] if netns else []), *words], check=True)


@contextmanager
def bridge(queue):
    """Namespaces of a ping, a pong and another sender, on one bridge. `queue`: queue disciplines of the port of the pong, as lines of
    `tc qdisc add dev PORT`."""
    made = []
    try:
        for name in (PING, PONG, OTHER, BRIDGE):
            ip("netns", "add", name)
            made.append(name)
            ip("link", "set", "lo", "up", netns=name)
        ip("link", "add", "br0", "type", "bridge", netns=BRIDGE)
        ip("link", "set", "br0", "up", netns=BRIDGE)
        for number, name in enumerate((PING, PONG, OTHER), 1):
            port = f"to-{name[4:]}"
            ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", BRIDGE)
            ip("link", "set", port, "master", "br0", "up", netns=BRIDGE)
            ip("address", "add", f"10.231.7.{number}/24", "dev", "eth0", netns=name)
            ip("link", "set", "eth0", "up", netns=name)
        for line in queue:
            subprocess.run(["ip", "netns", "exec", BRIDGE, "tc", "qdisc", "add", "dev", "to-pong", *line.split()], check=True)
        yield
    finally:
        for name in made:
            ip("netns", "del", name)


# Sends `argv[1]` bytes to the pong's namespace in each period of `argv[2]` seconds, until its standard input ends.
SENDER = """
import socket, sys, threading, time
threading.Thread(target=lambda: (sys.stdin.read(), __import__('os')._exit(0)), daemon=True).start()
sender, datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), bytes(1400)
while True:
    for _ in range(int(sys.argv[1]) // len(datagram)):
        sender.sendto(datagram, ("10.231.7.2", 4711))
    time.sleep(float(sys.argv[2]))
"""
# Nobody reads what this socket receives; without it, the kernel would answer each datagram with an error.
SINK = """
import socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("10.231.7.2", 4711))
sys.stdin.read()
"""


@contextmanager
def bursts(megabytes, pause_ms):
    """Sends this much from the other namespace to the pong's, then pauses, again and again; nobody reads it there."""
    programs = [(PONG, SINK, []), (OTHER, SENDER, [str(int(megabytes * 1e6)), str(pause_ms / 1e3)])]
    started = []
    try:
        for netns, text, words in programs:
            command = ["ip", "netns", "exec", netns, sys.executable, "-c", text, *words]
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
            time.sleep(0.2)
        yield
    finally:
        for process in started:
            process.stdin.close()
            process.wait()


def settle():
    """Time for what was planted to begin."""
    time.sleep(0.5)

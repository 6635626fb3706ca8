"""What the faults act on: the processes of a run, their threads, sockets and network namespaces, found in /proc."""
import json
import os
import subprocess
import time
from pathlib import Path

PROC = Path("/proc")


def descendants(pid):
    found, open_ = [], [pid]
    while open_:
        for task in PROC.glob(f"{open_.pop()}/task/*/children"):
            try:
                children = [int(child) for child in task.read_text().split()]
            except OSError:
                continue
            found += children
            open_ += children
    return found


def comm(pid):
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def find(controller, name):
    return next((pid for pid in descendants(controller) if comm(pid) == name), None)


def switch(controller):
    """The process of Open vSwitch that forwards packets."""
    return next(pid for pid in descendants(controller) if comm(pid).startswith("ovs-vswitchd"))


def parent(pid):
    return int((PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])


def threads(pid):
    return [int(task.name) for task in (PROC / str(pid) / "task").iterdir()]


def turns(pid):
    """Number of times that the main thread got a CPU."""
    return int((PROC / str(pid) / "task" / str(pid) / "schedstat").read_text().split()[2])


def wait_for(what, seconds, *processes):
    """Calls `what` until it returns something, while the processes run."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        if any(process.poll() is not None for process in processes):
            raise RuntimeError("the run ended before its messages began")
        time.sleep(0.002)
    raise RuntimeError("the messages of the run did not begin in time")


def is_sending(pid, rate_hz):
    """Whether the main thread of the ping wakes about as often as it sends, in each of two tenths of a second."""
    counts = [turns(pid)]
    for _ in range(2):
        time.sleep(0.1)
        counts.append(turns(pid))
    return all(rate_hz / 13 < b - a < rate_hz for a, b in zip(counts, counts[1:]))


def phase(pid, period_ns):
    """The time within a period at which the main thread of the ping wakes, seen from outside by its number of turns."""
    seen, count, end = [], turns(pid), time.monotonic() + max(0.06, 5e-9 * period_ns)
    while time.monotonic() < end:
        now, new = time.monotonic_ns(), turns(pid)
        if new != count:
            seen.append(now % period_ns)
            count = new
    if not seen:
        return None
    # Circular median: the time with the smallest sum of distances to the others.
    apart = lambda a, b: min((a - b) % period_ns, (b - a) % period_ns)
    return min(seen, key=lambda a: sum(apart(a, b) for b in seen))


def udp_sockets(pid):
    """Addresses and ports of the UDP sockets of a process that are not connected, in its network namespace."""
    inodes = set()
    for fd in (PROC / str(pid) / "fd").iterdir():
        try:
            link = os.readlink(fd)
        except OSError:
            continue
        if link.startswith("socket:["):
            inodes.add(link[8:-1])
    found = []
    for line in (PROC / str(pid) / "net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes and fields[2] == "00000000:0000":
            address, port = fields[1].split(":")
            found.append((".".join(str(b) for b in bytes.fromhex(address)[::-1]), int(port, 16)))
    return found


def namespaces(controller):
    """Network namespaces that the controller holds open: path of the descriptor by inode."""
    found = {}
    for fd in (PROC / str(controller) / "fd").iterdir():
        try:
            link = os.readlink(fd)
        except OSError:
            continue
        if link.startswith("net:["):
            found[link] = str(fd)
    return found


def links(namespace):
    done = subprocess.run(["nsenter", f"--net={namespace}", "ip", "-j", "-d", "link"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def bridge_ports(controller, ends):
    """Namespace of the lab's bridge, and its port towards each end. `ends`: process id by end."""
    inodes = {os.readlink(f"/proc/{pid}/ns/net") for pid in ends.values()}
    # The other side of an end's interface is the bridge's port; the kernel gives its index.
    peers = {end: {link.get("link_index") for link in links(f"/proc/{pid}/ns/net")} for end, pid in ends.items()}
    for inode, path in namespaces(controller).items():
        ports = {link["ifindex"]: link["ifname"] for link in links(path) if "master" in link} if inode not in inodes else {}
        found = {end: [name for index, name in ports.items() if index in peers[end]] for end in ends}
        if all(len(names) == 1 for names in found.values()):
            return path, {end: names[0] for end, names in found.items()}
    raise RuntimeError("the bridge of the lab was not found")

"""Both sides of bench/throughput.py: runs one round of Tailbound or of a peer, and returns the figures of the round."""
import json, os, signal, subprocess, sys, threading, time
from pathlib import Path

import peers
from peers import Path_, stop

BUFFER = 212_992      # bytes requested for the buffer of each socket: what a kernel with default settings grants
UNACKED = 256         # unacknowledged samples of Fast DDS: below the 512 of a shared-memory port
FIGURES = ("received/s", "sent/s", "CPU send ns", "CPU receive ns")


class Failed(Exception):
    """A round that failed and has no figures."""


class Space(Path_):
    """A path as for round trips, but loopback has a namespace too, so that the kernel counts only these programs."""

    def __init__(self, kind):
        if kind == "veth":
            super().__init__(kind)
            return
        self.kind, self.names = kind, [f"tbbench{os.getpid()}l"]
        self.interfaces, self.addresses = ("lo", "lo"), ("127.0.0.1", "127.0.0.1")
        subprocess.run(["ip", "netns", "add", self.names[0]], check=True)
        subprocess.run(["ip", "-n", self.names[0], "link", "set", "lo", "up"], check=True)

    def inside(self, end):
        return ["ip", "netns", "exec", self.names[min(end, len(self.names) - 1)]]

    def enter(self, end):
        return [*self.inside(end), "taskset", "-c", str(peers.CPUS[end])]


def cpu_ns(pid):
    """CPU time of all threads of another process in ns, from the kernel's clock of that process."""
    return time.clock_gettime_ns((~pid << 3) | 2)


def datagrams(pid, column):
    lines = [l.split() for l in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if l.startswith("Udp:")]
    return int(lines[1][lines[0].index(column)])


def until(there, what):
    deadline = time.monotonic() + 10
    while not there():
        if time.monotonic() > deadline:
            raise Failed(f"not reached within 10 s: {what}")
        time.sleep(0.05)


def figures(received, sent, ns, cpu_send, cpu_receive):
    if not received or not sent:
        raise Failed(f"no message was received: sent {sent}, received {received}")
    return dict(zip(FIGURES, (received / ns * 1e9, sent / ns * 1e9, cpu_send / sent, cpu_receive / received)))


class Ours:
    def __init__(self, binary, work):
        self.binary, self.work, self.n = binary, work, 0

    def run(self, path, driver, payload, seconds, measure, qos=""):
        self.n += 1
        study, record = self.work / f"s{self.n}.yaml", self.work / f"r{self.n}"
        study.write_text(f"study: peer\nquestion: q\ndriver: {driver}\npayload: {payload} B\nattribution: off\n"
                         f"measure: {{ throughput: {{ duration: {seconds} s, ramp_up: {100 if peers.COUNTED else 500} ms, {measure} }} }}\n{qos}{path.study()}")
        env = {**os.environ, "TAILBOUND_STATE_DIR": str(self.work / "state")}
        inside = path.inside(0) if path.kind == "lo" else []
        call = lambda *args: subprocess.run([*inside, self.binary, *map(str, args)], capture_output=True, text=True, env=env)
        done = call("run", study, "--out", record, "--quiet")
        if done.returncode:
            raise Failed(f"tailbound failed ({done.returncode}): {done.stderr}{done.stdout}")
        trial = json.loads(call("report", record, "--format", "json").stdout)["conditions"][0]["flow"]["trials"][0]
        to = trial["subscribers"][0]
        if not to["received"] or qos and to["lost"]:
            raise Failed(f"{trial['sent']} messages were sent and {to['received']} received, see {record}")
        subprocess.run(["rm", "-r", record], check=True)
        return dict(zip(FIGURES, (to["samples_per_s"], trial["sent"] / trial["window_ns"] * 1e9,
                                  trial["cpu_ns"] / trial["sent"], to["cpu_ns"] / to["received"])))


def ddsperf(binary, path, size, seconds, xml):
    env = {**os.environ, "CYCLONEDDS_URI": xml}
    # ddsperf prints a report once a second, and the figures are from the first report to a later report.
    reports, length = (1, 2.3) if peers.COUNTED else (round(seconds), seconds + 3)
    start = lambda end, *mode: subprocess.Popen([*path.enter(end), binary, "-i", "78", "-D", str(length), *mode],
                                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    sub = start(1, "sub")
    pub = start(0, "pub", "size", str(size))
    seen = []   # for each line that reports a second: its samples, and both CPU times when the line arrived
    silence = threading.Thread(target=pub.stdout.read)
    silence.start()
    for line in sub.stdout:
        words = line.split()
        if "total" in words and pub.poll() is None:
            total, lost = (int(words[words.index(word) + 1]) for word in ("total", "lost"))
            seen.append((total, time.monotonic_ns(), cpu_ns(pub.pid), cpu_ns(sub.pid), lost))
    for p in (pub, sub):
        p.wait(seconds + 20)
    silence.join()
    if len(seen) < reports + 1 or seen[-1][4]:
        raise Failed(f"ddsperf reported {len(seen)} seconds, lost {seen[-1][4] if seen else '?'}")
    (n0, t0, p0, s0, _), (n1, t1, p1, s1, _) = seen[0], seen[reports]
    # The writer is reliable, so the number of sent samples is the number of received samples, except samples on the way
    # at the two moments.
    return figures(n1 - n0, n1 - n0, t1 - t0, p1 - p0, s1 - s0)


def plain_fastdds(binary, path, transport, payload, seconds):
    own, other = ("shm", "shm") if transport == "shm" else path.addresses
    # The program reports ten times a second. One second is left out at the begin and at the end, less in counted time.
    lead, reports = 3 if peers.COUNTED else 10, round(10 * seconds)
    arguments = lambda mode, a, b: [binary, mode, a, b, str(seconds + lead / 5), str(payload), str(UNACKED)]
    sub = subprocess.Popen([*path.enter(1), *arguments("sub", other, own)], stdout=subprocess.PIPE, text=True)
    pub = subprocess.Popen([*path.enter(0), *arguments("pub", own, other)], stdout=subprocess.PIPE, text=True)
    told = [[tuple(map(int, line.split())) for line in p.communicate(timeout=seconds + 30)[0].splitlines()] for p in (pub, sub)]
    if pub.returncode or sub.returncode or min(map(len, told)) <= lead + reports:
        raise Failed(f"the plain Fast DDS flow failed: {pub.returncode}, {sub.returncode}, {told}")
    (ns, sent, cpu_send), (to_ns, received, cpu_receive) = ([b - a for a, b in zip(t[lead], t[lead + reports])] for t in told)
    return figures(received, sent * to_ns / ns, to_ns, cpu_send * to_ns / ns, cpu_receive)


def counted(path, seconds, port, server, client):
    """The figures of a sender and a receiver of datagrams between two moments, from counters of the kernel."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = []
    try:
        running.append(receiver := subprocess.Popen([*path.enter(1), *server], **quiet))
        bound = lambda: any(f":{port:04X} " in Path(f"/proc/{receiver.pid}/net/{f}").read_text() for f in ("udp", "tcp"))
        until(bound, f"{server[0]} listens")
        # The counters contain the previous rounds too.
        idle = datagrams(receiver.pid, "InDatagrams")
        running.append(sender := subprocess.Popen([*path.enter(0), *client], **quiet))
        # sockperf calibrates its clock before it sends.
        until(lambda: datagrams(receiver.pid, "InDatagrams") > idle + 1000, f"{client[0]} sends")
        time.sleep(0.1 if peers.COUNTED else 0.5)
        now = lambda: (datagrams(receiver.pid, "InDatagrams"), datagrams(sender.pid, "OutDatagrams"), time.monotonic_ns(),
                       cpu_ns(sender.pid), cpu_ns(receiver.pid))
        before = now()
        time.sleep(seconds)
        after = now()
        if sender.poll() is not None:
            raise Failed(f"{client[0]} ended before its counters were read")
    finally:
        for process in reversed(running):
            stop(process)
    return figures(*(b - a for a, b in zip(before, after)))


def iperf3(binary, path, datagram, seconds):
    address = path.addresses[1]
    return counted(path, seconds, 5201, [binary, "-s", "-1", "-B", address],
                   [binary, "-c", address, "-u", "-b", "0", "-l", str(datagram), "-w", str(BUFFER), "-t", str(seconds + 12)])


def sockperf(binary, path, datagram, seconds):
    at = ["-i", path.addresses[1], "-p", "17171", "--buffer-size", str(BUFFER)]
    return counted(path, seconds, 17171, [binary, "server", *at],
                   [binary, "throughput", *at, "-m", str(datagram), "--mps", "max", "-t", str(seconds + 12)])

#!/usr/bin/env python3
"""Checks that Tailbound is no slower than peers: its drivers against ddsperf, sockperf and a plain Fast DDS program, round trips.

Paired and interleaved (ABBA), same interface, pinning (ping CPU 0, pong CPU 1), policy, vendor configuration, serialised
size and thread structure. Quantiles have the peer's own definition on both sides:
- ddsperf prints, for each second, p50 and p99 of the first 20,000 HALF round trips. Its figures are doubled; ours are
  taken from the raw rows in the same way, second by second, and the median over the seconds is compared. The first second
  of each run is left out on both sides.
- sockperf writes every round trip (--full-log): the quantiles of the raw values are compared.
- fastdds/pingpong.cpp, a plain program over Fast DDS written for this, writes every round trip too.
Context switches are not watched (`attribution: off`), because no peer watches them; attribution.py measures the cost.
The ratio's 95 % interval is Student's on the logarithms over pairs. Met: it contains or lies below 1.00 and its half width
is at most 3 % (median) or 15 % (p99). Wider: undecided.
"""
import argparse, json, math, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
CPUS = [0, 1]      # CPUs of ping and pong; bench/counted has one CPU
COUNTED = False    # in counted time short runs are enough
T975 = [0, 12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120]


class Path_:
    """The path of both programs: loopback, or two named network namespaces joined by a veth pair."""

    def __init__(self, kind):
        self.kind, self.names = kind, []
        if kind == "lo":
            self.interfaces, self.addresses = ("lo", "lo"), ("127.0.0.1", "127.0.0.1")
            return
        self.names = [f"tbbench{os.getpid()}{s}" for s in "ab"]
        self.interfaces, self.addresses = ("x0", "x0"), ("10.98.0.1", "10.98.0.2")
        a, b = self.names
        for c in [f"netns add {a}", f"netns add {b}", f"-n {a} link add x0 type veth peer name x0 netns {b}"]:
            subprocess.run(["ip", *c.split()], check=True)
        for name, address in zip(self.names, self.addresses):
            for c in [f"addr add {address}/24 dev x0", "link set x0 up", "link set lo up"]:
                subprocess.run(["ip", "-n", name, *c.split()], check=True)
        time.sleep(2)  # the kernel takes up to a second to report the carrier

    def enter(self, end):
        pin = ["taskset", "-c", str(CPUS[end])]
        return (["ip", "netns", "exec", self.names[end]] if self.names else []) + pin

    def study(self):
        if self.kind == "lo":
            return f'path: loopback\nplace: process\nends: {{ ping: {{ cpus: "{CPUS[0]}" }}, pong: {{ cpus: "{CPUS[1]}" }} }}\n'
        a, b = self.names
        return ("path: { existing: { ping: { interface: x0 }, pong: { interface: x0 } } }\n"
                f"ends: {{ ping: {{ place: {{ existing-netns: {a} }}, cpus: \"{CPUS[0]}\" }}, "
                f"pong: {{ place: {{ existing-netns: {b} }}, cpus: \"{CPUS[1]}\" }} }}\n")

    def close(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name])


def one_cpu():
    global COUNTED
    CPUS[:], COUNTED = [0, 0], True


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cyclone_xml(path):
    peers = '<Discovery><ParticipantIndex>auto</ParticipantIndex><Peers><Peer address="localhost"/></Peers></Discovery>'
    lo = path.kind == "lo"
    size = "<MaxMessageSize>65500B</MaxMessageSize>" if lo else ""
    multicast = "<AllowMulticast>false</AllowMulticast>" if lo else ""
    return (f'<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="{path.interfaces[0]}"/></Interfaces>'
            f'{multicast}{size}</General>{peers if lo else ""}</Domain></CycloneDDS>')


class Ours:
    """Runs the release binary, and reads its raw round trips by DuckDB."""

    def __init__(self, binary, python, work):
        self.binary, self.python, self.work, self.n = binary, python, work, 0

    def run(self, path, driver, receive, payload, seconds, each_second):
        self.n += 1
        study, record = self.work / f"s{self.n}.yaml", self.work / f"r{self.n}"
        study.write_text(f"study: peer\nquestion: q\nrate: max\npayload: {payload} B\ndriver: {driver}\nattribution: off\n"
                         f"measure: {{ ping-pong: {{ duration: {seconds} s, warm_up: 200, timeout: 1 s, receive: {receive} }} }}\n" + path.study())
        done = subprocess.run([self.binary, "run", study, "--out", record, "--quiet"], capture_output=True, text=True,
                              env={**os.environ, "TAILBOUND_STATE_DIR": str(self.work / "state")})
        if done.returncode:
            sys.exit(f"tailbound failed ({done.returncode}): {done.stderr}")
        rows = f"read_parquet('{record}/samples/0/ping-0.parquet') WHERE NOT warm_up AND outcome = 'answered'"
        if each_second:
            query = (f"SELECT quantile_disc(x, 0.5), quantile_disc(x, 0.99) FROM (SELECT receive_ns - send_begin_ns AS x, "
                     f"(send_begin_ns - min(send_begin_ns) OVER ()) // 1000000000 AS s, row_number() OVER "
                     f"(PARTITION BY (send_begin_ns - first) // 1000000000 ORDER BY seq) AS n FROM (SELECT *, min(send_begin_ns) OVER () AS first FROM {rows})) "
                     f"WHERE n <= 20000 AND s >= 1 AND s < {seconds} GROUP BY s")
        else:
            query = f"SELECT quantile_disc(receive_ns - send_begin_ns, 0.5), quantile_disc(receive_ns - send_begin_ns, 0.99) FROM {rows}"
        code = "import duckdb,sys,json\nprint(json.dumps(duckdb.connect().execute(sys.argv[1]).fetchall()))"
        out = subprocess.run([self.python, "-c", code, query], stdout=subprocess.PIPE, text=True, check=True).stdout
        seconds_ = json.loads(out)
        shutil.rmtree(record)
        return [statistics.median(column) / 1000 for column in zip(*seconds_)]


def ddsperf(binary, path, size, seconds, xml):
    env = {**os.environ, "CYCLONEDDS_URI": xml}
    domain = "78"
    length = 3.2 if COUNTED else seconds + 1   # it prints once a second, and the first second is left out
    start = lambda end, *mode: subprocess.Popen([*path.enter(end), binary, "-i", domain, "-D", str(length), *mode],
                                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    pong = start(1, "pong")
    time.sleep(0.3)
    ping = start(0, "ping", "size", str(size))
    text = ping.communicate(timeout=seconds + 20)[0]
    pong.communicate(timeout=seconds + 20)
    unit = {"ns": 1e-3, "us": 1.0, "ms": 1e3}
    lines = []
    for line in text.splitlines():
        found = {k: float(v) * unit[u] for k, v, u in re.findall(r"(mean|min|50%|90%|99%|max) ([\d.]+)(ns|us|ms)", line)}
        if "50%" in found and "99%" in found:
            lines.append((2 * found["50%"], 2 * found["99%"]))
    if len(lines) < 2:
        sys.exit(f"ddsperf printed no round trips:\n{text}")
    return [statistics.median(column) for column in zip(*lines[1:])]


def sockperf(binary, path, size, seconds, spin, work):
    extra = ["--nonblocked"] if spin else []
    log = work / "sockperf.csv"
    address = path.addresses[1]
    server = subprocess.Popen([*path.enter(1), binary, "server", "-i", address, "-p", "17171", *extra],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    try:
        client = subprocess.run([*path.enter(0), binary, "ping-pong", "-i", address, "-p", "17171", "-m", str(size), "-t", str(math.ceil(seconds)),
                                 "--full-rtt", "--full-log", str(log), *extra], capture_output=True, text=True, timeout=seconds + 20)
    finally:
        stop(server)
    trips = []
    for line in log.read_text().splitlines():
        m = re.match(r"\d+, [\d.]+, [\d.]+, ([\d.]+)$", line)   # packet, sent, received, round trip in us
        if m:
            trips.append(float(m[1]))
    if len(trips) < 1000:
        sys.exit(f"sockperf logged {len(trips)} round trips: {client.stdout}{client.stderr}")
    trips.sort()
    return [trips[math.ceil(q * len(trips)) - 1] for q in (0.5, 0.99)]


def plain_fastdds(binary, path, size, seconds, work):
    log = work / "fastdds.txt"
    own, peer = path.addresses
    pong = subprocess.Popen([*path.enter(1), binary, "pong", peer, own, str(seconds)])
    done = subprocess.run([*path.enter(0), binary, "ping", own, peer, str(seconds), str(size), str(log)], timeout=seconds + 30)
    pong.wait(seconds + 30)
    trips = sorted(map(float, log.read_text().split()))
    if done.returncode or len(trips) < 1000:
        sys.exit(f"the plain Fast DDS ping-pong made {len(trips)} round trips")
    return [trips[math.ceil(q * len(trips)) - 1] for q in (0.5, 0.99)]


def verdict(ratios, half_limit):
    logs = [math.log(r) for r in ratios]
    mean, n = statistics.mean(logs), len(logs)
    if n < 3:
        return math.exp(mean), None, None, "too few pairs to judge"
    half = T975[min(n - 1, len(T975) - 1)] * statistics.stdev(logs) / math.sqrt(n)
    low, high = math.exp(mean - half), math.exp(mean + half)
    if low > 1:
        word = "slower" if (math.exp(half) - 1) <= half_limit else "slower, wide"
    elif (math.exp(half) - 1) > half_limit:
        word = "undecided"
    else:
        word = "met"
    return math.exp(mean), low, high, word


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--binary", default=str(TOP / "target/release/tailbound"))
    ap.add_argument("--ddsperf", default=str(TOP / "target/bench/ddsperf/bin/ddsperf"), help="built from the bundled source")
    ap.add_argument("--fastdds", default=str(TOP / "target/bench/fastdds-pingpong"), help="bench/fastdds/pingpong.cpp, compiled")
    ap.add_argument("--debian-ddsperf", default=shutil.which("ddsperf"))
    ap.add_argument("--sockperf", default=shutil.which("sockperf"))
    ap.add_argument("--python", default=str(TOP / "target/venv/bin/python"), help="with the package duckdb")
    ap.add_argument("--counted", action="store_true", help="for bench/counted: one CPU, short runs")
    ap.add_argument("--pairs", type=int, default=10)
    ap.add_argument("--seconds", type=float, default=3)
    ap.add_argument("--paths", default="lo,veth")
    ap.add_argument("--sizes", default="16,1024,60000")
    ap.add_argument("--peers", default="ddsperf,debian,sockperf,sockperf-spin,fastdds")
    args = ap.parse_args()
    work = Path(tempfile.mkdtemp(prefix="tailbound-bench-"))
    ours = Ours(args.binary, args.python, work)
    if args.counted:
        one_cpu()
    peers = args.peers.split(",")
    print(f"{'path':5} {'bytes':>6} {'peer':14} {'quantile':8} {'ours us':>9} {'peer us':>9} {'ratio':>6} {'95 %':>15}  verdict")
    for kind in args.paths.split(","):
        path = Path_(kind)
        xml = cyclone_xml(path)
        config = work / "cyclone.xml"
        config.write_text(xml)
        try:
            for size in map(int, args.sizes.split(",")):
                def cyclone():
                    return ours.run(path, f"{{ cyclonedds: {{ config: {config} }} }}", "listener", max(size - 12, 0), args.seconds, not args.counted)
                def udp(mode):
                    return ours.run(path, "udp", mode, max(size - 8, 0), args.seconds, False)
                groups = []
                dds = [p for p in ("ddsperf", "debian") if p in peers]
                if dds:
                    binary = {"ddsperf": args.ddsperf, "debian": args.debian_ddsperf}
                    groups.append((cyclone, {p: (lambda p=p: ddsperf(binary[p], path, size, args.seconds, xml)) for p in dds}))
                if "sockperf" in peers and size >= 16:
                    groups.append((lambda: udp("block"), {"sockperf": lambda: sockperf(args.sockperf, path, size, args.seconds, False, work)}))
                if "sockperf-spin" in peers and size >= 16:
                    groups.append((lambda: udp("spin"), {"sockperf-spin": lambda: sockperf(args.sockperf, path, size, args.seconds, True, work)}))
                if "fastdds" in peers:
                    groups.append((lambda: ours.run(path, "{ fastdds: { transport: udp } }", "listener", size, args.seconds, False),
                                   {"fastdds": lambda: plain_fastdds(args.fastdds, path, size, args.seconds, work)}))
                for mine, theirs in groups:
                    results = {name: [] for name in theirs}
                    for pair in range(args.pairs):
                        order = ["ours", *theirs]
                        order = order if pair % 2 == 0 else order[::-1]
                        got = {name: (mine() if name == "ours" else theirs[name]()) for name in order}
                        for name in theirs:
                            results[name].append((got["ours"], got[name]))
                    for name, pairs in results.items():
                        for index, (q, limit) in enumerate([("p50", 0.03), ("p99", 0.15)]):
                            ratio, low, high, word = verdict([a[index] / b[index] for a, b in pairs], limit)
                            a, b = (statistics.median(p[side][index] for p in pairs) for side in (0, 1))
                            span = f"{low:.3f} to {high:.3f}" if low else "-"
                            print(f"{kind:5} {size:6} {name:14} {q:8} {a:9.1f} {b:9.1f} {ratio:6.3f} {span:>15}  {word}", flush=True)
        finally:
            path.close()
    shutil.rmtree(work)


if __name__ == "__main__":
    main()

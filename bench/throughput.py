#!/usr/bin/env python3
"""Checks that flows are no slower than peers: Tailbound's drivers against ddsperf, a plain Fast DDS program, iperf3 and sockperf.

Short rounds in turn (ABBA), publisher on CPU 0 and subscriber on CPU 1, in network namespaces of their own: `lo` is the
loopback of one, `veth` joins two. Each round gives samples received a second and the CPU time that each process spent
for a sample, all its threads, by the same clock of the kernel, between two moments while both ends run.
- ddsperf, built from the source that is linked in: the same Cyclone configuration, reliable, keep-all, batching, delivery
  to a listener. Its KeyedSeq has 12 octets before its own, Tailbound's sample too (8 + 4, against 4 + 4 + 4), so it is
  given the payload and 12; what both put on the wire is captured first, and must be equal.
- fastdds/flow.cpp, a plain program over Fast DDS: the same transport, reliable, keep-all, the same limit of unacknowledged
  samples, the same CDR.
- iperf3 -u -b 0 and sockperf throughput: the same datagrams (payload and 8), the same socket buffers, blocking. Their
  datagrams are those that the kernel of the namespace counts, so `received` is what the program has read.
Of each pair the ratio; told is their median, with the interval of the sign test. `cost` is at most 1 where Tailbound is
no slower: peer / ours of a rate, ours / peer of CPU time. no slower: the interval lies below 1, or contains it and is at
most 3 % wide to each side. slower: it lies above. Otherwise undecided.
"""
import argparse, json, math, statistics, subprocess, sys, tempfile
from pathlib import Path

from flow_rounds import BUFFER, FIGURES, UNACKED, Failed, Ours, Space, ddsperf, iperf3, plain_fastdds, sockperf
import peers as round_trips
from peers import TOP, cyclone_xml


def interval(ratios):
    """Returns the median, its interval by the sign test, and the share of such intervals that contain the true median."""
    ratios, n = sorted(ratios), len(ratios)
    tail = lambda k: sum(math.comb(n, i) for i in range(k)) / 2**n   # fewer than k of n below the median
    k = max([k for k in range(1, n // 2 + 1) if tail(k) <= 0.025], default=1)
    return statistics.median(ratios), ratios[k - 1], ratios[n - k], 1 - 2 * tail(k)


def verdict(low, high, n):
    if n < 5:
        return "too few pairs"
    if low > 1:
        return "slower"
    return "no slower" if high <= 1 or math.sqrt(high / low) <= 1.03 else "undecided"


def captured(path, run, seconds):
    here = Path(__file__).resolve().parent / "rtps_sizes.py"
    capture = subprocess.Popen([*path.inside(0), sys.executable, here, path.interfaces[0], str(seconds)],
                               stdout=subprocess.PIPE, text=True)
    run()
    return json.loads(capture.communicate(timeout=60)[0])


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--binary", default=str(TOP / "target/release/tailbound"))
    ap.add_argument("--ddsperf", default=str(TOP / "target/bench/ddsperf/bin/ddsperf"), help="built from the bundled source")
    ap.add_argument("--fastdds", default=str(TOP / "target/bench/fastdds-flow"), help="bench/fastdds/flow.cpp, compiled")
    ap.add_argument("--counted", action="store_true", help="for bench/counted: one CPU, short rounds")
    ap.add_argument("--pairs", type=int, default=10)
    ap.add_argument("--seconds", type=float, default=2)
    ap.add_argument("--paths", default="lo,veth")
    ap.add_argument("--sizes", default="64,1024,63000")
    ap.add_argument("--peers", default="ddsperf,fastdds,fastdds-shm,iperf3,sockperf")
    args = ap.parse_args()
    if args.counted:
        round_trips.one_cpu()
    seconds, work = args.seconds, Path(tempfile.mkdtemp(prefix="tailbound-bench-"))
    ours = Ours(args.binary, work)
    reliable = "qos: { reliability: { reliable: { max_blocking_time: 10 s } }, history: keep-all }\n"
    print(f"{'path':5} {'bytes':>6} {'peer':12} {'figure':15} {'ours':>11} {'peer':>11} {'cost':>6} {'interval':>22}  verdict")
    for kind in args.paths.split(","):
        path = Space(kind)
        xml = cyclone_xml(path)
        (work / "cyclone.xml").write_text(xml)
        try:
            for size in map(int, args.sizes.split(",")):
                def pair(peer):
                    """The functions that run one round of Tailbound, and one round of the peer."""
                    if peer == "ddsperf":
                        driver = f"{{ cyclonedds: {{ config: {work}/cyclone.xml }} }}"
                        return (lambda s: ours.run(path, driver, size, s, "batching: on", reliable),
                                lambda s: ddsperf(args.ddsperf, path, size + 12, s, xml))
                    if peer.startswith("fastdds"):
                        transport = "shm" if peer.endswith("shm") else "udp"
                        driver = f"{{ fastdds: {{ transport: {transport}, unacked_limit: {UNACKED} }} }}"
                        return (lambda s: ours.run(path, driver, size, s, "receive: listener", reliable),
                                lambda s: plain_fastdds(args.fastdds, path, transport, size, s))
                    driver = f"{{ udp: {{ rcvbuf: {BUFFER}, sndbuf: {BUFFER} }} }}"
                    tool = {"iperf3": iperf3, "sockperf": sockperf}[peer]
                    return (lambda s: ours.run(path, driver, size, s, "receive: block"), lambda s: tool(peer, path, size + 8, s))

                for peer in args.peers.split(","):
                    if peer == "fastdds-shm" and kind != "lo":
                        continue  # to Fast DDS, two network namespaces are two hosts
                    mine, theirs = pair(peer)
                    if peer == "ddsperf":
                        wire = [captured(path, lambda: run(min(seconds, 1)), 5) for run in (mine, theirs)]
                        print(f"{kind:5} {size:6} {peer:12} on the wire: ours {wire[0]}, peer {wire[1]}", flush=True)
                        if any(wire[0][k] != wire[1][k] or not wire[0][k] for k in ("serialised", "submessage")):
                            sys.exit("the two programs send data of different sizes")
                    results, failed = [], 0
                    while len(results) < args.pairs:
                        order = [mine, theirs] if len(results) % 2 == 0 else [theirs, mine]
                        try:
                            got = [run(seconds) for run in order]
                        except Failed as why:   # on a busy machine an end may not run for the whole of a round
                            print(f"{kind:5} {size:6} {peer:12} a pair is left out: {why}", flush=True)
                            failed += 1
                            if failed == 3:
                                sys.exit("three pairs failed")
                            continue
                        results.append(got if order[0] is mine else got[::-1])
                    for figure in FIGURES:
                        if figure == "sent/s" and peer in ("ddsperf", "fastdds", "fastdds-shm"):
                            continue  # reliable: equal to the received samples
                        costs = [b[figure] / a[figure] if figure.endswith("/s") else a[figure] / b[figure] for a, b in results]
                        a, b = (statistics.median(r[side][figure] for r in results) for side in (0, 1))
                        median, low, high, sure = interval(costs)
                        span = f"{low:.3f} to {high:.3f} ({100 * sure:.0f} %)"
                        print(f"{kind:5} {size:6} {peer:12} {figure:15} {a:11,.0f} {b:11,.0f} {median:6.3f} {span:>22}  "
                              f"{verdict(low, high, len(costs))}", flush=True)
        finally:
            path.close()
    subprocess.run(["rm", "-r", work], check=True)


if __name__ == "__main__":
    main()

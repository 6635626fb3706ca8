#!/usr/bin/env python3
"""Measures how the cost of a run grows with its number of pods: API requests, CPU time of the controller, bytes, times.

    TAILBOUND_CLUSTER=7 TAILBOUND_CLUSTER_AUDIT=1 dev/cluster up      (and: dev/cluster load IMAGE)
    TAILBOUND_CLUSTER=7 bench/scale.py TAILBOUND [PODS]...            the default is 10 20 50

One pod has the publisher, and every other pod a subscriber. Requests are counted in the audit log of the API server by the
user agent of Tailbound; a straight line is fitted to the counts. The CPU time of the controller comes from the record: it
includes the processes that carry the streams, while the ends measure. Bytes are counted at the host's interface to the
cluster, which carries nothing else.
"""
import collections, json, os, pathlib, subprocess, sys, tempfile, time

NUMBER = os.environ.get("TAILBOUND_CLUSTER", "")
STATE = pathlib.Path(f"/run/tailbound-cluster{NUMBER}")
LINK = pathlib.Path(f"/sys/class/net/tailbound-k8s{NUMBER}/statistics")
STUDY = """\
study: scale
question: What does a run of many pods cost?
measure: {{ throughput: {{ duration: 10 s, subscribers: {subscribers}, spread: pods }} }}
rate: 20 Hz
payload: 64 B
driver: {driver}
quiet: off
place: {{ pod: {{ node: spread, cpus: 0, memory: 96 MiB, pull: never }} }}
"""


def octets():
    return {way: int((LINK / f"{way}_bytes").read_text()) for way in ("rx", "tx")}


def requests(since):
    """Counts Tailbound's requests by verb and resource, after the given position in bytes in the audit log."""
    counted = collections.Counter()
    with open(STATE / "audit.log", "rb") as log:
        log.seek(since)
        asked = {}
        for line in log:
            event = json.loads(line)
            agent = event.get("userAgent", "")
            if agent.startswith(("kubectl", "kube-", "kubelet", "flanneld")) or "controller" in agent:
                continue
            if event["user"]["username"].startswith("system:"):
                continue
            of = event.get("objectRef", {})
            what = "/".join(filter(None, [of.get("resource"), of.get("subresource")])) or event["requestURI"]
            asked[event["auditID"]] = f"{event['verb']} {what}"
    counted.update(asked.values())
    return counted


def once(program, pods, driver, directory):
    study, record = directory / "study.yaml", directory / "record"
    study.write_text(STUDY.format(subscribers=pods - 1, driver=driver))
    log, carried, began = (STATE / "audit.log").stat().st_size, octets(), time.monotonic_ns()
    environment = {**os.environ, "KUBECONFIG": str(STATE / "kubeconfig")}
    run = subprocess.run([program, "run", study, "--out", record, "--quiet"], env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench/scale.py: {pods} pods: exit {run.returncode}\n{run.stdout}{run.stderr}")
    ended = time.monotonic_ns()
    time.sleep(2)  # The log of the last requests.
    manifest = json.loads((record / "manifest.json").read_text())
    trial = manifest["trials"][0]
    first = min(end["flow"]["parts"][0]["first_ns"] for name, end in trial["ends"].items() if name.startswith("ping"))
    received = [sum(p["messages"] for p in end["flow"]["parts"]) for name, end in trial["ends"].items() if name.startswith("pong")]
    sent = sum(p["messages"] for p in trial["ends"]["ping"]["flow"]["parts"])
    controller = trial["controller"]
    return {
        "pods": pods,
        "status": trial["status"],
        "requests": requests(log),
        "first_s": (first - began) / 1e9,
        "whole_s": (ended - began) / 1e9,
        "controller_percent": 100 * controller["cpu_ns"] / controller["span_ns"],
        "control_octets_silent": sum(end["control_octets"] for end in trial["ends"].values()),
        "octets": {way: octets()[way] - carried[way] for way in carried},
        "lost": sent * len(received) - sum(received),
        "record_octets": sum(f.stat().st_size for f in record.rglob("*") if f.is_file()),
    }


def fitted(points):
    """Fits y = a + b x by least squares and returns (a, b)."""
    n, mx, my = len(points), sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    slope = sum((x - mx) * (y - my) for x, y in points) / max(sum((x - mx) ** 2 for x, _ in points), 1e-9)
    return my - slope * mx, slope


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    driver = os.environ.get("DRIVER", "udp")
    numbers = [int(n) for n in sys.argv[2:]] or [10, 20, 50]
    rows = []
    for pods in numbers:
        with tempfile.TemporaryDirectory() as directory:
            row = once(program, pods, driver, pathlib.Path(directory))
        rows.append(row)
        total = sum(row["requests"].values())
        print(
            f"{pods} pods, {driver}: {row['status']}, lost {row['lost']}; {total} requests; first message after {row['first_s']:.1f} s, "
            f"finished after {row['whole_s']:.1f} s; controller {row['controller_percent']:.2f} % of a CPU; control bytes while measuring "
            f"{row['control_octets_silent']}; interface {row['octets']['tx']} B out, {row['octets']['rx']} B in; record {row['record_octets']} B"
        )
        for what, times in sorted(row["requests"].items()):
            print(f"    {times:5} {what}")
    if len(rows) > 1:
        a, b = fitted([(r["pods"], sum(r["requests"].values())) for r in rows])
        print(f"requests = {a:.1f} + {b:.2f} x pods")


main()

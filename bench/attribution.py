#!/usr/bin/env python3
"""Measures what each level of `attribution` costs: the same study with each level, in rounds, against `attribution: off`.

Levels: `off`; `threads` (perf events); `machine` by perf events (the binary alone, without the tracer); `machine` and `packets`
by BPF (with the tracer, dev/tracer). A round runs every level once, in an order that rotates. The 95 % intervals are Student's over rounds:
on the logarithms of the ratios, and on the differences in ns.
"""
import argparse, json, os, shutil, statistics, subprocess, tempfile
from pathlib import Path
from peers import T975, TOP, verdict

STUDY = """
study: attribution
question: What does it cost to record events of the kernel?
measure: {{ ping-pong: {{ duration: {seconds} s }} }}
rate: {rate}
driver: {driver}
path: loopback
place: process
report: {{ quantiles: [0.5, 0.99, 0.999] }}
"""
TRACER = "libtailbound_tracer.so"
LEVELS = {"off": ("off", False), "threads": ("threads", False), "machine by perf": ("machine", False), "machine by bpf": ("machine", True),
          "packets by bpf": ("packets", True)}


def run(work, number, name):
    level, traced = LEVELS[name]
    record = work / f"{number}-{name.replace(' ', '-')}"
    binary = work / ("traced" if traced else "alone") / "tailbound"
    environment = {**os.environ, "TAILBOUND_STATE_DIR": str(work / "state")}
    subprocess.run([binary, "run", work / "study.yaml", "--out", record, "--quiet", "--set", f"attribution={level}"],
                   check=True, env=environment, stdout=subprocess.DEVNULL)
    wanted = name.split(" by ")[1] if " by " in name else "perf"
    for file in (record / "switches").glob("*.json") if level != "off" else []:
        recorder = json.loads(file.read_text()).get("recorder") or {}
        if (recorder.get("level"), recorder.get("by")) != (level, wanted):
            raise SystemExit(f"{name}: not recorded so: {recorder}")
    out = subprocess.run([binary, "report", record, "--format", "json"], check=True, capture_output=True).stdout
    quantiles = json.loads(out)["conditions"][0]["round_trip"]["quantiles"]
    shutil.rmtree(record)
    return {q["q"]: q["value_ns"] for q in quantiles if q.get("value_ns")}


def difference(values):
    """Mean of differences in ns, with half of its 95 % interval."""
    mean, n = statistics.mean(values), len(values)
    half = T975[min(n - 1, len(T975) - 1)] * statistics.stdev(values) / n ** 0.5 if n >= 3 else None
    return f"{mean:+.0f} ns" + (f" ({mean - half:+.0f} to {mean + half:+.0f})" if half else "")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    arguments.add_argument("--tracer", type=Path, default=TOP / "target/lib/tailbound/drivers" / TRACER)
    arguments.add_argument("--pairs", type=int, default=10, help="number of rounds")
    arguments.add_argument("--seconds", type=int, default=4)
    arguments.add_argument("--drivers", default="udp,cyclonedds")
    arguments.add_argument("--rates", default="1 kHz,max")
    given = arguments.parse_args()
    names = [name for name, (_, traced) in LEVELS.items() if not traced or given.tracer.exists()]
    if len(names) < len(LEVELS):
        print("machine by bpf: skipped: the tracer is not built (dev/tracer)")
    for driver in given.drivers.split(","):
        for rate in given.rates.split(","):
            with tempfile.TemporaryDirectory() as work:
                work = Path(work)
                for place in ("alone", "traced"):
                    (work / place).mkdir()
                    shutil.copy(given.binary.resolve(), work / place / "tailbound")
                if given.tracer.exists():
                    shutil.copy(given.tracer, work / "traced" / TRACER)
                (work / "study.yaml").write_text(STUDY.format(seconds=given.seconds, rate=rate, driver=driver))
                rounds = []
                for number in range(given.pairs):
                    turn = number % len(names)
                    order = names[turn:] + names[:turn]
                    rounds.append({name: run(work, number, name) for name in (order if number % 2 == 0 else order[::-1])})
                base = statistics.median(seen["off"][0.5] for seen in rounds)
                print(f"{driver} {rate}: {base:.0f} ns without recording (median of medians)")
                for name in names[1:]:
                    for q in sorted(set.intersection(*(set(seen[n]) for seen in rounds for n in ("off", name)))):
                        ratio, low, high, word = verdict([seen[name][q] / seen["off"][q] for seen in rounds], 0.03 if q == 0.5 else 0.15)
                        interval = f" ({low:.3f} to {high:.3f})" if low else ""
                        delta = difference([seen[name][q] - seen["off"][q] for seen in rounds])
                        print(f"  {name:15} q {q}: {delta}, ratio to off {ratio:.3f}{interval}: {word}")


main()

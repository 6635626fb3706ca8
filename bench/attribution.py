#!/usr/bin/env python3
"""Measures the cost of watching context switches: the same study with `attribution: on` and `off`, in pairs (ABBA).

The 95 % interval of the ratio is Student's interval on the logarithms over pairs.
"""
import argparse, json, os, subprocess, tempfile
from pathlib import Path
from peers import TOP, verdict

STUDY = """
study: attribution
question: What does it cost to watch context switches?
measure: {{ ping-pong: {{ duration: {seconds} s }} }}
rate: {rate}
driver: {driver}
path: loopback
place: process
report: {{ quantiles: [0.5, 0.99, 0.999] }}
"""


def run(binary, work, number, word):
    record = work / f"{number}-{word}"
    environment = {**os.environ, "TAILBOUND_STATE_DIR": str(work / "state")}
    subprocess.run([binary, "run", work / "study.yaml", "--out", record, "--quiet", "--set", f"attribution={word}"],
                   check=True, env=environment, stdout=subprocess.DEVNULL)
    out = subprocess.run([binary, "report", record, "--format", "json"], check=True, capture_output=True).stdout
    quantiles = json.loads(out)["conditions"][0]["round_trip"]["quantiles"]
    return {q["q"]: q["value_ns"] for q in quantiles if q.get("value_ns")}


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--binary", type=Path, default=TOP / "target/release/tailbound")
    arguments.add_argument("--pairs", type=int, default=10)
    arguments.add_argument("--seconds", type=int, default=4)
    arguments.add_argument("--drivers", default="udp,cyclonedds")
    arguments.add_argument("--rates", default="1 kHz,max")
    given = arguments.parse_args()
    for driver in given.drivers.split(","):
        for rate in given.rates.split(","):
            with tempfile.TemporaryDirectory() as work:
                work = Path(work)
                (work / "study.yaml").write_text(STUDY.format(seconds=given.seconds, rate=rate, driver=driver))
                ratios = {}
                for pair in range(given.pairs):
                    order = ["on", "off"] if pair % 2 == 0 else ["off", "on"]
                    seen = {word: run(given.binary.resolve(), work, pair, word) for word in order}
                    for q in seen["on"].keys() & seen["off"].keys():
                        ratios.setdefault(q, []).append(seen["on"][q] / seen["off"][q])
                for q, values in sorted(ratios.items()):
                    ratio, low, high, word = verdict(values, 0.03 if q == 0.5 else 0.15)
                    interval = f" ({low:.3f} to {high:.3f})" if low else ""
                    print(f"{driver} {rate} q {q}: on / off {ratio:.3f}{interval}: {word}")


main()

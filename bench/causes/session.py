"""One run of Tailbound, with the faults of the plan planted into it."""
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from . import network, target
from .actions import Actions
from .kinds import BRIDGE, HELD, KINDS, ON_ONE_CPU, REAL_TIME, SHARE, STEERED, SWITCH
from .stage import start_plant

TIMEOUT_S = 3
CPUS = {"ping": 0, "pong": 1}
# Time before and after a decoy in which its program may have a CPU.
MARGIN_NS = 200_000
# `held.h`: 128 orders of five numbers.
ORDERS_BYTES = 128 * 40

STUDY = """\
study: latency
question: When is a message late?
measure: {{ ping-pong: {{ duration: {seconds} s, warm_up: 1 s, timeout: {timeout} s, receive: block }} }}
rate: {rate} Hz
driver: {driver}
{qos}path: {path}
place: {place}
ends: {{ ping: {{ cpus: "{ping}" }}, pong: {{ cpus: "{pong}" }} }}
{scheduling}attribution: {attribution}
quiet: off
"""
PATHS = {BRIDGE: ("bridge", "netns"), SWITCH: ("open-vswitch", "netns")}


@dataclass
class Planted:
    """A planned item with the times at which it really happened, from the log of the helper program."""
    item: object
    run: int
    begin: int
    end: int
    name: str = ""
    log: dict = field(default_factory=dict)
    error: str = ""
    cpu: int | None = None


@dataclass
class Outcome:
    planted: list
    record: Path
    report: dict
    status: int
    notes: list


def study(run, seconds, attribution, rate_hz):
    path, place = PATHS.get(run.layout, ("loopback", "process"))
    reliable = "" if run.driver in ("udp", HELD) else "qos: { reliability: reliable, history: keep-all }\n"
    # Planted programs with a real-time priority have at least 20.
    priority = 50 if run.layout == REAL_TIME else 10 if run.priority == REAL_TIME else None
    fifo = f"scheduling: {{ policy: fifo, priority: {priority} }}\n" if priority else ""
    return STUDY.format(seconds=seconds, timeout=TIMEOUT_S, rate=rate_hz, driver=run.driver, qos=reliable, path=path, place=place,
                        ping=0, pong=0 if run.layout in ON_ONE_CPU else 1, scheduling=fifo, attribution=attribution)


class Session:
    def __init__(self, stage, run, number, attribution="on", settings=()):
        self.stage, self.run, self.number, self.attribution, self.settings = stage, run, number, attribution, settings
        self.folder = Path(tempfile.mkdtemp(prefix=f"run-{number}-", dir=stage.folder))
        self.record = self.folder / "record"
        self.helpers, self.tcs, self.notes, self.controller, self.steered = {}, {}, [], None, None
        self.errors = open(self.folder / "stderr", "w+")

    def kinds(self):
        return {item.kind for item in self.run.items}

    def before_exec(self):
        """Runs in the child before Tailbound starts: its user."""
        if self.stage.user is not None:
            os.setgroups([])
            os.setgid(self.stage.user)
            os.setuid(self.stage.user)

    def start(self, pids):
        """Starts Tailbound and waits until its messages flow. `pids` gets the process ids of the ends."""
        seconds = int(self.run.length_ns / 1e9) + 2
        if self.run.layout == STEERED:
            self.steered = network.steer("2")
        (self.folder / "latency.yaml").write_text(study(self.run, seconds, self.attribution, self.stage.rate_hz))
        if self.stage.user is not None:
            os.chown(self.folder, self.stage.user, self.stage.user)
        environment = {**os.environ, "TAILBOUND_STATE_DIR": str(self.folder / "state"), "HOME": str(self.folder),
                       "TAILBOUND_DRIVER_PATH": str(self.stage.program.parent)}
        self.controller = subprocess.Popen(
            [self.stage.program, "run", self.folder / "latency.yaml", "--out", self.record, "--quiet",
             *(word for setting in self.settings for word in ("--set", setting))], env=environment,
            stdout=subprocess.DEVNULL, stderr=self.errors, preexec_fn=self.before_exec)
        for place in self.places():
            self.helper(place)
        for end in CPUS:
            orders = self.stage.orders / f"tb-{end}"
            orders.write_bytes(bytes(ORDERS_BYTES))
            orders.chmod(0o666)
        for end in CPUS:
            find = lambda: target.find(self.controller.pid, f"tb-{end}")
            pids[end] = target.wait_for(find, 60, self.controller)
            group = self.stage.ends[end]
            if self.run.layout == REAL_TIME:
                group.real_time_limit()
            # Version 1 lets no real-time thread into a group without a limit, and the limits of both ends are too low for page faults.
            group.join(pids[end], "cpu" if self.run.priority == REAL_TIME and self.run.layout != REAL_TIME else None)
            if self.run.priority == SHARE:
                group.share("10240", "1000")
        if self.run.priority == REAL_TIME and self.run.layout == SWITCH:
            for thread in target.threads(target.switch(self.controller.pid)):
                os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(5))
        target.wait_for(lambda: target.is_sending(pids["ping"], self.stage.rate_hz), 60, self.controller)

    def helper(self, place):
        """The helper program at a place: `main`, `flood` (its own network namespace), or a group's name."""
        if place not in self.helpers:
            if place == "flood":
                self.helpers[place] = network.flood_namespace(self.stage.plant, self.folder)
            else:
                self.helpers[place] = start_plant(self.stage.plant, self.stage.group_of(place))
        return self.helpers[place]

    def places(self):
        """Places of the helpers that the run needs, so that none is started while messages are measured."""
        kinds, found = self.kinds(), {"main"}
        if kinds & {"softirq_flood", "flood_on_other_cpu", "slow_other_path", "dropping_other_path"}:
            found.add("flood")
        if kinds & {"cpu_quota", "rt_throttled"}:
            found |= set(self.stage.ends)
        if kinds & {"fair_hog", "fair_hog_on_other_cpu"}:
            found |= set(self.stage.hogs)
        return found | ({"other"} if "bystander_quota" in kinds else set())

    def tc(self, place, namespace):
        if place not in self.tcs:
            self.tcs[place] = network.Tc(namespace, self.folder, self.stage.own_machine)
        return self.tcs[place]

    def plant(self, pids):
        """Gives all commands to the helpers and waits for their logs."""
        actions = Actions(self, pids)
        phase = target.phase(pids["ping"], self.stage.period_ns)
        planned = [(item, actions.of(item)) for item in self.run.items]
        # Not before the warm-up of 1 s has ended; the messages have flowed for at least 0.2 s.
        start = time.monotonic_ns() + 900_000_000
        for item, parts in planned:
            begin = start + item.begin_ns
            if item.kind.endswith("_between") and phase is not None:
                begin += (phase + 700_000 - begin) % self.stage.period_ns
            for number, part in enumerate(parts):
                fields = [f"{item.id}.{number}", part.operation, begin + part.after, part.duration(item.size_ns), *part.arguments]
                self.helper(part.place).stdin.write("\t".join(map(str, fields)).replace("\n", "\\n") + "\n")
        for helper in self.helpers.values():
            helper.stdin.flush()
            helper.stdin.close()
        logs = {}
        for place, helper in self.helpers.items():
            helper.stdin = None
            out, error = helper.communicate(timeout=self.run.length_ns / 1e9 + 60)
            if error.strip():
                self.notes.append(f"{place}: {error.strip()}")
            for line in out.splitlines():
                name, begin, end, more = line.split("\t", 3)
                values = dict(word.split("=", 1) for word in more.split() if "=" in word)
                logs[name] = (int(begin), int(end), values, more.split("error=", 1)[1] if "error=" in more else "")
        return [self.merge(item, parts, logs, actions.cpus[item.end]) for item, parts in planned]

    def merge(self, item, parts, logs, cpu):
        """One planted fault from the logs of its parts: the part that does the harm gives the times."""
        found = [logs.get(f"{item.id}.{number}", (0, 0, {}, "no log")) for number in range(len(parts))]
        error = "; ".join(log[3] for log in found if log[3])
        times = [part.times(log) for part, log in zip(parts, found) if part.harms]
        begin, end = min(begin for begin, _ in times), max(end for _, end in times)
        values = {key: int(value) for log in found for key, value in log[2].items() if value.lstrip("-").isdigit()}
        kind = KINDS[item.kind]
        if kind.decoy and kind.named_by:
            # The program also needs the CPU when it begins and ends, which is longer than a short decoy itself.
            begin, end = begin - MARGIN_NS, end + MARGIN_NS
        name = next((part.arguments[0] for part in parts if part.operation == "hog" and kind.named_by), kind.program)
        return Planted(item, self.number, begin, end, name, values, error, cpu)

    def undo(self, pids):
        """Continues and frees everything, whatever the helpers have done."""
        ends = [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
        for pid in ends + [target.parent(pid) for pid in ends]:
            try:
                os.kill(pid, 18)
            except ProcessLookupError:
                pass
        if self.steered:
            network.steer(self.steered)
            self.steered = None
        for group in self.stage.ends.values():
            group.undo()

    def go(self):
        pids = {}
        try:
            self.start(pids)
            planted = self.plant(pids)
            # A process in a namespace would keep Tailbound from removing it.
            self.close_tcs()
            status = self.controller.wait(timeout=120)
        except BaseException as error:
            if self.controller:
                self.undo(pids)
                self.controller.terminate()
                self.controller.wait(timeout=60)
            self.errors.seek(0)
            if isinstance(error, RuntimeError):
                raise RuntimeError(f"{error}: {self.errors.read().strip()}") from error
            raise
        finally:
            self.undo(pids)
            for helper in self.helpers.values():
                if helper.poll() is None:
                    helper.kill()
                    helper.wait()
            self.close_tcs()
        out = subprocess.run([self.stage.program, "report", self.record, "--format", "json"], capture_output=True, text=True).stdout
        return Outcome(planted, self.record, json.loads(out), status, self.notes)

    def close_tcs(self):
        while self.tcs:
            if text := self.tcs.popitem()[1].close().strip():
                self.notes.append(text)

    def close(self, keep=None):
        """Removes the run's files; `keep`: a directory to which the record is moved."""
        self.errors.close()
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.move(self.record, keep / f"record-{self.number}")
        shutil.rmtree(self.folder, ignore_errors=True)

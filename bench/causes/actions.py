"""What the helper program must do for each kind: the parts of a fault, in the words of `plant.c`."""
import signal
from dataclasses import dataclass
from . import target
from .kinds import ON_ONE_CPU

STOP, CONT, CHLD = int(signal.SIGSTOP), int(signal.SIGCONT), int(signal.SIGCHLD)
# A limit of CPU time is noticed at the next tick of the scheduler, up to this much later.
TICK_NS = 5_000_000


@dataclass
class Part:
    """One command of a fault. `harms`: its times are the times of the fault. `gap`: the harm is the longest gap of the
    part, which is a hog that stands still when its group does. `after`, `longer`: begin and end, ns later than the fault's."""
    operation: str
    arguments: list
    place: str = "main"
    harms: bool = True
    gap: bool = False
    after: int = 0
    longer: int = 0

    def duration(self, size_ns):
        return max(0, size_ns - self.after + self.longer)

    def times(self, log):
        begin, end, values, _ = log
        return (int(values["gap_begin"]), int(values["gap_end"])) if self.gap and "gap_begin" in values else (begin, end)


class Actions:
    def __init__(self, session, pids):
        self.session, self.stage, self.pids = session, session.stage, pids
        self.supervisors = {end: target.parent(pid) for end, pid in pids.items()}
        self.spare = session.run.layout in ON_ONE_CPU
        self.cpus = {"ping": 0, "pong": 0 if self.spare else 1}
        self.bridge, self.orders = None, {}

    def of(self, item):
        return getattr(self, item.kind)(item, item.end, self.cpus[item.end])

    def name(self, word, item):
        return f"{word}-{item.id}"

    # Faults.

    def rt_hog(self, item, end, cpu):
        # In half of the cases the program ends with the fault.
        return [Part("hog", [self.name("ctl", item), "fifo", 20 + item.variant % 60, cpu, item.variant // 60 % 2])]

    def fair_hog(self, item, end, cpu):
        return [Part("hog", [self.name("job", item), "other", -20, cpu, item.variant % 2], place) for place in self.stage.hogs]

    def stopped(self, item, end, cpu):
        parts = [Part("signal", [self.pids[end], STOP, CONT])]
        # A stop of the whole agent also blinds its supervisor, which otherwise notices the stop.
        return parts + [Part("signal", [self.supervisors[end], STOP, CONT], harms=False)] * (item.variant % 3 == 0)

    def frozen(self, item, end, cpu):
        return [Part("write", list(self.stage.ends[end].freezer(item.variant % 2)))]

    def cpu_quota(self, item, end, cpu, group=None):
        group = group or end
        limit = self.stage.group_of(group).quota()
        # Linux 6.18 lets the program that has the CPU run on until its next tick or longer when a quota ends. On the CPU of the end,
        # the thread that lifts the quota displaces that program, and the scheduler chooses anew after it.
        return [Part("write", [*limit, cpu], harms=False, longer=TICK_NS),
                Part("hog", [self.name("use", item), "other", 19, cpu], group, gap=True, longer=TICK_NS)]

    def rt_throttled(self, item, end, cpu):
        file, few, enough = self.stage.ends[end].real_time_limit()
        # The kernel frees a throttled group at the end of a period, so that the fault lasts up to a period longer.
        return [Part("write", [file, few, enough], harms=False, longer=TICK_NS),
                Part("hog", [self.name("use", item), "fifo", 1, cpu], end, gap=True, longer=2 * TICK_NS)]

    def softirq_flood(self, item, end, cpu):
        frames = max(4, item.size_ns // self.stage.frame_ns)
        return [Part("flood", [f"s{cpu}", f"r{cpu}", frames, 1 - cpu], "flood")]

    def path_port(self, item):
        if not self.bridge:
            namespace, ports = target.bridge_ports(self.session.controller.pid, self.pids)
            tc = self.session.tc("bridge", namespace)
            for port in ports.values():
                tc.prepare(port)
            self.bridge = tc, ports
        return self.bridge[0], self.bridge[1][item.end]

    def slow_bridge(self, item, end, cpu):
        tc, port = self.path_port(item)
        # The bucket of the slow rate lets one more packet pass.
        return [Part("write", [tc.pipe, *tc.block(port, item.size_ns)], longer=2 * self.stage.period_ns)]

    def dropping_bridge(self, item, end, cpu):
        tc, port = self.path_port(item)
        return [Part("write", [tc.pipe, *tc.drop(port)])]

    def stopped_bridge(self, item, end, cpu):
        return [Part("signal", [target.switch(self.session.controller.pid), STOP, CONT])]

    def full_socket(self, item, end, cpu):
        fill = [Part("send", [address if address != "0.0.0.0" else "127.0.0.1", port, 1, 1500], harms=False, after=30_000)
                for address, port in target.udp_sockets(self.pids[end])]
        return [Part("signal", [self.pids[end], STOP, CONT])] + fill

    def agent_busy(self, item, end, cpu):
        supervisor = list(self.supervisors.values())[item.variant % 2]
        # It must send its signals although the compilers run. What an end waits for it is no harm of the fault.
        policy = ("fifo", 1) if self.stage.busy else ("idle", 0)
        return [Part("policy", [supervisor, 70]), Part("storm", [supervisor, CHLD, 0, *policy], harms=False)]

    def ordered(self, item, end, kind):
        number = self.orders[end] = self.orders.get(end, -1) + 1
        return [Part("order", [self.stage.orders / f"tb-{end}", number, kind])]

    def driver_sleep(self, item, end, cpu):
        return self.ordered(item, end, 1)

    def user_lock(self, item, end, cpu):
        return self.ordered(item, end, 2)

    def page_fault(self, item, end, cpu):
        return self.ordered(item, end, 3)

    def migration(self, item, end, cpu):
        """To a CPU that a real-time program keeps, which harms nobody before."""
        hog = Part("hog", [self.name("ctl", item), "fifo", 20 + item.variant % 60, 1], harms=False)
        return [self.migrated(item, end, cpu)[0], hog]

    def starved_receiver(self, item, end, cpu):
        return self.rt_hog(item, end, 1)

    # Decoys.

    def migrated(self, item, end, cpu):
        return [Part("move", [1 - cpu, cpu, ",".join(map(str, target.threads(self.pids[end])))])]

    def hog_on_other_cpu(self, item, end, cpu):
        return self.rt_hog(item, end, 1)

    def fair_hog_on_other_cpu(self, item, end, cpu):
        return self.fair_hog(item, end, 1)

    def flood_on_other_cpu(self, item, end, cpu):
        return [Part("flood", ["s1", "r1", max(4, item.size_ns // self.stage.frame_ns), 1], "flood")]

    def agent_busy_on_other_cpu(self, item, end, cpu):
        parts = self.agent_busy(item, end, cpu)
        parts[1].arguments[2] = 1
        return parts

    def idle_hog(self, item, end, cpu):
        return [Part("hog", [self.name("bg", item), "idle", 0, cpu])]

    def short_hog(self, item, end, cpu):
        return self.rt_hog(item, end, cpu)

    def hog_between(self, item, end, cpu):
        return self.rt_hog(item, end, cpu)

    def short_stop(self, item, end, cpu):
        return [Part("signal", [self.pids[end], STOP, CONT])]

    def stop_between(self, item, end, cpu):
        return self.short_stop(item, end, cpu)

    def freeze_between(self, item, end, cpu):
        return self.frozen(item, end, cpu)

    def supervisor_stopped(self, item, end, cpu):
        return [Part("signal", [self.supervisors[end], STOP, CONT])]

    def bystander_stopped(self, item, end, cpu):
        return [Part("signal", [self.stage.bystander.pid, STOP, CONT])]

    def bystander_frozen(self, item, end, cpu):
        return [Part("write", list(self.stage.bystanders.freezer(item.variant % 2)))]

    def bystander_quota(self, item, end, cpu):
        return self.cpu_quota(item, end, cpu, "other")

    def bystander_pages(self, item, end, cpu):
        return [Part("reclaim", [*self.stage.pages.reclaim()])]

    def other_path(self):
        helper = self.session.helper("flood")
        if "other" not in self.session.tcs:
            self.session.tc("other", f"/proc/{helper.pid}/ns/net").prepare("o0")
        return self.session.tc("other", "")

    def slow_other_path(self, item, end, cpu):
        tc = self.other_path()
        return [Part("write", [tc.pipe, *tc.block("o0", item.size_ns)])]

    def dropping_other_path(self, item, end, cpu):
        tc = self.other_path()
        return [Part("write", [tc.pipe, *tc.drop("o0")])]

    def full_other_socket(self, item, end, cpu):
        return [Part("send", ["127.0.0.1", self.stage.other_socket.getsockname()[1], 1, 1500])]

"""The kinds of faults and decoys: which cause words name them, where they can be planted, and how their harm is found."""
from dataclasses import dataclass

# The thread of the driver `held` that holds its lock.
KEEPER = "keeper"

# Layouts of a run: each is a study.
LOOPBACK, BRIDGE, SWITCH, REAL_TIME, SPARE, STEERED = "loopback", "bridge", "switch", "real-time", "spare", "steered"
# Both ends on CPU 0.
ON_ONE_CPU = (SPARE, STEERED)
SHARE = "share"
DRIVERS = ("udp", "cyclonedds", "fastdds")
HELD = "held"


@dataclass(frozen=True)
class Kind:
    """One kind of fault.

    causes: cause words of the report that name the fault; their times are added.
    named_by: whether the fault has a thread of its own whose name the report must give.
    program: name that the report must give, if it is the same for all faults of the kind.
    at_end: whether the fault belongs to one end, which the report must give.
    at_leg: whether the fault belongs to the leg towards its end, which must be the incident's leg.
    recovery: whether the harm lasts longer than the fault, until the incident has ended.
    guard_ms: shortest time from the end of the fault to the next fault.
    end: the end that the fault always harms; "" = either.
    priority: how the ends come before other programs with `--priority`: REAL_TIME (SCHED_FIFO) or, for kinds that do nothing to
        real-time threads, SHARE (ten times the usual share of CPU time for their control groups).
    losses: text in `losses[].reason` that names the fault if it lost messages and made none late; "" = the place is
        enough; None = the kind loses nothing.
    """
    name: str
    causes: tuple
    layouts: tuple = (LOOPBACK,)
    drivers: tuple = DRIVERS
    named_by: bool = False
    at_end: bool = True
    at_leg: bool = False
    recovery: bool = False
    guard_ms: int = 120
    longest_ms: float = 100.0
    priority: str = REAL_TIME
    losses: str | None = None
    decoy: bool = False
    end: str = ""
    program: str = ""


_KINDS = [
    Kind("rt_hog", ("waited_for_cpu",), (LOOPBACK, BRIDGE), named_by=True),
    Kind("fair_hog", ("waited_for_cpu",), (LOOPBACK, BRIDGE), named_by=True, priority=SHARE),
    Kind("stopped", ("stopped",)),
    Kind("frozen", ("frozen",)),
    Kind("cpu_quota", ("cpu_quota",), guard_ms=200, priority=SHARE),
    Kind("rt_throttled", ("rt_throttled",), (REAL_TIME,), guard_ms=200),
    # The kernel hands a long flood over to ksoftirqd: both words are true of parts of it.
    Kind("softirq_flood", ("softirq", "kernel_thread"), guard_ms=200),
    # The bucket holds a packet until the next packet comes, also after its rate was set back.
    Kind("slow_bridge", ("queue_discipline", "network"), (BRIDGE,), at_end=False, at_leg=True, recovery=True, guard_ms=200),
    Kind("dropping_bridge", ("retransmission", "network"), (BRIDGE,), at_end=False, at_leg=True, recovery=True,
         guard_ms=1500, losses=""),
    Kind("stopped_bridge", ("network", "hold_and_release"), (SWITCH,), at_end=False, guard_ms=200),
    # The messages that were queued before the buffer was full are late because the receiver was stopped, and then because it reads
    # the other datagrams.
    Kind("full_socket", ("stopped", "socket_queue"), drivers=("udp",), losses="buffer", recovery=True, guard_ms=200,
         end="pong"),
    # Without a spare CPU, the supervisors share the last CPU, which is the pong's.
    Kind("agent_busy", ("instrument",), end="pong"),
    # A driver of the benchmark: its send call uses memory whose pages are on a disk, another thread holds a lock that it needs, or
    # it sleeps.
    Kind("page_fault", ("page_fault",), drivers=(HELD,)),
    Kind("user_lock", ("user_lock",), drivers=(HELD,), program=KEEPER),
    Kind("driver_sleep", ("driver_call",), drivers=(HELD,)),
    # An end is moved to a CPU that another program keeps.
    Kind("migration", ("waited_for_cpu",), (SPARE,), named_by=True),
    # A program keeps the CPU on which ksoftirqd receives the packets of both directions.
    Kind("starved_receiver", ("kernel_thread",), (STEERED,), named_by=True, at_end=False),
]

# Decoys: what happens is the same, but at a place, for a time or at a moment where it does no harm.
_DECOYS = [
    Kind("hog_on_other_cpu", ("waited_for_cpu",), (SPARE,), named_by=True, decoy=True),
    Kind("fair_hog_on_other_cpu", ("waited_for_cpu",), (SPARE,), named_by=True, decoy=True),
    Kind("flood_on_other_cpu", ("softirq", "kernel_thread"), (SPARE,), decoy=True, guard_ms=200),
    Kind("agent_busy_on_other_cpu", ("instrument",), (SPARE,), decoy=True),
    Kind("migrated", ("waited_for_cpu", "kernel_thread"), decoy=True),
    Kind("idle_hog", ("waited_for_cpu",), (LOOPBACK, BRIDGE), named_by=True, decoy=True),
    Kind("short_hog", ("waited_for_cpu",), (LOOPBACK, BRIDGE, SPARE), named_by=True, decoy=True, longest_ms=0.03),
    Kind("short_stop", ("stopped",), (LOOPBACK, BRIDGE, SPARE), decoy=True, longest_ms=0.03),
    Kind("hog_between", ("waited_for_cpu",), (LOOPBACK, BRIDGE), named_by=True, decoy=True, longest_ms=0.6),
    Kind("stop_between", ("stopped",), (LOOPBACK, BRIDGE), decoy=True, longest_ms=0.6),
    Kind("freeze_between", ("frozen",), (LOOPBACK,), decoy=True, longest_ms=0.6),
    Kind("supervisor_stopped", ("stopped",), (LOOPBACK, SPARE), decoy=True),
    Kind("bystander_stopped", ("stopped",), (LOOPBACK, BRIDGE, SPARE), decoy=True),
    Kind("bystander_frozen", ("frozen",), (LOOPBACK, SPARE), decoy=True),
    Kind("bystander_quota", ("cpu_quota",), (LOOPBACK, SPARE), decoy=True, guard_ms=200),
    Kind("bystander_pages", ("page_fault",), (LOOPBACK, SPARE), decoy=True),
    Kind("slow_other_path", ("queue_discipline", "network"), (BRIDGE, LOOPBACK), at_end=False, decoy=True),
    Kind("dropping_other_path", ("retransmission", "network"), (BRIDGE, LOOPBACK), at_end=False, decoy=True),
    Kind("full_other_socket", ("socket_queue",), (LOOPBACK, SPARE), decoy=True),
]

# Planted by bench/why_pause.py: the guest of the pong is stopped by QMP, or QEMU is only asked for its state.
_OF_GUESTS = [
    Kind("guest_stopped", ("stopped",), layouts=(), program="the hypervisor of guest pong"),
    Kind("guest_asked", ("stopped",), layouts=(), program="the hypervisor of guest pong", decoy=True),
]

KINDS = {kind.name: kind for kind in _KINDS + _DECOYS + _OF_GUESTS}
FAULTS = tuple(kind.name for kind in _KINDS)
DECOYS = tuple(kind.name for kind in _DECOYS)

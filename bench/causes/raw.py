"""Which faults did harm, from the raw timestamps of a record alone.

The rule for late messages, incidents and their excess is the definition of docs/src/numbers.md, written a second time here,
so that a mistake in Tailbound's own code is a difference and not a confirmation.
"""
from bisect import bisect_left
from dataclasses import dataclass, field
from . import parquet

LEAST_DISTANCE_NS = 50_000


@dataclass
class Slot:
    due: int
    send: int | None
    receive: int | None
    outcome: str
    echo_in: int | None = None
    echo_end: int | None = None

    @property
    def latency(self):
        return None if self.receive is None else self.receive - self.due


@dataclass
class Incident:
    begin: int
    end: int
    late: int = 0
    lost: int = 0
    excess: int = 0
    parts: list = field(default_factory=list)     # (from, to, slot)
    counted_until: int = -1


@dataclass
class Trial:
    slots: list
    median: int
    limit: int
    incidents: list


def slots(record, trial=0):
    """The measured slots of a trial, in the order of their due times, joined with the pong's rows."""
    folder = record / "samples" / str(trial)
    echoes = {}
    for path in segments(folder, "pong"):
        rows = parquet.read(path)
        for seq, came, ended in zip(rows["seq"], rows["in_ns"], rows["end_ns"]):
            echoes.setdefault(seq, (came, ended))
    found = []
    for path in segments(folder, "ping"):
        rows = parquet.read(path)
        for i, seq in enumerate(rows["seq"]):
            if not rows["warm_up"][i]:
                slot = Slot(rows["intended_ns"][i], rows["send_begin_ns"][i], rows["receive_ns"][i], rows["outcome"][i])
                slot.echo_in, slot.echo_end = echoes.get(seq, (None, None))
                found.append(slot)
    return found


def segments(folder, end):
    return sorted(folder.glob(f"{end}-*.parquet"), key=lambda path: int(path.stem.split("-")[1]))


def quantile(values, percent, count):
    """Value of rank ceil(q n) of `count` slots, of which the ones without a value come last."""
    rank = -(-percent * count // 100)
    ordered = sorted(values)
    return ordered[rank - 1] if 0 < rank <= len(ordered) else None


def late_limit(all_slots):
    """Median and limit of the latency of a trial: p50 + max(5 x (p50 - p10), p50, 50 us)."""
    latencies = [slot.latency for slot in all_slots if slot.latency is not None]
    p10, p50 = (quantile(latencies, percent, len(all_slots)) for percent in (10, 50))
    if p50 is None:
        raise ValueError("fewer than half of the messages were answered")
    return p50, p50 + max(5 * (p50 - p10), p50, LEAST_DISTANCE_NS)


def find(all_slots, asked=None):
    """The incidents of a trial: late and lost messages that overlap, or are less than a median round trip apart."""
    median, limit = late_limit(all_slots)
    limit = asked or limit
    trips = [s.receive - s.send for s in all_slots if s.receive is not None and s.send is not None]
    near = quantile(trips, 50, len(all_slots)) or median
    incidents, current = [], None
    for slot in all_slots:
        lost = slot.outcome == "lost"
        if not lost and (slot.latency is None or slot.latency <= limit):
            continue
        if current is None or slot.due >= current.end + near:
            current = Incident(slot.due, slot.due)
            incidents.append(current)
        current.end = max(current.end, slot.due)
        if lost:
            current.lost += 1
            continue
        current.late += 1
        usual = max(slot.due + median, current.counted_until)
        if usual < slot.receive:
            current.parts.append((usual, slot.receive, slot))
            current.excess += slot.receive - usual
            current.counted_until = slot.receive
        current.end = max(current.end, slot.receive)
    return Trial(all_slots, median, limit, incidents)


def overlap(a, b):
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


@dataclass
class Harm:
    """Harm of one fault in the raw timestamps.

    ns: excess that the fault can have caused: of each late message its part of the excess, at most for as long as the fault
        overlaps with the time from due to answered; of each incident, at most for as long as the fault overlaps with it. With
        recovery the fault counts until the incidents that it touches have ended.
    lost: lost messages that were due during the fault.
    measured: whether the fault lies between the first and the last measured message.
    """
    ns: int
    lost: int
    incidents: list
    measured: bool = True


def harm_of_incident(incident, window):
    # A message that a fault delays arrives later by this delay. Its excess lies between the usual time and the arrival, so that
    # a part of the excess is often after the end of the fault: for a short fault, a large part.
    parts = sum(min(to - start, overlap(window, (slot.due, slot.receive))) for start, to, slot in incident.parts)
    return min(parts, overlap(window, (incident.begin, incident.end)))


def harm(trial, begin, end, recovery=False):
    touched = [i for i in trial.incidents if i.begin <= end and i.end >= begin]
    window = (begin, max([end] + [i.end for i in touched]) if recovery else end)
    ns = sum(harm_of_incident(incident, window) for incident in touched)
    dues = [slot.due for slot in trial.slots]
    first, last = bisect_left(dues, begin - trial.median), bisect_left(dues, end)
    lost = sum(slot.outcome == "lost" for slot in trial.slots[first:last])
    return Harm(ns, lost, touched, dues[0] <= begin and end <= dues[-1])


def losses(trial):
    """Number of lost messages by the direction in which they were lost: to the pong, or back to the ping."""
    lost = [slot for slot in trial.slots if slot.outcome == "lost"]
    back = sum(slot.echo_in is not None for slot in lost)
    return {"pong": len(lost) - back, "ping": back}

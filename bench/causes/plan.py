"""The plan: a seeded list of faults and decoys, in runs. The same seed gives the same plan on every machine."""
import math
import random
from dataclasses import dataclass, field
from .kinds import DECOYS, FAULTS, KINDS

SMALLEST_MS, LARGEST_MS = 1.0, 100.0
MEAN_PAUSE_MS = 330
LONGEST_RUN_MS = 20_000
ENDS = ("ping", "pong")


@dataclass
class Planned:
    id: int
    kind: str
    end: str               # the end that is harmed; for paths, the end towards which packets go
    size_ns: int
    variant: int           # a free choice of the kind: version of the control groups, number of hogs, ...
    begin_ns: int = 0      # after the begin of the run's faults

    @property
    def decoy(self):
        return KINDS[self.kind].decoy


@dataclass
class Run:
    layout: str
    driver: str
    priority: str = ""        # how the ends come before other programs, as in `Kind`
    items: list = field(default_factory=list)

    @property
    def length_ns(self):
        last = self.items[-1]
        return last.begin_ns + last.size_ns + KINDS[last.kind].guard_ms * 1_000_000


def shuffled(draw, values):
    values = list(values)
    draw.shuffle(values)
    return values


def spread(draw, names, count):
    """`count` items over the names, as evenly as possible."""
    return [name for _, name in zip(range(count), (n for _ in range(count) for n in shuffled(draw, names)))]


def size_ns(draw, kind):
    if kind.longest_ms < SMALLEST_MS:
        return int(draw.uniform(kind.longest_ms / 3, kind.longest_ms) * 1e6)
    low, high = math.log(SMALLEST_MS), math.log(min(kind.longest_ms, LARGEST_MS))
    return int(math.exp(draw.uniform(low, high)) * 1e6)


def make(seed, faults, decoys, drivers, possible, only=None, priority=False):
    """Plans runs with `faults` faults and `decoys` decoys of the kinds in `possible`, over the drivers. `priority`: the ends come
    before other programs."""
    draw = random.Random(f"why {seed}")
    wanted = lambda names: [n for n in names if n in possible and (not only or n in only) and set(KINDS[n].drivers) & set(drivers)]
    names = spread(draw, wanted(FAULTS), faults) if wanted(FAULTS) else []
    names += spread(draw, wanted(DECOYS), decoys) if wanted(DECOYS) else []
    cells, used = {}, {}
    for name in names:
        kind = KINDS[name]
        # The drivers and layouts of a kind take turns, so that each kind meets each of them.
        choices = [(layout, driver) for layout in kind.layouts if layout in possible[name]
                   for driver in kind.drivers if driver in drivers]
        turn = used[name] = used.get(name, draw.randrange(len(choices))) + 1
        cell = (*choices[turn % len(choices)], kind.priority if priority else "")
        end = kind.end or ENDS[turn // len(choices) % 2]
        item = Planned(0, name, end, size_ns(draw, kind), draw.randrange(1 << 16))
        cells.setdefault(cell, []).append(item)
    runs = [run for cell in sorted(cells) for run in cut(draw, cell, cells[cell])]
    draw.shuffle(runs)
    number = 0
    for run in runs:
        for item in run.items:
            item.id, number = number, number + 1
    return runs


def cut(draw, cell, items):
    """Puts the items of a cell into runs of at most 20 s, at random times."""
    draw.shuffle(items)
    runs, run, at = [], Run(*cell), 0
    for item in items:
        at += int(draw.expovariate(1 / MEAN_PAUSE_MS) * 1e6)
        if run.items and at + item.size_ns > LONGEST_RUN_MS * 1_000_000:
            runs.append(run)
            run, at = Run(*cell), int(draw.expovariate(1 / MEAN_PAUSE_MS) * 1e6)
        item.begin_ns = at
        run.items.append(item)
        at += item.size_ns + KINDS[item.kind].guard_ms * 1_000_000
    return runs + [run]



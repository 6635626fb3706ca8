"""Whether the report named a fault right: the rule "named right" of docs/src/numbers.md.

Input: a planted fault, its harm in the raw timestamps, and the incidents of the report. The rule for a fault with harm: the
planted cause has at least 50 % of the excess of the incidents that the fault touches, and 70 to 130 % of the fault's harm, at
the right end and with the right program, and no other cause has more than 20 % of that excess. A fault without harm is a
decoy; one whose harm cannot be distinguished from other work is left out. An entry that an end waited for its CPU, without the program
that had the CPU, names no fault that has a program, and is no other cause for it. Time for which an end waited because the generator of the
faults itself had the CPU is no part of a fault: it is taken out of the excess and of the harm. A decoy is named if its cause, at its end and with its
program, has more than 20 % of an incident.
"""
from dataclasses import dataclass, field
from .kinds import KINDS

LEAST_SHARE, LEAST_OF_HARM, MOST_OF_HARM, MOST_OF_OTHERS, NAMED_SHARE = 0.5, 0.7, 1.3, 0.2, 0.2
# Below this harm a fault changed nothing that the rule for late messages can see (its smallest distance).
LEAST_HARM_NS = 50_000
# Part of its duration for which a fault must have delayed messages, and a decoy must not: on kernels that preempt lazily, even
# a SCHED_IDLE program can keep the CPU until the next tick, 4 ms later.
CLEAR_PART, HARMFUL_PART = 0.2, 0.1
LEG_TO = {"pong": "out", "ping": "back"}
PLACE_TO = {"pong": "on_the_way_out", "ping": "on_the_way_back"}
# Names of the generator's process and threads, and of its hogs that only use up the CPU time of a control group. The hogs that
# are faults have other names.
GENERATOR, GENERATOR_USE = "plant", "use-"
UNEXPLAINED, NO_INCIDENT, LOST = "unexplained", "no incident", "lost, with the place"


@dataclass
class Verdict:
    role: str                  # "fault", "decoy", "unclear"
    right: bool = False        # of a fault
    named: bool = False        # of a decoy
    attainable: bool = False   # whether the fault has half of the raw excess, so that a perfect report is right
    wrong: list = field(default_factory=list)     # other causes with more than 20 %
    top: str = ""              # cause with the largest part, for the confusion matrix
    share: float = 0.0
    reason: str = ""


def touches(incident, begin, end):
    return incident["begin_ns"] <= end and incident["end_ns"] >= begin


def matches(entry, incident, fault):
    """Whether a ledger entry names this fault: its cause, at its end or on its leg, with its program."""
    kind = KINDS[fault.item.kind]
    name = (entry.get("by") or {}).get("name")
    leg = entry.get("leg") or incident.get("leg")
    # On its way through the kernel a message is at no end, but on a CPU.
    of_cpu = not entry.get("end") and entry.get("cpu") is not None and entry["cpu"] == fault.cpu
    # A hog can also keep the CPU from the kernel thread that has the packet.
    carrier = entry["cause"] == "kernel_thread" and (entry.get("by") or {}).get("carrier")
    named = bool(kind.named_by) if carrier else entry["cause"] in kind.causes
    return (named and (not kind.at_end or of_cpu or entry.get("end") == fault.item.end)
            and (not kind.at_leg or leg == LEG_TO[fault.item.end]) and (not fault.name or name == fault.name))


def is_true_without_program(entry, incident, fault):
    """Whether a ledger entry says of this fault that a thread waited for its CPU, and not what had the CPU: true, but less than
    the fault is. It is neither the planted cause nor another one."""
    behind_others = set(KINDS[fault.item.kind].causes) & {"waited_for_cpu", "kernel_thread", "instrument"}
    return (entry["cause"] == "waited_for_cpu" and not entry.get("by") and behind_others
            and entry.get("end") == fault.item.end)


def sums(incidents, fault):
    """Times of the planted cause, of each other cause, and of the generator over the ledgers of the incidents, lower ends, ns."""
    planted, others, generator = 0, {}, 0
    for incident, entry in ((incident, entry) for incident in incidents for entry in incident.get("ledger") or []):
        name = (entry.get("by") or {}).get("name") or ""
        if name == GENERATOR or name.startswith(GENERATOR_USE):
            generator += entry["ns_low"]
        elif matches(entry, incident, fault):
            planted += entry["ns_low"]
        elif is_true_without_program(entry, incident, fault):
            pass
        else:
            others[entry["cause"]] = others.get(entry["cause"], 0) + entry["ns_low"]
    return planted, others, generator


def role(fault, harm):
    """What the raw timestamps make of a planned fault or decoy."""
    if fault.error or fault.end <= fault.begin:
        return "unclear", "not planted: " + (fault.error or "it had no effect on its own group")
    if not harm.measured:
        return "unclear", "no message was measured at this time"
    kind, size = KINDS[fault.item.kind], fault.end - fault.begin
    # Other work of the machine delays messages too. A fault that did harm delayed them for a good part of its duration.
    part = 0.0 if kind.recovery else harm.ns / size
    if kind.decoy:
        # A decoy with a program of its own is named by this program, which other work cannot be.
        did_harm = harm.ns >= LEAST_HARM_NS and (kind.named_by or part >= HARMFUL_PART)
        return ("unclear", "this decoy did harm") if did_harm else ("decoy", "")
    if harm.lost or harm.ns >= LEAST_HARM_NS and (kind.recovery or part >= CLEAR_PART):
        return "fault", ""
    if harm.ns < LEAST_HARM_NS:
        return "decoy", "no harm in the raw timestamps"
    return "unclear", "its harm is too small a part of its duration to tell it from other work"


def judge(fault, harm, incidents, losses=(), lost=None):
    """The verdict on one planted fault or decoy. `incidents`: those of the report, of the fault's trial."""
    what, reason = role(fault, harm)
    window = (fault.begin, max([fault.end] + [i.end for i in harm.incidents]) if KINDS[fault.item.kind].recovery else fault.end)
    touched = [incident for incident in incidents if touches(incident, *window)]
    if what == "unclear":
        return Verdict(what, reason=reason)
    if what == "decoy":
        return judge_decoy(fault, touched, reason)
    verdict = judge_losses(fault, harm, losses, lost) if harm.ns < LEAST_HARM_NS else judge_fault(fault, harm, touched)
    verdict.attainable = harm.ns >= LEAST_SHARE * sum(incident.excess for incident in harm.incidents)
    return verdict


def judge_decoy(fault, touched, reason):
    for incident in touched:
        planted, _, _ = sums([incident], fault)
        if planted > NAMED_SHARE * incident["excess_ns"]:
            return Verdict("decoy", named=True, top=largest(planted, {}, fault, 0), share=planted / max(1, incident["excess_ns"]),
                           reason=reason)
    return Verdict("decoy", top=NO_INCIDENT if not touched else "not named", reason=reason)


def largest(planted, others, fault, unexplained):
    """The word in whose column a fault is counted: the cause with the largest part of the excess."""
    parts = {"planted": planted, UNEXPLAINED: unexplained, **others}
    word = max(parts, key=lambda key: parts[key])
    return fault.item.kind if word == "planted" and planted else UNEXPLAINED if word == "planted" else word


def judge_fault(fault, harm, touched):
    if not touched:
        return Verdict("fault", top=NO_INCIDENT, reason="the report has no incident at this time")
    planted, others, generator = sums(touched, fault)
    excess = max(0, sum(incident["excess_ns"] for incident in touched) - generator)
    # The generator can have had the CPU within the fault or after it.
    harm_ns = min(harm.ns, sum(incident.excess for incident in harm.incidents) - generator)
    if generator and (excess < LEAST_HARM_NS or harm_ns < LEAST_HARM_NS):
        return Verdict("unclear", reason="the generator of the faults had the CPU for most of this time")
    if not excess:
        return Verdict("fault", top=UNEXPLAINED, reason="the report counts no excess here")
    wrong = sorted(cause for cause, ns in others.items() if ns > MOST_OF_OTHERS * excess)
    reasons = []
    if planted < LEAST_SHARE * excess:
        reasons.append(f"the planted cause has {planted / excess:.0%} of the excess")
    if not LEAST_OF_HARM * harm_ns <= planted <= MOST_OF_HARM * harm_ns:
        reasons.append(f"the planted cause has {planted / harm_ns:.0%} of the harm")
    reasons += [f"`{cause}` has {others[cause] / excess:.0%}" for cause in wrong]
    unexplained = excess - planted - sum(others.values())
    return Verdict("fault", not reasons, wrong=wrong, top=largest(planted, others, fault, unexplained), share=planted / excess,
                   reason="; ".join(reasons))


def judge_losses(fault, harm, losses, lost):
    """A fault that only lost messages has no excess. It is named right if the report counts the losses of the run at its place,
    with its reason. `lost`: number of lost messages by direction, from the raw timestamps."""
    word, end = KINDS[fault.item.kind].losses, fault.item.end
    counted = sum(loss["count"] for loss in losses if word is not None and loss["where"] == PLACE_TO[end]
                  and word in (loss.get("reason") or "").lower())
    right = LEAST_OF_HARM * lost[end] <= counted <= MOST_OF_HARM * lost[end]
    return Verdict("fault", right, top=LOST if right else UNEXPLAINED, share=float(right),
                   reason="" if right else f"{lost[end]} messages of the run were lost there, and the report counts {counted}")

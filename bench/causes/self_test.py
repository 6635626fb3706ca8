"""Tests of the parts that decide: raw timestamps, judge, intervals, plan, and the reader of segments. Run by `--self-test`."""
import sys
import unittest
from types import SimpleNamespace
from . import judge, matrix, parquet, plan, raw
from .kinds import DECOYS, DRIVERS, FAULTS, HELD, KINDS, REAL_TIME, SHARE, STEERED

MS = 1_000_000


def fault(kind="rt_hog", end="pong", begin=100 * MS, size=20 * MS, name=None, error=""):
    named = KINDS[kind].named_by
    return SimpleNamespace(item=SimpleNamespace(id=1, kind=kind, end=end), begin=begin, end=begin + size, error=error,
                           name=(name or "ctl-1") if named else KINDS[kind].program, cpu=None)


def entry(cause, low_ms, end="pong", name=None):
    return {"cause": cause, "end": end, "by": {"name": name} if name else None, "ns_low": int(low_ms * MS), "ns_high": int(low_ms * MS)}


def incident(*ledger, begin=100, excess=20):
    return {"begin_ns": begin * MS, "end_ns": (begin + excess) * MS, "excess_ns": excess * MS, "ledger": list(ledger)}


def harm(ms=20, lost=0, excess=None):
    return raw.Harm(int(ms * MS), lost, [raw.Incident(100 * MS, 120 * MS, excess=int((ms if excess is None else excess) * MS))])


class Judge(unittest.TestCase):
    def verdict(self, *ledger, planted=None, done=None):
        return judge.judge(planted or fault(), done or harm(), [incident(*ledger)])

    def test_a_cause_with_its_end_and_program_is_right(self):
        verdict = self.verdict(entry("waited_for_cpu", 19, name="ctl-1"), entry("own_work", 1))
        self.assertTrue(verdict.right, verdict)
        self.assertEqual(verdict.top, "rt_hog")

    def test_time_of_the_generator_is_no_part_of_a_fault(self):
        own = entry("waited_for_cpu", 8)
        own["by"] = {"name": "plant"}
        right = self.verdict(entry("stopped", 11), own, planted=fault("stopped"), done=harm(20))
        self.assertTrue(right.right, right)
        self.assertEqual(self.verdict(own, planted=fault("stopped"), done=harm(8)).role, "unclear")

    def test_waiting_for_a_program_that_uses_up_a_limit_after_the_fault_is_no_part_of_it(self):
        own = entry("waited_for_cpu", 4, name="use-7")
        late = [incident(entry("cpu_quota", 3), own, excess=7)]
        found = judge.judge(fault("cpu_quota", size=3 * MS), raw.Harm(3 * MS, 0, [raw.Incident(100 * MS, 107 * MS, excess=7 * MS)]), late)
        self.assertTrue(found.right, found)

    def test_a_soft_interrupt_on_the_way_counts_on_the_cpu_of_the_end(self):
        flood = fault("softirq_flood", "ping")
        flood.cpu = 0
        for cpu, right in ((0, True), (1, False)):
            hop = {**entry("softirq", 18, end=None), "cpu": cpu}
            self.assertEqual(self.verdict(hop, planted=flood).right, right, cpu)

    def test_half_of_the_excess_is_enough_and_less_is_not(self):
        for low, right in ((15, True), (9.9, False)):
            verdict = self.verdict(entry("waited_for_cpu", low, name="ctl-1"))
            self.assertEqual(verdict.right, right, verdict)

    def test_the_cause_must_have_70_to_130_percent_of_the_harm(self):
        for done, right in ((15, False), (16, True), (20, True), (28, True), (29, False)):
            verdict = self.verdict(entry("waited_for_cpu", 20, name="ctl-1"), done=harm(done))
            self.assertEqual(verdict.right, right, verdict)

    def test_the_wrong_end_or_program_is_wrong(self):
        for wrong in (entry("waited_for_cpu", 20, end="ping", name="ctl-1"), entry("waited_for_cpu", 20, name="ctl-2"),
                      entry("waited_for_cpu", 20, end="ping")):
            verdict = self.verdict(wrong)
            self.assertFalse(verdict.right, verdict)
            self.assertEqual((verdict.wrong, verdict.top), (["waited_for_cpu"], "waited_for_cpu"))

    def test_a_kernel_thread_that_waited_behind_the_program_names_only_faults_with_a_program(self):
        carried = entry("kernel_thread", 19, name="ctl-1")
        carried["by"]["carrier"] = "ksoftirqd/1"
        self.assertTrue(self.verdict(carried).right)
        self.assertFalse(self.verdict(carried, planted=fault("softirq_flood")).right)
        # A kernel thread that had the CPU itself is another cause than the program.
        self.assertFalse(self.verdict(entry("kernel_thread", 19, name="ctl-1")).right)

    def test_the_right_cause_without_the_program_is_neither_right_nor_wrong(self):
        verdict = self.verdict(entry("waited_for_cpu", 20))
        self.assertEqual((verdict.right, verdict.wrong, verdict.top), (False, [], judge.UNEXPLAINED))
        # Another kernel thread or Tailbound itself had the CPU, which is more than the entry says.
        for kind, wrong in (("softirq_flood", []), ("agent_busy", []), ("cpu_quota", ["waited_for_cpu"])):
            self.assertEqual(self.verdict(entry("waited_for_cpu", 20), planted=fault(kind)).wrong, wrong, kind)

    def test_another_cause_above_a_fifth_is_wrong(self):
        for other, right in ((4, True), (4.1, False)):
            verdict = self.verdict(entry("waited_for_cpu", 15, name="ctl-1"), entry("irq", other))
            self.assertEqual(verdict.right, right, verdict)

    def test_two_words_for_one_fault_are_added(self):
        flood = fault("softirq_flood")
        self.assertTrue(self.verdict(entry("softirq", 9), entry("kernel_thread", 9), planted=flood).right)
        self.assertFalse(self.verdict(entry("softirq", 9), entry("kernel_thread", 9, end="ping"), planted=flood).right)

    def test_a_fault_of_the_path_needs_the_leg_towards_its_end(self):
        for leg, right in (("out", True), ("back", False)):
            late = {**incident(entry("network", 20, end=None)), "leg": leg}
            self.assertEqual(judge.judge(fault("slow_bridge"), harm(), [late]).right, right, leg)

    def test_several_incidents_of_one_fault_are_added(self):
        parts = [incident(entry("waited_for_cpu", 8, name="ctl-1"), begin=begin, excess=8) for begin in (100, 110)]
        self.assertTrue(judge.judge(fault(), harm(16), parts).right)
        self.assertFalse(judge.judge(fault(), harm(16), parts[:1]).right)

    def test_an_incident_elsewhere_in_time_does_not_count(self):
        verdict = judge.judge(fault(), harm(), [incident(entry("waited_for_cpu", 20, name="ctl-1"), begin=200)])
        self.assertEqual((verdict.right, verdict.top), (False, judge.NO_INCIDENT))

    def test_nothing_named_is_unexplained(self):
        verdict = self.verdict()
        self.assertEqual((verdict.right, verdict.top, verdict.wrong), (False, judge.UNEXPLAINED, []))

    def test_a_fault_without_harm_is_a_decoy(self):
        verdict = self.verdict(entry("irq", 20), done=harm(0))
        self.assertEqual((verdict.role, verdict.named), ("decoy", False))
        verdict = self.verdict(entry("waited_for_cpu", 20, name="ctl-1"), done=harm(0))
        self.assertEqual((verdict.role, verdict.named), ("decoy", True))

    def test_a_decoy_is_named_above_a_fifth_of_an_incident(self):
        for low, named in ((4, False), (4.1, True)):
            verdict = self.verdict(entry("stopped", low), planted=fault("supervisor_stopped"), done=harm(0, excess=20))
            self.assertEqual(verdict.named, named, verdict)

    def test_a_decoy_that_did_harm_is_left_out(self):
        self.assertEqual(self.verdict(planted=fault("stop_between"), done=harm(2.1)).role, "unclear")
        self.assertEqual(self.verdict(planted=fault("stop_between"), done=harm(1.9)).role, "decoy")
        self.assertEqual(self.verdict(planted=fault("hog_between"), done=harm(0.1)).role, "unclear")
        self.assertEqual(self.verdict(planted=fault("hog_between"), done=harm(0.04)).role, "decoy")

    def test_harm_that_other_work_may_have_done_is_left_out(self):
        for ms, role in ((0.04, "decoy"), (3.9, "unclear"), (4, "fault")):
            self.assertEqual(self.verdict(done=harm(ms)).role, role, ms)
        self.assertEqual(self.verdict(planted=fault("dropping_bridge"), done=harm(1)).role, "fault")

    def test_a_fault_that_was_not_planted_is_left_out(self):
        self.assertEqual(self.verdict(planted=fault(error="kill: No such process")).role, "unclear")

    def test_a_fault_with_less_than_half_of_the_raw_excess_is_not_attainable(self):
        for excess, attainable in ((40, True), (41, False)):
            self.assertEqual(self.verdict(done=harm(20, excess=excess)).attainable, attainable)

    def test_a_fault_while_nothing_was_measured_is_left_out(self):
        self.assertEqual(self.verdict(done=raw.Harm(0, 0, [], measured=False)).role, "unclear")

    def test_losses_are_named_by_their_place(self):
        drop, lost = fault("dropping_bridge"), {"pong": 10, "ping": 5}
        loss = lambda where, count, reason=None: [{"where": where, "count": count, "reason": reason}]
        for losses, right in ((loss("on_the_way_out", 9), True), (loss("on_the_way_out", 6), False), (loss("on_the_way_out", 14), False),
                              (loss("on_the_way_back", 10), False), ([], False)):
            self.assertEqual(judge.judge(drop, harm(0, lost=3), [], losses, lost).right, right, losses)
        for reason, right in (("The receive buffer of the socket was full.", True), (None, False)):
            found = judge.judge(fault("full_socket"), harm(0, lost=3), [], loss("on_the_way_out", 10, reason), lost)
            self.assertEqual(found.right, right, reason)


def slots(latencies_ms, period_ms=1, lost=()):
    due = [n * period_ms * MS for n in range(len(latencies_ms))]
    return [raw.Slot(d, d, None if n in lost else d + int(latency * MS), "lost" if n in lost else "answered")
            for n, (d, latency) in enumerate(zip(due, latencies_ms))]


class Raw(unittest.TestCase):
    def test_a_stall_is_one_incident_whose_time_counts_once(self):
        found = raw.find(slots([30 - n if 10 <= n < 30 else 0.1 for n in range(100)]))
        self.assertEqual((found.median, found.limit), (100_000, 200_000))
        [one] = found.incidents
        self.assertEqual((one.begin, one.end, one.late, one.excess), (10 * MS, 30 * MS, 20, 20 * MS - 100_000))

    def test_messages_apart_by_a_round_trip_are_two_incidents(self):
        found = raw.find(slots([1 if n in (0, 3) else 0.1 for n in range(100)]))
        self.assertEqual([i.late for i in found.incidents], [1, 1])
        self.assertEqual([i.late for i in raw.find(slots([1 if n in (0, 1) else 0.1 for n in range(100)])).incidents], [2])

    def test_lost_messages_add_no_time(self):
        [first, second] = raw.find(slots([5 if n == 0 else 0.1 for n in range(100)], lost=(1, 50))).incidents
        self.assertEqual((first.late, first.lost, first.excess, second.lost, second.excess), (1, 1, 4_900_000, 1, 0))

    def test_harm_is_the_excess_within_the_fault(self):
        trial = raw.find(slots([30 - n if 10 <= n < 30 else 0.1 for n in range(100)]))
        self.assertEqual(raw.harm(trial, 9 * MS, 30 * MS).ns, 20 * MS - 100_000)
        self.assertEqual(raw.harm(trial, 9 * MS, 15 * MS).ns, 5 * MS)
        self.assertEqual(raw.harm(trial, 9 * MS, 15 * MS, recovery=True).ns, 20 * MS - 100_000)
        self.assertEqual(raw.harm(trial, 40 * MS, 60 * MS).ns, 0)

    def test_a_short_stop_does_the_harm_by_which_it_delays_a_message(self):
        # Due at 50 ms, usually answered after 0.4 ms; its receiver stands still from 50.2 ms to 51.2 ms: answered at 51.4 ms.
        trial = raw.find(slots([1.4 if n == 25 else 0.4 for n in range(50)], period_ms=2))
        self.assertEqual(raw.harm(trial, 50_200_000, 51_200_000).ns, MS)
        # A fault before the message was due, and one after its answer, did nothing.
        self.assertEqual(raw.harm(trial, 49 * MS, 50 * MS).ns, 0)
        self.assertEqual(raw.harm(trial, 51_400_000, 52 * MS).ns, 0)

    def test_messages_that_were_answered_after_the_fault_do_not_add_to_its_harm(self):
        latencies = [0.4] * 50
        latencies[10:15] = [10.4, 8.8, 7.2, 5.6, 4]
        trial = raw.find(slots(latencies, period_ms=2))
        self.assertEqual(raw.harm(trial, 20 * MS, 30 * MS).ns, 10 * MS)
        self.assertEqual(trial.incidents[0].excess, 11_600_000)

    def test_a_fault_outside_of_the_messages_is_known(self):
        trial = raw.find(slots([0.1] * 100))
        self.assertEqual([raw.harm(trial, begin * MS, end * MS).measured for begin, end in ((-1, 5), (0, 99), (98, 100))],
                         [False, True, False])

    def test_losses_count_by_their_due_time(self):
        trial = raw.find(slots([0.1] * 100, lost=(20, 21, 50)))
        self.assertEqual(raw.harm(trial, 20 * MS, 30 * MS).lost, 2)
        trial.slots[21].echo_in = 0
        self.assertEqual(raw.losses(trial), {"pong": 2, "ping": 1})


class Intervals(unittest.TestCase):
    def test_known_values(self):
        # With no hits the upper end is z^2 / (n + z^2); with only hits the lower end is n / (n + z^2).
        for hits, count, expected in ((190, 200, (0.9104, 0.9726)), (0, 100, (0.0, 0.0370)), (8, 8, (0.6756, 1.0))):
            for value, known in zip(matrix.wilson(hits, count), expected):
                self.assertAlmostEqual(value, known, 3)

    def test_every_fault_is_in_one_row_and_one_column(self):
        right, wrong = judge.Verdict("fault", True, top="rt_hog"), judge.Verdict("fault", top="irq", wrong=["irq"])
        found = matrix.summary([(fault(), right), (fault(), wrong), (fault("stopped"), judge.Verdict("decoy", named=True))])
        self.assertEqual(found["kinds"]["rt_hog"]["columns"], {"rt_hog": 1, "irq": 1})
        self.assertEqual([found["total"][key] for key in ("faults", "right", "wrong", "decoys", "named")], [2, 1, 1, 1, 1])
        self.assertIn("| rt_hog | 2 | 0 | 1 | 50 % (9 to 91) | 1 |", matrix.markdown(found))


class Plan(unittest.TestCase):
    def make(self, seed, faults=256, decoys=126, priority=False):
        return plan.make(seed, faults, decoys, (*DRIVERS, HELD), self.possible, priority=priority)

    # Without what only a guest can do.
    possible = {name: set(kind.layouts) - {STEERED} for name, kind in KINDS.items() if set(kind.layouts) - {STEERED}}

    def test_the_seed_decides(self):
        self.assertEqual(self.make("7"), self.make("7"))
        self.assertNotEqual(self.make("7"), self.make("8"))

    def test_every_kind_is_planted_at_both_ends_with_every_driver_and_nothing_overlaps(self):
        runs = self.make("7")
        items = [(run, item) for run in runs for item in run.items]
        self.assertEqual(sum(not item.decoy for _, item in items), 256)
        self.assertEqual(sum(item.decoy for _, item in items), 126)
        for name in (name for name in FAULTS if name in self.possible):
            mine = [(run.driver, item.end) for run, item in items if item.kind == name]
            self.assertGreaterEqual(len(mine), 16, name)
            self.assertEqual({driver for driver, _ in mine}, set(KINDS[name].drivers), name)
            self.assertEqual({end for _, end in mine}, {KINDS[name].end} if KINDS[name].end else {"ping", "pong"}, name)
        self.assertEqual({item.kind for _, item in items if item.decoy}, set(DECOYS))
        for run in runs:
            self.assertLess(run.length_ns, 25_000 * MS)
            for before, after in zip(run.items, run.items[1:]):
                self.assertGreater(after.begin_ns, before.begin_ns + before.size_ns + KINDS[before.kind].guard_ms * MS - 1)


    def test_with_a_priority_the_kinds_are_planted_into_runs_of_their_own(self):
        kinds = {}
        for run in self.make("7", priority=True):
            kinds.setdefault(run.priority, set()).update(item.kind for item in run.items)
        self.assertEqual(kinds.pop(REAL_TIME), {*FAULTS, *DECOYS} - {"fair_hog", "cpu_quota", "starved_receiver"})
        self.assertEqual(kinds, {SHARE: {"fair_hog", "cpu_quota"}})


class Segments(unittest.TestCase):
    def test_deltas_are_decoded(self):
        # The example of the format's specification: 1 to 5, and 7 5 3 1 2 3 4 5.
        first = bytes([8, 1, 5, 2, 2, 0])
        self.assertEqual(parquet.delta(parquet.Bytes(memoryview(first)), 5), [1, 2, 3, 4, 5])
        second = bytes([8, 1, 8, 14, 3, 2, 0b11000000, 0b00111111])
        self.assertEqual(parquet.delta(parquet.Bytes(memoryview(second)), 8), [7, 5, 3, 1, 2, 3, 4, 5])

    def test_runs_and_packed_keys_are_decoded(self):
        data = bytes([3 << 1, 1, 3, 0b00_10_01_00, 0b01_00_10_01])
        self.assertEqual(parquet.hybrid(parquet.Bytes(memoryview(data)), 2, 11), [1, 1, 1, 0, 1, 2, 0, 1, 2, 0, 1])

    def test_a_cut_file_is_an_error(self):
        with self.assertRaises(parquet.Damaged):
            parquet.delta(parquet.Bytes(memoryview(bytes([8, 1, 8, 14, 3, 2, 0]))), 8)


def run():
    done = unittest.TextTestRunner().run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__]))
    return 0 if done.wasSuccessful() else 1

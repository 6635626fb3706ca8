//! The tracepoints that are recorded, and where their records contain what is needed.
//!
//! Ids, fields and the bits of thread states come from tracefs, because they differ between kernels.

use super::tracefs::{Description, Tracefs};
use tailbound_model::{Interruption, SleepState};

/// Name of the first PID namespace (linux/proc_ns.h); tracepoints use the thread ids of this namespace.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Interrupts of the CPU itself (x86) that can take time from a thread. `irq_work` is missing: perf refuses its
/// tracepoint, because perf causes this interrupt. The remaining vectors are left out, because each of them needs two
/// file descriptors for each CPU.
const VECTORS: [&str; 5] = ["local_timer", "reschedule", "call_function", "call_function_single", "thermal_apic"];

/// Bits of `common_flags` in the record of a tracepoint (linux/trace_events.h): the tracepoint was reached in a hard
/// interrupt, a soft interrupt, or a non-maskable interrupt.
const IN_INTERRUPT: u8 = 0x08 | 0x10 | 0x40;

/// Tracepoints that are recorded, with their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Points {
    pub switch: Option<(u16, SwitchFields)>,
    pub wake: Option<(u16, WakeFields)>,
    /// Begin and end of interrupts and soft interrupts.
    pub edges: Vec<(u16, Edge)>,
}

/// Fields of the tracepoint `sched_switch`: offsets in bytes, and the states of threads.
#[derive(Debug, Clone)]
pub(super) struct SwitchFields {
    pub out_at: usize,
    pub into_at: usize,
    pub state_at: usize,
    /// Letter of each bit of the state; a state without one of these bits is runnable.
    letters: Vec<(i64, char)>,
}

/// Offsets in bytes of the fields of the tracepoint `sched_waking`.
#[derive(Debug, Clone, Copy)]
pub(super) struct WakeFields {
    pub thread_at: usize,
    pub flags_at: usize,
}

/// A tracepoint at the begin or at the end of interrupts of one kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub is_begin: bool,
    /// Offset in bytes of the interrupt's number.
    pub number_at: usize,
    /// Makes the interruption from its number.
    pub kind: fn(u32) -> Interruption,
}

impl Points {
    /// Finds the tracepoints that this process may read about.
    pub fn find() -> Points {
        let Some(tracefs) = Tracefs::open() else { return Points::default() };
        let mut points = Points::default();
        if in_first_pid_namespace() {
            points.switch = tracefs.describe("sched/sched_switch").and_then(|d| Some((d.id, SwitchFields::of(&d)?)));
            points.wake = tracefs.describe("sched/sched_waking").and_then(|d| Some((d.id, WakeFields::of(&d)?)));
        }
        let edge = |name: String, field: &str, is_begin: bool, kind| {
            let description = tracefs.describe(&name)?;
            Some((description.id, Edge { is_begin, number_at: description.offset(field, 4)?, kind }))
        };
        let mut pair = |name: &str, field: &str, kind: fn(u32) -> Interruption| {
            let begin = edge(format!("{name}_entry"), field, true, kind);
            let end = edge(format!("{name}_exit"), field, false, kind);
            points.edges.extend(begin.zip(end).into_iter().flat_map(<[_; 2]>::from));
        };
        pair("irq/irq_handler", "irq", Interruption::Irq);
        pair("irq/softirq", "vec", Interruption::Softirq);
        VECTORS.iter().for_each(|name| pair(&format!("irq_vectors/{name}"), "vector", Interruption::Vector));
        points
    }

    /// Same tracepoints without interrupts.
    pub fn without_interrupts(&self) -> Points {
        Points { edges: Vec::new(), ..self.clone() }
    }
}

/// Whether the ids of threads that this process sees are the ids that tracepoints report.
fn in_first_pid_namespace() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok();
    namespace.is_some_and(|n| n.to_str() == Some(FIRST_PID_NAMESPACE))
}

impl SwitchFields {
    fn of(description: &Description) -> Option<SwitchFields> {
        let letters = description.letters();
        // Without these two letters a sleeping thread would be taken for a runnable one.
        let known = ['S', 'D'].iter().all(|letter| letters.iter().any(|(_, l)| l == letter));
        known.then_some(SwitchFields {
            out_at: description.offset("prev_pid", 4)?,
            into_at: description.offset("next_pid", 4)?,
            state_at: description.offset("prev_state", 8)?,
            letters,
        })
    }

    /// Whether a thread that left its CPU in the state with these bits was still runnable, and else how it sleeps.
    /// Kernel threads that wait for work (`I`) or are parked (`P`) have no state: they wait for no disk and no lock.
    pub fn state(&self, bits: i64) -> (bool, Option<SleepState>) {
        let letter = self.letters.iter().find(|(bit, _)| bits & bit != 0).map(|(_, letter)| *letter);
        let state = match letter {
            Some('S') => Some(SleepState::Interruptible),
            Some('D') => Some(SleepState::Uninterruptible),
            Some('T' | 't') => Some(SleepState::Stopped),
            Some('X' | 'Z') => Some(SleepState::Ended),
            _ => None,
        };
        (letter.is_none(), state)
    }
}

impl WakeFields {
    fn of(description: &Description) -> Option<WakeFields> {
        Some(WakeFields { thread_at: description.offset("pid", 4)?, flags_at: description.offset("common_flags", 1)? })
    }

    /// Whether these `common_flags` say that an interrupt or a soft interrupt woke the thread.
    pub fn by_interrupt(flags: u8) -> bool {
        flags & IN_INTERRUPT != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters of the states of threads in Linux 6.1 and 6.18.
    fn fields() -> SwitchFields {
        let letters = "SDTtXZPI".chars().enumerate().map(|(n, letter)| (1 << n, letter)).collect();
        SwitchFields { out_at: 24, into_at: 56, state_at: 32, letters }
    }

    #[test]
    fn the_state_of_a_thread_follows_from_its_bits() {
        let fields = fields();
        assert_eq!(fields.state(0), (true, None));
        // R+: the thread was preempted.
        assert_eq!(fields.state(0x100), (true, None));
        assert_eq!(fields.state(0x1), (false, Some(SleepState::Interruptible)));
        assert_eq!(fields.state(0x2), (false, Some(SleepState::Uninterruptible)));
        assert_eq!(fields.state(0x4), (false, Some(SleepState::Stopped)));
        assert_eq!(fields.state(0x8), (false, Some(SleepState::Stopped)));
        assert_eq!(fields.state(0x20), (false, Some(SleepState::Ended)));
        assert_eq!(fields.state(0x80), (false, None));
    }
}

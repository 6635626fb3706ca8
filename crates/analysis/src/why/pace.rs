//! How fast CPUs worked: their frequencies, and the times in which no interrupt of their timers came.

use std::collections::BTreeMap;
use tailbound_model::{SwitchEvent, SwitchKind};

/// What is known about the pace of the CPUs of one time span.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// For each CPU, in the order of time: begin and end of the times in which it ran threads without an interrupt of its
    /// timer, for longer than two ticks.
    no_ticks: BTreeMap<u32, Vec<(i64, i64)>>,
    /// For each CPU, in the order of time: the time at which it got a frequency, and the frequency, kHz.
    frequencies: BTreeMap<u32, Vec<(i64, u32)>>,
}

impl Pace {
    /// Adds an event after the others; events of other kinds are left out.
    pub fn push(&mut self, event: &SwitchEvent) {
        match event.what {
            SwitchKind::NoTick { .. } => {
                self.no_ticks.entry(event.cpu).or_default().push((event.at_ns, event.end_ns()));
            }
            SwitchKind::Frequency { khz } => self.frequencies.entry(event.cpu).or_default().push((event.at_ns, khz)),
            _ => {}
        }
    }

    /// Adds the frequency that a CPU had when the time span began.
    pub fn had(&mut self, at_ns: i64, cpu: u32, khz: u32) {
        let all = self.frequencies.entry(cpu).or_default();
        if all.first().is_none_or(|(first_ns, _)| *first_ns > at_ns) {
            all.insert(0, (at_ns, khz));
        }
    }

    /// Time between two times in which `cpu`, which ran threads all the time, may have stood still, ns: a tick is missing. That it
    /// handled an interrupt meanwhile says nothing about the time before and after.
    pub fn still_ns(&self, cpu: u32, from_ns: i64, to_ns: i64) -> i64 {
        let all = self.no_ticks.get(&cpu).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|(_, end)| *end <= from_ns);
        let within = all[first..].iter().take_while(|(begin, _)| *begin < to_ns);
        within.map(|(begin, end)| (*end).min(to_ns) - (*begin).max(from_ns)).sum()
    }

    /// Largest part of the time between two times that a CPU with the frequency `full_khz` would not have needed, ns. A time
    /// with an unknown frequency counts as one with this frequency. Work that depends on the CPU alone takes as many cycles
    /// at each frequency.
    pub fn slowed_ns(&self, cpu: u32, (from_ns, to_ns): (i64, i64), full_khz: u32) -> i64 {
        let all = self.frequencies.get(&cpu).map_or(&[][..], Vec::as_slice);
        let first = all.partition_point(|(at, _)| *at <= from_ns).saturating_sub(1);
        let until = all[first..].iter().skip(1).map(|(at, _)| *at).chain([i64::MAX]);
        let spans = all[first..].iter().zip(until).take_while(|((at, _), _)| *at < to_ns);
        let slowed = spans.map(|((at, khz), until)| {
            let ns = (until.min(to_ns) - (*at).max(from_ns)).max(0);
            ns - (ns as f64 * f64::from(*khz) / f64::from(full_khz)).ceil() as i64
        });
        slowed.map(|ns| ns.max(0)).sum()
    }
}

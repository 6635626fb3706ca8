//! One trial in a trace: its tracks, what is known of it, and sentences about what is not in the trace or not exact.

use crate::perfetto::kernel::{self, Written};
use crate::perfetto::lanes::Lanes;
use crate::perfetto::machines::{Conversion, CpuNumbers, OWN, machine_of, machine_of_ends};
use crate::perfetto::messages::{self, Ends};
use crate::perfetto::names::{Names, process_tree};
use crate::perfetto::packets::{Packets, Slice, Track};
use crate::perfetto::schema::TracePacket;
use crate::perfetto::spans::{Span, joined};
use crate::perfetto::words::{self, some};
use std::collections::BTreeSet;
use std::io;
use tailbound_analysis::{Machine, has_one_clock};
use tailbound_document::{ConditionReport, IncidentReport};
use tailbound_model::{SwitchScope, Switches, ThreadTable};
use tailbound_record::{Record, bounds_of_readings};
use tailbound_stats::{ClockBounds, NoBounds};

/// Messages are drawn from this time before the first message of an incident was due until this time after the last
/// answer, ns: the same times for which a run keeps events.
const AROUND_NS: (i64, i64) = (2_000_000, 500_000);

/// What a record knows about one trial.
pub(super) struct TrialTrace<'a> {
    record: &'a Record,
    id: usize,
    condition: &'a ConditionReport,
    seen: Vec<Switches>,
    tables: Vec<ThreadTable>,
    one_clock: bool,
    /// The conversion of what the pong recorded, and of what was recorded on the host of the guests.
    pong: Option<Conversion>,
    host: Option<Conversion>,
    /// Sentences about what the trace does not have, and about times that were converted.
    notes: Vec<String>,
}

impl<'a> TrialTrace<'a> {
    /// Reads the events and the threads of a trial. `cpus`: the numbers of the CPUs in the trace.
    pub fn read(record: &'a Record, condition: &'a ConditionReport, id: usize, cpus: &CpuNumbers) -> TrialTrace<'a> {
        let one_clock = has_one_clock(record, id);
        let (seen, tables, notes) = (Vec::new(), Vec::new(), Vec::new());
        let mut trial = TrialTrace { record, id, condition, seen, tables, one_clock, pong: None, host: None, notes };
        for seen in record.switches(id) {
            match seen {
                Ok(seen) => trial.seen.push(seen),
                Err(error) => trial.note(&format!("{error}; the trace has no events of this file")),
            }
        }
        for table in record.threads(id) {
            match table {
                Ok(table) => trial.tables.push(table),
                Err(error) => trial.note(&format!("{error}; the trace has no threads of this file")),
            }
        }
        trial.convert_host(cpus);
        if !one_clock {
            trial.convert_pong(cpus);
        }
        trial.seen.sort_by_key(|seen| machine_of(seen, one_clock));
        trial
    }

    /// Converts what was recorded on the host of the guests, or removes it if the bounds of its clock are not known.
    fn convert_host(&mut self, cpus: &CpuNumbers) {
        let Some(host) = self.seen.iter().find_map(|seen| seen.host.as_ref()) else { return };
        if let Ok(bounds) = bounds_of_readings(&host.ping_clock) {
            let conversion = Conversion::new(Machine::Host, bounds, cpus);
            self.seen.iter_mut().filter(|seen| seen.host.is_some()).for_each(|seen| conversion.events(seen));
            self.host = Some(conversion);
        } else {
            self.seen.retain(|seen| seen.host.is_none());
            self.note("the trace has nothing of what was recorded on the host of the guests, which has another clock");
        }
    }

    /// Converts what the pong recorded, or removes it if the bounds of its clock are not known.
    fn convert_pong(&mut self, cpus: &CpuNumbers) {
        let is_pong = |ends: &[String]| machine_of_ends(ends, false) == Machine::Pong;
        match self.pong_bounds() {
            Ok(bounds) => {
                let conversion = Conversion::new(Machine::Pong, bounds, cpus);
                let of_pong = self.seen.iter_mut().filter(|seen| machine_of(seen, false) == Machine::Pong);
                of_pong.for_each(|seen| conversion.events(seen));
                self.tables.iter_mut().filter(|table| is_pong(&table.ends)).for_each(|table| conversion.table(table));
                self.pong = Some(conversion);
            }
            Err(why) => {
                self.seen.retain(|seen| machine_of(seen, false) != Machine::Pong);
                self.tables.retain(|table| !is_pong(&table.ends));
                self.note(&format!(
                    "the ends have different clocks; the trace has only what the ping's end recorded, and no flows between \
                     the ends: {why}"
                ));
            }
        }
    }

    /// Bounds of the time by which the pong's clock is ahead of the ping's, or the reason why there are none.
    fn pong_bounds(&self) -> Result<ClockBounds, String> {
        let changed = || "one of the clocks changed during the trial".to_owned();
        match self.record.clock_bounds(self.id) {
            Ok(Ok(parts)) => parts.whole().cloned().ok_or_else(changed),
            Ok(Err(NoBounds::OneWay)) => Err("messages went in one direction only".to_owned()),
            Ok(Err(NoBounds::Crossed)) => Err(changed()),
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn has_events(&self) -> bool {
        self.seen.iter().any(|seen| !seen.events.is_empty())
    }

    fn note(&mut self, text: &str) {
        self.notes.push(format!("Trial {}: {text}.", self.id));
    }

    /// Writes the trial; `pids` are the process ids of the trials before. Returns the notes of the trial.
    pub fn write(mut self, packets: &mut Packets, pids: &mut BTreeSet<i32>) -> io::Result<Vec<String>> {
        let name = words::trial(self.id, self.condition);
        let top = packets.described_track(&name, self.description())?;
        self.incidents(packets, top)?;
        self.recorded(packets, top)?;
        let ends = self.ends(packets, &name, pids)?;
        self.messages(packets, &ends)?;
        self.events(packets)?;
        self.converted(packets, top)?;
        Ok(self.notes)
    }

    fn description(&self) -> String {
        let levels = self.condition.levels.iter().map(|(factor, level)| format!("{factor}: {level}"));
        levels.collect::<Vec<_>>().join(", ")
    }

    fn of_trial(&self) -> impl Iterator<Item = &'a IncidentReport> {
        let id = self.id;
        self.condition.incidents.iter().filter(move |incident| incident.trial == id)
    }

    /// The incidents of the trial in the report, with all members of the document.
    fn incidents(&self, packets: &mut Packets, top: Track) -> io::Result<()> {
        let mut incidents: Vec<&IncidentReport> = self.of_trial().collect();
        incidents.sort_by_key(|incident| incident.begin_ns);
        let mut lanes = Lanes::new("incidents", top);
        for incident in incidents {
            let span = (incident.begin_ns, incident.end_ns.max(incident.begin_ns));
            let Some(track) = lanes.take(packets, span)? else { continue };
            let mut slice = Slice::new(words::incident(incident), "incident");
            if let Ok(serde_json::Value::Object(members)) = serde_json::to_value(incident) {
                slice = members.into_iter().fold(slice, |slice, (name, value)| slice.with(&name, value));
            }
            packets.slice(track, span, slice)?;
        }
        Ok(())
    }

    /// The time spans whose events were recorded, and those in which events were lost, for each agent.
    fn recorded(&self, packets: &mut Packets, top: Track) -> io::Result<()> {
        for seen in &self.seen {
            let of = if seen.host.is_some() { "host of the guests".to_owned() } else { seen.ends.join(" and ") };
            let kinds = [("events recorded", &seen.windows), ("events lost", &seen.gaps)];
            for (what, spans) in kinds.into_iter().filter(|(_, spans)| !spans.is_empty()) {
                let track = packets.track(&format!("{what} ({of})"), Some(top))?;
                for span in joined(spans.iter().copied()) {
                    packets.slice(track, span, Slice::new(what, "recording"))?;
                }
            }
        }
        Ok(())
    }

    /// The tracks of the ends. An end is shown as a process if its thread table has the process id, and if no other
    /// process of the trace has the same id (in another PID namespace, or in another trial).
    fn ends(&self, packets: &mut Packets, trial: &str, pids: &mut BTreeSet<i32>) -> io::Result<Ends> {
        let mut tracks: Vec<(&[String], Track)> = Vec::new();
        let mut shown: Vec<(String, &ThreadTable)> = Vec::new();
        for table in &self.tables {
            let name = format!("{} of {trial}", table.ends.join(" and "));
            let track = match pids.insert(table.pid) {
                true => packets.process_track(&name, table.pid)?,
                false => packets.track(&name, None)?,
            };
            tracks.push((&table.ends, track));
            shown.push((name, table));
            self.stops(packets, table, track)?;
        }
        let tree = process_tree(&self.seen, &shown);
        packets.write(TracePacket { process_tree: Some(tree), ..TracePacket::default() })?;
        let mut track = |end: &str| match tracks.iter().find(|(ends, _)| ends.iter().any(|e| e == end)) {
            Some((_, track)) => Ok(*track),
            None => packets.track(&format!("{end} of {trial}"), None),
        };
        let ping = track(OWN)?;
        let pong = if self.one_clock || self.pong.is_some() { Some(track("pong")?) } else { None };
        Ok(Ends { ping, pong })
    }

    /// The time spans in which the process of these ends was stopped.
    fn stops(&self, packets: &mut Packets, table: &ThreadTable, below: Track) -> io::Result<()> {
        let of_table = |seen: &&Switches| seen.ends.iter().any(|end| table.ends.contains(end));
        let stops = joined(self.seen.iter().filter(of_table).flat_map(|seen| seen.stops.iter().copied()));
        if stops.is_empty() {
            return Ok(());
        }
        let track = packets.track("process stopped", Some(below))?;
        stops.into_iter().try_for_each(|span| packets.slice(track, span, Slice::new("stopped", "stop")))
    }

    /// The messages around the incidents, and those of the time spans whose events were recorded.
    fn messages(&mut self, packets: &mut Packets, ends: &Ends) -> io::Result<()> {
        let (before, after) = AROUND_NS;
        let around = self.of_trial().map(|i| (i.begin_ns.saturating_sub(before), i.end_ns.saturating_add(after)));
        let spans: Vec<Span> = joined(around.chain(self.seen.iter().flat_map(|seen| seen.windows.iter().copied())));
        let limit = self.condition.late_limits.iter().find(|limit| limit.trial == self.id).map(|limit| limit.limit_ns);
        let drawn = messages::write(packets, (self.record, self.id), (&spans, limit), ends, self.pong.as_ref())?;
        if let Some(error) = drawn.error {
            self.note(&format!("{error}; the messages after this place are not in the trace"));
        } else if drawn.messages == 0 {
            self.note("the trial has no incidents and no recorded time spans; the trace has none of its messages");
        }
        if drawn.left_out > 0 {
            let left_out = some(drawn.left_out, "message is", "messages are");
            self.note(&format!(
                "{left_out} not drawn: a time span has too many messages, or too many at the same time"
            ));
        }
        Ok(())
    }

    fn events(&mut self, packets: &mut Packets) -> io::Result<()> {
        if !self.has_events() {
            let refused = self.seen.iter().find_map(|seen| match &seen.scope {
                SwitchScope::Nothing(why) => Some(format!("events could not be recorded: {why}")),
                _ => None,
            });
            let why = refused.unwrap_or_else(|| "the record has no events of the kernel".to_owned());
            self.note(&format!("{why}; the trace has messages and incidents only"));
            return Ok(());
        }
        let names = Names::of(&self.seen, &self.tables);
        let mut written = Written::default();
        let machine = |seen: &Switches| machine_of(seen, self.one_clock);
        for of_machine in self.seen.chunk_by(|one, next| machine(one) == machine(next)) {
            let Written { unreported, beyond } = kernel::write(packets, &names, of_machine)?;
            (written.unreported, written.beyond) = (written.unreported + unreported, written.beyond + beyond);
        }
        if written.unreported > 0 {
            let switches = some(written.unreported, "context switch was", "context switches were");
            self.note(&format!(
                "{switches} not reported by the kernel; the time in which each must have happened is shown as not recorded"
            ));
        }
        if written.beyond > 0 {
            let events = some(written.beyond, "event of a CPU above 1023 is", "events of CPUs above 1023 are");
            self.note(&format!("{events} left out, because the viewer has no such CPU"));
        }
        Ok(())
    }

    /// Says in the trace and in the notes what was converted from other clocks, and by how much its times can be wrong.
    fn converted(&mut self, packets: &mut Packets, top: Track) -> io::Result<()> {
        let conversions = [("pong", &self.pong), ("host of the guests", &self.host)];
        let said: Vec<_> =
            conversions.into_iter().filter_map(|(of, made)| Some((of, made.as_ref()?.said()?))).collect();
        for (of, (span, text)) in said {
            let track = packets.track(&format!("converted times ({of})"), Some(top))?;
            packets.slice(track, span, Slice::new(text.as_str(), "conversion"))?;
            self.note(&text);
        }
        Ok(())
    }
}

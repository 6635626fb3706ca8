//! Copies the circumstances of a run (hosts, trials, threads, loads, paths, clocks) from the record into the document.

use crate::{clocks, sample_faults};
use std::collections::BTreeMap;
use tailbound_document::{
    Clock, ClockWindow, Course, EndReport, Host, HostFact, LaterReading, LoadReport, PathReport, PathSide,
    RemovedReport, RepeatedReport, RunReport, Thread, ThreadReport, TrialReport, UntilMessage, UntilReport,
};
use tailbound_model::{
    ByteSize, FactValue, HostFacts, LOST, LoadPart, Policy, RoleScheduling, Scheduling, ThreadRow, ThreadTable, Trial,
    TrialSpec, TrialStatus, UntilTerm, Warning,
};
use tailbound_record::{
    ControllerUse, EndRecord, Manifest, Measured, Record, RemovedTrials, Repeated, TrialRecord, Until,
};

/// Data about the run that wrote the record: command, study, seed, order of trials.
pub(crate) fn run(manifest: &Manifest) -> RunReport {
    RunReport {
        id: manifest.run_id.clone(),
        began_unix_ns: manifest.began_unix_ns,
        command: manifest.command.clone(),
        recorded_by: manifest.tailbound.clone(),
        factors: manifest.plan.factors.clone(),
        seed: manifest.plan.seed,
        order: manifest.plan.trials.iter().map(|t| t.id).collect(),
        settings: manifest.plan.settings.clone(),
        study_source: manifest.plan.source.clone(),
        until: manifest.until.as_ref().map(until),
        repeated: manifest.repeated.as_ref().map(|repeated| self::repeated(repeated, manifest)),
    }
}

/// The repetition of the trials, with the times between the measurements.
fn repeated(repeated: &Repeated, manifest: &Manifest) -> RepeatedReport {
    let records: BTreeMap<usize, &TrialRecord> = manifest.trials.iter().map(|record| (record.id, record)).collect();
    let order = manifest.plan.trials.iter().filter_map(|t| records.get(&t.id));
    let measured = order.filter_map(|t| Some((t.began_unix_ns?, t.controller.as_ref()?.span_ns)));
    let spans: Vec<(i64, i64)> = measured.map(|(from_ns, ns)| (from_ns, from_ns + ns)).collect();
    let rolling = repeated.rolling.as_ref();
    // The times of removed trials are known only from the sums.
    let measured = rolling.map_or_else(|| Measured::of(&spans), |rolling| rolling.measured);
    let removed = |(condition, of): (&usize, &RemovedTrials)| RemovedReport {
        condition: *condition,
        trials: of.trials,
        not_valid: of.not_valid,
        scheduled: of.scheduled,
        answered: of.answered,
        late: of.late,
        incidents: of.incidents,
        longest_latency_ns: of.longest_latency_ns,
    };
    RepeatedReport {
        for_ns: repeated.time.0,
        disk_limit_bytes: repeated.disk.map(|ByteSize(bytes)| bytes),
        disk_reached: repeated.disk_reached,
        span_ns: measured.span_ns,
        measured_ns: measured.sum_ns,
        longest_gap_ns: measured.longest_gap_ns,
        removed: rolling.map(|rolling| rolling.removed.iter().map(removed).collect()),
        kept_trial_ids: rolling.map_or_else(Vec::new, |rolling| rolling.kept.clone()),
    }
}

/// The request to end the run at a message, and the message.
fn until(until: &Until) -> UntilReport {
    let found = until.found.as_ref().map(|message| UntilMessage {
        trial: message.trial,
        slot: message.slot,
        due_ns: message.due_ns,
        received_ns: message.received_ns,
        metric: match message.term {
            UntilTerm::Above { metric, .. } => metric.key().into(),
            UntilTerm::Lost => LOST.into(),
        },
        value_ns: message.value_ns,
        matches: message.matches,
    });
    UntilReport { condition: until.condition.to_string(), at_most_ns: until.at_most.map(|time| time.0), found }
}

/// Converts all trials of the plan into the form of the report document, in the order of their ids.
pub(crate) fn trials(
    manifest: &Manifest,
    spoilt: &dyn Fn(usize) -> bool,
    mut courses: BTreeMap<usize, Course>,
) -> Vec<TrialReport> {
    let mut trials: Vec<TrialReport> = manifest
        .plan
        .trials
        .iter()
        .map(|planned| {
            let record = manifest.trials.iter().find(|t| t.id == planned.id);
            TrialReport {
                id: planned.id,
                condition: planned.condition,
                repeat: planned.repeat,
                block: planned.block,
                status: match record {
                    Some(_) if spoilt(planned.id) => TrialStatus::Invalid,
                    Some(trial) => trial.status,
                    None => TrialStatus::Pending,
                },
                began_unix_ns: record.and_then(|t| t.began_unix_ns),
                t0_ns: record.and_then(|t| t.t0_ns),
                finding: record.and_then(|t| t.finding.clone()),
                course: courses.remove(&planned.id),
                over_time: None,
                pattern: None,
                controller_share: record.and_then(|t| controller_share(t.controller?)),
                ends: record.iter().flat_map(|t| &t.ends).map(|(name, e)| (name.clone(), end(e))).collect(),
                ports: record.map(|t| t.ports.clone()).unwrap_or_default(),
                guests: record.map(|t| t.guests.clone()).unwrap_or_default(),
            }
        })
        .collect();
    trials.sort_by_key(|t| t.id);
    trials
}

fn controller_share(used: ControllerUse) -> Option<f64> {
    (used.span_ns > 0).then(|| used.cpu_ns as f64 / used.span_ns as f64)
}

fn end(end: &EndRecord) -> EndReport {
    EndReport {
        host: end.host.clone(),
        clock: end.clock.clone(),
        qos: end.qos.clone(),
        serialised_bytes: end.serialised_bytes,
        matched_after_ns: end.matched_after_ns,
        rows_dropped: end.rows_dropped,
        hand_off_dropped: end.hand_off_dropped,
        answers_refused: end.answers_refused,
        control_bytes: end.control_bytes,
        memory_locked: end.memory_locked,
        timer_slack_ns: end.timer_slack_ns,
        counters: end.counters.clone(),
        transport: end.transport.clone(),
        peers: end.peers.clone(),
        stats: end.stats.clone(),
    }
}

fn fact(f: tailbound_model::Fact) -> HostFact {
    let (value, unknown) = match f.value {
        FactValue::Text(text) => (text.into(), None),
        FactValue::Number(number) => (number.into(), None),
        FactValue::Flag(flag) => (flag.into(), None),
        FactValue::Unknown(why) => (serde_json::Value::Null, Some(why)),
    };
    HostFact { key: f.key, value, unknown, source: f.source }
}

/// Converts the recorded facts of a host into the form of the report document.
pub(crate) fn host(facts: HostFacts) -> Host {
    Host { host: facts.host, boot_id: facts.boot_id, facts: facts.facts.into_iter().map(fact).collect() }
}

/// Reads the thread tables of all trials; a thread table that cannot be read becomes a warning.
pub(crate) fn threads(record: &Record, warnings: &mut Vec<Warning>) -> Vec<ThreadReport> {
    let mut trials: Vec<_> = record.manifest.plan.trials.iter().collect();
    trials.sort_by_key(|t| t.id);
    trials.into_iter().flat_map(|trial| threads_of(record, trial, warnings)).collect()
}

/// Reads the thread tables of one trial; a thread table that cannot be read becomes a warning.
pub(crate) fn threads_of(record: &Record, trial: &Trial, warnings: &mut Vec<Warning>) -> Vec<ThreadReport> {
    let spec = &record.manifest.plan.conditions[trial.condition].spec;
    let mut reports = Vec::new();
    for table in record.threads(trial.id) {
        let table = match table {
            Ok(table) => table,
            Err(e) => {
                warnings.push(sample_faults::unreadable(record, "threads_unreadable", &e).at_trial(trial.id));
                continue;
            }
        };
        reports.push(threads_of_table(trial.id, table, spec));
    }
    reports
}

/// The threads in one thread table of a trial.
pub(crate) fn threads_of_table(trial: usize, table: ThreadTable, spec: &TrialSpec) -> ThreadReport {
    let pong_only = !table.ends.is_empty() && table.ends.iter().all(|e| e == "pong");
    let asked: &Scheduling = if pong_only { &spec.pong.scheduling } else { &spec.ping.scheduling };
    ThreadReport {
        trial,
        read_ns: table.before_ns,
        asked_policy: asked.policy_text(),
        asked_cpus: asked.cpu_text(),
        span_ns: table.before_ns.zip(table.after_ns).map(|(before, after)| after - before),
        before: table.before.iter().map(|row| thread(row, asked, table.before_ns)).collect(),
        after: table.after.iter().map(|row| thread(row, asked, table.after_ns)).collect(),
        ends: table.ends,
        pid: table.pid,
    }
}

fn thread(row: &ThreadRow, asked: &Scheduling, read_ns: Option<i64>) -> Thread {
    let later = row.later.zip(read_ns).map(|(later, read_ns)| LaterReading {
        after_ns: later.at_ns - read_ns,
        cpu_ns: later.cpu_ns,
        run_delay_ns: later.run_delay_ns,
        runnable: later.runnable,
    });
    // An older record has the requested policy and CPUs only for the whole process, not for each thread.
    let of_process = RoleScheduling { policy: asked.policy, cpus: asked.cpus.clone() };
    let asked = if row.asked == RoleScheduling::default() { &of_process } else { &row.asked };
    Thread {
        asked_policy: asked.policy.map(|p| p.to_string()),
        asked_cpus: asked.cpus.as_ref().map(|c| c.to_string()),
        tid: row.tid,
        name: row.name.clone(),
        role: row.role.clone(),
        policy: row.policy.to_string(),
        priority: match row.policy {
            Policy::Fifo { priority } | Policy::Rr { priority } => Some(priority),
            _ => None,
        },
        cpus: row.cpus.to_string(),
        last_cpu: row.last_cpu,
        cpu_ns: row.cpu_ns,
        run_delay_ns: row.run_delay_ns,
        runnable: row.runnable,
        waiting_most_ns: row.waits_since_ns.zip(read_ns).map(|(since_ns, read_ns)| (read_ns - since_ns).max(0)),
        later,
        voluntary_switches: row.voluntary_switches,
        involuntary_switches: row.involuntary_switches,
        migrations: row.migrations,
        minor_faults: row.minor_faults,
        major_faults: row.major_faults,
        born_in: row.born_in.clone(),
        timer_slack_ns: row.timer_slack_ns,
    }
}

/// Time at which slot 0 of a trial was due, in ns, by the clock of the timestamps of `end`; `None` if the schedule of
/// the trial uses another clock.
fn t0_ns(trial: &tailbound_record::TrialRecord, end: &str) -> Option<i64> {
    trial.t0_ns.filter(|t0| *t0 != 0 && !clocks::apart(trial, end))
}

/// Reports what the loads did in each trial of the record.
pub(crate) fn loads(manifest: &Manifest) -> Vec<LoadReport> {
    let of = |trial: &tailbound_record::TrialRecord, load: &tailbound_model::LoadDone| {
        // The clock of a guest without an end is not compared with the clocks of the ends.
        let t0 = t0_ns(trial, &load.at).filter(|_| trial.ends.contains_key(&load.at));
        LoadReport {
            trial: trial.id,
            at: load.at.clone(),
            run: load.run.clone(),
            policy: load.policy.clone(),
            cpus: load.cpus.clone(),
            began_after_ns: t0.zip(load.began_ns).map(|(t0, began)| began - t0),
            began_ns: load.began_ns,
            ran_ns: load.began_ns.zip(load.ended_ns).map_or(0, |(began, ended)| ended - began),
            cpu_ns: load.cpu_ns,
            bytes: load.bytes,
            rounds: load.rounds,
            part: load.part.map(|part| match part {
                LoadPart::Sends => "sends".to_owned(),
                LoadPart::Receives => "receives".to_owned(),
            }),
            messages: load.messages,
            late: load.late,
            refused: load.refused,
            missing: load.missing,
            failed: load.failed.clone(),
        }
    };
    let all = manifest
        .trials
        .iter()
        .flat_map(|t| t.ends.values().flat_map(|end| &end.loads).chain(&t.neighbour_loads).map(move |l| of(t, l)));
    let mut all: Vec<LoadReport> = all.collect();
    all.sort_by_key(|l| l.trial);
    all
}

/// Reports the results of the path checks; trials with equal results share an entry.
pub(crate) fn paths(manifest: &Manifest) -> Vec<PathReport> {
    let mut reports: Vec<PathReport> = Vec::new();
    for trial in &manifest.trials {
        let Some(found) = &trial.path else { continue };
        let Some(planned) = manifest.plan.trials.iter().find(|t| t.id == trial.id) else { continue };
        let side = |e: &tailbound_model::PathEnd| PathSide {
            end: e.end.clone(),
            interface: e.interface.clone(),
            address: e.address.clone(),
            mtu: e.mtu,
            up: e.up,
            speed_mbit_s: e.speed_mbit_s,
            tx_queues: e.tx_queues,
            rx_queues: e.rx_queues,
            offloads: e.offloads.clone(),
            card: e.card.iter().cloned().map(fact).collect(),
            vlan: e.vlan.as_ref().map(ToString::to_string),
            shaping: e.shaping.as_ref().map(ToString::to_string),
        };
        let report = PathReport {
            trials: Vec::new(),
            path: manifest.plan.conditions[planned.condition].spec.path.to_string(),
            ends: found.ends.iter().map(side).collect(),
            max_datagram_ping_to_pong: found.max_datagram_ping_to_pong,
            max_datagram_pong_to_ping: found.max_datagram_pong_to_ping,
            fragments_pass: found.fragments_pass,
            multicast_passes: found.multicast_passes,
            probe_round_trip_ns: found.probe_round_trip_ns,
            remarks: found.remarks.clone(),
            discovery: found.discovery.clone(),
            security: found.security.clone(),
        };
        let same = |r: &&mut PathReport| PathReport { trials: Vec::new(), ..(**r).clone() } == report;
        match reports.iter_mut().find(same) {
            Some(shared) => shared.trials.push(trial.id),
            None => reports.push(PathReport { trials: vec![trial.id], ..report }),
        }
    }
    reports
}

/// Reports the clock of each host of the record.
pub(crate) fn clocks(manifest: &Manifest, two_clocks: &clocks::Clocks) -> Vec<Clock> {
    let mut all: BTreeMap<&str, Clock> = BTreeMap::new();
    for trial in &manifest.trials {
        for (name, end) in &trial.ends {
            let clock = all.entry(&end.host).or_insert_with(|| Clock {
                host: end.host.clone(),
                clock: "CLOCK_MONOTONIC".into(),
                conversion_width_ns: None,
                invalid_windows: Vec::new(),
            });
            clock.conversion_width_ns = clock.conversion_width_ns.max(end.clock_width_ns);
            // The windows are compared with the times of slots, so they must be of the same clock.
            let shown = end.invalid_windows.iter().filter(|_| !clocks::apart(trial, name));
            clock.invalid_windows.extend(shown.map(|w| ClockWindow {
                trial: trial.id,
                from_ns: w.from_ns,
                to_ns: w.to_ns,
                step_ns: w.step_ns,
                between_hosts: false,
            }));
        }
    }
    for (host, window) in two_clocks.windows() {
        if let Some(clock) = all.get_mut(host) {
            clock.invalid_windows.push(window);
        }
    }
    all.into_values().collect()
}

//! Describes what a run of a plan would do, without doing it.

use super::conditions::levels;
use super::{cpu_plan, discovery, knobs, security, tool, trial_length};
use crate::live_collect::ring_cells;
use std::fmt::Write;
use tailbound_lab::LabSpec;
use tailbound_model::*;

/// Describes as text what a run of the plan would do: conditions, order of trials, labs, commands, knobs, privileges
/// and expected time.
pub fn dry_run(plan: &Plan) -> String {
    let mut out = String::new();
    let allowed = tailbound_host::allowed_cpus();
    let _ = writeln!(out, "study {}: {}", plain(&plan.study), plain(&plan.question));
    let _ = writeln!(out, "\nconditions");
    for c in &plan.conditions {
        let levels = levels(c);
        match &c.not_possible {
            Some(reason) => {
                let _ = writeln!(out, "  {:>3}  {levels}: not possible: {reason}", c.id);
            }
            None => {
                let _ = writeln!(out, "  {:>3}  {levels}: {}", c.id, length(&c.spec));
            }
        }
    }
    let _ = writeln!(out, "\norder of trials (seed {})", plan.seed);
    for t in &plan.trials {
        let _ = writeln!(out, "  {:>3}  condition {} repeat {} lab {}", t.id, t.condition, t.repeat, t.block);
    }
    let mut labs: Vec<LabSpec> = Vec::new();
    for c in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        let spec = LabSpec::from(&c.spec);
        if !labs.contains(&spec) {
            labs.push(spec);
        }
    }
    let _ = writeln!(out, "\nlabs");
    for spec in &labs {
        for step in spec.describe() {
            let _ = writeln!(out, "  {step}");
        }
        for lack in spec.check() {
            let _ = writeln!(out, "  LACKING: {} ({})", lack.what, lack.remedy);
        }
    }
    for line in discovery::describe(plan).into_iter().chain(security::describe(plan)) {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(
        out,
        "\ncommands\n  tailbound agent --run-token RUN-N   (one per place, on CPUs {})",
        cpu_plan::housekeeping(plan, &allowed)
    );
    let _ = writeln!(out, "  tailbound agent --measure N         (one per agent and trial, the measuring process)");
    let possible = || plan.conditions.iter().filter(|c| c.not_possible.is_none());
    let mut tools: Vec<String> = possible().flat_map(|c| tool::describe(&c.spec)).collect();
    tools.dedup();
    tools.into_iter().for_each(|line| out.push_str(&line));
    let mut loads: Vec<String> = plan.conditions.iter().flat_map(|c| &c.spec.loads).map(load).collect();
    loads.sort();
    loads.dedup();
    loads.into_iter().for_each(|line| out.push_str(&line));
    if let Some(clock) = &plan.clock {
        let ClockSpec { by, within, held, .. } = clock;
        let _ = writeln!(
            out,
            "  {by} is asked for the offset of the clock of this host (and of each host by ssh or libvirt), until it has been within {within} for {held}, and during the trials"
        );
    }
    let _ = writeln!(out, "\nknobs and privileges");
    let mut asked: Vec<String> = Vec::new();
    for c in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        for (end, spec) in [("ping", &c.spec.ping), ("pong", &c.spec.pong)] {
            let cpus = spec.scheduling.cpu_text().map_or_else(|| "any CPU".into(), |c| format!("CPUs {c}"));
            let policy = spec.scheduling.policy_text().unwrap_or_else(|| "policy as inherited".into());
            let need = spec.scheduling.policies().map(need).max().unwrap_or_default();
            asked.push(format!("  {end}: {policy}, {cpus}{need}"));
        }
    }
    asked.sort();
    asked.dedup();
    for line in asked {
        let _ = writeln!(out, "{line}");
    }
    let by_card = |c: &Condition| c.spec.driver.options.get("timestamps").is_some_and(|stamps| stamps == "hardware");
    if plan.conditions.iter().any(|c| c.not_possible.is_none() && by_card(c)) {
        out.push_str("  network cards of the ends are set to stamp sent frames, and set back after each trial (needs CAP_NET_ADMIN)\n");
    }
    out.push_str(&process_settings(plan));
    if let Some(c) = plan.conditions.iter().find(|c| c.spec.collect == Collect::Live) {
        let _ = writeln!(out, "  rows are stored during the measurement, from rings of {} cells", ring_cells(&c.spec));
    }
    out.push_str(&knobs::describe(plan));
    let _ = writeln!(out, "\nabout {} in total", expected_time(plan));
    out
}

/// The settings of the measuring processes: of all threads, or where a condition asks for defaults, of Tailbound's own.
fn process_settings(plan: &Plan) -> String {
    let any = |of: fn(&MiddlewareSettings) -> bool| plan.conditions.iter().any(|c| of(&c.spec.middleware));
    let all = |of: fn(&MiddlewareSettings) -> bool| plan.conditions.iter().all(|c| of(&c.spec.middleware));
    let mut out = String::new();
    if !all(|m| m.unlocked_memory) {
        let some = if any(|m| m.unlocked_memory) { " in some conditions" } else { "" };
        let without = "CAP_IPC_LOCK or RLIMIT_MEMLOCK; without them, there is a warning";
        let _ = writeln!(out, "  memory is locked by mlockall{some} ({without})");
    }
    let kept = match (all(|m| m.default_timer_slack), any(|m| m.default_timer_slack)) {
        (true, _) => "; threads of the middleware keep the default",
        (false, true) => "; in some conditions, threads of the middleware keep the default",
        (false, false) => "",
    };
    let _ = writeln!(out, "  timer slack is 1 ns{kept}");
    out
}

/// Length of a trial as text: a number of slots or a duration.
fn length(spec: &TrialSpec) -> String {
    if spec.has_tool() {
        return format!("a tool for {}", trial_length::expected(spec));
    }
    let Some(flow) = spec.measure.flow() else {
        let (slots, warm_up) = trial_length::slots(spec);
        let loops = spec.measure.loops();
        return match loops {
            Some(loops) => {
                format!("{loops} loops after {warm_up} slots of warm-up, in at most {} slots", slots - warm_up)
            }
            None => format!("{} slots after {warm_up} of warm-up", slots - warm_up),
        };
    };
    let pack = if flow.pack > 1 { format!("; each message has {} payloads", flow.pack) } else { String::new() };
    let plural = if flow.subscribers == 1 { "" } else { "s" };
    let from = if flow.publishers > 1 { format!(" of {} publishers", flow.publishers) } else { String::new() };
    format!(
        "messages{from} to {} subscriber{plural} for {}, after a ramp-up of {} whose messages are not counted{pack}",
        flow.subscribers, flow.window, flow.ramp_up
    )
}

fn load(load: &LoadSpec) -> String {
    let policy = load.scheduling.policy.map_or("other".into(), |p| format!("{p}{}", need(p)));
    let cpus = load.scheduling.cpus.as_ref().map_or("any CPU".into(), |c| format!("CPUs {c}"));
    let length = load.duration.map_or(String::new(), |d| format!(" for {d}"));
    format!("  load at {}: {} (start {}{length}; {policy}, {cpus})\n", load.at, load.run, load.start)
}

/// Privilege that a scheduling policy needs, as text in brackets.
fn need(policy: Policy) -> &'static str {
    match policy {
        p if p.is_real_time() => " (needs CAP_SYS_NICE or RLIMIT_RTPRIO)",
        Policy::Other { nice } | Policy::Batch { nice } if nice < 0 => " (needs CAP_SYS_NICE or RLIMIT_NICE)",
        _ => "",
    }
}

/// About how long a run of the plan takes, with what each trial takes beside its messages.
pub fn expected_time(plan: &Plan) -> Nanos {
    Nanos(plan.trials.iter().map(|t| trial_length::expected(&plan.conditions[t.condition].spec).0 + 400_000_000).sum())
}

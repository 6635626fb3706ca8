//! The section of the HTML page about the threads of the measuring processes: requested and actual scheduling.

use crate::escape::{escape, thin};
use crate::html::table::{left, number, right, table, words};
use crate::picture::canvas::Medium;
use crate::picture::layout;
use tailbound_analysis::waited;
use tailbound_document::number::{Unit, count};
use tailbound_document::{Report, Thread, ThreadReport};

pub(crate) fn section(report: &Report) -> String {
    if report.threads.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section id=\"threads\"><h2>Threads</h2>\n");
    let differing = report.threads.iter().flat_map(|t| &t.after).filter(|row| differs(row)).count();
    let lead = match differing {
        0 => "Every thread of the measuring processes ran as requested.".to_owned(),
        1 => "One thread did not run as requested.".to_owned(),
        n => format!("{} threads did not run as requested.", count(n as u64)),
    };
    html.push_str(&format!(
        "<p class=\"lead\">{lead} Times and counts are from the first slot to the last slot.</p>\n"
    ));
    let mut trials: Vec<usize> = report.threads.iter().map(|t| t.trial).collect();
    trials.dedup();
    // Trials of one condition have the same layout, except for the CPUs on which threads ran last.
    let is_first = |trial: usize| {
        let condition_of = |id: usize| report.trial(id).map(|trial| trial.condition);
        trials.iter().find(|other| condition_of(**other) == condition_of(trial)) == Some(&trial)
    };
    let one = |trial: usize, open: bool| {
        let name = report.trial(trial).map_or("", |t| &report.conditions[t.condition].name);
        let mark = if otherwise(report, trial) { " (otherwise than asked)" } else { "" };
        format!(
            "<details{}><summary>Trial {trial}: {}{mark}</summary>\n{}{}</details>\n",
            if open { " open" } else { "" },
            escape(&thin(name)),
            if is_first(trial) { drawing(report, trial) } else { String::new() },
            threads(&processes(report, trial).collect::<Vec<_>>())
        )
    };
    // The first thread table is open. Of the others, tables with differences are shown and the rest is collapsed.
    let (first, others) = trials.split_first().unwrap_or((&0, &[]));
    html.push_str(&one(*first, true));
    let (differing, same): (Vec<usize>, Vec<usize>) = others.iter().partition(|t| otherwise(report, **t));
    html.extend(differing.into_iter().map(|t| one(t, false)));
    let rest: String = same.iter().map(|t| one(*t, false)).collect();
    match same.len() {
        0 => {}
        1 => html.push_str(&rest),
        n => html.push_str(&format!("<details><summary>{n} more trials</summary>\n{rest}</details>\n")),
    }
    html.push_str("</section>\n");
    html
}

/// The drawing of the CPUs of a trial's threads.
fn drawing(report: &Report, trial: usize) -> String {
    let drawn = layout::draw(report, trial, Medium::Page);
    drawn.map_or(String::new(), |drawn| {
        format!(
            "<figure><div class=\"picture\">{}</div><figcaption>{}.</figcaption></figure>\n",
            drawn.embed(),
            layout::TITLE
        )
    })
}

fn processes(report: &Report, trial: usize) -> impl Iterator<Item = &ThreadReport> {
    report.threads.iter().filter(move |t| t.trial == trial)
}

fn otherwise(report: &Report, trial: usize) -> bool {
    processes(report, trial).any(|p| p.after.iter().any(differs))
}

fn differs(row: &Thread) -> bool {
    let other = |asked: &Option<String>, found: &str| asked.as_ref().is_some_and(|a| a != found);
    other(&row.asked_policy, &row.policy) || other(&row.asked_cpus, &row.cpus)
}

fn threads(processes: &[&ThreadReport]) -> String {
    let used =
        |f: fn(&Thread) -> u64| processes.iter().flat_map(|p| &p.after).map(move |t| f(t) as i64).collect::<Vec<_>>();
    // The unit is chosen for the long times, so a thread that did nothing is shown as 0.
    let unit = |values: Vec<i64>| Unit::of(values.into_iter().max().unwrap_or(0) as f64 / 10.0);
    let delays = processes
        .iter()
        .flat_map(|p| p.after.iter().map(|row| waited(p, row).map_or(row.run_delay_ns as i64, |w| w.ns)));
    let (cpu, delay) = (unit(used(|t| t.cpu_ns)), unit(delays.collect()));
    let heads = [
        left("end"),
        left("thread"),
        left("role"),
        left("policy"),
        left("CPUs"),
        right("CPU time", cpu.name()),
        right("run delay", delay.name()),
        right("switches", "own"),
        right("switches", "forced"),
        right("migrations", ""),
    ];
    let mut rows = Vec::new();
    for process in processes {
        for row in &process.after {
            let before = process.before.iter().find(|b| b.tid == row.tid);
            let since = |f: fn(&Thread) -> u64| f(row).saturating_sub(before.map_or(0, f));
            let mut cells = words(&process.ends.join(" and ")) + &words(&row.name) + &words(&row.role);
            cells.push_str(&asked_found(
                row.asked_policy.as_deref().map(policy_words).as_deref(),
                &policy_words(&row.policy),
            ));
            cells.push_str(&asked_found(row.asked_cpus.as_deref(), &row.cpus));
            cells.push_str(&number(&cpu.number(since(|t| t.cpu_ns) as f64)));
            let (waited, sign) = match waited(process, row) {
                Some(waited) => (waited.ns, waited.bound.sign()),
                None => (since(|t| t.run_delay_ns) as i64, ""),
            };
            cells.push_str(&number(&format!("{sign}{}", delay.number(waited as f64))));
            cells.push_str(&number(&count(since(|t| t.voluntary_switches))));
            cells.push_str(&number(&count(since(|t| t.involuntary_switches))));
            let moves = row.migrations.map(|m| m.saturating_sub(before.and_then(|b| b.migrations).unwrap_or(0)));
            cells.push_str(&number(&moves.map_or("not known".into(), count)));
            rows.push(format!("<tr>{cells}</tr>\n"));
        }
    }
    table(&heads, &rows)
}

/// A scheduling policy in words: the kernel's name of the policy of ordinary threads, `other`, does not say what it is.
fn policy_words(policy: &str) -> String {
    match policy.strip_prefix("other") {
        Some("") => "normal priority".to_owned(),
        Some(nice) => format!("normal priority,{nice}"),
        None => policy.to_owned(),
    }
}

fn asked_found(asked: Option<&str>, found: &str) -> String {
    match asked {
        Some(asked) if asked != found => {
            format!(
                "<td class=\"l\"><span class=\"bad\">{}</span><span class=\"interval\">asked: {}</span></td>",
                escape(found),
                escape(asked)
            )
        }
        _ => words(found),
    }
}

//! Formats the report as Markdown, for an issue, a wiki or a merge request.

use crate::escape::escape_markdown as escape;
use crate::plain::plain;
use crate::tables;
use crate::tables::bins::ELSEWHERE;
use crate::tables::summary::{Summary, summary};
use crate::tables::value_column::ValueColumn;
use crate::tables::warnings::warning_text;
use crate::tables::{against, clock_history, next_steps, remaining, tools, warnings};
use tailbound_document::{AgainstRow, ClockHistoryReport, PublishedReport, Report};

/// Formats the report as Markdown: findings, tables and warnings.
pub fn render_markdown(report: &Report) -> String {
    let report = &plain(report);
    let mut text = format!("# {}\n\n", escape(&report.view.title));
    for finding in &report.findings {
        text.push_str(&format!("- {}\n", escape(&finding.text)));
    }
    text.push_str(&next(report));
    let table = summary(report);
    for (title, columns) in crate::tables::flow::tables(report) {
        text.push_str(&flow(&table, title, &columns));
    }
    let mut notes = crate::tables::writer::notes(report);
    if crate::tables::flow::is_all(report) {
        let reason = |c: &tailbound_document::ConditionReport| {
            let reason = c.not_possible.as_ref().or(c.finding.as_ref())?;
            Some(format!("{}: {reason}", c.name))
        };
        notes.extend(report.conditions.iter().filter_map(reason));
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    notes.iter().for_each(|n| text.push_str(&format!("- {}\n", escape(n))));
    if !crate::tables::flow::is_all(report) && !report.conditions.is_empty() {
        text.push_str(&round_trips(&table));
    }
    text.push_str(&since(report));
    if let Some(of) = &report.against {
        let levels = against::of_rows(report, of);
        text.push_str(&flow(&levels, &against::title(of), &against::columns(of)));
        let name = |row: &AgainstRow| &report.conditions[row.condition].name;
        let notes =
            of.rows.iter().flat_map(|r| against::notes(r).into_iter().map(move |n| format!("{}: {n}", name(r))));
        let notes: Vec<String> = notes.chain([against::lack(of)]).filter(|n| !n.is_empty()).collect();
        text.push_str(if notes.is_empty() { "" } else { "\n" });
        notes.iter().for_each(|n| text.push_str(&format!("- {}\n", escape(n))));
    }
    if let Some(of) = crate::tables::spread::of(report) {
        text.push_str(&flow(&of.levels, &of.title, &of.columns));
    }
    tables::published::all(report).for_each(|of| text.push_str(&published(of)));
    let legs = crate::tables::legs::columns(report);
    if !legs.is_empty() {
        text.push_str(&flow(&table, crate::tables::legs::TITLE, &legs));
    }
    for (title, columns) in crate::tables::range::tables(report) {
        text.push_str(&flow(&table, &title, &columns));
    }
    let causes: Vec<String> = crate::tables::causes::sentences(report).map(|c| format!("1. {}\n", escape(c))).collect();
    if let Some(condition) = crate::tables::causes::worst_condition(report).filter(|_| !causes.is_empty()) {
        text.push_str(&format!("\n## The worst incidents of {}\n\n{}", escape(&condition.name), causes.concat()));
        let without: Vec<String> = remaining::sentences(condition).map(|s| format!("- {}\n", escape(&s))).collect();
        if !without.is_empty() {
            text.push_str(&format!("\n{}\n\n{}", escape(&remaining::rule(condition)), without.concat()));
        }
        let recorded: Vec<String> =
            crate::tables::causes::recordings(report, condition).map(|text| escape(&text)).collect();
        if !recorded.is_empty() {
            text.push_str(&format!("\n{}\n", recorded.join(" ")));
        }
    }
    for recorded in crate::tables::causes::recordings_of_flows(report) {
        text.push_str(&format!("\n{}\n", escape(&recorded)));
    }
    for (condition, gate) in crate::tables::gates::all(report) {
        text.push_str(&format!("\n{}\n", escape(&crate::tables::gates::sentences(condition, gate))));
        let table = crate::tables::gates::lines(gate);
        if !table.is_empty() {
            text.push_str(&format!("\n```text\n{}\n```\n", table.join("\n")));
        }
    }
    for (condition, launch) in crate::tables::launch::all(report) {
        text.push_str(&format!("\n{}\n", escape(&crate::tables::launch::sentences(condition, launch))));
    }
    let usual: Vec<String> = crate::tables::usual::all(report)
        .map(|(condition, of)| format!("- {}\n", escape(&crate::tables::usual::sentence(&condition.name, of))))
        .collect();
    if !usual.is_empty() {
        text.push_str(&format!("\n## Where the time of ordinary messages goes\n\n{}", usual.concat()));
    }
    for (condition, of) in crate::tables::stages::all(report) {
        let (sentences, table) =
            (crate::tables::stages::sentences(condition, of), crate::tables::stages::lines(of).join("\n"));
        text.push_str(&format!("\n{}\n\n```text\n{table}\n```\n", escape(&sentences)));
    }
    report.clock_history.iter().for_each(|of| text.push_str(&clock(of)));
    let ways = crate::tables::path_proof::lines(report);
    if !ways.is_empty() {
        text.push_str("\nPath that the messages took:\n\n");
    }
    for (which, way) in ways {
        text.push_str(&format!("- {}: {}\n", escape(&which), escape(&way)));
    }
    let nodes = crate::tables::nodes::lines(report);
    if !nodes.is_empty() {
        text.push_str("\nNodes of the cluster:\n\n");
    }
    for (of, told) in nodes {
        text.push_str(&format!("- {}: {}\n", escape(&of), escape(&told)));
    }
    if !report.tools.is_empty() {
        text.push_str("\n## Other programs\n\nPrinted by them, not measured by Tailbound.\n\n| program | figures | what they mean |\n| --- | --- | --- |\n");
    }
    for tool in &report.tools {
        let cells = [tools::origin(tool), tools::lines(tool).join("; "), tools::notes(tool)];
        text.push_str(&format!("| {} |\n", cells.map(|c| escape(&c)).join(" | ")));
    }
    if !report.warnings.is_empty() {
        text.push_str("\n## Warnings\n\n");
    }
    for warning in warnings::grouped(&report.warnings) {
        text.push_str(&format!("- {}\n", escape(&warning_text(&warning))));
    }
    text.push_str(&format!("\nTailbound {}, study `{}`, run {}.\n", report.tailbound, report.study, report.run.id));
    text
}

/// Formats the next steps with their commands as Markdown; empty if there are no steps.
fn next(report: &Report) -> String {
    let steps = next_steps::steps(report);
    if steps.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n## Next step\n\n");
    for step in steps {
        text.push_str(&format!("- {}\n", escape(&next_steps::sentences(step))));
    }
    let commands: Vec<&str> = steps.iter().flat_map(next_steps::commands).chain(next_steps::tune(steps)).collect();
    if !commands.is_empty() {
        text.push_str(&format!("\n```sh\n{}\n```\n", commands.join("\n")));
    }
    text
}

/// Formats what changed since the last run of the study as Markdown; empty if there is no earlier record.
fn since(report: &Report) -> String {
    let Some(since) = tables::since::of(report) else { return String::new() };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("\n## {}\n\n{}\n\n", tables::since::TITLE, escape(&tables::since::lead(since)));
    text.push_str(&line(tables::since::HEADS.map(str::to_owned).to_vec()));
    text.push_str("| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
    for row in tables::since::rows(since) {
        text.push_str(&line(row.map(|cell| escape(&cell)).to_vec()));
    }
    text.push_str("\nChanged between the runs:\n\n");
    for change in tables::since::changes(since) {
        text.push_str(&format!("- {}\n", escape(&change)));
    }
    text.push_str(&format!("\n```sh\n{}\n```\n", tables::since::command(since)));
    text
}

/// Formats a published result as Markdown, with the figures of this report beside its numbers.
fn published(of: &PublishedReport) -> String {
    let mut text = format!("\n### {}\n\nPublished numbers: {ELSEWHERE}.", escape(&of.name));
    let about = tables::published::about(of);
    text.push_str(&if about.is_empty() { "\n".to_owned() } else { format!(" {}\n", escape(&about)) });
    if let Some(table) = &of.table {
        let (mut heads, mut rule) = (vec![escape(&table.axis)], vec!["---"]);
        let [published, own] = tables::published::sides(table);
        // A column has the published side, unless the publication gives no number in it.
        let sides = |nth: usize| {
            let here = table.columns[nth].here.is_some() && tables::published::is_measured(table);
            [(published, !here || tables::published::gives(table, nth)), (own, here)]
        };
        for (nth, column) in table.columns.iter().enumerate() {
            let sides = sides(nth).into_iter().filter(|(_, with)| *with);
            heads.extend(sides.map(|(side, _)| format!("{}{side}, {}", escape(&column.name), column.unit)));
            rule.resize(heads.len(), "---:");
        }
        if tables::published::rows(table).next().is_some() {
            text.push_str(&format!("\n| {} |\n| {} |\n", heads.join(" | "), rule.join(" | ")));
        }
        for row in tables::published::rows(table) {
            let mut cells = vec![escape(&row.name)];
            for (nth, cell) in row.cells.iter().enumerate() {
                let [(_, published), (_, here)] = sides(nth);
                cells.extend(published.then(|| tables::published::number(cell.published)));
                cells.extend(here.then(|| tables::published::here(cell)));
            }
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        text.push('\n');
        let notes = tables::published::row_notes(table).into_iter().chain(tables::published::notes(table));
        notes.for_each(|note| text.push_str(&format!("- {}\n", escape(&note))));
    }
    if !of.differs.is_empty() {
        text.push_str("\nDiffers from the original:\n\n");
    }
    of.differs.iter().for_each(|difference| text.push_str(&format!("- {}\n", escape(difference))));
    text
}

/// Formats the history of a clock as Markdown.
fn clock(of: &ClockHistoryReport) -> String {
    let windows: String = clock_history::windows(of).iter().map(|line| format!("- {}\n", escape(line))).collect();
    let table = match clock_history::lines(of) {
        lines if lines.is_empty() => String::new(),
        lines => format!("\n```text\n{}\n```\n", lines.join("\n")),
    };
    let windows = if windows.is_empty() { windows } else { format!("\n{windows}") };
    format!("\n{}\n{windows}{table}", escape(&clock_history::sentences(of)))
}

/// Formats the table of the round trips of all conditions as Markdown.
fn round_trips(table: &Summary) -> String {
    let mut text = String::new();
    let over = if table.shared.is_empty() { String::new() } else { format!(" ({})", escape(&table.shared)) };
    text.push_str(&format!("\nRound trip, with 95 % intervals{over}:\n\n"));
    let mut heads: Vec<String> = table.factors.iter().map(|f| escape(f)).collect();
    heads.extend(table.heads.iter().cloned());
    heads.push("lost".into());
    if table.some_not_sent {
        heads.push("not sent".into());
    }
    let noted = table.rows.iter().any(|r| !r.mark.is_empty());
    if noted {
        heads.push(String::new());
    }
    let left = table.factors.len();
    let rule: Vec<&str> = (0..heads.len()).map(|i| if i < left { "---" } else { "---:" }).collect();
    text.push_str(&format!("| {} |\n| {} |\n", heads.join(" | "), rule.join(" | ")));
    for row in &table.rows {
        let mut cells: Vec<String> = row.levels.iter().map(|l| escape(l)).collect();
        let quantile = |c: &crate::tables::summary::Cell| match c.interval.as_str() {
            "" => c.value.clone(),
            interval => format!("{} ({interval})", c.value),
        };
        cells.extend(row.cells.iter().map(quantile));
        cells.extend([row.max.clone(), row.lost.clone()]);
        if table.some_not_sent {
            cells.push(row.not_sent.clone());
        }
        if noted {
            cells.push(row.mark.into());
        }
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// Formats a table with a title, such as the tables of flows, as Markdown.
fn flow(table: &Summary, title: &str, columns: &[ValueColumn]) -> String {
    let mut heads: Vec<String> = table.factors.iter().map(|f| escape(f)).collect();
    let left = heads.len();
    heads.extend(columns.iter().map(|c| format!("{} {}", c.head, c.unit).trim_end().to_owned()));
    let rule: Vec<&str> = (0..heads.len()).map(|i| if i < left { "---" } else { "---:" }).collect();
    let mut text = format!("\n{}:\n\n| {} |\n| {} |\n", escape(title), heads.join(" | "), rule.join(" | "));
    for (i, row) in table.rows.iter().enumerate() {
        let mut cells: Vec<String> = row.levels.iter().map(|l| escape(l)).collect();
        let cell = |c: &ValueColumn| match &c.cells[i] {
            (value, below) if below.is_empty() => value.clone(),
            (value, below) => format!("{value} ({below})"),
        };
        cells.extend(columns.iter().map(cell));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

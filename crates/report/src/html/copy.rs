//! The section of the HTML page with what a reader takes along: a summary as text, the command that repeats the run, and
//! links to the measured times.

use crate::escape::escape;
use crate::findings::causes;
use crate::tables::summary::summary;
use tailbound_document::Report;
use tailbound_model::TrialStatus;

/// Largest number of conditions in the summary.
const CONDITIONS: usize = 12;

/// HTML of the section. `served` is true if a server shows the page, which does not serve the files of the record.
pub(crate) fn section(report: &Report, served: bool) -> String {
    if report.conditions.is_empty() {
        return String::new();
    }
    let raw = if served { String::new() } else { raw(report) };
    format!(
        "<section id=\"copy\"><h2>Copy and repeat</h2>\n<p class=\"note\">The command of this run:</p>\n\
         <pre tabindex=\"0\">{}</pre>\n{}<details><summary>Summary as text</summary>\n\
         <pre tabindex=\"0\">{}</pre></details>\n{raw}</section>\n",
        escape(&command(report)),
        copy_button(),
        escape(&text(report)),
    )
}

/// The button with which the script copies the summary.
fn copy_button() -> &'static str {
    "<p class=\"only-screen copies\"><button type=\"button\" data-copies=\"#copy details pre\">Copy the summary</button>\
     <button type=\"button\" data-copies=\"#copy > pre\">Copy the command</button></p>\n"
}

/// The command line of the run, for a shell. The program is named without its directory.
fn command(report: &Report) -> String {
    let program = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let words = report.run.command.split_first().map(|(first, rest)| [&[program(first)], rest].concat());
    words.unwrap_or_default().iter().map(|word| tailbound_analysis::shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The summary: what was measured, the figures of the conditions, and the causes of late messages.
fn text(report: &Report) -> String {
    let hosts: Vec<&str> = report.facts.iter().map(|h| h.host.as_str()).collect();
    let mut text = format!(
        "{}\nstudy {}, {}, {}, tailbound {}, run {}\n",
        report.view.title,
        report.study,
        hosts.join(", "),
        crate::date::utc(report.run.began_unix_ns),
        report.run.recorded_by,
        report.run.id
    );
    let table = summary(report);
    for (condition, row) in report.conditions.iter().zip(&table.rows).take(CONDITIONS) {
        let cell = |(head, cell): (&String, &crate::tables::summary::Cell)| {
            let (name, unit) = head.split_once(' ').unwrap_or((head, ""));
            let interval = if cell.interval.is_empty() { String::new() } else { format!(" ({})", cell.interval) };
            format!("{name} {}{interval} {unit}", cell.value).trim_end().to_owned()
        };
        let mut cells: Vec<String> = table.heads.iter().zip(&row.cells).map(cell).collect();
        if let Some(head) = table.heads.last().filter(|_| !row.max.is_empty()) {
            cells.push(head.replacen("max", &format!("max {}", row.max), 1));
        }
        if !row.lost.is_empty() {
            cells.push(format!("lost {}", row.lost));
        }
        let mark = if row.mark.is_empty() { String::new() } else { format!(" [{}]", row.mark) };
        text.push_str(&format!("- {}{mark}: {}\n", condition.name, cells.join(", ")));
    }
    if report.conditions.len() > CONDITIONS {
        text.push_str(&format!("- and {} more conditions\n", report.conditions.len() - CONDITIONS));
    }
    if let Some(cause) = crate::html::lead::worst_condition(report).and_then(causes::total) {
        text.push_str(&format!("Why: {}\n", cause.replace('`', "")));
    }
    text + &format!("Command: {}\n", command(report))
}

/// Links to the times of the messages of each trial, relative to the directory of the record.
fn raw(report: &Report) -> String {
    let measured =
        |id: &&usize| report.trial(**id).is_some_and(|t| t.status == TrialStatus::Valid && !t.ends.is_empty());
    let of_trial = |id: &usize| {
        let ends = report.trial(*id).map(|t| t.ends.keys()).into_iter().flatten();
        let files: Vec<String> =
            ends.map(|end| format!("<a href=\"samples/{id}/{0}-0.parquet\">{0}</a>", escape(end))).collect();
        format!("<li>trial {id}: {}</li>\n", files.join(", "))
    };
    let items: String = report.run.order.iter().filter(measured).map(of_trial).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<details><summary>Measured times</summary>\n<p class=\"note\">Parquet files of the record, if this page lies in \
         it. Each file is the first segment of an end.</p>\n<ul class=\"files\">{items}</ul></details>\n"
    )
}

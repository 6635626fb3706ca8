//! Runs `tailbound tune export`: prints the kept changes of a receipt in the form of another program. Nothing is written.
//!
//! Input: a receipt and a form. Output: text whose first lines, a comment, name the receipt, and each kept setting that the form
//! cannot express, with the reason.

mod host_forms;
mod page;
mod program_forms;
mod vendor_forms;

use super::changes::{Changes, EndName};
use super::replay::read;
use crate::cli::{End, TuneFormat, Vendor};
use crate::commands::export::comment;
use crate::failure::{CommandResult, Failure};
use crate::output::{out, outln};
use clap::ValueEnum;
use page::Page;
use std::path::Path;
use tailbound_model::ExitCode;
use tailbound_tune::{Outcome, Receipt};

/// Prints the kept changes of a receipt. `end`: whose program the form is for; needed only if kept changes concern both ends.
pub fn export(path: &Path, format: TuneFormat, end: Option<End>) -> CommandResult {
    let receipt = read(path)?;
    let changes = Changes::of(&receipt, path)?;
    let end = chosen(&changes, format, end)?;
    let page = write(&receipt, &changes, format, end)?;
    if page.lines.is_empty() {
        return Err(nothing(path, &receipt, &changes, format, end));
    }
    let comment_lines = page.comment(&head(&receipt, path, format));
    if is_xml(format) {
        out!("{}", comment(&comment_lines));
        // The configuration of a vendor ends with a line end of its own.
        page.lines.iter().for_each(|line| outln!("{}", line.trim_end()));
        return Ok(ExitCode::Done);
    }
    comment_lines.iter().for_each(|line| outln!("# {line}"));
    page.lines.iter().for_each(|line| outln!("{line}"));
    Ok(ExitCode::Done)
}

/// The form with which a kept setting can be taken along: the first one, in the order of the help text, that says anything.
pub fn form_for(receipt: &Receipt, changes: &Changes, setting: &str) -> Option<TuneFormat> {
    let says = |format: &&TuneFormat| {
        EndName::BOTH.into_iter().any(|end| {
            let page = write(receipt, changes, **format, end);
            page.is_ok_and(|page| !page.lines.is_empty() && page.left_out.iter().all(|(of, _)| of != setting))
        })
    };
    TuneFormat::value_variants().iter().find(says).copied()
}

fn write(receipt: &Receipt, changes: &Changes, format: TuneFormat, end: EndName) -> Result<Page, Failure> {
    let kept = receipt.tried.iter().filter(|tried| tried.outcome == Outcome::Kept);
    let answers_quota = kept.into_iter().any(|tried| tried.candidate.rule == "real-time-beside-quota");
    Ok(match format {
        TuneFormat::Sysctl => host_forms::sysctl(changes),
        TuneFormat::Systemd => program_forms::systemd(changes, end, answers_quota),
        TuneFormat::Tuned => host_forms::tuned(changes),
        TuneFormat::Cmdline => host_forms::cmdline(changes),
        TuneFormat::Cyclonedds => vendor_forms::configuration(changes, end, Vendor::Cyclonedds)?,
        TuneFormat::Fastdds => vendor_forms::configuration(changes, end, Vendor::Fastdds)?,
        TuneFormat::Connext => vendor_forms::connext(changes, end),
        TuneFormat::Kubernetes => program_forms::kubernetes(changes, end),
        TuneFormat::Libvirt => program_forms::libvirt(changes, end),
    })
}

fn is_xml(format: TuneFormat) -> bool {
    matches!(format, TuneFormat::Cyclonedds | TuneFormat::Fastdds | TuneFormat::Connext | TuneFormat::Libvirt)
}

/// True if the form is for the host as a whole, so that it does not depend on the end.
fn is_of_host(format: TuneFormat) -> bool {
    matches!(format, TuneFormat::Sysctl | TuneFormat::Tuned | TuneFormat::Cmdline)
}

/// The end whose program the form is for.
fn chosen(changes: &Changes, format: TuneFormat, end: Option<End>) -> Result<EndName, Failure> {
    match end {
        Some(End::Ping) => return Ok(EndName::Ping),
        Some(End::Pong) => return Ok(EndName::Pong),
        None => {}
    }
    let has = |end: EndName| changes.effects().any(|(_, effect)| effect.end() == Some(end));
    match (has(EndName::Ping), has(EndName::Pong)) {
        (true, true) if !is_of_host(format) => {
            let what = "kept changes concern the programs at both ends, and this form is for one program";
            Err(Failure::bad_input(what).help("add --end ping (the program that sends first) or --end pong"))
        }
        (false, true) => Ok(EndName::Pong),
        _ => Ok(EndName::Ping),
    }
}

/// Sentences that say where the output comes from.
fn head(receipt: &Receipt, path: &Path, format: TuneFormat) -> Vec<String> {
    let what = words(format);
    let mut head = vec![format!(
        "Kept by `tailbound tune` for {} of study {}, as {what}: {}",
        receipt.figure,
        receipt.name,
        path.display()
    )];
    match &receipt.gain {
        Some(gain) if gain.confirmed => {}
        _ => head.push("The gain of these changes was NOT confirmed on fresh trials.".to_owned()),
    }
    head
}

fn words(format: TuneFormat) -> &'static str {
    match format {
        TuneFormat::Sysctl => "lines for /etc/sysctl.d",
        TuneFormat::Systemd => "a drop-in of systemd",
        TuneFormat::Tuned => "a profile of TuneD",
        TuneFormat::Cmdline => "words for the kernel command line",
        TuneFormat::Cyclonedds => "a configuration of Cyclone DDS",
        TuneFormat::Fastdds => "a profile of Fast DDS",
        TuneFormat::Connext => "a QoS profile of RTI Connext",
        TuneFormat::Kubernetes => "lines for a pod of Kubernetes",
        TuneFormat::Libvirt => "elements for a domain of libvirt",
    }
}

/// The error for a form that can express none of the kept changes.
fn nothing(path: &Path, receipt: &Receipt, changes: &Changes, format: TuneFormat, end: EndName) -> Failure {
    let what = format!(
        "{}: none of the kept changes can be written as {}: {}",
        path.display(),
        words(format),
        receipt.kept.iter().map(|setting| format!("`{setting}`")).collect::<Vec<_>>().join(", "),
    );
    let fits = |format: &&TuneFormat| write(receipt, changes, **format, end).is_ok_and(|page| !page.lines.is_empty());
    let fitting: Vec<String> = TuneFormat::value_variants()
        .iter()
        .filter(fits)
        .filter_map(|format| Some(format!("--format {}", format.to_possible_value()?.get_name())))
        .collect();
    let help = match fitting.is_empty() {
        true => {
            let home = changes.effects().next().map(|(setting, effect)| format!("{setting}: {}", page::home(effect)));
            format!("no form can express them; {}", home.unwrap_or_default())
        }
        false => format!("these forms can express at least one of them: {}", fitting.join(", ")),
    };
    Failure::bad_input(what).help(help)
}

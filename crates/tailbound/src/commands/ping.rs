//! Runs `tailbound ping`: measures round trips of one driver, payload and rate without a study file.

use super::ping_target::target;
use super::record_dir::RecordDir;
use super::run::{self, Shown};
use crate::cli::Ping;
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use tailbound_lab::userns::{self, Privilege};
use tailbound_model::{Severity, Warning};
use tailbound_run::RunOptions;

pub fn ping(args: &Ping) -> CommandResult {
    check_driver(&args.driver)?;
    let (ends, warnings) = ends(args.to.as_deref())?;
    let text = study(args, &ends);
    // A study that cannot be run is not written.
    let plan = run::load_text("ping", &text, Path::new(""), &[])?;
    let mut dir = RecordDir::choose(args.record.out.as_deref(), "ping", args.record.force)?;
    if let Some(file) = &args.save_study {
        save(file, &text)?;
    }
    let shown = if args.verbose { Shown::All } else { Shown::Short };
    let options = run::options(&dir, &args.record, warnings);
    let code = run::execute(plan, &mut dir, RunOptions { figures: true, ..options }, shown)?;
    if args.save_study.is_none() {
        outln!("\nThe study that this was (--save-study FILE writes it, `tune FILE` tries changes):\n");
        text.lines().for_each(|line| outln!("  {line}"));
    }
    Ok(code)
}

/// Refuses a driver that is not there, before the study of the measurement is made.
fn check_driver(name: &str) -> Result<(), Failure> {
    let known = drivers::known();
    if name.contains('/') || known.iter().any(|driver| driver == name) {
        return Ok(());
    }
    let made_by = match name {
        "fastdds" => "`dev/fastdds` builds it, with the package libfastrtps-dev; ".to_owned(),
        _ if tailbound_study::BUILT_APART.contains(&name) => format!("`dev/{name}` builds it; "),
        _ => String::new(),
    };
    let candidates = known.iter().map(String::as_str).chain(tailbound_study::BUILT_APART);
    let near = match (made_by.as_str(), tailbound_study::nearest(name, candidates)) {
        ("", Some(near)) => format!("did you mean `{near}`? "),
        _ => String::new(),
    };
    let help = format!("{made_by}{near}`tailbound driver list` shows the drivers that are installed");
    Err(Failure::bad_input(format!("there is no driver `{name}`")).help(help))
}

/// The keys of the study that say where the ends run, its question, and warnings about them.
struct Ends {
    question: String,
    keys: String,
}

fn ends(to: Option<&str>) -> Result<(Ends, Vec<Warning>), Failure> {
    if let Some(host) = to {
        let (own, theirs) = target(host)?;
        let keys = format!(
            "ends: {{ pong: {{ place: {{ ssh: {{ host: \"{host}\" }} }} }} }}\n\
             path: {{ existing: {{ ping: {{ address: {own} }}, pong: {{ address: {theirs} }} }} }}\n"
        );
        let question = format!("How late can a message be between this host and {host}?");
        return Ok((Ends { question, keys }, Vec::new()));
    }
    let question = "How late can a message be between two processes of this machine?".to_owned();
    let (keys, warnings) = match userns::enter_if_needed(true).map_err(Failure::not_fit)? {
        Privilege::None { reason } => ("path: loopback\nplace: process\n", vec![loopback_instead(&reason)]),
        _ => ("path: veth\nplace: netns\n", Vec::new()),
    };
    Ok((Ends { question, keys: keys.to_owned() }, warnings))
}

/// The warning of a measurement for which no network namespaces can be made.
pub fn loopback_instead(reason: &str) -> Warning {
    Warning::new(
        "loopback_instead",
        Severity::Warning,
        format!("the run measures over loopback in place of two network namespaces: {reason}"),
        "run as root, or allow user namespaces",
    )
}

/// The study of a measurement, as the user can save and change it.
fn study(args: &Ping, ends: &Ends) -> String {
    let Ping { driver, rate, size, duration, .. } = args;
    let Ends { question, keys } = ends;
    let driver = if driver.contains('/') { format!("\"{driver}\"") } else { driver.clone() };
    format!(
        "study: ping\nquestion: {question}\nmeasure: {{ ping-pong: {{ duration: {duration} }} }}\nrate: {rate}\n\
         payload: {size}\ndriver: {driver}\n{keys}"
    )
}

/// Writes the study to a file that does not exist yet.
fn save(file: &Path, text: &str) -> Result<(), Failure> {
    let made = OpenOptions::new().write(true).create_new(true).open(file);
    made.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|e| {
        let failure = Failure::bad_input(format!("--save-study {}: cannot write the study: {e}", file.display()));
        match e.kind() {
            std::io::ErrorKind::AlreadyExists => failure.help("name another file; existing files are not overwritten"),
            std::io::ErrorKind::NotFound => failure.help("create the directory, or name another file"),
            _ => failure,
        }
    })?;
    errln!("the study is written to {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use tailbound_model::{Length, Measure};

    fn args(words: &[&str]) -> Ping {
        let Command::Ping(args) = Cli::parse_from(["tailbound", "ping"].iter().chain(words)).command else { panic!() };
        args
    }

    /// Test: the text is a study with the values of the flags.
    #[test]
    fn the_study_has_the_values_of_the_flags() {
        let keys = "path: loopback\nplace: process\n".to_owned();
        let ends = Ends { question: "How late can a message be between this host and a-1?".into(), keys };
        let text = study(&args(&["udp", "--rate", "1006us", "--size", "60kB", "--for", "90s"]), &ends);
        let plan = tailbound_study::load_str("ping", &text, Path::new(""), &[]).unwrap();
        let spec = &plan.conditions[0].spec;
        assert_eq!((spec.payload.0, spec.rate.to_string()), (60_000, "every 1.006 ms".into()));
        let Measure::PingPong(keys) = &spec.measure else { panic!("{:?}", spec.measure) };
        assert_eq!(keys.length, Length::Duration(tailbound_model::Nanos(90_000_000_000)));
        assert_eq!(plan.trials.len(), 1);
    }
}

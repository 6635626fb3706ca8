//! Runs `tailbound run`: runs a study and writes its record.

use super::record_dir::RecordDir;
use super::report;
use crate::cli::{self, TextFormat};
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, colour_of_errors, errln, out, outln, width};
use crate::progress::Display;
use std::path::{Path, PathBuf};
use tailbound_model::{Condition, ExitCode, Nanos, PlaceSpec, Plan, Problem, TrialSpec, Warning};
use tailbound_record::Record;
use tailbound_run::controller::{RepeatOptions, UntilOptions};
use tailbound_run::{RunOptions, controller};

pub fn run(args: &cli::Run) -> CommandResult {
    if !args.dry_run && (args.json || args.format.is_some()) {
        let text = "--format describes what a run would do, and needs --dry-run";
        return Err(Failure::bad_input(text)
            .help("add --dry-run; `tailbound report RECORD --format json` prints the results of a run"));
    }
    let until = args.until.as_ref().map(|text| until(text, args.at_most)).transpose()?;
    let mut plan = load(&args.study, &args.settings, args.strict)?;
    if let Some(until) = &until {
        controller::repeat_until(&mut plan, until)?;
    }
    let repeated = args.repeat_for.map(|time| RepeatOptions { time, disk: args.disk, rolling: args.rolling });
    if let Some(repeated) = &repeated {
        controller::repeat(&mut plan, repeated.time);
    }
    if args.dry_run {
        return dry_run(&plan, args.json || args.format == Some(TextFormat::Json));
    }
    let mut dir = RecordDir::choose(args.record.out.as_deref(), &plan.study, args.record.force)?;
    let options = RunOptions { repeated, until, ..options(&dir, &args.record, Vec::new()) };
    let shown = match (args.quiet, args.short) {
        (true, _) => Shown::Nothing,
        (_, true) => Shown::Short,
        _ => Shown::All,
    };
    execute(plan, &mut dir, options, shown)
}

/// Describes what a run would do, and fails if this machine cannot do it.
fn dry_run(plan: &Plan, as_json: bool) -> CommandResult {
    if as_json {
        let document = serde_json::json!({ "plan": plan, "expected_ns": controller::expected_time(plan).0 });
        outln!("{}", serde_json::to_string_pretty(&document).map_err(Failure::unexpected)?);
    } else {
        out!("{}", controller::dry_run(plan));
    }
    check_build(plan)?;
    controller::not_fit(plan, driver_files).map_or(Ok(ExitCode::Done), |lack| Err(lack.into()))
}

/// Refuses pods if this program cannot reach a cluster.
fn check_build(plan: &Plan) -> Result<(), Failure> {
    let is_pod =
        |c: &Condition| [&c.spec.ping.place, &c.spec.pong.place].iter().any(|p| matches!(p, PlaceSpec::Pod(_)));
    let has_pods = plan.conditions.iter().filter(|c| c.not_possible.is_none()).any(is_pod);
    match has_pods && !cfg!(feature = "pods") {
        true => Err(Failure::of(ExitCode::MachineNotFit, super::pod::missing_feature())),
        false => Ok(()),
    }
}

/// Reads the condition of `--until`.
fn until(text: &str, at_most: Option<Nanos>) -> Result<UntilOptions, Failure> {
    let wrong = |e: tailbound_study::StudyError| Failure::bad_input(e.render(colour_of_errors(), width()));
    Ok(UntilOptions { condition: tailbound_study::parse_until(text).map_err(wrong)?, at_most })
}

/// Finds the drivers that are shared objects, to copy them to other machines. Returns name and path of each driver.
pub fn driver_files() -> Vec<(String, PathBuf)> {
    super::bundle::driver_files(&[]).unwrap_or_default()
}

/// Reads a study file, or a built-in study by its name, and computes its plan.
pub fn load(study: &Path, settings: &[String], strict: bool) -> Result<Plan, Failure> {
    with_options(settings, strict, |options| match built_in(study) {
        Some((name, text)) => tailbound_study::load_str_with(name, text, Path::new(""), options),
        None => tailbound_study::load_with(study, options),
    })
}

/// Computes the plan of a study from its text; `name` is for messages, and the study names its files relative to `directory`.
pub fn load_text(name: &str, text: &str, directory: &Path, settings: &[String]) -> Result<Plan, Failure> {
    with_options(settings, false, |options| tailbound_study::load_str_with(name, text, directory, options))
}

/// The text of a study file or of a built-in study, and the directory to which its file names are relative.
pub fn study_text(study: &Path) -> Result<(String, PathBuf), Failure> {
    if let Some((_, text)) = built_in(study) {
        return Ok(((*text).to_owned(), PathBuf::new()));
    }
    // Loading gives the message for a file that is missing or no study.
    if !study.is_file() {
        load(study, &[], false)?;
    }
    let text = std::fs::read_to_string(study).map_err(|e| Failure::bad_input(format!("{}: {e}", study.display())))?;
    let directory = study.parent().unwrap_or(Path::new(""));
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    Ok((text, directory))
}

/// The built-in study with this name, if no file has the name.
fn built_in(study: &Path) -> Option<&'static (&'static str, &'static str)> {
    let name = study.to_str().filter(|_| !study.exists())?;
    tailbound_study::embedded().iter().find(|(n, _)| *n == name)
}

/// Computes a plan with the CPUs, drivers and tools of this machine, and checks its drivers.
fn with_options(
    settings: &[String],
    strict: bool,
    load: impl Fn(&tailbound_study::Options<'_>) -> Result<Plan, tailbound_study::StudyError>,
) -> Result<Plan, Failure> {
    let allowed = tailbound_host::pinnable_cpus();
    let known = drivers::known();
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let limits = |spec: &TrialSpec| controller::driver_limit(spec, drivers::find);
    let options = tailbound_study::Options {
        settings,
        allowed_cpus: &allowed,
        strict,
        known_drivers: &names,
        tools: tailbound_tools::shipped(),
        limits: Some(&limits),
    };
    let wrong = |e: tailbound_study::StudyError| Failure::bad_input(e.render(colour_of_errors(), width()));
    let mut plan = match load(&options) {
        Ok(plan) => plan,
        // If only a driver is missing that can be built, the conditions with other drivers can be run.
        Err(e) => {
            let names: Vec<&str> = names.iter().copied().chain(tailbound_study::BUILT_APART).collect();
            let mut plan =
                load(&tailbound_study::Options { known_drivers: &names, ..options }).map_err(|_| wrong(e.clone()))?;
            controller::check_drivers(&mut plan, drivers::find).map_err(|_| wrong(e))?;
            plan
        }
    };
    controller::check_drivers(&mut plan, drivers::find)?;
    match plan.conditions.iter().find_map(|c| c.not_possible.as_ref()).filter(|_| strict) {
        Some(reason) => Err(Failure::bad_input(format!("some conditions are not possible: {reason}"))
            .help("leave out --strict to run the others")),
        None => Ok(plan),
    }
}

/// Options of a run into this directory that ends after the trials of its study.
pub fn options(dir: &RecordDir, record: &cli::NewRecord, warnings: Vec<Warning>) -> RunOptions {
    RunOptions {
        out: dir.path.clone(),
        command: std::env::args().collect(),
        warnings,
        driver_files,
        until: None,
        repeated: None,
        figures: false,
        allow_concurrent: record.allow_concurrent,
    }
}

/// How much a run prints about its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Only the path of the page, and neither progress nor a table.
    Nothing,
    /// The answer, one table, causes and the next step.
    Short,
    /// The whole report.
    All,
}

/// Runs a plan, writes the HTML page of the record, and prints the results.
pub fn execute(plan: Plan, dir: &mut RecordDir, options: RunOptions, shown: Shown) -> CommandResult {
    undo_changes_of_killed_runs();
    let makes_namespaces = plan
        .conditions
        .iter()
        .filter(|c| c.not_possible.is_none())
        .any(|c| tailbound_lab::LabSpec::from(&c.spec).makes_namespaces());
    tailbound_lab::userns::enter_if_needed(makes_namespaces).map_err(Failure::not_fit)?;
    check_build(&plan)?;
    dir.begin()?;
    let mut display = Display::new((shown == Shown::Nothing, shown == Shown::All), options.out.clone());
    let finished = controller::run(plan, options, &mut display);
    display.end();
    let is_there = dir.finish(finished.as_ref().err().map(|e| e.exit));
    let finished = finished?;
    if !is_there {
        let text = "the run was interrupted before anything was measured; no record is left";
        return Err(Failure::of(ExitCode::RecordInvalid, Problem::new("interrupted", text, "")));
    }
    show(&finished.dir, &dir.path, shown)
}

/// Writes the HTML page of a record, prints its results, and returns the exit code of the run.
fn show(record: &Path, named: &Path, shown: Shown) -> CommandResult {
    let record = Record::open(record).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let analysed = tailbound_report::analyse_since_last(&record).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    report::write(&record.dir().join("report.html"), tailbound_report::render_html(&analysed))?;
    match shown {
        Shown::Nothing => {}
        Shown::Short => {
            out!("{}", tailbound_report::render_short(&analysed, width(), colour()));
            outln!("\nAll tables: tailbound report {}", named.display());
        }
        Shown::All => out!("{}\n", tailbound_report::render_terminal(&analysed, width(), colour())),
    }
    outln!("{}", record.dir().join("report.html").display());
    let not_found = analysed.run.until.is_some_and(|until| until.found.is_none());
    match report::code(analysed.status) {
        ExitCode::Done if not_found => Ok(ExitCode::Undecided),
        code => Ok(code),
    }
}

/// Undoes the changes that killed runs left on this host.
pub fn undo_changes_of_killed_runs() {
    // A journal that cannot be read must not prevent a measurement; `tailbound lab cleanup` reports the error.
    let _ = tailbound_host::journal::cleanup(&mut |line| errln!("{line}"));
}

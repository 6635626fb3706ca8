//! Begins and resumes a run of `tune`.

use super::bench::Measured;
use super::reboot::{self, HostOfRun, facts};
use super::state::{State, write};
use super::{fighting, limit};
use crate::cli::{self, TuneRule};
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, out, outln};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tailbound_model::{Attribution, ExitCode, Measure, Nanos, Plan, Problem};
use tailbound_tune::{AfterReboot, LogError, Logged, Receipt, RuleName, TuneError};

/// Begins a run.
pub fn begin(args: &cli::Tune) -> CommandResult {
    let mut state = state(args)?;
    let plan = state.plan(&[])?;
    refuse_several_conditions(&plan)?;
    refuse_without_causes(&plan)?;
    limit::declare(&args.figure, &plan, &mut state)?;
    // A setting with an error is reported before anything is measured.
    for setting in &state.tries {
        state.plan(std::slice::from_ref(setting))?;
    }
    let directory = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("tailbound-tune-{}", plan.study)));
    if args.dry_run {
        out!("{}", dry_run(&plan, &state));
        return Ok(ExitCode::Done);
    }
    if directory.symlink_metadata().is_ok() {
        let what = format!("{} exists already", directory.display());
        let help =
            format!("go on with `tailbound tune resume {}`, or name another directory with --out", directory.display());
        return Err(Failure::bad_input(what).help(help));
    }
    fighting::refuse(args.beside)?;
    ask(args.yes)?;
    std::fs::create_dir(&directory)
        .map_err(|e| Failure::bad_input(format!("{} cannot be created: {e}", directory.display())))?;
    state.write(&directory)?;
    search(&state, &plan, &directory)
}

/// Goes on with a run that was interrupted.
pub fn resume(directory: &Path, changed: bool) -> CommandResult {
    let mut state = State::read(directory)?;
    if directory.join("receipt.json").exists() {
        let what = format!("the run in {} has ended: it has a receipt", directory.display());
        return Err(Failure::bad_input(what).help("read receipt.txt there, or begin a new run"));
    }
    fighting::refuse(state.beside)?;
    let plan = state.plan(&[])?;
    refuse_several_conditions(&plan)?;
    if let Some(before) = &state.host
        && let Some((now, differences)) = reboot::check(before, changed)?
    {
        state.host = Some(now);
        state.changed.extend(differences);
        state.write(directory)?;
    }
    search(&state, &plan, directory)
}

fn state(args: &cli::Tune) -> Result<State, Failure> {
    let study = args.study.as_deref().unwrap_or(Path::new(""));
    let (text, directory) = crate::commands::run::study_text(study)?;
    let rule = match args.rule {
        TuneRule::Looks => RuleName::Looks,
        TuneRule::LongLooks => RuleName::LongLooks,
        TuneRule::Symmetry => RuleName::Symmetry,
    };
    Ok(State {
        name: study.display().to_string(),
        study: text,
        directory,
        settings: args.settings.clone(),
        figure: String::new(),
        metric: None,
        limit: None,
        rule,
        seed: args.seed,
        budget_s: args.budget.map(|time| time.0.unsigned_abs() / 1_000_000_000),
        only: args.only.clone(),
        tries: args.tries.clone(),
        candidates: usize::from(args.candidates),
        cpu_most: args.guard,
        host: Some(HostOfRun::now()),
        changed: Vec::new(),
        beside: args.beside,
    })
}

/// Runs the loop, writes the receipt and prints it.
fn search(state: &State, plan: &Plan, directory: &Path) -> CommandResult {
    let watchdog = watchdog()?;
    let metric = state.metric(plan);
    let bench = Measured::new(state, directory, metric)?;
    let boot = tailbound_host::boot_id().unwrap_or_default();
    let ended = Logged::open(bench, &directory.join("pairs.jsonl"), &boot)
        .map_err(TuneError::Failed)
        .and_then(|mut logged| tailbound_tune::tune(&mut logged, &state.options(), blank(state, plan, metric.key())));
    end(watchdog, ended.is_ok());
    let mut receipt = ended.map_err(|e| {
        failure(e, &format!("`tailbound tune resume '{}'` goes on from there", directory.display()), state)
    })?;
    receipt.limit = limit::judge(state, metric, directory, receipt.gain.is_some())?;
    let json = serde_json::to_string_pretty(&receipt).map_err(Failure::unexpected)?;
    write(&directory.join("receipt.json"), &json)?;
    let text = tailbound_tune::render(&receipt);
    write(&directory.join("receipt.txt"), &text)?;
    outln!("\n{text}\n{}", directory.join("receipt.json").display());
    let has_tried = !receipt.tried.is_empty();
    Ok(if has_tried { ExitCode::Done } else { ExitCode::Undecided })
}

/// A receipt with the members that describe the study and the machine.
fn blank(state: &State, plan: &Plan, metric: &str) -> Receipt {
    Receipt {
        study: state.study.clone(),
        name: plan.study.clone(),
        directory: state.directory.clone(),
        settings: state.settings.clone(),
        figure: state.figure.clone(),
        metric: metric.to_owned(),
        rule: state.rule,
        cpu_most: state.cpu_most,
        seed: state.seed,
        circumstances: facts(&["kernel.release", "kernel.version", "cpu.model", "cpu.count", "machine.hypervisor"]),
        changed: state.changed.clone(),
        ..Receipt::default()
    }
}

fn refuse_several_conditions(plan: &Plan) -> Result<(), Failure> {
    let possible: Vec<_> = plan.conditions.iter().filter(|c| c.not_possible.is_none()).collect();
    if possible.len() < 2 {
        return Ok(());
    }
    let varied = |name: &&String| possible.iter().any(|c| c.levels.get(*name) != possible[0].levels.get(*name));
    let factors: Vec<&String> = plan.factors.iter().filter(varied).collect();
    let example: Vec<String> = factors
        .iter()
        .map(|name| format!("--set '{name}={}'", possible[0].levels.get(*name).map_or("", String::as_str)))
        .collect();
    let what = format!("the study has {} conditions, and `tune` works on one", possible.len());
    Err(Failure::bad_input(what).help(format!("choose one level of each factor, e.g. {}", example.join(" "))))
}

/// Refuses what has no figure from due to answered, or can have no causes.
fn refuse_without_causes(plan: &Plan) -> Result<(), Failure> {
    let Some(spec) = plan.conditions.iter().find(|c| c.not_possible.is_none()).map(|c| &c.spec) else { return Ok(()) };
    if !matches!(spec.measure, Measure::PingPong(_)) || spec.has_tool() {
        let what = "`tune` needs a study with `measure: ping-pong` and a driver of Tailbound";
        return Err(Failure::bad_input(what).help("measure a ping-pong over the same path, with the same settings"));
    }
    if spec.attribution == Attribution::Off {
        let what = "`attribution` is off, so that no cause can be seen, and `tune` answers only causes that were seen or counted";
        return Err(Failure::bad_input(what).help("remove `attribution: off`, or add --set attribution=auto"));
    }
    Ok(())
}

/// Asks before anything is measured, because trials may change settings of this host.
pub fn ask(yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let what =
            "`tune` tries settings of this host during its trials, and there is no terminal to ask for permission";
        return Err(Failure::bad_input(what).help("add --yes, or see with --dry-run what it would do"));
    }
    errln!("`tune` tries settings of this host during its trials, and restores them after each trial. Go on? [y/N] ");
    let _ = std::io::stderr().flush();
    answer("nothing was measured")
}

/// Reads an answer from standard input. `otherwise`: what is true if it is not yes.
pub fn answer(otherwise: &str) -> Result<(), Failure> {
    let mut answer = String::new();
    let _ = std::io::stdin().read_line(&mut answer);
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::bad_input(otherwise).help("answer y, or add --yes")),
    }
}

/// A process that undoes the changes of a killed run: it lives in a process group of its own, and waits for the end of its
/// standard input.
pub fn watchdog() -> Result<Child, Failure> {
    use std::os::unix::process::CommandExt;
    let failed = |e: std::io::Error| Failure::unexpected(format!("the watchdog cannot be started: {e}"));
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.args(["tune", "watchdog"]).stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0);
    command.spawn().map_err(failed)
}

/// Ends the watchdog. If the run failed, its trials may have been killed: what they changed is undone first.
pub fn end(mut watchdog: Child, is_complete: bool) {
    if !is_complete {
        crate::commands::run::undo_changes_of_killed_runs();
    }
    if let Some(mut pipe) = watchdog.stdin.take() {
        let _ = pipe.write_all(b".");
    }
    let _ = watchdog.wait();
}

/// The message of a loop that ended without a receipt.
pub fn failure(error: TuneError<LogError<Failure>>, how_to_go_on: &str, state: &State) -> Failure {
    match error {
        TuneError::TooNoisy { needed } => too_noisy(
            &state.figure,
            needed,
            "make the trials longer (--set measure.duration=10s), use a figure with less noise (--for p99 or p50), or stop other \
             work on this machine",
        ),
        TuneError::Failed(LogError::AfterReboot(AfterReboot::TooNoisy(needed))) => {
            let help = format!("stop other work on this machine; then {how_to_go_on}");
            too_noisy(&format!("after the reboot of this host, {}", state.figure), needed, &help)
        }
        TuneError::Failed(LogError::AfterReboot(AfterReboot::OtherFigure(was_ns, is_ns))) => {
            let what = format!(
                "after the reboot of this host, {} is {} without any change, and it was {} before: the decisions before the reboot are \
                 about another situation",
                state.figure,
                Nanos(is_ns as i64),
                Nanos(was_ns as i64)
            );
            let help = format!("begin a new run; if the reason of the difference is gone, {how_to_go_on}");
            Failure::of(ExitCode::Undecided, Problem::new("other_after_reboot", what, help))
        }
        TuneError::NotPossible(reason) => Failure::not_fit(format!("the study cannot be measured: {reason}")),
        TuneError::Failed(LogError::Bench(failure)) => failure.help_or(how_to_go_on),
        TuneError::Failed(LogError::InUse(path)) => {
            let what = format!("another process measures with {}", path.display());
            Failure::not_fit(what).help("wait until it has ended")
        }
        TuneError::Failed(LogError::File(path, e)) => Failure::run_failed(format!("{}: {e}", path.display())),
        TuneError::Failed(LogError::OtherRun(path, line)) => {
            let what = format!("line {line} of {} does not fit this run", path.display());
            Failure::bad_input(what).help("the file was changed, or another release wrote it: begin a new run")
        }
    }
}

fn too_noisy(figure: &str, needed: f64, help: &str) -> Failure {
    let what = format!(
        "{figure} varies too much between equal trials: a gain of 20 % would need about {:.0} pairs of trials, and at most 20 are \
         sensible",
        needed.ceil()
    );
    Failure::of(ExitCode::Undecided, Problem::new("too_noisy", what, help))
}

fn dry_run(plan: &Plan, state: &State) -> String {
    let trial_s = plan.conditions.first().map_or(0.0, |c| tailbound_study::trial_length(&c.spec).0 as f64 / 1e9);
    let most = if state.rule == RuleName::Looks { 12 } else { 20 };
    let pairs = 6 + most * (state.candidates + 1);
    format!(
        "Study {}: {}{} becomes smaller, or nothing is kept.\n\
         1. 6 equal pairs of trials; refused if a gain of 20 % would need more than 20 pairs.\n\
         2. Causes that were seen or counted, and the changes that answer them (`tailbound advice --list`).\n\
         3. At most {} changes, each with at most {most} pairs; settings of this host are restored after each trial.\n\
         4. Each kept change is left out in turn, with at most {most} pairs.\n\
         5. All kept changes against the original: {most} fresh pairs.\n\
         A trial measures for {trial_s:.1} s; steps 1, 3 and 5 measure for at most {:.0} min, without starting and ending \
         processes.\n",
        plan.study,
        state.figure,
        state.limit.as_ref().map_or_else(String::new, |limit| format!(" ({limit})")),
        state.candidates,
        2.0 * trial_s * pairs as f64 / 60.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test: if a run cannot go on after a reboot, the message says why, and what to do.
    #[test]
    fn after_a_reboot_noise_and_another_figure_have_their_messages() {
        let state: State = serde_json::from_value(serde_json::json!({
            "name": "one.yaml", "study": "", "directory": "", "settings": [], "figure": "p99", "rule": "looks", "seed": 1,
            "budget_s": null, "only": [], "candidates": 8, "beside": true,
        }))
        .expect("a state");
        let said = |why| {
            let why = TuneError::Failed(LogError::AfterReboot(why));
            failure(why, "`tailbound tune resume run` goes on from there", &state)
        };
        let other = AfterReboot::OtherFigure(28_238_000.0, 4_037_000.0);
        insta::assert_debug_snapshot!([said(AfterReboot::TooNoisy(34.2)), said(other)]);
    }
}

//! Loads a study file and makes the plan of its trials.

use crate::conditions::{ALWAYS, conditions};
use crate::error::{Fault, StudyError};
use crate::factors::{Study, split};
use crate::format::StudyFile;
use crate::options::{Limits, Options};
use crate::published_table::Conditions;
use crate::resolve::Context;
use crate::source::{MAX_TEXT, Pos, Source, Sources};
use crate::{embedded, order, recording_check, settings, tree};
use std::path::Path;
use tailbound_model::{Plan, ReportSpec, nearest};

/// Largest number of repetitions of a condition in a plan.
const MAX_REPEAT: u32 = 10_000;
/// Largest number of trials of a plan.
const MAX_TRIALS: usize = 100_000;

/// Loads a study file with `--set` arguments and makes the plan.
pub fn load(path: &Path, settings: &[String]) -> Result<Plan, StudyError> {
    load_with(path, &Options { settings, ..Options::default() })
}

/// Loads a study file with the given options and makes the plan.
pub fn load_with(path: &Path, options: &Options<'_>) -> Result<Plan, StudyError> {
    let name = path.display().to_string();
    let unreadable = |reason: String, help: String| StudyError::unreadable(&name, reason, help);
    let metadata = std::fs::metadata(path).map_err(|e| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let built_in = || embedded::embedded().iter().map(|(name, _)| *name);
        let help = nearest(&stem, built_in())
            .map(|n| format!("there is a built-in study `{n}`; `tailbound studies show {n}` prints it"));
        let all = || format!("name a file, or a built-in study: {}", built_in().collect::<Vec<_>>().join(" "));
        unreadable(format!("cannot be read: {}", crate::resolve::plain(&e)), help.unwrap_or_else(all))
    })?;
    if metadata.is_dir() {
        let help = if path.join("manifest.json").is_file() {
            format!("it is a record: `tailbound report {name}` shows it")
        } else {
            "name a study file (.yaml) in it".to_owned()
        };
        return Err(unreadable("is a directory, not a study file".into(), help));
    }
    if !metadata.is_file() {
        return Err(unreadable("is not a file".into(), String::new()));
    }
    if metadata.len() > MAX_TEXT as u64 {
        return Err(unreadable("is larger than 1 MiB, the maximum size of a study file".into(), String::new()));
    }
    let bytes = std::fs::read(path)
        .map_err(|e| unreadable(format!("cannot be read: {}", crate::resolve::plain(&e)), String::new()))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let start = e.utf8_error().valid_up_to() as u32;
        let text = String::from_utf8_lossy(e.as_bytes()).into_owned();
        let sources = Sources(vec![Source { name: name.clone(), text }]);
        let at = Pos { source: 0, start, len: 1 };
        Fault::new(at, "not text in UTF-8").help("save the file as UTF-8").in_sources(&sources)
    })?;
    let dir = path.parent().unwrap_or(Path::new(""));
    load_str_with(&name, &text, dir, options)
}

/// Loads a study from its text. Error messages call the file `name`; paths of configuration files are relative to
/// `dir`.
pub fn load_str(name: &str, text: &str, dir: &Path, settings: &[String]) -> Result<Plan, StudyError> {
    load_str_with(name, text, dir, &Options { settings, ..Options::default() })
}

/// Loads a study from its text with the given options; `name` and `dir` are as for [`load_str`].
pub fn load_str_with(name: &str, text: &str, dir: &Path, options: &Options<'_>) -> Result<Plan, StudyError> {
    let mut sources = vec![Source { name: name.into(), text: text.into() }];
    sources.extend(options.settings.iter().map(|s| Source { name: format!("`--set {s}`"), text: s.clone() }));
    let sources = Sources(sources);
    if sources.0.len() > 1000 || sources.0.iter().any(|s| s.text.len() > MAX_TEXT) {
        let reason = "the study or a `--set` argument is larger than 1 MiB, or there are too many `--set` arguments";
        return Err(StudyError::unreadable(name, reason, ""));
    }
    plan(name, text, dir, options).map_err(|fault| fault.in_sources(&sources))
}

fn plan(name: &str, text: &str, dir: &Path, options: &Options<'_>) -> Result<Plan, Fault> {
    let mut study = split(tree::parse(text, 0)?)?;
    for (index, argument) in options.settings.iter().enumerate() {
        settings::apply(&mut study, argument, index as u16 + 1)?;
    }
    recording_check::expand(&mut study)?;
    let (conditions, file) = conditions(&study, &Context { dir, options })?;
    let seed = file.seed.unwrap_or(1);
    let possible = conditions.iter().filter(|c| c.not_possible.is_none()).count();
    let repeat = repeat(&file, possible)?;
    let whole = options.settings.is_empty();
    let report = report(&file, &study, &Conditions { of: &conditions, whole })?;
    Ok(Plan {
        study: study_name(&file, name)?,
        question: file.question.clone().unwrap_or_default(),
        seed,
        factors: study.factors.iter().map(|f| f.path.clone()).collect(),
        trials: order::trials(&conditions, seed, repeat),
        conditions,
        report,
        clock: file.clock.as_ref().map(|keys| crate::resolve::clock(&keys.value)).transpose()?,
        source: text.into(),
        settings: options.settings.to_vec(),
    })
}

fn study_name(file: &StudyFile, name: &str) -> Result<String, Fault> {
    match &file.study {
        Some(study) if study.value.trim().is_empty() => Err(Fault::new(study.at, "the name of the study is empty")),
        // The name becomes part of a directory name and of titles.
        Some(study) if study.value.contains(|c: char| c == '/' || c.is_control()) || study.value.len() > 100 => {
            let reason = "the name of the study cannot be part of a directory's name";
            Err(Fault::new(study.at, reason)
                .help("use a name of at most 100 bytes, without `/` and control characters"))
        }
        Some(study) => Ok(study.value.trim().to_owned()),
        None => Ok(Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()),
    }
}

fn repeat(file: &StudyFile, possible: usize) -> Result<usize, Fault> {
    let Some(repeat) = &file.repeat else { return Ok(1) };
    if repeat.value == 0 || repeat.value > MAX_REPEAT {
        let reason = format!("a study cannot be repeated {} times", repeat.value);
        return Err(Fault::new(repeat.at, reason).help(format!("write 1 to {MAX_REPEAT}; 1 runs each condition once")));
    }
    let repetitions = repeat.value as usize;
    if repetitions * possible > MAX_TRIALS {
        let reason = format!("{possible} conditions repeated {repetitions} times are more than {MAX_TRIALS} trials");
        return Err(Fault::new(repeat.at, reason).help("use fewer levels or repetitions"));
    }
    Ok(repetitions)
}

fn report(file: &StudyFile, study: &Study, conditions: &Conditions<'_>) -> Result<ReportSpec, Fault> {
    let mut names: Vec<&str> = study.factors.iter().map(|f| f.path.as_str()).collect();
    names.extend(ALWAYS.iter().filter(|key| !study.factors.iter().any(|f| f.path == **key)));
    crate::report::report(file.report.as_ref(), &names, &study.factors, conditions)
}

/// Marks the conditions that `limits` refuses as impossible, removes their trials and orders the remaining trials
/// again. Returns the number of conditions that can be run. Use this function for a plan that was loaded without
/// [`Options::limits`].
pub fn check_limits(plan: &mut Plan, limits: &Limits<'_>) -> usize {
    let repeat = plan.trials.iter().map(|t| t.repeat + 1).max().unwrap_or(0);
    for condition in plan.conditions.iter_mut().filter(|c| c.not_possible.is_none()) {
        condition.not_possible = limits(&condition.spec).map(|problem| problem.what);
    }
    plan.trials = order::trials(&plan.conditions, plan.seed, repeat);
    plan.conditions.iter().filter(|c| c.not_possible.is_none()).count()
}

//! `tailbound driver export`: a condition of a study as a vendor's own configuration.
//!
//! In: a study, one of its conditions, an end. Out: XML on standard output. It is for the deployment that was measured: what
//! a configuration has a place for is in it, what it has none for is named in a comment at its head.

mod condition;
mod cyclonedds;
mod fastdds;
mod xml;

use super::run;
use crate::cli::{End, Export, Vendor};
use crate::drivers;
use crate::exit::{Failure, Outcome};
use crate::say::out;
use tailbound_driver::Description;
use tailbound_lab::LabSpec;
use tailbound_model::{EndSpec, ExitCode, TrialSpec};

/// What an exporter is given.
struct Source<'a> {
    /// The study and its condition, in words.
    what: String,
    /// The trial as this end sees it.
    spec: &'a TrialSpec,
    end: &'a EndSpec,
    /// The path's options and those of the study, as the driver would be given them.
    options: Vec<(String, String)>,
    driver: &'static Description,
    /// What the configuration does not say, in words.
    notes: Vec<String>,
}

impl Source<'_> {
    /// The value that an option has: given, or the driver's default.
    fn option(&self, key: &str) -> Option<&str> {
        let given = self.options.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        given.or_else(|| self.driver.option(key)?.default.as_deref())
    }
}

/// Writes the whole file, or says what keeps it from that.
type Exporter = fn(Source) -> Result<String, String>;

fn refused(text: String) -> Failure {
    Failure::new(ExitCode::BadInput, text)
}

pub fn export(args: &Export) -> Outcome {
    let (study, which) = condition::split(&args.condition);
    let plan = run::load(study.as_ref(), &args.settings, false)?;
    let found = condition::find(&plan, which).map_err(refused)?;
    if let Some(reason) = &found.not_possible {
        return Err(refused(format!("condition {} is not possible: {reason}", found.id)));
    }
    let (index, word) = if args.end == End::Ping { (0, "ping") } else { (1, "pong") };
    let spec = if index == 0 { found.spec.clone() } else { found.spec.of_pong() };
    let (vendor, write): (_, Exporter) = match args.vendor {
        Vendor::Cyclonedds => ("cyclonedds", cyclonedds::configuration),
        Vendor::Fastdds => ("fastdds", fastdds::profiles),
    };
    let name = &spec.driver.name;
    if name != vendor {
        let text = format!("the {word} end of condition {} has the driver {name}, not {vendor}", found.id);
        return Err(refused(format!(
            "{text}\n  what to do: name a condition with {vendor}; `--dry-run` of the study lists them"
        )));
    }
    if let Some(config) = &spec.driver.config {
        let text =
            format!("condition {} has a configuration of its own, {}: that is what was used", found.id, config.path);
        return Err(refused(text));
    }
    let driver = drivers::find(name).map_err(|e| Failure::new(ExitCode::RunFailed, e))?.description();
    let lab = LabSpec::from(&spec);
    let mut notes = Vec::new();
    let path = lab.known_options(index);
    if path.is_empty() {
        notes
            .push(format!("interface, address and peers: path {} makes its own for each run; put in yours", spec.path));
    }
    // As in a run: each driver is given those that it knows, with the values that it knows.
    let takes = |(key, value): &(String, String)| {
        driver.option(key).is_some_and(|o| o.values.is_empty() || o.values.contains(value))
    };
    let given = spec.driver.options.iter().map(|(k, v)| (k.clone(), v.clone()));
    let mut options: Vec<(String, String)> = path.into_iter().filter(takes).chain(given).collect();
    let has = |key: &str| options.iter().any(|(k, _)| k == key);
    if driver.option("payload").is_some() && has("unacked_limit") && !has("payload") {
        options.push(("payload".to_owned(), spec.payload.0.to_string()));
    }
    let end = if index == 0 { &spec.ping } else { &spec.pong };
    let what = format!("study {}, condition {} ({}), {word} end", plan.study, found.id, condition::levels(found));
    let source = Source { what, spec: &spec, end, options, driver, notes };
    out!("{}", write(source).map_err(refused)?);
    Ok(ExitCode::Done)
}

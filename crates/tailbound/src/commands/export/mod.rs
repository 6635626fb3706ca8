//! Runs `tailbound driver export`: writes a condition of a study as a configuration file of the vendor.
//!
//! Input: a study, one of its conditions, an end. Output: XML on standard output, for the deployment that was measured.
//! Settings of the condition that the vendor's format cannot express are listed in a comment at the top of the file.

mod condition;
mod cyclonedds;
mod fastdds;
mod xml;

use super::run;
use crate::cli::{End, Export, Vendor};
use crate::drivers;
use crate::failure::{CommandResult, Failure};
use crate::output::out;
use tailbound_driver::Description;
use tailbound_lab::LabSpec;
use tailbound_model::{Condition, EndSpec, ExitCode, Scheduling, TrialSpec};

pub use xml::{comment, escape, indented};

/// Input of a function that writes a vendor's configuration file.
struct Source<'a> {
    /// Words that name study, condition and end, for the head of the configuration file.
    what: String,
    /// Specification of the trial from which the end's configuration is made.
    spec: &'a TrialSpec,
    end: &'a EndSpec,
    /// Options that the driver would get in a run: the options of the path, then the options of the study.
    options: Vec<(String, String)>,
    driver: &'static Description,
    /// Settings that the vendor's configuration cannot express, one sentence for each setting.
    notes: Vec<String>,
}

impl Source<'_> {
    /// Value of a driver option: the given value, or the driver's default.
    fn option(&self, key: &str) -> Option<&str> {
        let given = self.options.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        given.or_else(|| self.driver.option(key)?.default.as_deref())
    }
}

/// Function that returns the text of a vendor's configuration file, or an error if the format of the vendor cannot
/// express the condition.
type Exporter = fn(Source) -> Result<String, Failure>;

pub fn export(args: &Export) -> CommandResult {
    let (study, which) = condition::split(&args.condition);
    let plan = run::load(study.as_ref(), &args.settings, false)?;
    let found = condition::find(&plan, which)?;
    let (vendor, write): (_, Exporter) = match args.vendor {
        Vendor::Cyclonedds => ("cyclonedds", cyclonedds::configuration),
        Vendor::Fastdds => ("fastdds", fastdds::profiles),
    };
    let (spec, end) = match args.end {
        End::Ping => (found.spec.clone(), "ping"),
        End::Pong => (found.spec.of_pong(), "pong"),
    };
    check(found, &spec, end, vendor)?;
    let driver = description(vendor)?;
    let (options, notes) = options(&spec, args.end, driver);
    let source = Source {
        what: format!("study {}, condition {} ({}), {end} end", plan.study, found.id, condition::levels(found)),
        spec: &spec,
        end: if args.end == End::Ping { &spec.ping } else { &spec.pong },
        options,
        driver,
        notes,
    };
    out!("{}", write(source)?);
    Ok(ExitCode::Done)
}

/// Names of options that belong to the path of a study, not to a deployment.
const OF_PATH: [&str; 4] = ["interface", "address", "peers", "multicast"];

/// Makes the text of a vendor's configuration file for an end of trials, with this scheduling and without the options of the path.
pub fn with(spec: &TrialSpec, scheduling: &Scheduling, end: End, vendor: Vendor) -> Result<String, Failure> {
    let (name, write): (_, Exporter) = match vendor {
        Vendor::Cyclonedds => ("cyclonedds", cyclonedds::configuration),
        Vendor::Fastdds => ("fastdds", fastdds::profiles),
    };
    let driver = description(name)?;
    let (mut options, _) = options(spec, end, driver);
    options.retain(|(key, _)| !OF_PATH.contains(&key.as_str()) || spec.driver.options.contains_key(key));
    let of_path = "interface, address and peers are not in this file, because the values of the study belong to its path: insert yours";
    let of_end = of_end(spec, end, scheduling);
    let what = "configuration of the trials".to_owned();
    write(Source { what, spec, end: &of_end, options, driver, notes: vec![of_path.to_owned()] })
}

/// Makes the part of a vendor's configuration that schedules threads. The trials may have another driver.
pub fn threads(spec: &TrialSpec, scheduling: &Scheduling, end: End, vendor: Vendor) -> Result<String, Failure> {
    let (name, write): (_, Exporter) = match vendor {
        Vendor::Cyclonedds => ("cyclonedds", cyclonedds::threads),
        Vendor::Fastdds => ("fastdds", |source| Ok(fastdds::threads(&source))),
    };
    let (driver, of_end) = (description(name)?, of_end(spec, end, scheduling));
    write(Source { what: String::new(), spec, end: &of_end, options: Vec::new(), driver, notes: Vec::new() })
}

fn of_end(spec: &TrialSpec, end: End, scheduling: &Scheduling) -> EndSpec {
    let of_end = if end == End::Ping { &spec.ping } else { &spec.pong };
    EndSpec { scheduling: scheduling.clone(), ..of_end.clone() }
}

fn description(vendor: &str) -> Result<&'static Description, Failure> {
    Ok(drivers::find(vendor).map_err(|e| Failure::of(ExitCode::RunFailed, e))?.description())
}

/// Refuses a condition that cannot be written as a configuration of the vendor.
fn check(found: &Condition, spec: &TrialSpec, end: &str, vendor: &str) -> Result<(), Failure> {
    let (id, name) = (found.id, &spec.driver.name);
    if let Some(reason) = &found.not_possible {
        return Err(Failure::bad_input(format!("condition {id} is not possible: {reason}")));
    }
    if spec.driver.family() != vendor {
        return Err(Failure::bad_input(format!("the {end} end of condition {id} has the driver {name}, not {vendor}"))
            .help(format!("name a condition with {vendor}; `tailbound run STUDY --dry-run` lists the conditions")));
    }
    if let Some(config) = &spec.driver.config {
        let text = format!("condition {id} uses the configuration file {}, so there is nothing to write", config.path);
        return Err(Failure::bad_input(text));
    }
    Ok(())
}

/// Options that the driver would get in a run, and notes for the user about options that cannot be exported.
fn options(spec: &TrialSpec, end: End, driver: &Description) -> (Vec<(String, String)>, Vec<String>) {
    let path = LabSpec::from(spec).known_options(if end == End::Ping { 0 } else { 1 });
    let mut notes = Vec::new();
    if path.is_empty() {
        let path = &spec.path;
        notes.push(format!(
            "interface, address and peers: path {path} creates a new interface for each run; insert \
            the values of your interface"
        ));
    }
    if let Some(security) = &spec.security {
        notes.push(format!(
            "DDS Security (governance {security}) is not in this file, because its certificates belong to the run: add \
             the plug-ins with your own certificates and documents"
        ));
    }
    // As in a run, the driver gets the options and values that it knows.
    let is_known = |(key, value): &(String, String)| {
        driver.option(key).is_some_and(|o| o.values.is_empty() || o.values.contains(value))
    };
    let of_study = spec.driver.options.iter().map(|(k, v)| (k.clone(), v.clone()));
    let mut options: Vec<(String, String)> = path.into_iter().filter(is_known).chain(of_study).collect();
    let has = |key: &str| options.iter().any(|(k, _)| k == key);
    if driver.option("payload").is_some() && has("unacked_limit") && !has("payload") {
        options.push(("payload".to_owned(), spec.payload.0.to_string()));
    }
    (options, notes)
}

//! Options for loading a study: `--set` arguments, and facts about the machine and its drivers.

use tailbound_model::{Problem, TrialSpec};

/// Function that returns a problem if the driver cannot run the trial, or `None` if the driver can run the trial.
///
/// The place of the problem (`at`) is the key of the study that the user can change, e.g. `qos.reliability`.
pub type Limits<'a> = dyn Fn(&TrialSpec) -> Option<Problem> + 'a;

/// Options for loading a study: arguments of the command line, and facts about the machine.
#[derive(Default, Clone, Copy)]
pub struct Options<'a> {
    /// Arguments of the option `--set`, each `key=value`: values that replace values of the study.
    pub settings: &'a [String],
    /// CPUs that the process may use, in rising order. If empty, the CPUs are not known: CPUs of the study are not
    /// checked, and ends are pinned only if the study says so.
    pub allowed_cpus: &'a [u32],
    /// True if a study is refused when some of its combinations of levels are impossible.
    pub strict: bool,
    /// Names of the known drivers. If empty, names of drivers are not checked.
    pub known_drivers: &'a [&'a str],
    /// Names and texts of the known tools: a study can name a tool in place of a driver, if no driver has the name.
    pub tools: &'a [(&'a str, &'a str)],
    /// Function that checks the limits of drivers; it is called for every trial that has no other problem.
    pub limits: Option<&'a Limits<'a>>,
}

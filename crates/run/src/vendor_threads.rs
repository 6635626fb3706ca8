//! Scheduling of a driver's threads by the vendor's own configuration, instead of by Tailbound when they are created.
//!
//! The input is the scheduling that the study asks for and the description of the driver. The output is the value of
//! the driver's option `threads`, and the policies that the option cannot express. The thread table checks the
//! scheduling afterwards.

use tailbound_driver::Description;
use tailbound_model::{DriverSpec, Policy, RoleScheduling, Scheduling};

/// Name of the driver option for the scheduling of threads.
const OPTION: &str = "threads";

/// Scheduling of the driver's threads, as the value of the driver option `threads`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Value of the option: items `ROLE:realtime:PRIORITY:CPUS` and `ROLE:timeshare::CPUS`, one for each role of the
    /// driver.
    pub option: String,
    /// Roles and scheduling policies that the driver option `threads` cannot express.
    pub left_out: Vec<(String, Policy)>,
}

/// Computes the option value with the scheduling of each role of the driver. A role for which the study asks nothing
/// gets the policy `timeshare`, so that no thread inherits the scheduling of the thread that created it.
pub fn threads(asked: &Scheduling, driver: &Description) -> Threads {
    let mut roles: Vec<&str> = driver.roles.iter().map(|r| r.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    let mut threads = Threads::default();
    let mut items = Vec::new();
    for role in roles {
        let RoleScheduling { policy, cpus } = asked.of_role(role, true);
        let class = match policy {
            Some(Policy::Fifo { priority }) => format!("realtime:{priority}"),
            None | Some(Policy::Other { nice: 0 }) => "timeshare:".to_owned(),
            Some(other) => {
                threads.left_out.push((role.to_owned(), other));
                continue;
            }
        };
        let cpus: Vec<String> = cpus.iter().flat_map(|c| &c.0).map(u32::to_string).collect();
        items.push(format!("{role}:{class}:{}", cpus.join("+")));
    }
    threads.option = items.join(",");
    threads
}

/// Name and value of the driver option with the scheduling of threads, if the study says `apply: vendor`.
pub(crate) fn option(asked: &Scheduling, driver: &Description) -> Option<(&'static str, String)> {
    asked.by_vendor.then(|| (OPTION, threads(asked, driver).option))
}

/// Reason why the configuration of this driver cannot set the scheduling that the study asks for; `None` = the
/// configuration can set it.
pub(crate) fn lack(asked: &Scheduling, spec: &DriverSpec, driver: &Description) -> Option<String> {
    if !asked.by_vendor {
        return None;
    }
    let name = &driver.name;
    if driver.option(OPTION).is_none() {
        return Some(format!(
            "`apply: vendor`: the library of driver {name} has no settings for its threads; without `apply: vendor`, \
             Tailbound sets the scheduling itself"
        ));
    }
    if spec.config.is_some() || spec.options.contains_key(OPTION) {
        let what = if spec.config.is_some() { "a configuration" } else { "the option `threads`" };
        return Some(format!(
            "`apply: vendor` writes the configuration of driver {name}; the study already gives this driver {what}"
        ));
    }
    let (role, policy) = threads(asked, driver).left_out.into_iter().next()?;
    Some(format!(
        "`apply: vendor`: the configuration of driver {name} can express only `fifo`, and `other` without a nice \
         value; role {role} \
         asks for {policy}"
    ))
}

//! Scheduling of a driver's threads by the vendor's own configuration, in place of setting it at their birth.
//!
//! In: what was asked, and the driver's description. Out: the value of its option `threads`, and what that cannot say.
//! Reading back is the business of the thread table, as ever.

use tailbound_driver::Description;
use tailbound_model::{DriverSpec, Policy, RoleScheduling, Scheduling};

/// The option of a driver that has such a configuration.
const OPTION: &str = "threads";

/// What is asked for the driver's threads, as its option says it, and what it cannot say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Items `ROLE:realtime:PRIORITY:CPUS` and `ROLE:timeshare::CPUS`, every role of the driver once.
    pub option: String,
    /// Role and policy that have no place in it.
    pub left_out: Vec<(String, Policy)>,
}

/// Every role is named, so that no thread inherits what the one that made it happens to have: where nothing is asked it
/// shares time.
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

/// Sets the option where the study wants it so.
pub(crate) fn option(asked: &Scheduling, driver: &Description) -> Option<(&'static str, String)> {
    asked.by_vendor.then(|| (OPTION, threads(asked, driver).option))
}

/// Why what is asked cannot be left to this driver's configuration.
pub(crate) fn lack(asked: &Scheduling, spec: &DriverSpec, driver: &Description) -> Option<String> {
    if !asked.by_vendor {
        return None;
    }
    let name = &driver.name;
    if driver.option(OPTION).is_none() {
        return Some(format!(
            "`apply: vendor`: the library of driver {name} has no settings for its threads; leave it out, and they are set \
             at their birth"
        ));
    }
    if spec.config.is_some() || spec.options.contains_key(OPTION) {
        let what = if spec.config.is_some() { "a configuration" } else { "threads" };
        return Some(format!(
            "`apply: vendor` writes the configuration of driver {name}; the study gives it {what} already"
        ));
    }
    let (role, policy) = threads(asked, driver).left_out.into_iter().next()?;
    Some(format!(
        "`apply: vendor`: the configuration of driver {name} has `fifo` and `other` without a nice value, and role {role} \
         asks for {policy}"
    ))
}

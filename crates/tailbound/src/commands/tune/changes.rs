//! The kept changes of a receipt with their effects: what each setting changes in the specification of the trials.
//!
//! Input: a receipt. Output: for each kept setting the difference between the study with it and without it, so that every
//! spelling of a key gives the same effects.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use tailbound_model::{Condition, CpuList, DriverSpec, KnobSpec, PlaceSpec, Plan, Policy, RoleScheduling, TrialSpec};
use tailbound_tune::Receipt;

/// One of the two ends of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndName {
    Ping,
    Pong,
}

impl EndName {
    pub const BOTH: [EndName; 2] = [EndName::Ping, EndName::Pong];

    pub fn word(self) -> &'static str {
        match self {
            EndName::Ping => "ping",
            EndName::Pong => "pong",
        }
    }
}

/// What a kept setting changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A setting of the host.
    Host(KnobSpec),
    /// Scheduling of the threads of an end. Without a role: of the whole process.
    Threads { end: EndName, role: Option<String>, wanted: RoleScheduling },
    /// The end may use every CPU again.
    AnyCpu { end: EndName },
    /// An option of the driver, of one end or of both.
    Option { end: Option<EndName>, driver: String, key: String, value: String },
    /// Scheduling of the threads of a guest on its host. `policies`: the ones that the setting gives to virtual CPUs or the emulator.
    Guest { end: EndName, policies: Vec<Policy> },
    /// The memory of the process is locked.
    LockedMemory,
    /// The threads of the middleware have the smallest timer slack.
    LeastTimerSlack,
    /// Nothing: the study has the value anyway.
    None,
    /// Something else, such as the receive mode or the traffic classes of an interface.
    Other,
}

impl Effect {
    /// The end that the effect concerns; `None` = both, or neither.
    pub fn end(&self) -> Option<EndName> {
        match self {
            Effect::Threads { end, .. } | Effect::AnyCpu { end } | Effect::Guest { end, .. } => Some(*end),
            Effect::Option { end, .. } => *end,
            Effect::Host(_) | Effect::LockedMemory | Effect::LeastTimerSlack | Effect::None | Effect::Other => None,
        }
    }
}

/// A kept setting with its effects.
#[derive(Debug, Clone)]
pub struct Change {
    /// The setting, `key=value`.
    pub setting: String,
    /// What the setting changes; never empty.
    pub effects: Vec<Effect>,
}

/// The kept changes of a receipt.
#[derive(Debug)]
pub struct Changes {
    /// All kept settings in their order.
    pub all: Vec<Change>,
    /// The trials with all kept changes.
    pub spec: TrialSpec,
}

impl Changes {
    /// Computes the effects of the kept settings of a receipt.
    ///
    /// # Errors
    /// Nothing was kept, or the study of the receipt cannot be planned on this machine.
    pub fn of(receipt: &Receipt, path: &Path) -> Result<Changes, Failure> {
        if receipt.kept.is_empty() {
            let what = format!("{}: nothing was kept, so that there is nothing to take along", path.display());
            return Err(
                Failure::bad_input(what).help("name the receipt of a run of `tailbound tune` that kept a change")
            );
        }
        let mut before = spec(receipt, &[])?;
        let mut all: Vec<Change> = Vec::new();
        for number in 1..=receipt.kept.len() {
            let after = spec(receipt, &receipt.kept[..number])?;
            all.push(Change { setting: receipt.kept[number - 1].clone(), effects: effects(&before, &after) });
            before = after;
        }
        Ok(Changes { all, spec: before })
    }

    /// All effects, each with its setting.
    pub fn effects(&self) -> impl Iterator<Item = (&str, &Effect)> {
        self.all.iter().flat_map(|change| change.effects.iter().map(|effect| (change.setting.as_str(), effect)))
    }

    /// The settings of the host that were kept.
    pub fn host(&self) -> Vec<KnobSpec> {
        let knob = |(_, effect): (&str, &Effect)| match effect {
            Effect::Host(knob) => Some(knob.clone()),
            _ => None,
        };
        self.effects().filter_map(knob).collect()
    }
}

/// The specification of the trials of a receipt's study, with further settings.
fn spec(receipt: &Receipt, more: &[String]) -> Result<TrialSpec, Failure> {
    let settings = [receipt.settings.as_slice(), more].concat();
    let plan: Plan = crate::commands::run::load_text(&receipt.name, &receipt.study, &receipt.directory, &settings)?;
    let is_possible = |c: &&Condition| c.not_possible.is_none();
    let condition = plan.conditions.iter().find(is_possible).or(plan.conditions.first());
    condition.map(|c| c.spec.clone()).ok_or_else(|| Failure::bad_input("the study of the receipt has no condition"))
}

/// What differs between two specifications.
fn effects(before: &TrialSpec, after: &TrialSpec) -> Vec<Effect> {
    // What is not known below stays different here.
    let mut rest = before.clone();
    let new = after.host.iter().filter(|knob| !before.host.contains(knob));
    let mut all: Vec<Effect> = new.cloned().map(Effect::Host).collect();
    rest.host.clone_from(&after.host);
    for end in EndName::BOTH {
        let of = |spec: &TrialSpec| match end {
            EndName::Ping => spec.ping.clone(),
            EndName::Pong => spec.pong.clone(),
        };
        let (old, new) = (of(before), of(after));
        all.extend(threads(end, &old.scheduling, &new.scheduling));
        let is_guest = matches!(new.place, PlaceSpec::Vm(_) | PlaceSpec::Domain(_));
        if is_guest && old.place != new.place {
            all.push(Effect::Guest { end, policies: new_policies(&old.place, &new.place) });
        }
        let changed = if end == EndName::Ping { &mut rest.ping } else { &mut rest.pong };
        changed.scheduling = new.scheduling;
        if is_guest {
            changed.place = new.place;
        }
    }
    all.extend(options(before, after));
    rest.driver.options.clone_from(&after.driver.options);
    rest.pong_driver.clone_from(&after.pong_driver);
    if before.middleware.unlocked_memory && !after.middleware.unlocked_memory {
        all.push(Effect::LockedMemory);
    }
    if before.middleware.default_timer_slack && !after.middleware.default_timer_slack {
        all.push(Effect::LeastTimerSlack);
    }
    rest.middleware = after.middleware;
    if rest != *after {
        all.push(Effect::Other);
    }
    if all.is_empty() {
        all.push(Effect::None);
    }
    all
}

/// Policies that threads of a guest have with the new place and not with the old one.
fn new_policies(old: &PlaceSpec, new: &PlaceSpec) -> Vec<Policy> {
    let mut left = guest_policies(old);
    let is_new = |policy: &Policy| left.iter().position(|old| old == policy).map(|found| left.remove(found)).is_none();
    guest_policies(new).into_iter().filter(is_new).collect()
}

/// Policies of the threads of a guest on its host: of its virtual CPUs, then of the emulator.
fn guest_policies(place: &PlaceSpec) -> Vec<Policy> {
    let (threads, emulator) = match place {
        PlaceSpec::Vm(vm) => (&vm.vcpu_threads, &vm.emulator),
        PlaceSpec::Domain(domain) => (&domain.vcpu_threads, &domain.emulator),
        _ => return Vec::new(),
    };
    threads.iter().chain([emulator]).filter_map(|wanted| wanted.policy).collect()
}

/// Effects of a changed scheduling of an end.
fn threads(end: EndName, old: &tailbound_model::Scheduling, new: &tailbound_model::Scheduling) -> Vec<Effect> {
    let differs = |old: Option<CpuList>, new: &Option<CpuList>| new.clone().filter(|cpus| Some(cpus) != old.as_ref());
    let mut all = Vec::new();
    let policy = new.policy.filter(|policy| Some(policy) != old.policy.as_ref());
    let cpus = differs(old.cpus.clone(), &new.cpus);
    if policy.is_some() || cpus.is_some() {
        all.push(Effect::Threads { end, role: None, wanted: RoleScheduling { policy, cpus } });
    }
    if old.cpus.is_some() && new.cpus.is_none() {
        all.push(Effect::AnyCpu { end });
    }
    for (role, wanted) in new.roles.iter().filter(|(role, of)| old.roles.get(*role) != Some(of)) {
        let wanted = wanted.clone();
        all.push(Effect::Threads { end, role: Some(role.clone()), wanted });
    }
    let is_removed = |role: &String| !new.roles.contains_key(role);
    if old.roles.keys().any(is_removed) || old.policy.is_some() && new.policy.is_none() {
        all.push(Effect::Other);
    }
    all
}

/// Effects of changed options of the drivers.
fn options(before: &TrialSpec, after: &TrialSpec) -> Vec<Effect> {
    let (old, new) = ((&before.driver, &before.of_pong().driver), (&after.driver, &after.of_pong().driver));
    let (ping, pong) = (changed(old.0, new.0), changed(old.1, new.1));
    let of = |end: Option<EndName>, driver: &DriverSpec, changed: &BTreeMap<String, String>| {
        let option = |(key, value): (&String, &String)| Effect::Option {
            end,
            driver: driver.name.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        changed.iter().map(option).collect::<Vec<_>>()
    };
    if new.0 == new.1 && ping == pong {
        return of(None, new.0, &ping);
    }
    [of(Some(EndName::Ping), new.0, &ping), of(Some(EndName::Pong), new.1, &pong)].concat()
}

/// Options that the new driver has and the old one has not, or with another value.
fn changed(old: &DriverSpec, new: &DriverSpec) -> BTreeMap<String, String> {
    let is_new = |(key, value): &(&String, &String)| old.options.get(*key) != Some(*value);
    new.options.iter().filter(is_new).map(|(key, value)| (key.clone(), value.clone())).collect()
}

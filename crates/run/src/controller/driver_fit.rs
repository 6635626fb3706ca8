//! Finds the conditions that the drivers of a plan cannot run, before anything is changed on a host.

use super::{RunError, tool};
use crate::end_plan::{DriverSource, driver_mode, with_driver_list};
use crate::vendor_threads;
use std::collections::BTreeMap;
use tailbound_driver::{Description, DriverOption, Exclusion, LoadError, OptionType, QosPolicy};
use tailbound_model::*;
use tailbound_study::{BUILT_APART, nearest};

/// Marks the conditions that a driver cannot run, whose driver or tool is not installed, or that need a network card that
/// this host cannot give to a guest, as not possible, and removes their trials.
///
/// # Errors
/// No condition can be run.
pub fn check_drivers(plan: &mut Plan, drivers: DriverSource) -> Result<(), RunError> {
    let (mut found, mut missing) = (BTreeMap::new(), BTreeMap::new());
    // What the driver finds here says nothing about another host or the image of a container.
    let is_local =
        plan.conditions.iter().all(|c| ![&c.spec.ping, &c.spec.pong].iter().any(|end| end.place.is_reached()));
    for condition in plan.conditions.iter().filter(|c| c.not_possible.is_none()) {
        for name in condition.spec.drivers().filter(|d| d.tool.is_none()).map(|d| &d.name) {
            if found.contains_key(name) || missing.contains_key(name) {
                continue;
            }
            let lacks = |driver: &tailbound_driver::Driver| {
                driver.description().lacks.clone().filter(|_| is_local).map(LoadError::Lacks)
            };
            match drivers(name).and_then(|driver| lacks(&driver).map_or(Ok(driver), Err)) {
                Ok(driver) => drop(found.insert(name.clone(), driver)),
                Err(e) => drop(missing.insert(name.clone(), e)),
            }
        }
    }
    leave_out_missing(plan, &missing)?;
    let mut first = None;
    for condition in &mut plan.conditions {
        let of_driver = |spec: TrialSpec| {
            let driver = found.get(&spec.driver.name)?.description();
            let not_here = not_here(&spec.driver, driver).filter(|_| is_local);
            not_here.or_else(|| impossible(&spec, driver).map(|problem| problem.what))
        };
        let reason = match condition.spec.has_tool() {
            true => tool::impossible(&condition.spec),
            false => of_each_end(&condition.spec).find_map(of_driver),
        };
        if let Some(reason) = reason.filter(|_| condition.not_possible.is_none()) {
            first.get_or_insert_with(|| reason.clone());
            condition.not_possible = Some(reason);
        }
    }
    super::machine_fit::leave_out_cards(plan);
    tool::leave_out_missing(plan);
    let possible: Vec<bool> = plan.conditions.iter().map(|c| c.not_possible.is_none()).collect();
    plan.trials.retain(|t| possible[t.condition]);
    for (id, trial) in plan.trials.iter_mut().enumerate() {
        trial.id = id;
    }
    if plan.trials.is_empty() {
        let reason = first.or_else(|| plan.conditions.iter().find_map(|c| c.not_possible.clone()));
        let text = format!("no condition of the study can be run: {}", reason.unwrap_or_else(|| "it has none".into()));
        return Err(RunError::new(ExitCode::BadInput, text, ""));
    }
    Ok(())
}

/// Marks the conditions with a driver that cannot be loaded as not possible.
///
/// # Errors
/// All conditions that were possible have such a driver.
fn leave_out_missing(plan: &mut Plan, missing: &BTreeMap<String, LoadError>) -> Result<(), RunError> {
    let is_missing = |c: &Condition| c.spec.drivers().find_map(|driver| missing.get_key_value(&driver.name));
    let mut possible = plan.conditions.iter().filter(|c| c.not_possible.is_none());
    if let Some((name, error)) = missing.iter().next().filter(|_| possible.all(|c| is_missing(c).is_some())) {
        let problem = with_driver_list(error).context(format_args!("driver `{name}`"));
        return Err(RunError::of(ExitCode::BadInput, problem));
    }
    for condition in plan.conditions.iter_mut().filter(|c| c.not_possible.is_none()) {
        if let Some((name, error)) = is_missing(condition) {
            condition.not_possible = Some(match (error, name.as_str()) {
                (LoadError::NotFound { .. }, name) if BUILT_APART.contains(&name) => {
                    format!("driver `{name}` is not installed; `dev/{name}` in the sources of Tailbound builds it")
                }
                _ => format!("driver `{name}`: {}", error.problem()),
            });
        }
    }
    Ok(())
}

/// Problem because of which a driver cannot run a trial; `None` = the driver can run it, or the driver is not found,
/// which is another error.
pub fn driver_limit(spec: &TrialSpec, drivers: DriverSource) -> Option<Problem> {
    if spec.has_tool() {
        return tool::impossible(spec).map(|what| refused("driver", what));
    }
    of_each_end(spec).find_map(|spec| impossible(&spec, drivers(&spec.driver.name).ok()?.description()))
}

/// Returns the specification of a trial several times: once for each driver that the ends of the trial use.
fn of_each_end(spec: &TrialSpec) -> impl Iterator<Item = TrialSpec> {
    std::iter::once(spec.clone()).chain(spec.pong_driver.is_some().then(|| spec.of_pong()))
}

/// The ends of a trial that use the driver of `spec`.
fn ends_of(spec: &TrialSpec) -> impl Iterator<Item = &EndSpec> {
    let of_pong = spec.pong_driver.as_ref().is_none_or(|d| *d == spec.driver);
    let of_ping = spec.pong_driver.is_none() || !of_pong;
    [(of_ping, &spec.ping), (of_pong, &spec.pong)].into_iter().filter_map(|(has, end)| has.then_some(end))
}

/// True if the driver of `spec` belongs to publishers alone, to which no message is sent.
fn only_sends(spec: &TrialSpec) -> bool {
    let of_publishers = spec.pong_driver.as_ref().is_some_and(|pong| *pong != spec.driver);
    of_publishers && spec.measure.flow().is_some_and(|flow| !flow.has_answers())
}

/// The value of an option that is not possible on this machine, and those that are.
fn not_here(driver: &DriverSpec, description: &Description) -> Option<String> {
    driver.options.iter().find_map(|(key, value)| {
        let here = description.option(key)?.here.as_ref()?;
        let has = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
        let name = &description.name;
        (!here.contains(value))
            .then(|| format!("driver `{name}`: {key}={value} is not installed on this machine; installed: {has}"))
    })
}

/// Makes the [`Problem`] for a trial that a driver cannot run; `key` is the key of the study that the user can change.
fn refused(key: &str, what: impl Into<String>) -> Problem {
    Problem::new("driver_limit", what, "").at(key)
}

fn impossible(spec: &TrialSpec, driver: &Description) -> Option<Problem> {
    if let Some(problem) = spec.payload_problem(&driver.name, driver.limits.max_payload_bytes) {
        return Some(problem);
    }
    if let Some(reason) = super::flow::lack(spec, driver) {
        return Some(refused("driver", reason));
    }
    if let Some(reason) = super::discovery::lack(spec, driver) {
        return Some(refused("driver", reason));
    }
    if let Some(reason) = memory_lack(spec, driver) {
        return Some(refused("driver", reason));
    }
    if let Some(reason) = super::security::lack(spec, driver) {
        return Some(refused("security", reason));
    }
    let (receive, hand_off) = (spec.measure.receive(), spec.measure.hand_off());
    let mode = driver_mode(receive);
    if !(driver.receives(mode) || only_sends(spec)) {
        let has: Vec<_> = driver.receive_modes.iter().map(|m| m.name()).collect();
        return Some(refused(
            "driver",
            format!("driver {} has no receive mode `{}`; it has {}", driver.name, mode.name(), has.join(", ")),
        ));
    }
    if spec.participants_of_session() > 1 && driver.option("participants").is_none() {
        return Some(refused(
            "driver",
            format!(
                "driver {} has one participant for each session: two ends in one process cannot share a participant",
                driver.name
            ),
        ));
    }
    let scripted = spec.driver.options.get("clock").is_some_and(|c| c == "scripted");
    let one_thread = receive == ReceiveMode::Listener || spec.arrangement.is_some_and(|a| a.executors == 1);
    if scripted && spec.measure.flow().is_some() {
        return Some(refused(
            "driver",
            "a flow cannot use a scripted clock, which does not advance while messages are sent as fast as possible",
        ));
    }
    if scripted && (!one_thread || *hand_off != HandOff::None) {
        return Some(refused(
            "driver",
            "a scripted clock runs on one thread: use receive mode listener or one executor, and no hand_off",
        ));
    }
    if scripted && spec.collect == Collect::Live {
        return Some(refused(
            "driver",
            "`collect: live` cannot be used with a scripted clock, because it drains rings by the machine's clock",
        ));
    }
    if let Some(reason) = spec.loads.iter().find_map(|load| topic_lack(load, driver, scripted)) {
        return Some(refused("driver", reason));
    }
    if let Some(reason) =
        [&spec.ping, &spec.pong].into_iter().find_map(|end| roles_lack(&end.scheduling, &spec.measure, driver))
    {
        return Some(refused("driver", reason));
    }
    if let Some(reason) = ends_of(spec).find_map(|end| vendor_threads::lack(&end.scheduling, &spec.driver, driver)) {
        return Some(refused("driver", reason));
    }
    let known: Vec<&str> = driver.options.iter().map(|o| o.key.as_str()).collect();
    if let Some(key) = spec.driver.options.keys().find(|k| !known.contains(&k.as_str())) {
        let near = nearest(key, known.iter().copied()).map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        return Some(refused(
            "driver",
            format!("driver {} has no option `{key}`; {near}it has {}", driver.name, known.join(" ")),
        ));
    }
    if let Some(reason) = driver.options.iter().find_map(|o| wrong_value(o, spec.driver.options.get(&o.key)?)) {
        return Some(refused("driver", format!("driver {}: {reason}", driver.name)));
    }
    let of_loads = spec.loads.iter().filter_map(|load| match &load.run {
        LoadKind::Topic(topic) => topic.qos.as_ref(),
        _ => None,
    });
    let all = std::iter::once(&spec.qos).chain(of_loads);
    all.clone()
        .find_map(|qos| lacking_policy(qos, driver))
        .or_else(|| all.clone().find_map(|qos| excluded(qos, spec, driver)))
}

/// Problem of a QoS policy, or of a value of one, that the driver does not have; `None` = it has all.
fn lacking_policy(qos: &BTreeMap<String, String>, driver: &Description) -> Option<Problem> {
    let policies: Vec<&str> = driver.qos.iter().map(|q| q.policy.as_str()).collect();
    if let Some(key) = qos.keys().find(|k| !policies.contains(&k.as_str())) {
        let has = if policies.is_empty() { "none".into() } else { policies.join(" ") };
        let near = nearest(key, policies.iter().copied()).map_or_else(String::new, |n| format!("did you mean `{n}`? "));
        let what = format!("driver {} has no QoS policy `{key}`; {near}it has {has}", driver.name);
        let remedy = match policies.is_empty() {
            true => format!("remove `qos` for driver {}, or measure a DDS driver, such as `cyclonedds`", driver.name),
            false => String::new(),
        };
        return Some(refused(&format!("qos.{key}"), what).with_remedy(remedy));
    }
    let not_supported =
        |q: &&QosPolicy| !q.open_ended && qos.get(&q.policy).is_some_and(|value| !q.values.contains(value));
    if let Some(q) = driver.qos.iter().find(not_supported) {
        let (value, has) = (&qos[&q.policy], q.values.join(", "));
        return Some(refused(
            &format!("qos.{}", q.policy),
            format!("driver {} does not have {} `{value}`; it has {has}", driver.name, q.policy),
        ));
    }
    None
}

/// Problem of a QoS policy whose value is impossible with the value of a driver option; `None` = all fit.
fn excluded(qos: &BTreeMap<String, String>, spec: &TrialSpec, driver: &Description) -> Option<Problem> {
    let of_option = |key: &str| {
        let default = || driver.option(key).and_then(|option| option.default.as_ref());
        spec.driver.options.get(key).or_else(default)
    };
    let fits = |policy: &str, x: &Exclusion| qos.get(policy) != Some(&x.value) || of_option(&x.option) != Some(&x.is);
    driver.qos.iter().find_map(|q| {
        let x = q.excludes.iter().find(|x| !fits(&q.policy, x))?;
        let (policy, value, option, is, why) = (&q.policy, &x.value, &x.option, &x.is, &x.why);
        let what = format!("driver {} does not have {policy} `{value}` with `{option}: {is}`: {why}", driver.name);
        Some(refused(&format!("qos.{policy}"), what))
    })
}

/// Reason why a driver that uses shared memory does not reach the ends; `None` = it reaches them, or uses a network.
fn memory_lack(spec: &TrialSpec, driver: &Description) -> Option<String> {
    let only = driver.option("transport")?.values == ["shm"];
    let asked = spec.driver.options.get("shared_memory").is_some_and(|is| is == "on");
    if !only && !asked {
        return None;
    }
    // One other host is one host too.
    if matches!(spec.ping.place, PlaceSpec::Ssh(_)) && spec.ping.place == spec.pong.place {
        return None;
    }
    let apart = [("ping", &spec.ping), ("pong", &spec.pong)].into_iter().find(|(_, end)| end.place.is_reached());
    let (name, end) = apart?;
    let why = if only { "has shared memory only" } else { "shares memory (`shared_memory: on`)" };
    Some(format!(
        "driver {} {why}, so that all ends must be processes of this host: the place of the {name} end is {}",
        driver.name, end.place
    ))
}

/// Reason why a driver cannot carry the topic of a load in addition to the measured topics; `None` = the driver can
/// carry it.
fn topic_lack(load: &LoadSpec, driver: &Description, scripted: bool) -> Option<String> {
    let LoadKind::Topic(topic) = &load.run else { return None };
    let (name, limit) = (&driver.name, driver.limits.max_payload_bytes);
    if scripted {
        return Some(format!("the load `{}` runs in real time, and the clock of the trial is scripted", load.run));
    }
    if topic.payload.0 > limit {
        return Some(format!(
            "the payload of load `{}` is larger than the {limit} B that driver {name} can send",
            load.run
        ));
    }
    if !driver.receives(tailbound_driver::ReceiveMode::Block) {
        return Some(format!(
            "the messages of load `{}` are received by a blocking thread, which driver {name} does not support",
            load.run
        ));
    }
    None
}

/// Reason why the value of a driver option does not fit the type of the option; `None` = it fits. The driver itself may
/// refuse further values.
fn wrong_value(option: &DriverOption, value: &str) -> Option<String> {
    let wanted = match option.kind {
        OptionType::Integer if value.trim().parse::<i64>().is_err() => "a whole number".to_owned(),
        OptionType::Number if value.trim().parse::<f64>().is_err() => "a number".to_owned(),
        OptionType::Bool if !matches!(value, "on" | "off") => "`on` or `off`".to_owned(),
        OptionType::Enum if !option.values.iter().any(|v| v == value) => {
            format!("one of {}", option.values.join(", "))
        }
        _ => return None,
    };
    Some(format!("option `{}` is `{value}`; it wants {wanted}", option.key))
}

/// Reason why the scheduling of the study cannot be applied: it names a role that no thread of this driver has in this
/// measurement. `None` = all roles exist.
fn roles_lack(asked: &Scheduling, measure: &Measure, driver: &Description) -> Option<String> {
    let mut has = vec!["main", MIDDLEWARE, "other"];
    has.extend(driver.roles.iter().map(|r| r.role.as_str()));
    if matches!(measure.receive(), ReceiveMode::Block | ReceiveMode::Spin) {
        has.push("receive");
    }
    if *measure.hand_off() != HandOff::None {
        has.push("processing");
    }
    let role = asked.roles.keys().find(|role| !has.contains(&role.as_str()))?;
    has.sort_unstable();
    has.dedup();
    Some(format!("no thread of driver {} has the role `{role}`; its roles are {}", driver.name, has.join(", ")))
}

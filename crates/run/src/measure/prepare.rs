//! Prepares the measuring process before the driver is opened (scheduling, memory, limits), and checks that the QoS is
//! as the study asks.

use super::ProcessReady;
use crate::end_plan::driver_mode;
use crate::thread_policy;
use tailbound_driver::{Code, Driver, DriverError};
use tailbound_host as host;
use tailbound_model::*;
use tailbound_wire::{EndReady, Failed, Order, Role};

/// Makes the error for requested scheduling that the kernel refused to set.
fn refused(order: &Order, why: impl std::fmt::Display) -> Failed {
    let text = format!("{}: {why}", order.ends[0].role.word());
    Failed::new("scheduling", ExitCode::MachineNotFit, text, "")
}

/// Sets the scheduling of the process and its timer slack, and locks its memory, unless the study asks for defaults. Threads
/// that are created later inherit the scheduling and the slack.
///
/// # Errors
/// The scheduling cannot be set.
pub(super) fn process(order: &Order) -> Result<ProcessReady, Failed> {
    let end = order.ends[0].role.word();
    if !order.is_one_scheduling() {
        let text = "the ends of one process ask for different scheduling";
        return Err(Failed::new("scheduling", ExitCode::BadInput, text, "give `scheduling` once, for both ends"));
    }
    let wanted = order.scheduling();
    // A deadline is set when the driver is open, because a thread with a deadline cannot create threads.
    let all = RoleScheduling { policy: wanted.policy.filter(|p| !is_deadline(p)), cpus: wanted.cpus.clone() };
    host::apply(0, &all).map_err(|e| refused(order, e))?;
    if let Some(difference) = host::verify(0, &all) {
        return Err(refused(order, difference));
    }
    limit_real_time(order).map_err(|e| refused(order, format!("RLIMIT_RTTIME cannot be set: {e}")))?;
    let middleware = order.spec.middleware;
    let mut ready = ProcessReady { memory_locked: false, timer_slack_ns: None, warnings: Vec::new() };
    if !middleware.default_timer_slack {
        timer_slack(order, &mut ready);
    }
    if !middleware.unlocked_memory {
        match host::scheduling::lock_memory() {
            Ok(_) => ready.memory_locked = true,
            Err(e) => ready.warnings.push(memory_not_locked(&e).at_end(end)),
        }
    }
    Ok(ready)
}

/// Sets the timer slack of the calling thread to 1 ns. Threads that it creates later inherit the slack.
pub(super) fn timer_slack(order: &Order, ready: &mut ProcessReady) {
    match host::scheduling::set_timer_slack_1ns() {
        Ok(slack) => ready.timer_slack_ns = Some(slack),
        Err(e) => {
            let text =
                format!("timer slack could not be set to 1 ns: {e}; the default 50 us is part of every send lateness");
            let warning = Warning::new("timer_slack", Severity::Warning, text, "");
            ready.warnings.push(warning.at_end(order.ends[0].role.word()));
        }
    }
}

/// Makes the warning that the memory of the measuring process could not be locked.
fn memory_not_locked(e: &host::scheduling::LockError) -> Warning {
    Warning::new("memory_not_locked", Severity::Warning, e.to_string(), host::scheduling::LockError::REMEDY)
}

/// Limits the CPU time of real-time threads: if such a thread never sleeps, the kernel ends the process (SIGXCPU) after
/// the longest time that the trial may take. This is the last resort in case the guard gets no CPU.
fn limit_real_time(order: &Order) -> nix::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if !order.is_real_time() {
        return Ok(());
    }
    let (_, hard) = getrlimit(Resource::RLIMIT_RTTIME)?;
    let limit_us = ((order.match_timeout_ns + order.limit_ns) / 1_000) as u64 + 60_000_000;
    setrlimit(Resource::RLIMIT_RTTIME, limit_us.min(hard), hard)
}

fn is_deadline(policy: &Policy) -> bool {
    matches!(policy, Policy::Deadline { .. })
}

/// Begins to give each thread the scheduling of its role, and sets the scheduling of the calling thread.
///
/// # Errors
/// The scheduling cannot be set.
pub(super) fn thread_policies(order: &Order, driver: &Driver) -> Result<(), Failed> {
    let asked = order.scheduling();
    thread_policy::begin(asked, &driver.description().roles).map_err(|e| refused(order, e))?;
    let main = asked.of_role("main", false);
    if asked.roles.contains_key("main") && !main.policy.as_ref().is_some_and(is_deadline) {
        host::apply(0, &main).map_err(|e| refused(order, format!("role main: {e}")))?;
    }
    Ok(())
}

/// Checks that the driver can carry out the controller's order: message size and receive mode.
///
/// # Errors
/// The driver cannot send messages of this size, or does not have the receive mode of the study.
pub(super) fn check_limits(order: &Order, driver: &Driver) -> Result<(), Failed> {
    let description = driver.description();
    if let Some(problem) = order.spec.payload_problem(driver.name(), description.limits.max_payload_bytes) {
        return Err(Failed::new("payload", ExitCode::BadInput, problem.what, problem.remedy));
    }
    let launches = order.spec.stream.is_some_and(|stream| stream.launch.is_some());
    if launches && order.ends.iter().any(|end| end.role == Role::Ping) && !description.has("txtime") {
        let text = format!("driver {} sends no message at a given time, so that `launch` has no effect", driver.name());
        return Err(Failed::new("launch", ExitCode::BadInput, text, "name the driver `udp`, or remove `launch`"));
    }
    let mode = driver_mode(order.spec.measure.receive());
    // Publishers of a flow without answers receive nothing.
    let publishes = |role| matches!(role, Role::Ping | Role::Publisher(_));
    let receives =
        order.ends.iter().any(|end| !publishes(end.role)) || order.spec.measure.flow().is_none_or(Flow::has_answers);
    if receives && !description.receives(mode) {
        let has: Vec<_> = description.receive_modes.iter().map(|m| m.name()).collect();
        return Err(Failed::new(
            "receive_mode",
            ExitCode::BadInput,
            format!("driver {} has no receive mode `{}`; it has {}", driver.name(), mode.name(), has.join(", ")),
            "",
        ));
    }
    Ok(())
}

/// Makes the error for a session or an end point that the driver cannot open. The remedy names the list of driver
/// options only if the driver refuses a setting of the study.
pub(super) fn open_failed(e: DriverError) -> Failed {
    let (exit, remedy) = match e.code {
        Code::EINVAL | Code::EQOS | Code::ETOOBIG | Code::EUNSUPPORTED => {
            (ExitCode::BadInput, "`tailbound driver list` shows each driver's options, QoS and limits")
        }
        Code::EIO => (ExitCode::RunFailed, "check the addresses and interfaces of this place: `ip address` lists them"),
        _ => (ExitCode::RunFailed, ""),
    };
    Failed::new("driver_open", exit, e, remedy)
}

/// Warns of driver options that have no effect, because the user's own configuration file is used unchanged.
pub(super) fn options_without_effect(order: &Order) -> Option<Warning> {
    const GENERAL: [&str; 4] = ["naming", "instance", "transport", "participants"];
    order.spec.driver.config.as_ref()?;
    let options = order.spec.driver.options.keys().filter(|k| !GENERAL.contains(&k.as_str()));
    let options: Vec<&str> = options.map(String::as_str).collect();
    let text = format!("`config` is used unchanged; these driver options have no effect: {}", options.join(", "));
    let remedy = "write the options into the configuration file, or leave them out";
    (!options.is_empty()).then(|| Warning::new("options_without_effect", Severity::Warning, text, remedy))
}

/// Warns of QoS that differs from the QoS that the study asks for. The trial is then invalid.
pub(super) fn qos_differences(order: &Order, ready: &EndReady) -> Vec<Warning> {
    let differs = |(key, asked): (&String, &String)| {
        let found = ready.qos.get(key).map_or("nothing", String::as_str);
        (found != asked).then(|| {
            Warning::new(
                "qos_not_as_asked",
                Severity::Invalid,
                format!("the study asks for QoS {key} {asked}, the driver reports {found}"),
                "",
            )
            .at_end(ready.name.clone())
        })
    };
    if ready.qos.is_empty() { Vec::new() } else { order.spec.qos.iter().filter_map(differs).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_wire::{EndOrder, Role};

    /// The order for the first condition of a study, to an agent that runs ends with these roles in one process.
    fn order(study: &str, roles: &[Role]) -> Order {
        let text = format!("study: s\nquestion: q\n{study}");
        let plan = tailbound_study::load_str("s.yaml", &text, std::path::Path::new(""), &[]);
        let plan = plan.unwrap_or_else(|e| panic!("{e}"));
        Order {
            run_id: "1".into(),
            trial: 0,
            spec: plan.conditions[0].spec.clone(),
            ends: roles.iter().map(|role| EndOrder { role: *role, options: Vec::new(), security: None }).collect(),
            slots: 1,
            warm_up: 0,
            duration_ns: None,
            ring: None,
            match_timeout_ns: 0,
            limit_ns: 0,
            driver_path: None,
            rescue: None,
            housekeeping: CpuList::default(),
            guest_cpus: CpuList::default(),
            allowed: CpuList::default(),
            free: CpuList::default(),
            late_above_ns: None,
            figures: false,
            tool: None,
            streams: Vec::new(),
            neighbour_of: None,
            stream_base_ns: 0,
            stream_card: None,
        }
    }

    const BATCH: Option<Policy> = Some(Policy::Batch { nice: 0 });
    const IDLE: Option<Policy> = Some(Policy::Idle);

    /// A study whose ends ask for different policies.
    const TWO_POLICIES: &str = "measure: { ping-pong: { slots: 200 } }\ndriver: udp\n\
        ends: { ping: { scheduling: { policy: batch } }, pong: { scheduling: { policy: idle } } }\n";

    #[test]
    fn each_end_has_the_scheduling_of_its_own_role() {
        let policy = |roles: &[Role]| order(TWO_POLICIES, roles).scheduling().policy;
        assert_eq!((policy(&[Role::Ping]), policy(&[Role::Pong])), (BATCH, IDLE));
        assert_eq!((policy(&[Role::Publisher(2)]), policy(&[Role::Further(2)])), (BATCH, IDLE));
        let real_time = TWO_POLICIES.replace("policy: idle", "policy: fifo, priority: 50");
        let is_real_time = |roles: &[Role]| order(&real_time, roles).is_real_time();
        assert!(!is_real_time(&[Role::Ping]) && is_real_time(&[Role::Pong]) && is_real_time(&[Role::Ping, Role::Pong]));
    }

    /// Test: nothing is set for two ends of one process that ask for different scheduling.
    #[test]
    fn different_scheduling_for_two_ends_of_one_process_is_refused() {
        let before = host::read_back(0).unwrap();
        let refused = process(&order(TWO_POLICIES, &[Role::Ping, Role::Pong])).err().expect("an error");
        assert_eq!((refused.problem.code.as_str(), refused.exit), ("scheduling", ExitCode::BadInput as u8));
        assert_eq!(refused.problem.what, "the ends of one process ask for different scheduling");
        assert_eq!(refused.problem.remedy, "give `scheduling` once, for both ends");
        assert_eq!(host::read_back(0).unwrap(), before);
    }

    #[test]
    fn a_message_of_many_payloads_is_refused_with_its_own_size() {
        let null = Driver::linked("null", tailbound_driver_null::table()).unwrap();
        let refused = |pack: u32| {
            let study = format!("measure: {{ throughput: {{ pack: {pack} }} }}\ndriver: udp\npayload: 1 MiB\n");
            check_limits(&order(&study, &[Role::Ping]), &null).err()
        };
        assert_eq!(refused(16), None);
        let refused = refused(17).expect("an error");
        assert_eq!(refused.problem.code, "payload");
        assert_eq!(refused.problem.what, "a message of 17 MiB is beyond the limit of driver null, 16777216 B");
        assert_eq!(refused.problem.remedy, "send messages of at most 16777216 B");
    }

    #[test]
    fn launch_times_need_a_driver_that_has_them() {
        let null = Driver::linked("null", tailbound_driver_null::table()).unwrap();
        let study = "measure: { ping-pong: { slots: 200 } }\ndriver: { udp: { priority: 3 } }\npath: veth\nplace: netns\n\
                     stream: { launch: { lead: 5 ms } }\n";
        assert_eq!(check_limits(&order(study, &[Role::Pong]), &null), Ok(()));
        let refused = check_limits(&order(study, &[Role::Ping]), &null).expect_err("an error");
        assert_eq!(
            refused.problem.what,
            "driver null sends no message at a given time, so that `launch` has no effect"
        );
        assert_eq!(refused.problem.remedy, "name the driver `udp`, or remove `launch`");
    }

    fn driver_error(code: Code, text: &str) -> DriverError {
        DriverError { driver: "udp".into(), call: "create", code, text: text.into() }
    }

    #[test]
    fn an_address_that_cannot_be_bound_is_not_answered_with_the_list_of_options() {
        let failed = open_failed(driver_error(Code::EIO, "cannot bind 192.0.2.1: Cannot assign requested address"));
        assert_eq!(failed.exit, ExitCode::RunFailed as u8);
        assert_eq!(failed.problem.remedy, "check the addresses and interfaces of this place: `ip address` lists them");
        let failed = open_failed(driver_error(Code::EINVAL, "no such option"));
        assert_eq!(failed.problem.remedy, "`tailbound driver list` shows each driver's options, QoS and limits");
    }

    #[test]
    fn a_reason_with_a_semicolon_stays_in_the_warning() {
        let error = host::scheduling::LockError { reason: "a; b".into(), limit: "64 KiB".into(), capable: false };
        let warning = memory_not_locked(&error);
        assert_eq!(
            warning.problem.what,
            "memory could not be locked (a; b): RLIMIT_MEMLOCK is 64 KiB and CAP_IPC_LOCK is missing"
        );
        assert!(warning.problem.remedy.starts_with("run as root"), "{}", warning.problem.remedy);
    }
}

//! Tests that build real labs in their own network namespaces: as root, or else inside a user namespace.
//!
//! These tests have their own harness, because a user namespace can be entered only by a process without further
//! threads. Cases run one after the other; a case that needs a missing feature prints `skipped: reason` and is counted.
//! If the user is root, all cases run once more as the user nobody, inside a user namespace.

mod cases;
mod existing;
mod failing;
mod frames;
mod guests;
mod held;
mod support;
mod ways;

use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{Case, Skip};
use tailbound_lab::{Privilege, userns};

const CASES: &[(&str, Case)] = &[
    ("veth_carries_every_size_at_mtu_9000", cases::veth_carries_every_size_at_mtu_9000),
    ("veth_has_the_kernels_mtu_by_default", cases::veth_has_the_kernels_mtu_by_default),
    ("bridge_carries_every_size_and_multicast", cases::bridge_carries_every_size_and_multicast),
    ("loopback_is_used_as_it_is", cases::loopback_is_used_as_it_is),
    ("commands_run_in_their_ends_namespace", cases::commands_run_in_their_ends_namespace),
    ("counters_count_what_the_probe_sent", cases::counters_count_what_the_probe_sent),
    ("two_labs_do_not_disturb_each_other", cases::two_labs_do_not_disturb_each_other),
    ("the_hosts_namespace_is_never_touched", cases::the_hosts_namespace_is_never_touched),
    ("existing_namespaces_by_path_are_read_and_not_changed", existing::by_path),
    ("existing_namespaces_by_name_are_read_and_not_changed", existing::by_name),
    ("what_an_existing_namespace_lacks_is_named", existing::lacks),
    ("a_path_that_passes_nothing_is_told_in_facts", existing::passes_nothing),
    ("a_failure_at_any_step_leaves_nothing", failing::at_any_step),
    ("a_process_left_inside_keeps_the_journal_entry", failing::process_left_inside),
    ("a_machine_that_forbids_user_namespaces_is_told_so", failing::forbidden),
    ("kill_9_leaves_nothing", failing::kill_9),
    ("a_way_by_bridge_and_vxlan_is_followed", ways::by_bridge_and_vxlan),
    ("a_way_by_route_and_by_macvlan_is_followed", ways::by_route_and_by_macvlan),
    ("ebpf_programs_at_interfaces_are_told", ways::programs_are_told),
    ("a_bridge_carries_the_frames_of_guests", guests::bridge),
    ("macvtap_carries_the_frames_of_guests", guests::macvtap),
    ("xdp_programs_carry_the_frames_of_guests", guests::xdp),
    ("open_vswitch_carries_the_frames_of_guests", guests::open_vswitch),
    ("datagrams_carry_the_frames_of_guests", guests::datagram),
    ("what_a_machine_lacks_for_guests_is_told", guests::lacks),
    ("a_path_of_guests_that_fails_leaves_nothing", guests::failing),
    ("multicast_reaches_every_guest_and_the_host", guests::multicast),
    ("kill_9_of_a_path_of_guests_leaves_nothing", guests::kill_9),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let flag = |name: &str| arguments.iter().any(|a| a == name);
    if flag("--list") {
        // cargo-nextest asks a second time, with `--ignored`, for the ignored tests: no case is ignored.
        CASES.iter().filter(|_| !flag("--ignored")).for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let privilege = userns::enter_if_needed(true).unwrap();
    if let Some(at) = arguments.iter().position(|a| a == "--hold-lab") {
        return failing::hold_lab(&arguments[at + 1]);
    }
    if let Some(at) = arguments.iter().position(|a| a == "--hold-path") {
        return guests::hold_path(&arguments[at + 1], &arguments[at + 2]);
    }
    if flag("--show-privilege") {
        return println!("{privilege:?}\n{:?}", support::veth(None).check());
    }
    support::use_own_state_dir();
    let filters: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let matches = |name: &str, filter: &str| if flag("--exact") { name == filter } else { name.contains(filter) };
    let (mut passed, mut skipped, mut failed) = (0, 0, 0);
    for (name, case) in CASES.iter().filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| matches(name, f)))
    {
        let outcome = match &privilege {
            Privilege::None { reason } if *name != "loopback_is_used_as_it_is" => Ok(Err(Skip(reason.clone()))),
            _ => catch_unwind(AssertUnwindSafe(case)),
        };
        match outcome {
            Ok(Ok(())) => {
                passed += 1;
                println!("test {name} ({privilege:?}) ... ok");
            }
            Ok(Err(Skip(reason))) => {
                skipped += 1;
                println!("test {name} ({privilege:?}) ... skipped: {reason}");
            }
            Err(_) => {
                failed += 1;
                println!("test {name} ({privilege:?}) ... FAILED");
            }
        }
    }
    println!("test result ({privilege:?}): {passed} passed; {failed} failed; {skipped} skipped");
    let nobody_ok = privilege != Privilege::Root || support::run_again_as_nobody(&arguments);
    support::remove_own_state_dir();
    std::process::exit(i32::from(failed > 0 || !nobody_ok));
}

//! Integration tests of the crate tailbound: one program, with one module for each subject.

mod advice;
mod agent_holder;
mod arrangements;
mod bags;
mod budget;
mod bundle;
mod calibration;
mod clocks;
mod compare;
mod cookbook;
mod diagnostics_log;
mod driver_chapter;
mod drivers;
mod errors;
mod first_use;
mod gates;
mod hardware_clocks;
mod image;
mod import;
mod integrations;
mod k8s;
mod receive_modes;
mod repeat_for;
mod support;
mod tools;
mod traces;
mod tune_export;
mod until;

#[cfg(feature = "system-tests")]
mod budget_of_flows;
#[cfg(feature = "system-tests")]
mod causes_in_guests;
#[cfg(feature = "system-tests")]
mod causes_in_long_trials;
#[cfg(feature = "system-tests")]
mod causes_of_executors;
#[cfg(feature = "system-tests")]
mod causes_of_late_messages;
#[cfg(feature = "system-tests")]
mod clock_by_chrony;
#[cfg(feature = "system-tests")]
mod clock_of_run;
#[cfg(feature = "system-tests")]
mod containers;
#[cfg(feature = "system-tests")]
mod cpu_quota;
#[cfg(feature = "system-tests")]
mod discipline;
#[cfg(feature = "system-tests")]
mod domain;
#[cfg(feature = "system-tests")]
mod duckdb;
#[cfg(feature = "system-tests")]
mod export;
#[cfg(feature = "system-tests")]
mod fastdds;
#[cfg(feature = "system-tests")]
mod fastdds_meeting;
#[cfg(feature = "system-tests")]
mod faults;
#[cfg(feature = "system-tests")]
mod flow;
#[cfg(feature = "system-tests")]
mod flows;
#[cfg(feature = "system-tests")]
mod flows_of_drivers;
#[cfg(feature = "system-tests")]
mod flows_of_many;
#[cfg(feature = "system-tests")]
mod guest;
#[cfg(feature = "system-tests")]
mod guest_pause;
#[cfg(feature = "system-tests")]
mod hand_off;
#[cfg(feature = "system-tests")]
mod iceoryx2;
#[cfg(feature = "system-tests")]
mod inside_guest;
#[cfg(feature = "system-tests")]
mod inside_guest_clocks;
#[cfg(feature = "system-tests")]
mod inside_guest_isochron;
#[cfg(feature = "system-tests")]
mod inside_guest_launches;
#[cfg(feature = "system-tests")]
mod inside_guest_ptp;
#[cfg(feature = "system-tests")]
mod inside_guest_queues;
#[cfg(feature = "system-tests")]
mod inside_guest_receive_stamps;
#[cfg(feature = "system-tests")]
mod knob_kinds;
#[cfg(feature = "system-tests")]
mod knobs;
#[cfg(feature = "system-tests")]
mod libvirt;
#[cfg(feature = "system-tests")]
mod live;
#[cfg(feature = "system-tests")]
mod loads;
#[cfg(feature = "system-tests")]
mod loads_that_send;
#[cfg(feature = "system-tests")]
mod other_runs;
#[cfg(feature = "system-tests")]
mod packets;
#[cfg(feature = "system-tests")]
mod path_check;
#[cfg(feature = "system-tests")]
mod perfetto;
#[cfg(feature = "system-tests")]
mod ping;
#[cfg(feature = "system-tests")]
mod places;
#[cfg(feature = "system-tests")]
mod pods;
#[cfg(feature = "system-tests")]
mod pods_discovery;
#[cfg(feature = "system-tests")]
mod pods_inside;
#[cfg(feature = "system-tests")]
mod pods_many;
#[cfg(feature = "system-tests")]
mod pods_names;
#[cfg(feature = "system-tests")]
mod pods_nodes;
#[cfg(feature = "system-tests")]
mod priorities;
#[cfg(feature = "system-tests")]
mod published_studies;
mod rcl;
mod rclcpp;
#[cfg(feature = "system-tests")]
mod roles;
#[cfg(feature = "system-tests")]
mod ros2;
#[cfg(feature = "system-tests")]
mod ros2_meeting;
#[cfg(feature = "system-tests")]
mod security;
#[cfg(feature = "system-tests")]
mod security_files;
#[cfg(feature = "system-tests")]
mod ssh;
#[cfg(feature = "system-tests")]
mod starvation;
mod streams;
#[cfg(feature = "system-tests")]
mod tools_of_debian;
#[cfg(feature = "system-tests")]
mod tune;
#[cfg(feature = "system-tests")]
mod tune_apply;
mod tune_input;
#[cfg(feature = "system-tests")]
mod tutorial;
#[cfg(feature = "system-tests")]
mod vlans;
#[cfg(feature = "system-tests")]
mod vms;
#[cfg(feature = "system-tests")]
mod vms_neighbours;
#[cfg(feature = "system-tests")]
mod vms_networks;
#[cfg(feature = "system-tests")]
mod watch;
#[cfg(feature = "system-tests")]
mod watch_also;
#[cfg(feature = "system-tests")]
mod watch_calls;
#[cfg(feature = "system-tests")]
mod watch_chains;
#[cfg(feature = "system-tests")]
mod watch_relay;
#[cfg(feature = "system-tests")]
mod zenoh;

//! Conformance checks of the driver's table of functions and of its description.

use std::collections::HashSet;
use std::mem::offset_of;

use tailbound_abi::{TB_ABI_MAJOR, tb_driver};

use crate::conformance::Wrong;
use crate::conformance::bench::Bench;
use crate::conformance::{Checked, pass};
use crate::description::{Description, OptionType};
use crate::error::LoadError;
use crate::table::{MANDATORY, check};

/// Checks that modified copies of the driver's table are refused, and that the original is accepted.
pub fn table(bench: &Bench) -> Checked {
    let good = *bench.driver.table();
    let load = |copy: &tb_driver| {
        // SAFETY: this is a copy of a loaded table, changed only in members that `check` verifies before it uses them.
        unsafe { check("copy", copy) }
    };
    let wrong_major = tb_driver { abi_major: TB_ABI_MAJOR + 1, ..good };
    if !matches!(load(&wrong_major), Err(LoadError::WrongAbi { .. })) {
        return Err(Wrong("a driver table of the next major version was accepted".to_owned()));
    }
    let too_short = tb_driver { size: offset_of!(tb_driver, commit) as u32, ..good };
    if !matches!(load(&too_short), Err(LoadError::TableTooShort { .. })) {
        return Err(Wrong("a driver table that ends before `commit` was accepted".to_owned()));
    }
    for (name, offset) in MANDATORY {
        let mut copy = good;
        // SAFETY: the offset is the offset of a function pointer, for which null is a valid value.
        unsafe { (&raw mut copy).byte_add(*offset).cast::<usize>().write(0) };
        if !matches!(load(&copy), Err(LoadError::FunctionMissing { function, .. }) if function == *name) {
            return Err(Wrong(format!("a driver table without the function `{name}` was accepted")));
        }
    }
    if good.flags != 0 {
        return Err(Wrong(format!("the reserved member `flags` of the driver table is {:#x}, not 0", good.flags)));
    }
    if good.reserved.iter().any(|p| !p.is_null()) {
        return Err(Wrong("a reserved member of the driver table is not null".to_owned()));
    }
    let claims = bench.driver.description().has("loan");
    if good.loan.is_some() != good.commit.is_some() || good.loan.is_some() != claims {
        return Err(
            "`loan` and `commit` must be present together, if and only if the capability `loan` is declared".into()
        );
    }
    pass(format!("ABI {}.{}, {} B", good.abi_major, good.abi_minor, good.size))
}

const ROLES: [&str; 6] = ["main", "receive", "send", "event", "discovery", "other"];

pub fn description(bench: &Bench) -> Checked {
    let d: &Description = bench.driver.description();
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if d.name.is_empty() || !d.name.chars().all(word) {
        return Err(Wrong(format!("name: `{}` does not consist of lower-case letters, digits, _ and -", d.name)));
    }
    if d.versions.is_empty() || d.versions.values().any(String::is_empty) {
        return Err(Wrong("versions: the driver's own version is needed, and no version may be empty".to_owned()));
    }
    let modes: HashSet<_> = d.receive_modes.iter().collect();
    if modes.is_empty() || modes.len() != d.receive_modes.len() {
        return Err(Wrong("receive_modes: at least one mode is needed, and no mode may be listed twice".to_owned()));
    }
    if d.limits.max_payload_bytes == 0 {
        return Err(Wrong("limits: max_payload_bytes is 0".to_owned()));
    }
    let mut keys = HashSet::new();
    for option in &d.options {
        let key = &option.key;
        if key.is_empty() || !keys.insert(key) {
            return Err(Wrong(format!("options: key `{key}` is empty or listed twice")));
        }
        if option.help.trim().is_empty() {
            return Err(Wrong(format!("options: `{key}` has no help")));
        }
        let listed = option.kind == OptionType::Enum;
        if listed == option.values.is_empty() {
            return Err(Wrong(format!("options: `{key}` needs values if and only if it is an enum")));
        }
        let default = option.default.as_ref();
        if listed && default.is_some_and(|d| !option.values.contains(d)) {
            return Err(Wrong(format!("options: the default of `{key}` is not among its values")));
        }
        if option.kind == OptionType::Integer && default.is_some_and(|d| d.parse::<i64>().is_err()) {
            return Err(Wrong(format!("options: the default of `{key}` is not an integer")));
        }
    }
    if let Some(policy) = d.qos.iter().find(|q| q.policy.is_empty() || q.values.is_empty()) {
        return Err(Wrong(format!("qos: `{}` has no name or no values", policy.policy)));
    }
    if let Some(role) = d.roles.iter().find(|r| !ROLES.contains(&r.role.as_str())) {
        return Err(Wrong(format!("roles: `{}` is not one of {}", role.role, ROLES.join(", "))));
    }
    if d.roles.iter().any(|r| r.name_glob.is_none() && r.born_in.is_none()) {
        return Err(Wrong("roles: each rule needs name_glob or born_in".to_owned()));
    }
    pass(format!("{} options, {} QoS policies, {} receive modes", d.options.len(), d.qos.len(), modes.len()))
}

//! The table itself, and what the driver says of itself.

use std::collections::HashSet;
use std::mem::offset_of;

use tailbound_abi::{TB_ABI_MAJOR, tb_driver};

use crate::conformance::bench::Bench;
use crate::conformance::{Checked, pass};
use crate::description::{Description, OptionType};
use crate::error::LoadError;
use crate::table::{MANDATORY, check};

/// Copies that are wrong must be refused, the true one must be clean.
pub fn table(bench: &Bench) -> Checked {
    let good = *bench.driver.table();
    let load = |copy: &tb_driver| {
        // SAFETY: a copy of a table that was loaded, changed only in what `check` looks at before it uses it.
        unsafe { check("copy", copy) }
    };
    let wrong_major = tb_driver { abi_major: TB_ABI_MAJOR + 1, ..good };
    if !matches!(load(&wrong_major), Err(LoadError::WrongAbi { .. })) {
        return Err("a table of the next major version was not refused".into());
    }
    let too_short = tb_driver { size: offset_of!(tb_driver, commit) as u32, ..good };
    if !matches!(load(&too_short), Err(LoadError::TableTooShort { .. })) {
        return Err("a table that ends before `commit` was not refused".into());
    }
    for (name, offset) in MANDATORY {
        let mut copy = good;
        // SAFETY: the offset is that of a function pointer, for which null is a valid value.
        unsafe { (&raw mut copy).byte_add(*offset).cast::<usize>().write(0) };
        if !matches!(load(&copy), Err(LoadError::FunctionMissing { function, .. }) if function == *name) {
            return Err(format!("a table without `{name}` was not refused"));
        }
    }
    if good.flags != 0 {
        return Err(format!("the reserved member `flags` is {:#x}, not 0", good.flags));
    }
    if good.reserved.iter().any(|p| !p.is_null()) {
        return Err("a reserved member is not null".into());
    }
    let claims = bench.driver.description().has("loan");
    if good.loan.is_some() != good.commit.is_some() || good.loan.is_some() != claims {
        return Err(
            "`loan` and `commit` must be there together, if and only if the capability `loan` is declared".into()
        );
    }
    pass(format!("ABI {}.{}, {} B", good.abi_major, good.abi_minor, good.size))
}

const ROLES: [&str; 5] = ["receive", "send", "event", "discovery", "other"];

pub fn description(bench: &Bench) -> Checked {
    let d: &Description = bench.driver.description();
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if d.name.is_empty() || !d.name.chars().all(word) {
        return Err(format!("name: `{}` is not made of lower-case letters, digits, _ and -", d.name));
    }
    if d.versions.is_empty() || d.versions.values().any(String::is_empty) {
        return Err("versions: at least the driver's own is needed, and none may be empty".into());
    }
    let modes: HashSet<_> = d.receive_modes.iter().collect();
    if modes.is_empty() || modes.len() != d.receive_modes.len() {
        return Err("receive_modes: at least one is needed, each once".into());
    }
    if d.limits.max_payload_bytes == 0 {
        return Err("limits: max_payload_bytes is 0".into());
    }
    let mut keys = HashSet::new();
    for option in &d.options {
        let key = &option.key;
        if key.is_empty() || !keys.insert(key) {
            return Err(format!("options: key `{key}` is empty or there twice"));
        }
        if option.help.trim().is_empty() {
            return Err(format!("options: `{key}` has no help"));
        }
        let listed = option.kind == OptionType::Enum;
        if listed == option.values.is_empty() {
            return Err(format!("options: `{key}` needs values if and only if it is an enum"));
        }
        let default = option.default.as_ref();
        if listed && default.is_some_and(|d| !option.values.contains(d)) {
            return Err(format!("options: the default of `{key}` is not among its values"));
        }
        if option.kind == OptionType::Integer && default.is_some_and(|d| d.parse::<i64>().is_err()) {
            return Err(format!("options: the default of `{key}` is not an integer"));
        }
    }
    if let Some(policy) = d.qos.iter().find(|q| q.policy.is_empty() || q.values.is_empty()) {
        return Err(format!("qos: `{}` has no name or no values", policy.policy));
    }
    if let Some(role) = d.roles.iter().find(|r| !ROLES.contains(&r.role.as_str())) {
        return Err(format!("roles: `{}` is none of {}", role.role, ROLES.join(", ")));
    }
    if d.roles.iter().any(|r| r.name_glob.is_none() && r.born_in.is_none()) {
        return Err("roles: each needs name_glob or born_in".into());
    }
    pass(format!("{} options, {} QoS policies, {} receive modes", d.options.len(), d.qos.len(), modes.len()))
}

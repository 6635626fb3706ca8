//! What the environment of the process says about ROS 2: where it is, and which of its variables decide about the network.

use std::path::{Path, PathBuf};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use tailbound_abi::TB_EUNSUPPORTED;
use tailbound_abi::side::{Fail, Outcome, fail};

/// Library with the functions of rcl.
pub const RCL: &str = "librcl.so";

/// Variables of ROS 2 and its RMWs that restrict discovery or the network of the whole process.
pub const VARIABLES: [&str; 9] = [
    "CYCLONEDDS_URI",
    "FASTDDS_DEFAULT_PROFILES_FILE",
    "FASTRTPS_DEFAULT_PROFILES_FILE",
    "ROS_AUTOMATIC_DISCOVERY_RANGE",
    "ROS_DISCOVERY_SERVER",
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ZENOH_ROUTER_CONFIG_URI",
    "ZENOH_SESSION_CONFIG_URI",
];

/// Name of the distribution that is sourced, e.g. `jazzy`.
pub fn distribution() -> Option<String> {
    variable("ROS_DISTRO")
}

/// Value of a variable that is set and not empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Sets a variable of this process, which a library of ROS 2 reads when it is loaded or when a context is made.
///
/// # Errors
/// The value has a NUL byte.
pub fn set(name: &str, value: &str) -> Outcome {
    if value.contains('\0') {
        return Err(Fail::invalid(format!("{name}: the value contains a NUL byte")));
    }
    // SAFETY: no other code of this process changes the environment or reads it with functions of C at this time: ROS 2 reads it
    // in this thread, later.
    unsafe { std::env::set_var(name, value) };
    Ok(())
}

/// The directories in a variable such as PATH.
fn directories(name: &str) -> Vec<PathBuf> {
    std::env::split_paths(&std::env::var_os(name).unwrap_or_default()).collect()
}

/// The sourced directories, the first one first.
fn sourced() -> Vec<PathBuf> {
    directories("AMENT_PREFIX_PATH")
}

/// Version of a package in a sourced directory.
fn version_in(prefix: &Path, package: &str) -> Option<String> {
    let text = std::fs::read_to_string(prefix.join("share").join(package).join("package.xml")).ok()?;
    Some(text.split_once("<version>")?.1.split_once("</version>")?.0.trim().to_owned())
}

/// Version of a package that is sourced, e.g. of `rcl`.
pub fn version(package: &str) -> Option<String> {
    sourced().iter().find_map(|prefix| version_in(prefix, package))
}

/// Refuses two distributions whose directories are both sourced: their libraries would be mixed.
///
/// # Errors
/// Two sourced directories have rcl of different releases.
pub fn one_installation() -> Outcome {
    let release = |prefix: &PathBuf| {
        let version = version_in(prefix, "rcl").unwrap_or_default();
        version.rsplit_once('.').map(|(release, _)| release.to_owned()).unwrap_or_default()
    };
    let has_rcl = |prefix: &PathBuf| prefix.join("lib").join(RCL).exists();
    let all: Vec<PathBuf> = sourced().into_iter().filter(has_rcl).collect();
    let other = all.iter().skip(1).find(|prefix| release(prefix) != release(&all[0]));
    match other {
        None => Ok(()),
        Some(other) => fail(
            TB_EUNSUPPORTED,
            format!(
                "two ROS 2 distributions are sourced: {} with rcl {} and {} with rcl {}; start a new shell and source one of them",
                all[0].display(),
                version_in(&all[0], "rcl").unwrap_or_default(),
                other.display(),
                version_in(other, "rcl").unwrap_or_default(),
            ),
        ),
    }
}

/// Names of the middlewares that are sourced, by the index of ament; `None` if no sourced directory has such an index.
pub fn middlewares() -> Option<Vec<String>> {
    let index = |prefix: &PathBuf| prefix.join("share/ament_index/resource_index/rmw_typesupport").read_dir().ok();
    let indices: Vec<_> = sourced().iter().filter_map(index).collect();
    if indices.is_empty() {
        return None;
    }
    let files = indices.into_iter().flat_map(Iterator::flatten);
    let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
    names.retain(|name| name != "rmw_implementation");
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Why no ROS 2 can be used, as far as that is known before its libraries are loaded.
pub fn lacks() -> Option<String> {
    if let Err(fail) = one_installation() {
        return Some(fail.text.into_owned());
    }
    if directories("LD_LIBRARY_PATH").iter().any(|directory| directory.join(RCL).exists()) {
        return None;
    }
    // The dynamic linker also looks elsewhere. A library that it finds is closed again.
    // SAFETY: the initialisers of a ROS 2 library of this machine run, as in every program of ROS 2.
    match unsafe { Library::open(Some(RCL), RTLD_LAZY | RTLD_LOCAL) } {
        Ok(_) => None,
        Err(_) => Some(not_sourced("no directory of LD_LIBRARY_PATH has librcl.so")),
    }
}

/// Says why rcl was not found, and what to do.
pub fn not_sourced(why: &str) -> String {
    format!(
        "ROS 2 is not sourced: {why}; run for example `. /opt/ros/jazzy/setup.bash` in this shell. `sudo` drops what it sets: source \
         it again in a root shell (`sudo -s`)"
    )
}

/// Path of a library that is loaded in this process; its name if that cannot be known.
pub fn loaded_library(name: &str) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let path = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| {
        let file = path.rsplit('/').next().unwrap_or_default();
        file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    path.unwrap_or(name).to_owned()
}

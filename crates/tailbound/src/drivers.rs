//! Finds drivers by name: first among the built-in drivers, then among shared objects.

use tailbound_driver::{Driver, LoadError, load};

/// Names of the drivers that are built into Tailbound.
pub const LINKED: [&str; 5] = ["cyclonedds", "null", "rcl", "rclcpp", "udp"];

/// Finds a driver by its name, or by the path of a shared object.
pub fn find(name: &str) -> Result<Driver, LoadError> {
    match name {
        "cyclonedds" => Driver::linked(name, tailbound_driver_cyclonedds::table()),
        "null" => Driver::linked(name, tailbound_driver_null::table()),
        "rcl" => Driver::linked(name, tailbound_driver_rcl::table()),
        "rclcpp" => Driver::linked(name, tailbound_driver_rcl::rclcpp_table()),
        "udp" => Driver::linked(name, tailbound_driver_udp::table()),
        path if path.contains('/') => load(std::path::Path::new(path)),
        _ => Driver::find(name),
    }
}

/// Names of all drivers: the built-in drivers, then the shared objects in the search directories.
pub fn known() -> Vec<String> {
    let mut names: Vec<String> = LINKED.iter().map(|n| (*n).to_owned()).collect();
    for directory in tailbound_driver::search_directories() {
        let Ok(entries) = std::fs::read_dir(directory) else { continue };
        for entry in entries.flatten() {
            let file = entry.file_name();
            let name = file.to_str().and_then(|f| f.strip_prefix("libtailbound_driver_")?.strip_suffix(".so"));
            if let Some(name) = name.map(|n| n.strip_suffix("_so").unwrap_or(n))
                && !names.iter().any(|n| n == name)
            {
                names.push(name.to_owned());
            }
        }
    }
    names
}

//! Files of shared memory of middlewares on this host.

use std::collections::BTreeMap;
use std::fs;

/// Directory of POSIX shared memory.
const DIRECTORY: &str = "/dev/shm";
/// Ends of the names of lock files of Fast DDS, which have no data.
const LOCKS: [&str; 2] = ["_el", "_sl"];
/// End of the names of segments of zenoh.
const ZENOH: &str = ".zenoh";
/// Begins of the names of segments of others, with the middleware.
const BEGINS: [(&str, &str); 6] = [
    ("fastrtps_", "Fast DDS"),
    ("fastdds_", "Fast DDS"),
    ("fast_datasharing", "Fast DDS"),
    ("iox2_", "iceoryx2"),
    ("iceoryx_", "iceoryx"),
    ("iox1_", "iceoryx"),
];

/// Number of files of shared memory by middleware. Segments of processes in containers with a /dev/shm of their own are not seen.
pub fn files_by_middleware() -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(DIRECTORY).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let begin = BEGINS.iter().find(|(begin, _)| name.starts_with(begin)).map(|(_, middleware)| *middleware);
        let is_lock = LOCKS.iter().any(|end| name.ends_with(end));
        if let Some(middleware) = begin.filter(|_| !is_lock).or(name.ends_with(ZENOH).then_some("zenoh")) {
            *found.entry(middleware.to_owned()).or_default() += 1;
        }
    }
    found
}

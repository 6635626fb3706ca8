//! Files of shared memory of middlewares on this host.

use std::collections::BTreeMap;
use std::fs;

/// Directory of POSIX shared memory.
const DIRECTORY: &str = "/dev/shm";
/// Begin of the names of segments, with the middleware whose they are. Locks and semaphores have other names.
const BEGINS: [(&str, &str); 5] = [
    ("fastrtps_", "Fast DDS"),
    ("fastdds_", "Fast DDS"),
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
        if let Some((_, middleware)) = BEGINS.iter().find(|(begin, _)| name.starts_with(begin)) {
            *found.entry((*middleware).to_owned()).or_default() += 1;
        }
    }
    found
}

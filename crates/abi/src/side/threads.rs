//! The threads of this process that a driver describes.

use crate::name_matches;

/// Id, name and role of each thread of this process whose name matches a pattern of `roles` (role and pattern of the name, the first
/// match applies), in the order of the ids. Empty if /proc cannot be read.
pub fn threads_by_role<'a>(roles: &[(&'a str, &str)]) -> Vec<(u32, String, &'a str)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let with_role = |task: std::io::Result<std::fs::DirEntry>| {
        let tid: u32 = task.ok()?.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok()?.trim_end().to_owned();
        let role = roles.iter().find(|(_, pattern)| name_matches(pattern, &name))?.0;
        Some((tid, name, role))
    };
    let mut all: Vec<_> = tasks.filter_map(with_role).collect();
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pattern_that_matches_decides() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let run = move || assert!(wait.recv().is_err(), "the other end is dropped");
        let thread = std::thread::Builder::new().name("by-role.7".into()).spawn(run).unwrap();
        let named = |roles: &[(&'static str, &str)]| {
            let all = threads_by_role(roles);
            all.into_iter().filter(|(_, name, _)| name == "by-role.7").map(|(_, _, role)| role).collect::<Vec<_>>()
        };
        // A new thread sets its name itself.
        while named(&[("any", "by-role.*")]).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(named(&[("receive", "by-role.*"), ("send", "*")]), ["receive"]);
        assert_eq!(named(&[("receive", "other")]), Vec::<&str>::new());
        drop(end);
        thread.join().unwrap();
    }
}

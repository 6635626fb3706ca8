//! The CPU quota of control groups (kernel documentation, scheduler/sched-bwc and admin-guide/cgroup-v2).

use super::error::KnobError;
use super::file::FileSetting;
use super::setting::Setting;
use crate::setting_text::normalised;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tailbound_model::Undo;

/// The quota of one control group.
#[derive(Debug)]
struct QuotaSetting {
    file: FileSetting,
    /// Value without a quota, as the kernel reports it.
    off: String,
}

/// The quotas of these control groups, the innermost first. A group above the innermost one can stop it too.
pub(super) fn find(groups: &[PathBuf], key: &str) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let all: Vec<Box<dyn Setting>> = groups.iter().filter_map(|group| setting(group)).collect();
    if all.is_empty() {
        let why = "Tailbound runs in the root control group, which never has a quota, or the controller `cpu` is off";
        let what = "the CPU quota of a control group".to_owned();
        return Err(KnobError::Absent { key: key.to_owned(), what, why: why.to_owned() });
    }
    Ok(all)
}

/// The quota of one group; `None` if the group cannot have one.
fn setting(group: &Path) -> Option<Box<dyn Setting>> {
    let old = group.join("cpu.cfs_quota_us");
    if old.exists() {
        return Some(Box::new(QuotaSetting { file: FileSetting::of(old, None), off: "-1".to_owned() }));
    }
    let path = group.join("cpu.max");
    let now = normalised(&fs::read_to_string(&path).ok()?);
    // The quota and its period, us; the period stays.
    let off = format!("max {}", now.split(' ').nth(1)?);
    Some(Box::new(QuotaSetting { file: FileSetting::of(path, None), off }))
}

impl Setting for QuotaSetting {
    fn what(&self) -> String {
        self.file.what()
    }

    fn read(&self) -> io::Result<String> {
        self.file.read()
    }

    fn write(&mut self, value: &str) -> io::Result<()> {
        self.file.write(value)
    }

    fn may_write(&self) -> io::Result<()> {
        self.file.may_write()
    }

    fn undo(&self, before: &str, set: &str) -> Undo {
        self.file.undo(before, set)
    }

    fn spelled(&self, value: &str) -> String {
        if value == "off" { self.off.clone() } else { value.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_of_both_versions_are_removed_and_the_period_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        for group in [&old, &new] {
            fs::create_dir(group).unwrap();
        }
        fs::write(old.join("cpu.cfs_quota_us"), "20000\n").unwrap();
        fs::write(new.join("cpu.max"), "20000 50000\n").unwrap();
        let mut found = find(&[old.clone(), new.clone(), dir.path().to_owned()], "host.cpu_quota").unwrap();
        let values: Vec<String> = found.iter().map(|quota| quota.spelled("off")).collect();
        assert_eq!(values, ["-1", "max 50000"]);
        for quota in &mut found {
            quota.write(&quota.spelled("off")).unwrap();
            assert_eq!(quota.read().unwrap(), quota.spelled("off"));
        }
        assert_eq!(fs::read_to_string(new.join("cpu.max")).unwrap(), "max 50000");
    }

    #[test]
    fn the_root_group_has_no_quota() {
        let error = find(&[], "host.cpu_quota").unwrap_err();
        let text = "host.cpu_quota: the CPU quota of a control group does not exist here: Tailbound runs in the root control group, \
                    which never has a quota, or the controller `cpu` is off";
        assert_eq!(error.problem().what, text);
    }
}

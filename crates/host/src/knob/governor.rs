//! Frequency governors of CPUs: one file for each group of CPUs that change their frequency together (cpufreq policy).

use super::error::KnobError;
use super::file::FileSetting;
use super::setting::Setting;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tailbound_model::CpuList;

pub(super) const POLICIES: &str = "/sys/devices/system/cpu/cpufreq";

/// Finds the frequency governors of all CPUs, or only of the groups that contain CPUs of `cpus`.
pub(super) fn find(
    dir: &Path,
    cpus: Option<&CpuList>,
    governor: &str,
    key: &str,
) -> Result<Vec<Box<dyn Setting>>, KnobError> {
    let absent = |what: String, why: &str| KnobError::Absent { key: key.to_owned(), what, why: why.to_owned() };
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(|e| Some(e.ok()?.path()));
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("policy")?.parse::<u32>().ok();
    let mut policies: Vec<_> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    policies.sort();
    let mut missing: BTreeSet<u32> = cpus.map_or_else(BTreeSet::new, |c| c.0.clone());
    let mut found: Vec<Box<dyn Setting>> = Vec::new();
    for (_, policy) in policies {
        let list = |file: &str| fs::read_to_string(policy.join(file)).unwrap_or_default();
        let its: Vec<u32> = list("affected_cpus").split_whitespace().filter_map(|n| n.parse().ok()).collect();
        // A policy without affected CPUs has only offline CPUs.
        if its.is_empty() || cpus.is_some_and(|wanted| !its.iter().any(|cpu| wanted.0.contains(cpu))) {
            continue;
        }
        missing.retain(|cpu| !its.contains(cpu));
        let path = policy.join("scaling_governor");
        let available = list("scaling_available_governors");
        if !available.trim().is_empty() && !available.split_whitespace().any(|word| word == governor) {
            return Err(KnobError::Refused {
                key: key.to_owned(),
                what: path.display().to_string(),
                wanted: governor.to_owned(),
                reason: format!("this kernel has {}", available.trim()),
            });
        }
        found.push(Box::new(FileSetting::of(path, None)));
    }
    if found.is_empty() && missing.is_empty() {
        let why = "the kernel does not control the frequency of this machine's CPUs, as on most virtual machines";
        return Err(absent(format!("{}/policy*", dir.display()), why));
    }
    if !missing.is_empty() {
        let why = "these CPUs are offline, or the kernel does not control their frequency";
        return Err(absent(format!("a governor of CPU {}", CpuList(missing)), why));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a directory with two groups of two CPUs, in the layout of sysfs.
    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (policy, cpus) in [("policy0", "0 1\n"), ("policy2", "2 3\n"), ("policy4", "\n")] {
            let policy = dir.path().join(policy);
            fs::create_dir(&policy).unwrap();
            fs::write(policy.join("affected_cpus"), cpus).unwrap();
            fs::write(policy.join("scaling_available_governors"), "performance powersave\n").unwrap();
            fs::write(policy.join("scaling_governor"), "powersave\n").unwrap();
        }
        dir
    }

    #[test]
    fn a_cpu_is_found_with_all_cpus_of_its_frequency_group() {
        let dir = machine();
        let of = |cpus: Option<&str>, governor: &str| {
            let cpus = cpus.map(|c| c.parse().unwrap());
            let found = find(dir.path(), cpus.as_ref(), governor, "host.governor").map_err(|e| e.to_string())?;
            Ok(found.iter().map(|s| s.what().replace(dir.path().to_str().unwrap(), "")).collect::<Vec<_>>())
        };
        let (first, second) = ("/policy0/scaling_governor".to_owned(), "/policy2/scaling_governor".to_owned());
        assert_eq!(of(None, "performance"), Ok(vec![first, second.clone()]));
        assert_eq!(of(Some("3"), "performance"), Ok(vec![second]));
        let error: String = of(None, "ondemand").unwrap_err();
        assert!(error.ends_with("does not take `ondemand`: this kernel has performance powersave"), "{error}");
        let error = of(Some("0-4"), "performance").unwrap_err();
        assert!(error.starts_with("host.governor: a governor of CPU 4 does not exist here"), "{error}");
    }

    #[test]
    fn a_machine_without_frequency_control_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let error = find(dir.path(), None, "performance", "host.governor").unwrap_err();
        assert!(error.to_string().contains("does not control the frequency"), "{error}");
    }
}

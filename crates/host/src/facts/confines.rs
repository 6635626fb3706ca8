//! Facts about limits of the calling process: container, control group, resource limits, capabilities.

use super::source::Collector;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use std::path::Path;
use tailbound_model::FactValue;

pub(super) fn read(c: &mut Collector) {
    c.put_text(
        "container.kind",
        "/.dockerenv, /run/.containerenv, /proc/1/environ, /proc/self/cgroup",
        Ok(container(c)),
    );
    let (source, quota) = cpu_quota(c);
    c.put_text("cgroup.cpu_max", &source, quota);
    let group = group_path(c, "cpu").map(|(_, path)| path);
    c.put_text("cgroup.path", "/proc/self/cgroup", group);
    cpuset(c);
    for (name, resource) in [
        ("rtprio", Resource::RLIMIT_RTPRIO),
        ("nice", Resource::RLIMIT_NICE),
        ("rttime_us", Resource::RLIMIT_RTTIME),
        ("memlock_bytes", Resource::RLIMIT_MEMLOCK),
        ("nofile", Resource::RLIMIT_NOFILE),
    ] {
        let value = match getrlimit(resource) {
            Ok((RLIM_INFINITY, _)) => FactValue::Text("unlimited".into()),
            Ok((soft, _)) => FactValue::Number(i64::try_from(soft).unwrap_or(i64::MAX)),
            Err(error) => FactValue::Unknown(error.to_string()),
        };
        c.put(format!("limit.{name}"), "getrlimit(2)", value);
    }
    let effective = crate::process::effective_capabilities();
    for (name, bit) in [
        ("net_admin", 12),
        ("net_raw", 13),
        ("ipc_lock", 14),
        ("sys_ptrace", 19),
        ("sys_admin", 21),
        ("sys_nice", 23),
        ("sys_resource", 24),
        ("perfmon", 38),
        ("bpf", 39),
    ] {
        let value = effective.as_ref().map(|bits| bits & (1 << bit) != 0).map_err(ToString::to_string);
        c.put_flag(format!("capability.{name}"), "/proc/thread-self/status CapEff", value);
    }
}

/// Kind of the container in which this process runs, from hints; `none seen` does not prove that there is no container.
fn container(c: &Collector) -> String {
    if c.exists("/.dockerenv") {
        return "docker".into();
    }
    if c.exists("/run/.containerenv") {
        return "podman".into();
    }
    let environ = c.read("/proc/1/environ").unwrap_or_default();
    if let Some(kind) = environ.split('\0').find_map(|v| v.strip_prefix("container=")) {
        return kind.to_owned();
    }
    let groups = c.read("/proc/self/cgroup").unwrap_or_default();
    let hints = [
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("containerd", "containerd"),
        ("lxc", "lxc"),
    ];
    hints.iter().find(|(hint, _)| groups.contains(hint)).map_or("none seen", |(_, kind)| kind).to_owned()
}

/// Mount point of the hierarchy, and path in it, of this process's control group for a cgroup controller such as `cpu`:
/// in version 1 if the controller has a hierarchy of version 1, else in the unified hierarchy of version 2.
fn group_path(c: &Collector, controller: &str) -> Result<(String, String), String> {
    let text = c.read("/proc/self/cgroup")?;
    let rows = || {
        text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?.to_owned()))
        })
    };
    if let Some((list, path)) = rows().find(|(list, _)| list.split(',').any(|name| name == controller)) {
        let mounts = [list, controller].map(|name| format!("/sys/fs/cgroup/{name}"));
        let mount = mounts
            .into_iter()
            .find(|m| c.exists(m))
            .ok_or_else(|| format!("no hierarchy of the {controller} controller is mounted under /sys/fs/cgroup"))?;
        return Ok((mount, path));
    }
    let (_, path) = rows().find(|(list, _)| list.is_empty()).ok_or("/proc/self/cgroup names no control group")?;
    Ok(("/sys/fs/cgroup".into(), path))
}

/// Smallest CPU quota of this process's control group and its parents: `max`, or quota and period in us.
fn cpu_quota(c: &Collector) -> (String, Result<String, String>) {
    let (mount, path) = match group_path(c, "cpu") {
        Ok(found) => found,
        Err(why) => return ("/proc/self/cgroup".into(), Err(why)),
    };
    let mut tightest: Option<(f64, String)> = None;
    let mut read_any = None;
    for group in Path::new(&path).ancestors() {
        let dir = format!("{mount}{}", group.display());
        let dir = dir.trim_end_matches('/');
        let (quota, period, source) = match c.read(&format!("{dir}/cpu.max")) {
            Ok(text) => {
                let (quota, period) = text.split_once(' ').unwrap_or((&text, "100000"));
                (quota.to_owned(), period.to_owned(), format!("{dir}/cpu.max"))
            }
            Err(_) => match (c.read(&format!("{dir}/cpu.cfs_quota_us")), c.read(&format!("{dir}/cpu.cfs_period_us"))) {
                (Ok(quota), Ok(period)) => (quota, period, format!("{dir}/cpu.cfs_quota_us")),
                _ => continue,
            },
        };
        read_any.get_or_insert(source);
        // `max` and -1 mean that there is no quota.
        if let (Ok(q), Ok(p)) = (quota.parse::<f64>(), period.parse::<f64>())
            && q > 0.0
            && tightest.as_ref().is_none_or(|(share, _)| q / p < *share)
        {
            tightest = Some((q / p, format!("{quota} {period}")));
        }
    }
    match (read_any, tightest) {
        (Some(source), Some((_, text))) => (source, Ok(text)),
        (Some(source), None) => (source, Ok("max".into())),
        // The root of the unified hierarchy has neither this file nor a quota.
        (None, _) if path == "/" && c.exists(&format!("{mount}/cgroup.controllers")) => {
            (format!("{mount}/cgroup.controllers"), Ok("max".into()))
        }
        (None, _) => (mount, Err("the control group has no cpu.max (its cpu controller is not enabled)".into())),
    }
}

fn cpuset(c: &mut Collector) {
    let key = "cgroup.cpuset";
    let (mount, path) = match group_path(c, "cpuset") {
        Ok(found) => found,
        Err(why) => return c.put_text(key, "/proc/self/cgroup", Err(why)),
    };
    for group in Path::new(&path).ancestors() {
        let dir = format!("{mount}{}", group.display());
        let dir = dir.trim_end_matches('/');
        for file in ["cpuset.cpus.effective", "cpuset.effective_cpus"] {
            let path = format!("{dir}/{file}");
            if let Ok(text) = c.read(&path) {
                return c.put_text(key, &path, Ok(text));
            }
        }
    }
    c.put_text(key, &mount, Err("no control group shows a cpuset (the cpuset controller is not enabled)".into()));
}

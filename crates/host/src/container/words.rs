//! The words of each client, and what it answers.

use super::{Image, LABEL, Order, said};
use std::io;
use std::process::Command;
use tailbound_model::ContainerClient::{Ctr, Podman};
use tailbound_model::{ContainerAccess, ContainerClient, ContainerNetwork};

/// Debian's package.
pub(super) fn package(client: ContainerClient) -> &'static str {
    match client {
        Podman => "package podman",
        Ctr => "package containerd",
    }
}

/// What to do when it does not answer.
pub(super) fn mend(client: ContainerClient) -> &'static str {
    match client {
        Podman => "`podman info` by hand shows why",
        Ctr => "start containerd, or name its socket in CONTAINERD_ADDRESS; containers are made by root",
    }
}

pub(super) fn command(access: &ContainerAccess, words: &[String]) -> Command {
    let mut command = Command::new(access.client.program());
    command.args(words).envs(&access.environment).env("LC_ALL", "C");
    command
}

pub(super) fn run(access: &ContainerAccess, words: &[String]) -> io::Result<String> {
    said(&mut command(access, words))
}

/// The same with words that are there already.
fn ask(access: &ContainerAccess, words: &[&str]) -> io::Result<String> {
    run(access, &words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
}

pub(super) fn version(access: &ContainerAccess) -> io::Result<String> {
    match access.client {
        Podman => ask(access, &["version", "--format", "podman {{.Client.Version}}"]),
        // Asked of the daemon too: it fails where none answers.
        Ctr => {
            let text = ask(access, &["--timeout", "5s", "version"])?;
            let versions: Vec<&str> =
                text.lines().filter_map(|l| l.trim().strip_prefix("Version:")).map(str::trim).collect();
            match versions[..] {
                [client, server] if client != server => Ok(format!("ctr {client} of containerd {server}")),
                [both, ..] => Ok(format!("ctr {both}")),
                [] => Ok("ctr".into()),
            }
        }
    }
}

pub(super) fn image(access: &ContainerAccess, name: &str) -> io::Result<Option<Image>> {
    match access.client {
        Podman => {
            // 1: there is none. Everything else is an error of its own.
            let there = command(access, &["image".into(), "exists".into(), name.into()]).status()?;
            if there.code() == Some(1) {
                return Ok(None);
            }
            let text = ask(access, &["image", "inspect", "--format", "{{.Architecture}} {{.Digest}}", name])?;
            Ok(text.split_once(' ').map(|(a, d)| Image { architecture: a.into(), digest: d.into() }))
        }
        Ctr => Ok(of_ctr(&ask(access, &["images", "list", &format!("name=={name}")])?)),
    }
}

/// A table with a head: name, type, digest, size with its unit, platforms.
fn of_ctr(table: &str) -> Option<Image> {
    let row = table.lines().nth(1)?;
    let words: Vec<&str> = row.split_whitespace().collect();
    let digest = words.iter().find(|w| w.starts_with("sha256:"))?;
    let platforms = words.iter().find(|w| w.contains("linux/"))?;
    let of = |platform: &str| platform.strip_prefix("linux/").map(|p| p.split('/').next().unwrap_or(p).to_owned());
    // One that has ours among others is ours.
    let all: Vec<String> = platforms.split(',').filter_map(of).collect();
    let own = all.iter().find(|a| *a == super::own_architecture()).or(all.first())?;
    Some(Image { architecture: own.clone(), digest: (*digest).to_owned() })
}

pub(super) fn create(client: ContainerClient, order: &Order<'_>) -> Vec<String> {
    let Order { spec, image, name, token, arguments } = order;
    let label = format!("{LABEL}={token}");
    let mut words: Vec<String> = Vec::new();
    let mut add = |new: &[&str]| words.extend(new.iter().map(|w| (*w).to_owned()));
    match client {
        Podman => {
            // It would fetch an image that it does not have.
            add(&["create", "--interactive", "--pull", "never", "--name", name, "--label", &label]);
            add(&[
                "--network",
                match &spec.network {
                    ContainerNetwork::Host => "host",
                    ContainerNetwork::None => "none",
                    ContainerNetwork::Named(network) => network,
                },
            ]);
            if let Some(cpus) = &spec.cpus {
                add(&["--cpuset-cpus", &cpus.to_string()]);
            }
            if let Some(mib) = spec.memory_mib {
                add(&["--memory", &format!("{mib}m")]);
            }
            spec.capabilities.iter().for_each(|c| add(&["--cap-add", c]));
            add(&[image]);
        }
        Ctr => {
            add(&["containers", "create", "--label", &label]);
            if spec.network == ContainerNetwork::Host {
                add(&["--net-host"]);
            }
            if let Some(mib) = spec.memory_mib {
                add(&["--memory-limit", &(u64::from(mib) << 20).to_string()]);
            }
            spec.capabilities.iter().for_each(|c| add(&["--cap-add", &format!("CAP_{c}")]));
            // It does not use the entry point of an image.
            add(&[image, name, "tailbound"]);
        }
    }
    add(arguments);
    words
}

pub(super) fn start(client: ContainerClient, name: &str) -> Vec<String> {
    let words: &[&str] = match client {
        Podman => &["start", "--attach", "--interactive", "--sig-proxy=false", name],
        Ctr => &["tasks", "start", name],
    };
    words.iter().map(|w| (*w).to_owned()).collect()
}

pub(super) fn exec(client: ContainerClient, name: &str, id: &str) -> Vec<String> {
    let words: &[&str] = match client {
        Podman => &["exec", "--interactive", name, "tailbound"],
        Ctr => &["tasks", "exec", "--exec-id", id, name, "tailbound"],
    };
    words.iter().map(|w| (*w).to_owned()).collect()
}

pub(super) fn process(access: &ContainerAccess, name: &str) -> io::Result<i32> {
    let pid = match access.client {
        Podman => ask(access, &["inspect", "--type", "container", "--format", "{{.State.Pid}}", name])?.parse().ok(),
        Ctr => task(&ask(access, &["tasks", "list"])?, name).and_then(|row| row.0.parse().ok()),
    };
    pid.filter(|pid| *pid > 0).ok_or_else(|| io::Error::other("it does not run"))
}

/// Number and state of a task, of a table with a head.
fn task<'a>(table: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    table.lines().skip(1).find_map(|row| match row.split_whitespace().collect::<Vec<_>>()[..] {
        [known, pid, state] if known == name => Some((pid, state)),
        _ => None,
    })
}

pub(super) fn runtime(access: &ContainerAccess, name: &str) -> String {
    let told = match access.client {
        Podman => ask(access, &["inspect", "--type", "container", "--format", "{{.OCIRuntime}}", name]),
        Ctr => ask(access, &["containers", "list"]).and_then(|table| {
            let row = table.lines().find(|row| row.split_whitespace().next() == Some(name));
            row.and_then(|row| row.split_whitespace().nth(2))
                .map(str::to_owned)
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        }),
    };
    told.unwrap_or_else(|e| format!("not told ({e})"))
}

pub(super) fn ended(access: &ContainerAccess, name: &str) -> Option<String> {
    match access.client {
        Podman => {
            let format = "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}";
            let text = match ask(access, &["inspect", "--type", "container", "--format", format, name]) {
                Ok(text) => text,
                Err(_) => return Some("it is not there any more: somebody removed it".into()),
            };
            let words: Vec<&str> = text.split(' ').collect();
            match words[..] {
                ["running", ..] => None,
                [_, _, "true"] => Some("it was ended by the kernel for want of memory: give it more `memory`".into()),
                [state, code, ..] => Some(format!("it has {state} with exit code {code}")),
                _ => None,
            }
        }
        Ctr => match task(&ask(access, &["tasks", "list"]).ok()?, name) {
            Some((_, "RUNNING")) => None,
            _ => Some("it does not run any more".into()),
        },
    }
}

pub(super) fn remove(access: &ContainerAccess, token: &str) -> io::Result<Vec<String>> {
    let of_label = format!("labels.\"{LABEL}\"=={token}");
    let filter = format!("label={LABEL}={token}");
    let found = match access.client {
        Podman => ask(access, &["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"])?,
        Ctr => ask(access, &["containers", "list", "--quiet", &of_label])?,
    };
    let names: Vec<String> = found.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect();
    for name in &names {
        match access.client {
            Podman => drop(ask(access, &["rm", "--force", "--time", "0", name])?),
            Ctr => {
                // There is no task where it has ended; if one is left, the container cannot be removed, and that is told.
                let _ = ask(access, &["tasks", "delete", "--force", name]);
                ask(access, &["containers", "delete", name])?;
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::ContainerSpec;

    #[test]
    fn each_client_is_told_the_same_in_its_own_words() {
        let spec = ContainerSpec {
            name: "ping".into(),
            network: ContainerNetwork::Host,
            cpus: Some("0-1".parse().unwrap()),
            memory_mib: Some(512),
            capabilities: vec!["SYS_NICE".into()],
            ..ContainerSpec::default()
        };
        let order = Order { spec: &spec, image: "i:1", name: "tb-ping", token: "7-1", arguments: &["agent"] };
        assert_eq!(
            create(Podman, &order).join(" "),
            "create --interactive --pull never --name tb-ping --label tailbound.run=7-1 --network host --cpuset-cpus 0-1 \
             --memory 512m --cap-add SYS_NICE i:1 agent"
        );
        assert_eq!(
            create(Ctr, &order).join(" "),
            "containers create --label tailbound.run=7-1 --net-host --memory-limit 536870912 --cap-add CAP_SYS_NICE i:1 \
             tb-ping tailbound agent"
        );
    }

    #[test]
    fn tables_of_ctr_are_read_by_their_words() {
        let table = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n\
                     i:1 application/vnd.oci.image.manifest.v1+json sha256:12ab 170.7 MiB linux/arm64/v8 - \n";
        assert_eq!(of_ctr(table), Some(Image { architecture: "arm64".into(), digest: "sha256:12ab".into() }));
        assert_eq!(of_ctr("REF TYPE DIGEST SIZE PLATFORMS LABELS\n"), None);
        let tasks = "TASK       PID      STATUS    \ntb-ping    12773    RUNNING\n";
        assert_eq!(task(tasks, "tb-ping"), Some(("12773", "RUNNING")));
        assert_eq!(task(tasks, "tb"), None);
    }
}

//! The command lines of each container client (podman, ctr), and the parsers of their output.

use super::order::{Image, Order, own_architecture};
use std::io;
use std::process::{Command, Output, Stdio};
use tailbound_model::ContainerClient::{Ctr, Podman};
use tailbound_model::{ContainerAccess, ContainerClient, ContainerNetwork};

/// Name of the container label by which a cleanup finds the containers of a run.
const LABEL: &str = "tailbound.run";

/// Text that names the Debian package of a container client, for example `package podman`.
pub(super) fn package(client: ContainerClient) -> &'static str {
    match client {
        Podman => "package podman",
        Ctr => "package containerd",
    }
}

/// Text that says what the user can do if a container client does not answer.
pub(super) fn remedy(client: ContainerClient) -> &'static str {
    match client {
        Podman => "run `podman info` to see why podman does not answer",
        Ctr => "start containerd, or set CONTAINERD_ADDRESS to its socket; run as root if the socket belongs to root",
    }
}

pub(super) fn command(access: &ContainerAccess, words: &[String]) -> Command {
    let mut command = Command::new(access.client.program());
    command.args(words).envs(&access.environment).env("LC_ALL", "C");
    command
}

pub(super) fn run(access: &ContainerAccess, words: &[String]) -> io::Result<String> {
    output_of(&mut command(access, words))
}

/// Runs the container client with these arguments and returns its output.
fn ask(access: &ContainerAccess, words: &[&str]) -> io::Result<String> {
    run(access, &words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
}

pub(super) fn version(access: &ContainerAccess) -> io::Result<String> {
    match access.client {
        Podman => ask(access, &["version", "--format", "podman {{.Client.Version}}"]),
        // `version` asks the daemon too, and fails if the daemon does not answer.
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
            // Exit code 1 means that there is no such image; the next command reports any other error.
            let there = command(access, &["image".into(), "exists".into(), name.into()]).status()?;
            if there.code() == Some(1) {
                return Ok(None);
            }
            let text = ask(access, &["image", "inspect", "--format", "{{.Architecture}} {{.Digest}}", name])?;
            Ok(text.split_once(' ').map(|(a, d)| Image { architecture: a.into(), digest: d.into() }))
        }
        Ctr => Ok(image_of_ctr(&ask(access, &["images", "list", &format!("name=={name}")])?)),
    }
}

/// Parses the image table of ctr, which has a header line and the columns name, type, digest, size with unit, and
/// platforms.
fn image_of_ctr(table: &str) -> Option<Image> {
    let row = table.lines().nth(1)?;
    let words: Vec<&str> = row.split_whitespace().collect();
    let digest = words.iter().find(|w| w.starts_with("sha256:"))?;
    let platforms = words.iter().find(|w| w.contains("linux/"))?;
    let of = |platform: &str| platform.strip_prefix("linux/").map(|p| p.split('/').next().unwrap_or(p).to_owned());
    // An image for several platforms counts as an image for this one.
    let all: Vec<String> = platforms.split(',').filter_map(of).collect();
    let own = all.iter().find(|a| *a == own_architecture()).or(all.first())?;
    Some(Image { architecture: own.clone(), digest: (*digest).to_owned() })
}

pub(super) fn create(client: ContainerClient, order: &Order<'_>) -> Vec<String> {
    let Order { spec, image, name, token, arguments } = order;
    let label = format!("{LABEL}={token}");
    let mut words: Vec<String> = Vec::new();
    let mut add = |new: &[&str]| words.extend(new.iter().map(|w| (*w).to_owned()));
    match client {
        Podman => {
            // Without `--pull never` podman would download a missing image.
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
            // ctr does not use the entry point of an image.
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
    pid.filter(|pid| *pid > 0).ok_or_else(|| io::Error::other("the container does not run"))
}

/// Process id and state of a container's task, from the task table of ctr, which has a header line.
fn task<'a>(table: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    table.lines().skip(1).find_map(|row| match row.split_whitespace().collect::<Vec<_>>()[..] {
        [known, pid, state] if known == name => Some((pid, state)),
        _ => None,
    })
}

pub(super) fn runtime(access: &ContainerAccess, name: &str) -> String {
    let runtime = match access.client {
        Podman => ask(access, &["inspect", "--type", "container", "--format", "{{.OCIRuntime}}", name]),
        Ctr => ask(access, &["containers", "list"]).and_then(|table| {
            let row = table.lines().find(|row| row.split_whitespace().next() == Some(name));
            row.and_then(|row| row.split_whitespace().nth(2))
                .map(str::to_owned)
                .ok_or_else(|| io::ErrorKind::NotFound.into())
        }),
    };
    runtime.unwrap_or_else(|e| format!("not known ({e})"))
}

pub(super) fn ended(access: &ContainerAccess, name: &str) -> Option<String> {
    match access.client {
        Podman => {
            let format = "{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}";
            let text = match ask(access, &["inspect", "--type", "container", "--format", format, name]) {
                Ok(text) => text,
                Err(_) => return Some("the container does not exist any more: somebody removed it".into()),
            };
            let words: Vec<&str> = text.split(' ').collect();
            match words[..] {
                ["running", ..] => None,
                [_, _, "true"] => {
                    Some("the container's memory ran out, so the kernel ended the container: increase `memory`".into())
                }
                [state, code, ..] => Some(format!("the container's state is `{state}`, its exit code {code}")),
                _ => None,
            }
        }
        Ctr => match task(&ask(access, &["tasks", "list"]).ok()?, name) {
            Some((_, "RUNNING")) => None,
            _ => Some("the container does not run any more".into()),
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
                // If the container has ended, there is no task. If a task is left, the next command fails and its error
                // is reported.
                let _ = ask(access, &["tasks", "delete", "--force", name]);
                ask(access, &["containers", "delete", name])?;
            }
        }
    }
    Ok(names)
}

/// Runs a container client to its end and returns its output.
fn output_of(command: &mut Command) -> io::Result<String> {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output()?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    // The last line contains the error; log lines may precede it.
    let line =
        text.lines().map(str::trim).rfind(|l| !l.is_empty()).unwrap_or("the container client printed no error message");
    let line = ["Error: ", "ctr: "].iter().find_map(|front| line.strip_prefix(front)).unwrap_or(line);
    Err(io::Error::other(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::ContainerSpec;

    #[test]
    fn each_client_gets_the_same_container_in_its_own_syntax() {
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
    fn tables_of_ctr_are_parsed() {
        let table = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n\
                     i:1 application/vnd.oci.image.manifest.v1+json sha256:12ab 170.7 MiB linux/arm64/v8 - \n";
        assert_eq!(image_of_ctr(table), Some(Image { architecture: "arm64".into(), digest: "sha256:12ab".into() }));
        assert_eq!(image_of_ctr("REF TYPE DIGEST SIZE PLATFORMS LABELS\n"), None);
        let tasks = "TASK       PID      STATUS    \ntb-ping    12773    RUNNING\n";
        assert_eq!(task(tasks, "tb-ping"), Some(("12773", "RUNNING")));
        assert_eq!(task(tasks, "tb"), None);
    }
}

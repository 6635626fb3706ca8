//! Places that are containers on this host.
//!
//! A container shares the kernel, the clocks and the CPU numbers of this host. It has its own processes and, except on
//! the host network, its own interfaces. The first process of the container is the agent that answers questions about
//! the container: when the stream of that agent ends, the container ends. Every other agent is started with the `exec`
//! command of the container client.

use super::host::{Candidate, Help, Host};
use super::kind::{Lifetime, PlaceKind, Reach};
use super::not_fit;
use super::place::Place;
use crate::controller::RunError;
use crate::controller::context::RunContext;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tailbound_host::container::{Client, Group, Image, Order, group_of, own_architecture};
use tailbound_host::journal::EntryId;
use tailbound_lab::{interfaces_of, netns::NetNs};
use tailbound_model::*;

struct Container {
    client: Client,
    spec: ContainerSpec,
    /// Name of the container, as the container client (podman or ctr) knows it.
    name: String,
    entry: EntryId,
    /// Number of agents started in the container so far.
    started: AtomicU32,
    inspected: Arc<OnceLock<Inspected>>,
}

/// Properties of a running container, read on the host of the controller.
struct Inspected {
    netns: NetNs,
    address: Option<IpAddr>,
    group: Group,
    /// Difference between the clocks of the container and the clocks of this host, as text; `None` = no difference.
    clocks: Option<String>,
}

impl PlaceKind for ContainerSpec {
    fn reach(&self, reach: Reach<'_>) -> Result<Vec<Host>, RunError> {
        let token = reach.hosts.next_token(reach.context);
        Ok(vec![start(self, reach.context, token)?])
    }

    fn lifetime(&self) -> Lifetime {
        Lifetime::Lab
    }
}

/// Creates and starts a container. `token` is a label that no other container has.
fn start(spec: &ContainerSpec, context: &RunContext, token: String) -> Result<Host, RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{spec}: {text}"), "");
    let client = Client::find(spec.client).map_err(|(text, remedy)| not_fit(format!("{spec}: {text}"), remedy))?;
    refuse_network(spec, &client)?;
    let name = spec.image.clone().unwrap_or_else(|| format!("localhost/tailbound:{}", env!("CARGO_PKG_VERSION")));
    let image = client.image(&name).map_err(|e| failed(e.to_string()))?;
    let image = fitting(spec, client.access.client, &name, image)?;
    let undo = Undo::RemoveContainer { access: client.access.clone(), token: token.clone() };
    let entry = context.journal.before(undo).map_err(|e| failed(e.to_string()))?;
    let called = format!("tailbound-{token}-{}", spec.name);
    let arguments = ["agent", "--run-token", &context.run_id];
    let order = Order { spec, image: &name, name: &called, token: &token, arguments: &arguments };
    if let Err(e) = client.create(&order) {
        // The client may have created a part of the container.
        let _ = context.journal.undo(entry);
        return Err(not_made(spec, client.access.client, &called, &e.to_string()));
    }
    let inspected = Arc::new(OnceLock::new());
    let reached = Box::new(Container {
        client: client.clone(),
        spec: spec.clone(),
        name: called.clone(),
        entry,
        started: AtomicU32::new(0),
        inspected: inspected.clone(),
    });
    let help = Help {
        program: "",
        by_hand: "start a container of the image by hand to see why",
        other_release: "name an `image` of this release: `tailbound image` makes such an image",
    };
    let place = PlaceSpec::Container(Box::new(spec.clone()));
    let candidate = Candidate { reached, place, called: format!("container {}", spec.name), named: spec.to_string() };
    let mut host = Host::start(candidate, context, &help)?;
    if let Some(inspected) = inspected.get() {
        host.facts.facts.extend(facts(&client, spec, (&name, &image), &called, inspected));
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
    }
    Ok(host)
}

/// Facts about the container that are known on the controller's host, outside the container.
fn facts(
    client: &Client,
    spec: &ContainerSpec,
    (name, image): (&str, &Image),
    called: &str,
    inspected: &Inspected,
) -> Vec<Fact> {
    let program = client.access.client.program();
    let fact = |key: &str, value: String, source: &str| Fact {
        key: format!("container.{key}"),
        value: FactValue::Text(value),
        source: source.to_owned(),
    };
    let memory = inspected.group.memory().map_or("no limit".to_owned(), |bytes| ByteSize(bytes).to_string());
    let cpus = inspected.group.cpus().map_or("not known".to_owned(), |cpus| cpus.to_string());
    vec![
        fact("client", client.version.clone(), program),
        fact("runtime", client.runtime(called), program),
        fact("image", name.to_owned(), program),
        fact("digest", image.digest.clone(), program),
        fact("network", spec.network.to_string(), "the study"),
        fact("cpus", cpus, "its control group"),
        fact("memory", memory, "its control group"),
        fact(
            "clocks",
            inspected.clocks.clone().unwrap_or_else(|| "same as the host".into()),
            "/proc/PID/timens_offsets",
        ),
    ]
}

fn refuse_network(spec: &ContainerSpec, client: &Client) -> Result<(), RunError> {
    match (&spec.network, client.access.client) {
        (ContainerNetwork::Named(name), ContainerClient::Ctr) => Err(not_fit(
            format!("{spec}: this host has the client ctr, which knows no network {name}"),
            "install podman; or write `network: host`, or `network: none` with a `path` that the lab creates",
        )),
        _ => Ok(()),
    }
}

/// Returns the image, or an error if this host does not have the image or cannot run it.
fn fitting(spec: &ContainerSpec, client: ContainerClient, name: &str, image: Option<Image>) -> Result<Image, RunError> {
    let load = match client {
        ContainerClient::Podman => "podman load -i tailbound-image.tar",
        ContainerClient::Ctr => "ctr images import tailbound-image.tar",
    };
    let Some(image) = image else {
        let remedy = format!("make the image with `tailbound image --name {name}` and load the image with `{load}`");
        return Err(not_fit(format!("{spec}: {} has no image {name}", client.program()), remedy));
    };
    if image.architecture != own_architecture() {
        let text =
            format!("{spec}: the image {name} is for {}, and this host is {}", image.architecture, own_architecture());
        return Err(not_fit(
            text,
            format!(
                "make the image with `tailbound image` on a machine of this host's architecture, and load the image \
                 with `{load}`"
            ),
        ));
    }
    Ok(image)
}

/// Makes the error for a container that the container client (podman or ctr) did not create.
fn not_made(spec: &ContainerSpec, client: ContainerClient, called: &str, message: &str) -> RunError {
    let has = |words: &[&str]| words.iter().any(|w| message.contains(w));
    let text = format!("{spec}: {} did not create the container: {message}", client.program());
    if has(&["already in use", "already exists"]) {
        let remove = match client {
            ContainerClient::Podman => format!("podman rm {called}"),
            ContainerClient::Ctr => format!("ctr containers delete {called}"),
        };
        return not_fit(
            text,
            format!(
                "`tailbound lab cleanup` removes a container that a run left behind; `{remove}` removes any other \
                 container of this name"
            ),
        );
    }
    match &spec.network {
        ContainerNetwork::Named(network) if has(&["unable to find network", "network not found"]) => not_fit(
            text,
            format!("`podman network ls` lists the networks; `podman network create {network}` creates this network"),
        ),
        _ => not_fit(text, ""),
    }
}

impl Container {
    /// Gives the container client (`podman` or `ctr`) its own process group, so that Ctrl-C reaches only the
    /// controller.
    fn without_ctrl_c(mut command: Command) -> Command {
        command.process_group(0);
        command
    }

    fn inspect(&self) -> Result<Inspected, RunError> {
        let failed = |what: &str, e: std::io::Error| {
            RunError::new(ExitCode::RunFailed, format!("{}: {what}: {e}", self.spec), "")
        };
        let pid = self.client.process(&self.name).map_err(|e| failed("its first process", e))?;
        let netns = NetNs::open(&format!("/proc/{pid}/ns/net")).map_err(|e| failed("its network namespace", e))?;
        let address = match &self.spec.network {
            ContainerNetwork::Named(_) => {
                let all = interfaces_of(&netns).map_err(|e| failed("its addresses", e))?;
                all.iter().filter(|i| i.name != "lo").flat_map(Interface::ipv4).next().map(IpAddr::V4)
            }
            _ => None,
        };
        let group = group_of(pid).map_err(|e| failed("its control group", e))?;
        if let (Some(cpus), ContainerClient::Ctr) = (&self.spec.cpus, self.client.access.client) {
            // ctr has no option for CPUs.
            group.give_cpus(cpus).map_err(|e| failed("the CPUs of its control group cannot be set", e))?;
        }
        verify(&self.spec, group.cpus(), group.memory())?;
        Ok(Inspected { netns, address, group, clocks: own_clocks(pid) })
    }
}

/// Checks that the control group of a container has the CPUs and the memory that the study asks for.
///
/// # Errors
/// The CPUs or the memory differ.
fn verify(spec: &ContainerSpec, cpus: Option<CpuList>, memory: Option<u64>) -> Result<(), RunError> {
    let differs = |what: &str, asked: String, found: Option<String>| {
        let found = found.unwrap_or_else(|| "nothing".into());
        let text = format!("{spec}: {what} of its control group is {found}, the study asks for {asked}");
        not_fit(
            text,
            "check that the kernel supports the cgroup controllers cpuset and memory, and that no other program sets \
             the value",
        )
    };
    match &spec.cpus {
        Some(asked) if cpus.as_ref() != Some(asked) => {
            return Err(differs("the CPU list", asked.to_string(), cpus.map(|c| c.to_string())));
        }
        _ => {}
    }
    let asked = spec.memory_mib.map(|mib| u64::from(mib) << 20);
    match asked {
        Some(bytes) if memory != asked => {
            Err(differs("the memory", ByteSize(bytes).to_string(), memory.map(|m| ByteSize(m).to_string())))
        }
        _ => Ok(()),
    }
}

/// Clock offsets of a container, as text; `None` = the container has no time namespace of its own.
fn own_clocks(pid: i32) -> Option<String> {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/time")).ok();
    let (theirs, ours) = (of(&pid.to_string())?, of("self")?);
    let offsets = || std::fs::read_to_string(format!("/proc/{pid}/timens_offsets")).unwrap_or_default();
    let line =
        |text: String| text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    (theirs != ours).then(|| format!("shifted by a time namespace: {}", line(offsets()).join(", ")))
}

impl Place for Container {
    fn command(&self) -> Command {
        let id = format!("tailbound-{}", self.started.fetch_add(1, Ordering::Relaxed));
        Container::without_ctrl_c(self.client.exec(&self.name, &id))
    }

    fn host_agent_command(&self, _run_id: &str) -> Command {
        let mut command = Container::without_ctrl_c(self.client.start(&self.name));
        // The container inherits the CPUs of podman, and podman would inherit the few CPUs of the controller. The
        // kernel reduces this list to the CPUs that the control group allows.
        let all = RoleScheduling { policy: None, cpus: Some(CpuList((0..4096).collect())) };
        // SAFETY: between fork and exec, the closure makes a system call with data that it owns, and allocates nothing.
        unsafe { command.pre_exec(move || tailbound_host::scheduling::enter(&all)) };
        command
    }

    fn check_started(&self) -> Result<(), RunError> {
        // The container starts once, so the value is set once.
        let _ = self.inspected.set(self.inspect()?);
        Ok(())
    }

    fn address(&self) -> Option<IpAddr> {
        self.inspected.get()?.address
    }

    fn netns(&self) -> Option<NetNs> {
        Some(self.inspected.get()?.netns.clone())
    }

    fn ended(&self) -> Option<String> {
        self.client.ended(&self.name)
    }

    fn leave(self: Box<Self>, context: &RunContext) -> Option<String> {
        let left = context.journal.undo(self.entry).err()?;
        Some(format!("the container {} was not removed: {left}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ContainerSpec {
        ContainerSpec { name: "ping".into(), ..ContainerSpec::default() }
    }

    #[test]
    fn a_name_in_use_is_reported_with_the_command_that_removes_it() {
        use ContainerClient::*;
        let text = |client, message: &str| not_made(&spec(), client, "tailbound-7-1-ping", message).to_string();
        // Messages of podman 4.3.1 and ctr 1.6.20.
        assert_eq!(
            text(
                Podman,
                "creating container storage: the container name \"tailbound-7-1-ping\" is already in use by 12ab"
            ),
            "container ping (network none): podman did not create the container: creating container storage: the container \
             name \"tailbound-7-1-ping\" is already in use by 12ab\n  help: `tailbound lab cleanup` removes a \
             container that a run left behind; `podman rm tailbound-7-1-ping` removes any other \
             container of this name"
        );
        let message = "snapshot \"tailbound-7-1-ping\": already exists";
        let remove = "`ctr containers delete tailbound-7-1-ping` removes any other container of this name";
        assert!(text(Ctr, message).ends_with(remove));
    }

    #[test]
    fn a_control_group_that_differs_is_reported() {
        let asked = ContainerSpec { cpus: Some(CpuList::one(1)), memory_mib: Some(512), ..spec() };
        let text = |cpus: &str, memory| verify(&asked, cpus.parse().ok(), memory).map_err(|e| e.problem.what);
        assert_eq!(text("1", Some(512 << 20)), Ok(()));
        let front = "container ping (network none, CPUs 1, 512 MiB): ";
        assert_eq!(
            text("0-1", None),
            Err(format!("{front}the CPU list of its control group is 0-1, the study asks for 1"))
        );
        let memory = "the memory of its control group is nothing, the study asks for 512 MiB";
        assert_eq!(text("1", None), Err(format!("{front}{memory}")));
        assert_eq!(verify(&spec(), None, None).map_err(|e| e.problem.what), Ok(()));
    }
}

//! Containers of this host.
//!
//! Kernel and clock are those of this host, and so are the numbers of its CPUs; its processes and, but for the host network,
//! its interfaces are its own. Its first process is the agent that answers for it: it ends with its stream, and the
//! container with it. Every other agent is an exec.

use super::host::{Help, Host, Known, Way};
use super::not_fit;
use crate::controller::RunError;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tailbound_host::container::{Client, Group, Image, Order, group_of, own_architecture};
use tailbound_host::journal::{EntryId, Journal};
use tailbound_lab::{interfaces_of, netns::NetNs};
use tailbound_model::*;

struct Container {
    client: Client,
    spec: ContainerSpec,
    /// As its client calls it.
    name: String,
    entry: EntryId,
    /// So many were started in it.
    started: AtomicU32,
    seen: Arc<OnceLock<Seen>>,
}

/// A container that runs, as this host sees it.
struct Seen {
    netns: NetNs,
    address: Option<IpAddr>,
    group: Group,
    /// It has clocks of its own.
    clocks: Option<String>,
}

/// Makes a container and starts it. `token` is a label of it and of nothing else.
///
/// # Errors
/// It does not come to run: what its client says, and what to do.
pub(super) fn reach(
    spec: &ContainerSpec,
    (run_id, journal): (&str, &Journal),
    token: String,
) -> Result<Host, RunError> {
    let failed = |text: String| RunError::new(ExitCode::RunFailed, format!("{spec}: {text}"), "");
    let client = Client::find(spec.client).map_err(|(text, mend)| not_fit(format!("{spec}: {text}"), mend))?;
    refuse_network(spec, &client)?;
    let name = spec.image.clone().unwrap_or_else(|| format!("localhost/tailbound:{}", env!("CARGO_PKG_VERSION")));
    let image = client.image(&name).map_err(|e| failed(e.to_string()))?;
    let image = fitting(spec, client.access.client, &name, image)?;
    let undo = Undo::RemoveContainer { access: client.access.clone(), token: token.clone() };
    let entry = journal.before(undo).map_err(|e| failed(e.to_string()))?;
    let called = format!("tailbound-{token}-{}", spec.name);
    let arguments = ["agent", "--run-token", run_id];
    let order = Order { spec, image: &name, name: &called, token: &token, arguments: &arguments };
    if let Err(e) = client.create(&order) {
        // It may have made a part.
        let _ = journal.undo(entry);
        return Err(not_made(spec, client.access.client, &called, &e.to_string()));
    }
    let seen = Arc::new(OnceLock::new());
    let way = Box::new(Container {
        client: client.clone(),
        spec: spec.clone(),
        name: called.clone(),
        entry,
        started: AtomicU32::new(0),
        seen: seen.clone(),
    });
    let help = Help {
        program: "",
        by_hand: "start a container of the image by hand to see why",
        other_release: "name an `image` of this release: `tailbound image` makes one",
    };
    let place = PlaceSpec::Container(Box::new(spec.clone()));
    let known = Known { way, place, called: format!("container {}", spec.name), named: spec.to_string() };
    let mut host = Host::over(known, (run_id, journal), &help)?;
    if let Some(seen) = seen.get() {
        host.facts.facts.extend(facts(&client, spec, (&name, &image), &called, seen));
        host.facts.facts.sort_by(|a, b| a.key.cmp(&b.key));
    }
    Ok(host)
}

/// What this host tells of it.
fn facts(client: &Client, spec: &ContainerSpec, (name, image): (&str, &Image), called: &str, seen: &Seen) -> Vec<Fact> {
    let program = client.access.client.program();
    let fact = |key: &str, value: String, source: &str| Fact {
        key: format!("container.{key}"),
        value: FactValue::Text(value),
        source: source.to_owned(),
    };
    let memory = seen.group.memory().map_or("no limit".to_owned(), |octets| Octets(octets).to_string());
    let cpus = seen.group.cpus().map_or("not told".to_owned(), |cpus| cpus.to_string());
    vec![
        fact("client", client.version.clone(), program),
        fact("runtime", client.runtime(called), program),
        fact("image", name.to_owned(), program),
        fact("digest", image.digest.clone(), program),
        fact("network", spec.network.to_string(), "the study"),
        fact("cpus", cpus, "its control group"),
        fact("memory", memory, "its control group"),
        fact("clocks", seen.clocks.clone().unwrap_or_else(|| "those of the host".into()), "/proc/PID/timens_offsets"),
    ]
}

fn refuse_network(spec: &ContainerSpec, client: &Client) -> Result<(), RunError> {
    match (&spec.network, client.access.client) {
        (ContainerNetwork::Named(name), ContainerClient::Ctr) => Err(not_fit(
            format!("{spec}: ctr is the client that is here, and knows no network {name}"),
            "install podman; or write `network: host`, or `none` and a `path` that the lab makes",
        )),
        _ => Ok(()),
    }
}

/// The image, if it is there and runs here.
fn fitting(spec: &ContainerSpec, client: ContainerClient, name: &str, image: Option<Image>) -> Result<Image, RunError> {
    let load = match client {
        ContainerClient::Podman => "podman load -i tailbound-image.tar",
        ContainerClient::Ctr => "ctr images import tailbound-image.tar",
    };
    let Some(image) = image else {
        let mend = format!("make it with `tailbound image --name {name}` and load it with `{load}`");
        return Err(not_fit(format!("{spec}: {} has no image {name}", client.program()), mend));
    };
    if image.architecture != own_architecture() {
        let text =
            format!("{spec}: the image {name} is for {}, and this host is {}", image.architecture, own_architecture());
        return Err(not_fit(
            text,
            format!("make it on a machine like this one with `tailbound image`, and load it with `{load}`"),
        ));
    }
    Ok(image)
}

/// Why its client did not make it.
fn not_made(spec: &ContainerSpec, client: ContainerClient, called: &str, said: &str) -> RunError {
    let has = |words: &[&str]| words.iter().any(|w| said.contains(w));
    let text = format!("{spec}: {} did not make it: {said}", client.program());
    if has(&["already in use", "already exists"]) {
        let remove = match client {
            ContainerClient::Podman => format!("podman rm {called}"),
            ContainerClient::Ctr => format!("ctr containers delete {called}"),
        };
        return not_fit(text, format!("`tailbound lab cleanup` removes what a run has left; else `{remove}`"));
    }
    match &spec.network {
        ContainerNetwork::Named(network) if has(&["unable to find network", "network not found"]) => not_fit(
            text,
            format!("`podman network ls` shows those that there are; `podman network create {network}` makes it"),
        ),
        _ => not_fit(text, ""),
    }
}

impl Container {
    /// A client of the controller's takes no Ctrl-C: that is the controller's business.
    fn alone(mut command: Command) -> Command {
        command.process_group(0);
        command
    }

    fn look(&self) -> Result<Seen, RunError> {
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
            // It has no word for them.
            group.give_cpus(cpus).map_err(|e| failed("its CPUs cannot be set", e))?;
        }
        verify(&self.spec, group.cpus(), group.memory())?;
        Ok(Seen { netns, address, group, clocks: own_clocks(pid) })
    }
}

/// The control group is as asked.
fn verify(spec: &ContainerSpec, cpus: Option<CpuList>, memory: Option<u64>) -> Result<(), RunError> {
    let differs = |what: &str, asked: String, found: Option<String>| {
        let found = found.unwrap_or_else(|| "nothing".into());
        let text = format!("{spec}: {what} of its control group is {found} where {asked} was asked");
        not_fit(text, "look whether the kernel has the controller, and who else sets it")
    };
    match &spec.cpus {
        Some(asked) if cpus.as_ref() != Some(asked) => {
            return Err(differs("the CPU list", asked.to_string(), cpus.map(|c| c.to_string())));
        }
        _ => {}
    }
    let asked = spec.memory_mib.map(|mib| u64::from(mib) << 20);
    match asked {
        Some(octets) if memory != asked => {
            Err(differs("the memory", Octets(octets).to_string(), memory.map(|m| Octets(m).to_string())))
        }
        _ => Ok(()),
    }
}

/// What a time namespace of its own says of its clocks.
fn own_clocks(pid: i32) -> Option<String> {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/time")).ok();
    let (theirs, ours) = (of(&pid.to_string())?, of("self")?);
    let offsets = || std::fs::read_to_string(format!("/proc/{pid}/timens_offsets")).unwrap_or_default();
    let line =
        |text: String| text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
    (theirs != ours).then(|| format!("shifted by a time namespace: {}", line(offsets()).join(", ")))
}

impl Way for Container {
    fn program(&self) -> Command {
        let id = format!("tailbound-{}", self.started.fetch_add(1, Ordering::Relaxed));
        Container::alone(self.client.exec(&self.name, &id))
    }

    fn answering(&self, _run_id: &str) -> Command {
        let mut command = Container::alone(self.client.start(&self.name));
        // podman hands its CPUs on to what it starts, and those of the controller are few; the kernel keeps those that the
        // control group allows.
        let all = RoleScheduling { policy: None, cpus: Some(CpuList((0..4096).collect())) };
        // SAFETY: between fork and exec the closure makes a system call with what it owns, and allocates nothing.
        unsafe { command.pre_exec(move || tailbound_host::scheduling::enter(&all)) };
        command
    }

    fn started(&self) -> Result<(), RunError> {
        let seen = self.look()?;
        // It is looked at once.
        let _ = self.seen.set(seen);
        Ok(())
    }

    fn address(&self) -> Option<IpAddr> {
        self.seen.get()?.address
    }

    fn netns(&self) -> Option<NetNs> {
        Some(self.seen.get()?.netns.clone())
    }

    fn ended(&self) -> Option<String> {
        self.client.ended(&self.name)
    }

    fn leave(self: Box<Self>, journal: &Journal) -> Option<String> {
        let left = journal.undo(self.entry).err()?;
        Some(format!("{} is still there: {left}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ContainerSpec {
        ContainerSpec { name: "ping".into(), ..ContainerSpec::default() }
    }

    #[test]
    fn a_name_that_is_taken_is_told_with_what_removes_it() {
        use ContainerClient::*;
        let text = |client, said: &str| not_made(&spec(), client, "tailbound-7-1-ping", said).to_string();
        // As podman 4.3.1 and ctr 1.6.20 say it.
        assert_eq!(
            text(
                Podman,
                "creating container storage: the container name \"tailbound-7-1-ping\" is already in use by 12ab"
            ),
            "container ping (network none): podman did not make it: creating container storage: the container \
             name \"tailbound-7-1-ping\" is already in use by 12ab\n  what to do: `tailbound lab cleanup` removes what a \
             run has left; else `podman rm tailbound-7-1-ping`"
        );
        let said = "snapshot \"tailbound-7-1-ping\": already exists";
        assert!(text(Ctr, said).ends_with("else `ctr containers delete tailbound-7-1-ping`"));
    }

    #[test]
    fn a_control_group_that_is_not_as_asked_is_told() {
        let asked = ContainerSpec { cpus: Some(CpuList::one(1)), memory_mib: Some(512), ..spec() };
        let text = |cpus: &str, memory| verify(&asked, cpus.parse().ok(), memory).map_err(|e| e.text);
        assert_eq!(text("1", Some(512 << 20)), Ok(()));
        let front = "container ping (network none, CPUs 1, 512 MiB): ";
        assert_eq!(
            text("0-1", None),
            Err(format!("{front}the CPU list of its control group is 0-1 where 1 was asked"))
        );
        let memory = "the memory of its control group is nothing where 512 MiB was asked";
        assert_eq!(text("1", None), Err(format!("{front}{memory}")));
        assert_eq!(verify(&spec(), None, None).map_err(|e| e.text), Ok(()));
    }
}

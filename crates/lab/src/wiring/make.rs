//! Executes the actions that make the wiring, the devices that carry the packets of guests.

use super::action::{Action, Program};
use super::port::{Joined, Plug, Port};
use super::{Wiring, begin, bpf, existing, plan, switch, tap};
use crate::apply::{apply, change};
use crate::error::LabError;
use crate::netlink::{converse, converse_within, index};
use crate::netns::{NetNs, run_in};
use crate::rooms::make_namespace;
use crate::step::{At, Room, Step};
use crate::verify::{settled, verify};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{
    BridgePortState, InfoBridgePort, InfoPortData, LinkAttribute, LinkInfo, LinkMessage, MacVtapMode,
};
use rtnetlink::{Handle, LinkMacVtap, LinkUnspec};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::time::Duration;
use tailbound_host::Journal;
use tailbound_host::interface::Ethtool;
use tailbound_model::{PathSpec, Undo};

impl Wiring {
    /// Makes the wiring of a path, with its directory in `scratch`, and reads its interfaces back. If an error occurs,
    /// all actions so far are undone.
    ///
    /// # Errors
    /// A problem found by [`Wiring::check`], a failed action, or a difference between the request and the values read
    /// back.
    pub async fn up(
        path: Joined<'_>,
        ports: &[Port],
        run_id: &str,
        journal: &Journal,
        scratch: &Path,
    ) -> Result<Wiring, LabError> {
        let lacks = Wiring::check(path, ports);
        if !lacks.is_empty() {
            return Err(LabError::Lacks(lacks));
        }
        let attachments = existing::attachments(path.0, ports, run_id).map_err(LabError::Lacks)?;
        let mut under = begin(path, (ports, attachments), run_id, scratch);
        if let Some(lack) = existing::taken(&under.attachments, &under.prefix) {
            return Err(LabError::Lacks(vec![lack]));
        }
        let actions = match path.0 {
            PathSpec::Existing { .. } => existing::actions(&under.attachments, &under.prefix, &under.dir),
            _ => plan::plan(path, ports, &under.prefix, &under.dir),
        };
        if !under.attachments.is_empty() {
            let here = NetNs::own().map_err(|e| LabError::read("entering the network namespace", "here", e))?;
            under.rooms.add(Room::Here, here);
        }
        match under.make(&actions, (run_id, journal)).await {
            Ok(()) => Ok(under),
            Err(error) => {
                // The first error is the one that is reported.
                let _ = under.down(journal).await;
                Err(error)
            }
        }
    }

    async fn make(&mut self, actions: &[Action], run: (&str, &Journal)) -> Result<(), LabError> {
        let mut steps: Vec<Step> = Vec::new();
        for action in actions {
            match action {
                Action::Step(Step::Namespace(room)) => {
                    let netns = make_namespace(*room, run.0, run.1, &mut self.entries)?;
                    self.rooms.add(*room, netns);
                }
                Action::Step(step) => {
                    apply(step, &self.rooms).await?;
                    // A tap device never reports that it is operational, but it is operational at once.
                    let is_tap = |at: &At| {
                        actions.iter().any(|action| matches!(action, Action::Tap { at: tap, .. } if tap == at))
                    };
                    if !matches!(step, Step::Up(at) if is_tap(at)) {
                        steps.push(step.clone());
                    }
                }
                Action::Directory(path) => self.directory(action, path, run.1)?,
                action => self.attempt(action, run).await.map_err(|reason| failed(action, reason))?,
            }
        }
        let hosts = (0..self.ports.len()).map(Room::Host);
        for room in [Room::Wiring, Room::Here].into_iter().chain(hosts).filter(|room| self.rooms.get(*room).is_ok()) {
            verify(room, &settled(room, &self.rooms, &steps).await?, &steps)?;
        }
        Ok(())
    }

    fn directory(&mut self, action: &Action, path: &Path, journal: &Journal) -> Result<(), LabError> {
        let undo = |inode| Undo::RemoveDirectory { path: path.display().to_string(), inode };
        let entry = journal.before(undo(None))?;
        let make = || {
            DirBuilder::new().mode(0o700).create(path)?;
            Ok(std::fs::metadata(path)?.ino())
        };
        let inode = match make() {
            Ok(inode) => inode,
            Err(reason) => {
                // Nothing was made; an existing directory belongs to somebody else.
                journal.done(entry)?;
                return Err(failed(action, reason));
            }
        };
        self.entries.push((None, entry));
        journal.update(entry, undo(Some(inode)))?;
        Ok(())
    }

    async fn attempt(&mut self, action: &Action, run: (&str, &Journal)) -> io::Result<()> {
        let netns = |room: Room| self.rooms.get(room).cloned();
        match action.clone() {
            Action::Step(_) | Action::Directory(_) => Ok(()),
            Action::Tap { at, mtu, end, queues, card } => {
                let name = at.name.clone();
                let make = move || {
                    let fds = tap::make_tap(&name, queues)?;
                    if card.is_some() {
                        tap::without_ipv6(&name)?;
                    }
                    Ok(fds)
                };
                let fds = inside(&netns(at.room)?, make).await?;
                let name = at.name.clone();
                let message = move |_| async move {
                    let device = LinkUnspec::new_with_name(&name).mtu(mtu);
                    Ok(match card {
                        Some(mac) => device.address(mac.to_vec()).build(),
                        None => device.build(),
                    })
                };
                change(&self.rooms, at.room, message).await?;
                self.plug_in(end, fds, at.name)
            }
            Action::Macvtap { at, lower, mtu, end, queues, mac } => {
                let (name, dir) = (at.name.clone(), self.dir.clone());
                let (room, below) = (netns(at.room)?, netns(lower.room)?);
                // The device is made directly in its namespace, so that it never appears among the user's interfaces.
                let elsewhere = (at.room != lower.room).then(|| room.clone());
                let job = move |handle: Handle| async move {
                    let lower = index(&handle, &lower.name).await?;
                    let device = LinkMacVtap::new(&name, lower, MacVtapMode::Bridge);
                    // The device does not know which multicast groups the guest joins, so it must receive all of them.
                    let device = device.address(mac.to_vec()).mtu(mtu).allmulticast(true);
                    let device = match elsewhere.as_ref().and_then(NetNs::raw_fd) {
                        Some(fd) => device.setns_by_fd(fd),
                        None => device,
                    };
                    handle.link().add(device.build()).execute().await
                };
                converse(&below, job)?.wait().await??;
                let (name, netns) = (at.name.clone(), room);
                let fds = inside(&netns, move || tap::open_macvtap(&name, queues, &dir)).await?;
                self.plug_in(end, fds, at.name)
            }
            Action::Forwards { port, delay_cs } => {
                let limit = FORWARDS + 2 * Duration::from_millis(u64::from(delay_cs) * 10);
                converse_within(&netns(port.room)?, limit, move |handle: Handle| forwards(handle, port.name))?
                    .wait()
                    .await?
            }
            Action::Device { end, device } => {
                self.plugs[end] = Some(Plug::Device(device));
                Ok(())
            }
            Action::WholeChecksums(At { room, name }) => {
                inside(&netns(room)?, move || Ethtool::open(&name).map_err(io::Error::other)?.fill_in_checksums()).await
            }
            Action::TagsInFrames(At { room, name }) => {
                let inside_frames = move || Ethtool::open(&name).map_err(io::Error::other)?.put_tags_into_frames();
                inside(&netns(room)?, inside_frames).await
            }
            Action::Redirect { ports: [one, other], mode } => {
                let job = move || bpf::Redirect::attach([&one.name, &other.name], mode);
                self.redirect = Some(inside(&netns(Room::Wiring)?, job).await?);
                Ok(())
            }
            Action::Pass(At { room, name }) => {
                self.passing.push(inside(&netns(room)?, move || bpf::pass(&name)).await?);
                Ok(())
            }
            Action::Start { program, arguments, socket } => {
                let netns = netns(Room::Wiring)?;
                switch::Daemon::start(program, &arguments, (&self.dir, &netns), run, &mut self.daemons)?;
                match self.daemons.last_mut() {
                    Some(daemon) => daemon.ready(program, &socket, &self.dir).await,
                    None => Ok(()),
                }
            }
            Action::Run { program, arguments } => {
                let netns = netns(Room::Wiring)?;
                switch::wait_for_cpu_count(&arguments).await;
                switch::run(program, &arguments, (&self.dir, &netns)).await?;
                if program != Program::Configure {
                    return Ok(());
                }
                if let Some(words) = switch::refused(&self.dir.join("db.sock"), (&self.dir, &netns)).await? {
                    return Err(io::Error::other(words));
                }
                let names: Vec<String> = (0..self.ports.len()).map(|end| plan::port(&self.prefix, end).name).collect();
                switch::verify(&arguments, &names, (&self.dir, &netns)).await
            }
            Action::Datagram { end, local, remote } => {
                if local.as_os_str().len() > LONGEST {
                    return Err(io::ErrorKind::InvalidFilename.into());
                }
                self.plugs[end] = Some(Plug::Datagram { local, remote });
                Ok(())
            }
        }
    }

    fn plug_in(&mut self, end: usize, fds: Vec<OwnedFd>, name: String) -> io::Result<()> {
        for fd in &fds {
            self.kept.push(fd.try_clone()?);
        }
        self.plugs[end] = Some(Plug::Tap { fds, name });
        Ok(())
    }
}

/// Minimum time to wait for a new bridge port. A port forwards after the forwarding delay of its bridge, or after twice
/// this delay if the bridge has a spanning tree.
const FORWARDS: Duration = Duration::from_secs(5);

/// Waits until a port of a bridge is in the state `forwarding`.
async fn forwards(handle: Handle, name: String) -> Result<(), rtnetlink::Error> {
    let is = |message: LinkMessage| {
        let infos = message.attributes.into_iter().filter_map(|a| match a {
            LinkAttribute::LinkInfo(infos) => Some(infos),
            _ => None,
        });
        let states = infos.flatten().filter_map(|info| match info {
            LinkInfo::PortData(InfoPortData::BridgePort(all)) => Some(all),
            _ => None,
        });
        states.flatten().any(|item| item == InfoBridgePort::State(BridgePortState::Forwarding))
    };
    loop {
        let mut links = std::pin::pin!(handle.link().get().match_name(name.clone()).execute());
        if links.try_next().await?.is_some_and(is) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Maximum length of a Unix socket's path in bytes, without the final zero byte (unix(7)).
const LONGEST: usize = 107;

async fn inside<T: Send + 'static>(
    netns: &NetNs,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run_in(netns, job)?.wait().await?
}

/// Makes the error for a failed action of making the wiring, with a remedy for the user.
fn failed(action: &Action, reason: io::Error) -> LabError {
    let remedy = match (action, reason.raw_os_error()) {
        (_, Some(libc::EPERM | libc::EACCES)) => {
            "run Tailbound as root, outside of a container or in a container with the privileges that this action needs"
        }
        (Action::Macvtap { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no macvtap devices: load the module (`modprobe macvtap`) or use `path: bridge`"
        }
        (Action::Macvtap { .. }, Some(libc::EBUSY)) => {
            "another device already receives all packets of the interface: use that device, or a bridge of which the interface is a port"
        }
        (Action::Macvtap { .. }, Some(libc::EINVAL)) => {
            "a macvtap device needs an Ethernet interface: name another interface"
        }
        (Action::Forwards { .. }, _) => {
            "look at the state of the bridge's ports (`bridge link`) and at its spanning tree"
        }
        (Action::Redirect { .. } | Action::Pass(_), Some(libc::EINVAL)) => {
            "links of XDP programs need Linux 5.9: use a newer kernel or `path: bridge`"
        }
        (Action::Redirect { .. } | Action::Pass(_), Some(libc::EOPNOTSUPP)) => {
            "the driver of the interface does not support XDP programs in this mode: use `mode: generic` if the study \
             asks for another mode, or `path: bridge`"
        }
        (Action::Start { .. } | Action::Run { .. }, _) => {
            "check whether the package openvswitch-switch is complete, or use `path: bridge`"
        }
        (Action::Datagram { .. }, _) => {
            "the path of a socket has at most 107 characters: use a shorter directory (TMPDIR)"
        }
        (Action::Directory(_), _) => "use a directory that this user may write to (TMPDIR)",
        _ => "all earlier steps were undone; please report this with the kernel's version",
    };
    LabError::Step { step: action.to_string(), reason, remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::XdpMode;

    #[test]
    fn a_failed_action_is_reported_with_its_remedy() {
        let at = |name: &str| At { room: Room::Wiring, name: name.into() };
        let text = |action: &Action, errno| failed(action, io::Error::from_raw_os_error(errno)).to_string();
        let redirect = Action::Redirect { ports: [at("q0"), at("q1")], mode: XdpMode::Native };
        assert_eq!(
            text(&redirect, libc::EINVAL),
            "the step `wiring: attach XDP programs (native) that redirect from q0 to q1 and back` failed: Invalid argument (os error \
             22); links of XDP programs need Linux 5.9: use a newer kernel or `path: bridge`"
        );
        let generic = "use `mode: generic` if the study asks for another mode, or `path: bridge`";
        assert!(text(&redirect, libc::EOPNOTSUPP).ends_with(generic));
        let (at_q0, lower) = (at("q0"), at("l"));
        let macvtap = Action::Macvtap { at: at_q0, lower, mtu: 1500, end: 0, queues: 1, mac: [0; 6] };
        assert!(text(&macvtap, libc::EOPNOTSUPP).contains("load the module (`modprobe macvtap`)"));
        assert!(text(&macvtap, libc::EPERM).ends_with(
            "run Tailbound as root, outside of a container or in a container with the privileges that this action needs"
        ));
        let start = Action::Start { program: Program::Switch, arguments: vec!["unix:S".into()], socket: "S".into() };
        let error = failed(&start, io::Error::other("it ended (exit status: 1): no database"));
        assert_eq!(
            error.to_string(),
            "the step `wiring: ovs-vswitchd unix:S &` failed: it ended (exit status: 1): no database; check whether the package \
             openvswitch-switch is complete, or use `path: bridge`"
        );
    }
}

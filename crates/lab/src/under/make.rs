//! Taking the steps.

use super::deed::{Deed, Program};
use super::{Plug, Port, Under, begin, bpf, plan, switch, tap};
use crate::apply::{apply, change, index};
use crate::error::LabError;
use crate::lab::namespace;
use crate::netlink::converse;
use crate::netns::{NetNs, run_in};
use crate::step::{At, Room, Step};
use crate::verify::{settled, verify};
use rtnetlink::packet_route::link::MacVtapMode;
use rtnetlink::{Handle, LinkMacVtap, LinkUnspec};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use tailbound_host::Journal;
use tailbound_host::interface::Ethtool;
use tailbound_model::{PathSpec, Undo};

impl Under {
    /// Builds the path, with its directory in `scratch`, and reads its interfaces back. On any error everything done so far
    /// is undone.
    ///
    /// # Errors
    /// What [`Under::check`] finds, the step that failed, or the difference that was read back.
    pub async fn up(
        path: &PathSpec,
        ports: &[Port],
        run_id: &str,
        journal: &Journal,
        scratch: &Path,
    ) -> Result<Under, LabError> {
        let lacks = Under::check(path, ports);
        if !lacks.is_empty() {
            return Err(LabError::Lacks(lacks));
        }
        let mut under = begin(ports, run_id, scratch);
        let deeds = plan::plan(path, ports, &under.prefix, &under.dir);
        match under.make(&deeds, (run_id, journal)).await {
            Ok(()) => Ok(under),
            Err(error) => {
                // The first error is the one to tell.
                let _ = under.down(journal).await;
                Err(error)
            }
        }
    }

    async fn make(&mut self, deeds: &[Deed], run: (&str, &Journal)) -> Result<(), LabError> {
        let mut steps: Vec<Step> = Vec::new();
        for deed in deeds {
            match deed {
                Deed::Lab(Step::Namespace(room)) => {
                    let netns = namespace(*room, run.0, run.1, &mut self.entries)?;
                    self.rooms.add(*room, netns);
                }
                Deed::Lab(step) => {
                    apply(step, &self.rooms).await?;
                    // A tap device never reports that it is operational: it is, at once.
                    let is_tap =
                        |at: &At| deeds.iter().any(|deed| matches!(deed, Deed::Tap { at: tap, .. } if tap == at));
                    if !matches!(step, Step::Up(at) if is_tap(at)) {
                        steps.push(step.clone());
                    }
                }
                Deed::Directory(path) => self.directory(deed, path, run.1)?,
                deed => self.attempt(deed, run).await.map_err(|reason| failed(deed, reason))?,
            }
        }
        let hosts = (0..self.ports.len()).map(Room::Host);
        for room in [Room::Under].into_iter().chain(hosts).filter(|room| self.rooms.get(*room).is_ok()) {
            verify(room, &settled(room, &self.rooms, &steps).await?, &steps)?;
        }
        Ok(())
    }

    fn directory(&mut self, deed: &Deed, path: &Path, journal: &Journal) -> Result<(), LabError> {
        let undo = |inode| Undo::RemoveDirectory { path: path.display().to_string(), inode };
        let entry = journal.before(undo(None))?;
        let make = || {
            DirBuilder::new().mode(0o700).create(path)?;
            Ok(std::fs::metadata(path)?.ino())
        };
        let inode = match make() {
            Ok(inode) => inode,
            Err(reason) => {
                // Nothing was made: what is there is another's.
                journal.done(entry)?;
                return Err(failed(deed, reason));
            }
        };
        self.entries.push((None, entry));
        journal.update(entry, undo(Some(inode)))?;
        Ok(())
    }

    async fn attempt(&mut self, deed: &Deed, run: (&str, &Journal)) -> io::Result<()> {
        let netns = |room: Room| self.rooms.get(room).cloned();
        match deed.clone() {
            Deed::Lab(_) | Deed::Directory(_) => Ok(()),
            Deed::Tap { at, mtu, end, queues } => {
                let name = at.name.clone();
                let fds = inside(&netns(at.room)?, move || tap::make_tap(&name, queues)).await?;
                let name = at.name.clone();
                change(
                    &self.rooms,
                    at.room,
                    move |_| async move { Ok(LinkUnspec::new_with_name(&name).mtu(mtu).build()) },
                )
                .await?;
                self.plug_in(end, fds, at.name)
            }
            Deed::Macvtap { at, lower, mtu, end, queues } => {
                let (netns, name, dir) = (netns(at.room)?, at.name.clone(), self.dir.clone());
                let job = move |handle: Handle| async move {
                    let lower = index(&handle, &lower).await?;
                    let device = LinkMacVtap::new(&name, lower, MacVtapMode::Bridge);
                    // It knows nothing of the groups that a guest joins.
                    let device = device.address(super::mac(end).to_vec()).mtu(mtu).allmulticast(true);
                    handle.link().add(device.build()).execute().await
                };
                converse(&netns, job)?.wait().await??;
                let name = at.name.clone();
                let fds = inside(&netns, move || tap::open_macvtap(&name, queues, &dir)).await?;
                self.plug_in(end, fds, at.name)
            }
            Deed::WholeChecksums(At { room, name }) => {
                inside(&netns(room)?, move || Ethtool::open(&name).map_err(io::Error::other)?.fill_in_checksums()).await
            }
            Deed::Redirect { ports: [one, other], mode } => {
                let job = move || bpf::Redirect::attach([&one.name, &other.name], mode);
                self.redirect = Some(inside(&netns(Room::Under)?, job).await?);
                Ok(())
            }
            Deed::Pass(At { room, name }) => {
                self.passing.push(inside(&netns(room)?, move || bpf::pass(&name)).await?);
                Ok(())
            }
            Deed::Start { program, arguments, socket } => {
                let netns = netns(Room::Under)?;
                switch::Daemon::start(program, &arguments, (&self.dir, &netns), run, &mut self.daemons)?;
                match self.daemons.last_mut() {
                    Some(daemon) => daemon.ready(program, &socket, &self.dir).await,
                    None => Ok(()),
                }
            }
            Deed::Run { program, arguments } => {
                let netns = netns(Room::Under)?;
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
            Deed::Datagram { end, local, remote } => {
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

/// The name of a socket without its last zero (unix(7)).
const LONGEST: usize = 107;

async fn inside<T: Send + 'static>(
    netns: &NetNs,
    job: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    run_in(netns, job)?.wait().await?
}

/// A failed step with what to do about it.
fn failed(deed: &Deed, reason: io::Error) -> LabError {
    let mend = match (deed, reason.raw_os_error()) {
        (_, Some(libc::EPERM | libc::EACCES)) => "run as root, outside of a container or in one with these rights",
        (Deed::Macvtap { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no macvtap devices: load the module (`modprobe macvtap`) or use `path: bridge`"
        }
        (Deed::Redirect { .. } | Deed::Pass(_), Some(libc::EINVAL)) => {
            "links of XDP programs came with Linux 5.9: use a newer kernel or `path: bridge`"
        }
        (Deed::Redirect { .. } | Deed::Pass(_), Some(libc::EOPNOTSUPP)) => {
            "the driver of this kernel takes no such programs: use the generic mode or `path: bridge`"
        }
        (Deed::Start { .. } | Deed::Run { .. }, _) => {
            "look whether the package openvswitch-switch is whole, or use `path: bridge`"
        }
        (Deed::Datagram { .. }, _) => {
            "the name of a socket has at most 107 characters: use a shorter directory (TMPDIR)"
        }
        (Deed::Directory(_), _) => "use a directory that this user may write to (TMPDIR)",
        _ => "nothing is left behind; please report this with the kernel's version",
    };
    LabError::Step { step: deed.to_string(), reason, mend: mend.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_model::XdpMode;

    #[test]
    fn a_failed_step_is_told_with_what_to_do() {
        let at = |name: &str| At { room: Room::Under, name: name.into() };
        let text = |deed: &Deed, errno| failed(deed, io::Error::from_raw_os_error(errno)).to_string();
        let redirect = Deed::Redirect { ports: [at("q0"), at("q1")], mode: XdpMode::Native };
        assert_eq!(
            text(&redirect, libc::EINVAL),
            "could not under: attach XDP programs (native) that redirect from q0 to q1 and back: Invalid argument (os error \
             22); links of XDP programs came with Linux 5.9: use a newer kernel or `path: bridge`"
        );
        assert!(text(&redirect, libc::EOPNOTSUPP).ends_with("use the generic mode or `path: bridge`"));
        let macvtap = Deed::Macvtap { at: at("q0"), lower: "l".into(), mtu: 1500, end: 0, queues: 1 };
        assert!(text(&macvtap, libc::EOPNOTSUPP).contains("load the module (`modprobe macvtap`)"));
        assert!(
            text(&macvtap, libc::EPERM).ends_with("run as root, outside of a container or in one with these rights")
        );
        let start = Deed::Start { program: Program::Switch, arguments: vec!["unix:S".into()], socket: "S".into() };
        let error = failed(&start, io::Error::other("it ended (exit status: 1): no database"));
        assert_eq!(
            error.to_string(),
            "could not under: ovs-vswitchd unix:S &: it ended (exit status: 1): no database; look whether the package \
             openvswitch-switch is whole, or use `path: bridge`"
        );
    }
}

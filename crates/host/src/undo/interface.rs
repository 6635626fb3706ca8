//! Undoes the creation of a network interface: deletes the interface in its network namespace.

use super::{Undone, netns};
use crate::netlink;
use std::io;
use tailbound_model::NetnsId;

pub(super) fn delete(name: &str, ifindex: Option<u32>, netns_inode: u64) -> io::Result<Undone> {
    let netns = NetnsId { inode: netns_inode, path: String::new() };
    // If the namespace does not exist any more, neither does the interface.
    netns::inside(&netns, || delete_here(name, ifindex)).map(|done| done.unwrap_or(Undone::AlreadyGone))
}

fn delete_here(name: &str, ifindex: Option<u32>) -> io::Result<Undone> {
    let Ok(found) = nix::net::if_::if_nametoindex(name) else { return Ok(Undone::AlreadyGone) };
    if ifindex.is_some_and(|known| known != found) {
        return Ok(Undone::LeftAlone(format!(
            "interface {name} now has index {found}, not {}: it is another interface, so it is not deleted",
            ifindex.unwrap_or_default()
        )));
    }
    match netlink::request(libc::RTM_DELLINK, &netlink::IfInfo::of(found)) {
        Ok(_) => Ok(Undone::Did(format!("deleted interface {name}"))),
        // The interface was deleted since its index was read, for example with the other end of its pair.
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(Undone::AlreadyGone),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::netns::OWN;
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    /// Runs a test in a new network namespace on a new thread; returns `false` if this user may not make a network
    /// namespace.
    pub fn in_a_new_netns(test: impl FnOnce() + Send + 'static) -> bool {
        let may = std::thread::spawn(|| {
            let may = unshare(CloneFlags::CLONE_NEWNET).is_ok();
            if may {
                test();
            }
            may
        })
        .join()
        .unwrap();
        if !may {
            eprintln!("skipped: making a network namespace is not permitted here");
        }
        may
    }

    pub fn add_dummy(name: &str) -> bool {
        Command::new("ip")
            .args(["link", "add", name, "type", "veth", "peer", "name", "tb-peer"])
            .status()
            .is_ok_and(|s| s.success())
    }

    #[test]
    fn an_interface_is_deleted_only_under_its_own_index_and_namespace() {
        in_a_new_netns(|| {
            let netns = fs::metadata(OWN).unwrap().ino();
            if !add_dummy("tb-test") {
                return eprintln!("skipped: no veth or no `ip` here");
            }
            let index = nix::net::if_::if_nametoindex("tb-test").unwrap();
            assert!(matches!(delete("tb-test", Some(index + 40), netns).unwrap(), Undone::LeftAlone(_)));
            assert_eq!(delete("tb-test", Some(index), 1).unwrap(), Undone::AlreadyGone, "no such namespace");
            assert_eq!(nix::net::if_::if_nametoindex("tb-test"), Ok(index));
            assert!(matches!(delete("tb-test", Some(index), netns).unwrap(), Undone::Did(_)));
            assert_eq!(delete("tb-test", Some(index), netns).unwrap(), Undone::AlreadyGone);
        });
    }

    #[test]
    fn an_interface_in_another_namespace_is_found_through_a_process_that_lives_there() {
        in_a_new_netns(|| {
            let netns = fs::metadata(OWN).unwrap().ino();
            let mut holder = Command::new("sleep").arg("60").spawn().unwrap();
            if add_dummy("tb-other") {
                let outside = std::thread::spawn(move || {
                    unshare(CloneFlags::CLONE_NEWNET).unwrap();
                    delete("tb-other", None, netns).unwrap()
                });
                assert!(matches!(outside.join().unwrap(), Undone::Did(_)));
                assert!(nix::net::if_::if_nametoindex("tb-other").is_err());
            }
            holder.kill().unwrap();
            holder.wait().unwrap();
        });
    }
}

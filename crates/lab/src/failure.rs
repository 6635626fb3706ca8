//! Remedies that the user is given for failed steps of making a lab.

use crate::error::LabError;
use crate::step::Step;
use std::io;
use tailbound_model::GatesBy;

/// Makes the error for a failed step of making a lab, with a remedy for the user.
pub(crate) fn failed(step: &Step, reason: io::Error) -> LabError {
    let remedy = match (step, reason.raw_os_error()) {
        _ if reason.kind() == io::ErrorKind::PermissionDenied => {
            "run as root (or with CAP_SYS_ADMIN and CAP_NET_ADMIN), or use `path: loopback`"
        }
        (Step::Namespace(_), Some(libc::ENOSPC | libc::EUSERS)) => {
            "raise the sysctl user.max_net_namespaces, or end programs that keep network namespaces"
        }
        (Step::Namespace(_), Some(libc::EINVAL)) => {
            "this kernel has no network namespaces (CONFIG_NET_NS): use `path: loopback`"
        }
        (Step::Pair { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no veth devices: load the module (`modprobe veth`) or use `path: loopback`"
        }
        (Step::Bridge { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel has no bridge: load the module (`modprobe bridge`) or use `path: veth`"
        }
        (Step::Vlan { .. }, Some(libc::EOPNOTSUPP)) => {
            "this kernel does not support VLANs (802.1Q): load the module (`modprobe 8021q`) or remove `vlan`"
        }
        (Step::Gates { gates, .. }, _) if gates.by == GatesBy::Offload => {
            "everything was undone; use a network card whose driver offloads taprio, or write `by: software`"
        }
        (Step::Shaping { .. }, _) => {
            "everything was undone; look at the reason of the kernel, and change `shaping`, or remove it"
        }
        (Step::NoIpv6(_), Some(libc::EROFS)) => {
            "/proc/sys is mounted read-only (a container?): allow the container to write there, or use `path: loopback`"
        }
        _ => "all earlier steps were undone; please report this with the kernel's version",
    };
    LabError::Step { step: step.to_string(), reason, remedy: remedy.to_owned() }
}

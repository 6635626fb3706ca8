//! What all commands that capture packets need.

use crate::cli::Watch;
use crate::failure::Failure;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tailbound_host::{Capture, CaptureError, Packet};
use tailbound_model::ExitCode;
use tailbound_watch::{Seen, Watch as State};

/// How often the end of the capture is looked at.
pub const TURN: Duration = Duration::from_millis(100);
/// Whether SIGINT or SIGTERM has arrived.
pub static ENDED: AtomicBool = AtomicBool::new(false);

/// Reads what was captured before the end, and not read until then.
pub fn read_rest(capture: &mut Capture, state: &mut State, end_ns: i64) {
    let mut is_over = false;
    while !is_over {
        let read = capture.read(Duration::ZERO, |packet| {
            is_over |= packet.stamp_ns > end_ns;
            if !is_over {
                state.packet(seen(packet));
            }
        });
        is_over |= !read.is_ok_and(|count| count > 0);
    }
}

/// The addresses of the interfaces of the network namespace. An interface that gets its address later is not there.
pub fn own_addresses() -> BTreeSet<IpAddr> {
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let version_4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
        version_4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
    };
    nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(address).collect()
}

pub fn seen(packet: Packet<'_>) -> Seen<'_> {
    let Packet { stamp_ns, interface, is_sent, bytes } = packet;
    Seen { stamp_ns, interface, is_sent, bytes }
}

/// Where packets are captured, in words.
pub fn place(args: &Watch) -> String {
    let space = match (&args.netns, &args.container, &args.pod) {
        (Some(name), _, _) => format!("network namespace {name}"),
        (_, Some(name), _) => format!("container {name}"),
        (_, _, Some(name)) => format!("pod {name}"),
        (None, None, None) => "this network namespace".to_owned(),
    };
    match &args.interface {
        None => format!("all interfaces of {space}"),
        Some(interface) => format!("interface {interface} of {space}"),
    }
}

/// Why packets cannot be captured.
pub fn failed(error: CaptureError) -> Failure {
    let exit = match error {
        CaptureError::NoInterface(_) => ExitCode::BadInput,
        _ => ExitCode::MachineNotFit,
    };
    Failure::of(exit, error.problem())
}

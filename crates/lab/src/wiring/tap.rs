//! Descriptors of tap and macvtap devices, through which a guest sends and receives.
//!
//! The calling thread must be in the network namespace of the device.

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Path of the character device by which tap devices are made.
pub(super) const TUN: &str = "/dev/net/tun";

/// Opens one non-blocking descriptor of a device file, as QEMU needs it.
pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(File::options().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path)?.into())
}

/// Makes a tap device and returns one descriptor for each pair of queues. The device is removed when the last
/// descriptor is closed.
pub(super) fn make_tap(name: &str, queues: u32) -> io::Result<Vec<OwnedFd>> {
    let many = if queues > 1 { libc::IFF_MULTI_QUEUE } else { 0 };
    let one = || {
        let fd = open(Path::new(TUN))?;
        // SAFETY: every bit pattern, zero too, is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | many) as i16;
        // SAFETY: the request reads and writes one ifreq, which outlives the call.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
    };
    (0..queues).map(|_| one()).collect()
}

/// Disables IPv6 on an interface, because packets of the kernel's neighbour discovery would reach the guest.
pub(super) fn without_ipv6(name: &str) -> io::Result<()> {
    // /proc/sys/net shows the namespace of the thread that opens it.
    match fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1") {
        // A kernel without IPv6 has no such file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Opens the character device of a macvtap device once for each pair of queues.
///
/// The device number is read from sysfs, which shows the network namespace in which sysfs was mounted. Therefore sysfs
/// and the device file are placed in a new mount namespace of this thread, at `dir`, and both end with the thread.
pub(super) fn open_macvtap(name: &str, queues: u32, dir: &Path) -> io::Result<Vec<OwnedFd>> {
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)?;
    mount(Some("tmpfs"), dir, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC, Some("mode=700"))?;
    let sys = dir.join("sys");
    fs::create_dir(&sys)?;
    mount(Some("sysfs"), &sys, Some("sysfs"), MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY, NONE)?;
    let missing = || io::Error::new(io::ErrorKind::NotFound, "sysfs shows no character device of the interface");
    let entry = fs::read_dir(sys.join("class/net").join(name).join("macvtap"))?.next().ok_or_else(missing)??;
    let numbers = fs::read_to_string(entry.path().join("dev"))?;
    let (major, minor) = numbers.trim().split_once(':').ok_or_else(missing)?;
    let number = |text: &str| text.parse().map_err(io::Error::other);
    let node = dir.join("node");
    mknod(&node, SFlag::S_IFCHR, Mode::S_IRUSR | Mode::S_IWUSR, makedev(number(major)?, number(minor)?))?;
    let one = || {
        let fd = open(&node)?;
        // SAFETY: the request takes an integer. Offloads are off, as for a new tap device, until QEMU requests them.
        let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETOFFLOAD, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
    };
    (0..queues).map(|_| one()).collect()
}

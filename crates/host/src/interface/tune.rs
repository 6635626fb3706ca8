//! Reads and sets queues and interrupt coalescing of an interface by ethtool requests (linux/ethtool.h). Setting needs
//! CAP_NET_ADMIN.

use super::ethtool::{Ethtool, GCHANNELS, GCOALESCE};
use super::link;
use std::io;
use std::time::{Duration, Instant};
use tailbound_model::NicSetting;

const SCOALESCE: u32 = 0x0f;
const SCHANNELS: u32 = 0x3d;
/// Numbers of 32-bit words in struct ethtool_channels and in struct ethtool_coalesce.
const CHANNELS_WORDS: usize = 9;
const COALESCE_WORDS: usize = 23;
/// Longest time after a change of the queues until the link is up again.
const LINK_BACK: Duration = Duration::from_secs(10);

/// For each setting of an interface: the ethtool requests that read and set it, the number of words in the struct of
/// these requests, and the index of the setting in the struct.
fn place(setting: NicSetting) -> (u32, u32, usize, usize) {
    let channels = |word| (GCHANNELS, SCHANNELS, CHANNELS_WORDS, word);
    let coalesce = |word| (GCOALESCE, SCOALESCE, COALESCE_WORDS, word);
    match setting {
        NicSetting::ChannelsRx => channels(5),
        NicSetting::ChannelsTx => channels(6),
        NicSetting::Channels => channels(8),
        NicSetting::CoalesceRx => coalesce(1),
        NicSetting::CoalesceRxFrames => coalesce(2),
        NicSetting::CoalesceTx => coalesce(5),
        NicSetting::CoalesceTxFrames => coalesce(6),
        NicSetting::AdaptiveRx => coalesce(10),
        NicSetting::AdaptiveTx => coalesce(11),
    }
}

fn get(interface: &str, setting: NicSetting) -> io::Result<(Ethtool, Vec<u32>)> {
    let tool = Ethtool::open(interface).map_err(io::Error::other)?;
    let (get, _, length, _) = place(setting);
    let mut words = vec![0u32; length];
    words[0] = get;
    tool.request(&mut words).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => io::Error::other("the driver of the interface does not support this setting"),
        Some(libc::ENODEV) => io::Error::new(io::ErrorKind::NotFound, format!("there is no interface {interface}")),
        _ => error,
    })?;
    Ok((tool, words))
}

/// Reads the value of a setting of a network interface.
pub(crate) fn read(interface: &str, setting: NicSetting) -> io::Result<u32> {
    get(interface, setting).map(|(_, words)| words[place(setting).3])
}

/// Reads the highest allowed value of a setting of a network interface, if the driver reports a highest value.
pub(crate) fn most(interface: &str, setting: NicSetting) -> io::Result<Option<u32>> {
    let (_, words) = get(interface, setting)?;
    let (request, _, _, word) = place(setting);
    // The struct contains each maximum four words before the value.
    Ok((request == GCHANNELS).then(|| words[word - 4]))
}

/// Sets a value of a network interface. If the change takes the link down, waits until the link is up again.
pub(crate) fn write(interface: &str, setting: NicSetting, value: u32) -> io::Result<()> {
    let was_up = link::query(interface)?.up;
    let (tool, mut words) = get(interface, setting)?;
    let (_, set, _, word) = place(setting);
    words[0] = set;
    words[word] = value;
    tool.request(&mut words).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => io::Error::other("the driver of the interface cannot change this setting"),
        _ => error,
    })?;
    let patience = Instant::now() + LINK_BACK;
    while was_up && !link::query(interface)?.up {
        if Instant::now() > patience {
            return Err(io::Error::other("the link was still down 10 s after the setting was changed"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

//! Speed and offload features of a device through the ethtool requests (SIOCETHTOOL, linux/ethtool.h), which need no
//! privilege. A device that does not know a request is one without that fact.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;
const SPEED_UNKNOWN: u32 = u32::MAX;
/// Words of `ethtool_link_settings` before its masks.
const LINK_SETTINGS_WORDS: usize = 12;
/// Words of one block of `ethtool_get_features_block`: available, requested, active, never changed.
const FEATURE_WORDS: usize = 4;

/// What one device tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DeviceFacts {
    pub speed_mbit_s: Option<i64>,
    /// Names of the features that are active, in the kernel's order.
    pub offloads: Vec<String>,
}

/// Reads a device of the calling thread's network namespace.
pub(crate) fn read(interface: &str) -> DeviceFacts {
    let Ok(socket) = UdpSocket::bind(("0.0.0.0", 0)) else { return DeviceFacts::default() };
    let device = Device { socket, interface };
    DeviceFacts { speed_mbit_s: device.speed().ok().flatten(), offloads: device.active_features().unwrap_or_default() }
}

struct Device<'a> {
    socket: UdpSocket,
    interface: &'a str,
}

impl Device<'_> {
    /// One request; `data` begins with the command and is as long as the kernel's answer to it can be.
    fn ask(&self, data: &mut [u32]) -> io::Result<()> {
        let mut name = [0 as libc::c_char; libc::IFNAMSIZ];
        let bytes = self.interface.as_bytes();
        if bytes.len() >= name.len() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in name.iter_mut().zip(bytes) {
            *to = *from as libc::c_char;
        }
        let ifru = libc::__c_anonymous_ifr_ifru { ifru_data: data.as_mut_ptr().cast() };
        let mut request = libc::ifreq { ifr_name: name, ifr_ifru: ifru };
        // SAFETY: the request and the data it points to outlive the call; each caller sizes the data for its command.
        let result =
            unsafe { libc::ioctl(self.socket.as_raw_fd(), libc::SIOCETHTOOL as libc::Ioctl, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn speed(&self) -> io::Result<Option<i64>> {
        // The first answer tells the length of a mask as a negative number; three masks follow the fixed part.
        let mut settings = vec![0; LINK_SETTINGS_WORDS + 3 * i8::MAX as usize];
        settings[0] = ETHTOOL_GLINKSETTINGS;
        self.ask(&mut settings)?;
        let words = mask_words(&settings).checked_neg().filter(|n| *n > 0).ok_or(io::ErrorKind::InvalidData)?;
        settings.fill(0);
        settings[0] = ETHTOOL_GLINKSETTINGS;
        set_mask_words(&mut settings, words);
        self.ask(&mut settings)?;
        let speed = settings[1];
        Ok((speed != SPEED_UNKNOWN && speed != 0).then_some(i64::from(speed)))
    }

    fn active_features(&self) -> io::Result<Vec<String>> {
        let count = self.feature_count()? as usize;
        let mut strings = vec![0; 3 + count * ETH_GSTRING_LEN / 4];
        strings[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
        self.ask(&mut strings)?;
        let blocks = count.div_ceil(32);
        let mut features = vec![0; 2 + blocks * FEATURE_WORDS];
        features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
        self.ask(&mut features)?;
        let bytes: Vec<u8> = strings[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let names = bytes.chunks_exact(ETH_GSTRING_LEN).map(|name| {
            let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
            String::from_utf8_lossy(&name[..end]).into_owned()
        });
        let active = |i: usize| features[2 + i / 32 * FEATURE_WORDS + 2] >> (i % 32) & 1 == 1;
        Ok(names.enumerate().filter(|(i, name)| active(*i) && !name.is_empty()).map(|(_, name)| name).collect())
    }

    fn feature_count(&self) -> io::Result<u32> {
        // Command, a reserved word, a mask of 64 bits, one number per set bit.
        let mut info = [ETHTOOL_GSSET_INFO, 0, 0, 0, 0];
        let mask = (1u64 << ETH_SS_FEATURES).to_ne_bytes();
        info[2] = u32::from_ne_bytes([mask[0], mask[1], mask[2], mask[3]]);
        info[3] = u32::from_ne_bytes([mask[4], mask[5], mask[6], mask[7]]);
        self.ask(&mut info)?;
        Ok(info[4])
    }
}

/// `link_mode_masks_nwords`, the byte at offset 15.
fn mask_words(settings: &[u32]) -> i8 {
    settings[3].to_ne_bytes()[3] as i8
}

fn set_mask_words(settings: &mut [u32], words: i8) {
    let mut bytes = settings[3].to_ne_bytes();
    bytes[3] = words as u8;
    settings[3] = u32::from_ne_bytes(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_features_and_no_speed() {
        let facts = read("lo");
        assert_eq!(facts.speed_mbit_s, None);
        assert!(facts.offloads.iter().any(|name| name == "loopback"), "{:?}", facts.offloads);
    }

    #[test]
    fn a_device_that_does_not_exist_has_no_facts() {
        assert_eq!(read("tb-none"), DeviceFacts::default());
        assert_eq!(read("a-name-that-is-too-long"), DeviceFacts::default());
    }
}

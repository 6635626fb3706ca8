//! Requests of ethtool (linux/ethtool.h), made by ioctl on a socket of the thread's network namespace. Reading needs no
//! privilege; most settings are written in `tune.rs`.
//!
//! Input: the name of an interface. Output: values that its driver reports, or the reason why a value is not known.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use tailbound_model::CardStamping;

const SIOCETHTOOL: libc::c_ulong = 0x8946;
const SIOCSHWTSTAMP: libc::c_ulong = 0x89b0;
const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;
const GSET: u32 = 0x01;
const GDRVINFO: u32 = 0x03;
pub(super) const GCOALESCE: u32 = 0x0e;
const GSTRINGS: u32 = 0x1b;
const STXCSUM: u32 = 0x17;
const GFLAGS: u32 = 0x25;
const SFLAGS: u32 = 0x26;
/// Bit of the flags of the ethtool requests GFLAGS and SFLAGS: the device inserts VLAN tags.
const FLAG_TXVLAN: u32 = 1 << 7;
const GSSET_INFO: u32 = 0x37;
const GFEATURES: u32 = 0x3a;
const GET_TS_INFO: u32 = 0x41;
pub(super) const GCHANNELS: u32 = 0x3c;
/// Number of the ethtool string set that contains the names of features, and the length of each name in bytes.
const SS_FEATURES: u32 = 4;
const NAME_LENGTH: usize = 32;

/// Access to the driver of one network interface by ethtool requests.
pub struct Ethtool {
    socket: OwnedFd,
    name: [libc::c_char; libc::IFNAMSIZ],
}

impl Ethtool {
    /// Opens a network interface of the calling thread's network namespace. If no such interface exists, the later
    /// requests fail.
    ///
    /// # Errors
    /// The name is too long for an interface, or no socket can be opened.
    pub fn open(interface: &str) -> Result<Ethtool, String> {
        let mut name = [0; libc::IFNAMSIZ];
        if interface.len() >= name.len() {
            return Err(format!("`{interface}` is too long for an interface name"));
        }
        for (to, from) in name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: socket takes three integers and returns a new descriptor or -1.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error().to_string());
        }
        // SAFETY: the kernel just returned this descriptor and nobody else owns it.
        Ok(Ethtool { socket: unsafe { OwnedFd::from_raw_fd(fd) }, name })
    }

    /// Sends one ethtool request; the kernel's answer replaces the words of the request. The first word is the command;
    /// `words` must be as long as the struct of the command.
    pub(super) fn request(&self, words: &mut [u32]) -> io::Result<()> {
        self.call(SIOCETHTOOL, words)
    }

    /// Makes an ioctl on the interface; the answer replaces `words`, which must be as long as the struct of the call.
    fn call(&self, number: libc::c_ulong, words: &mut [u32]) -> io::Result<()> {
        // SAFETY: every bit pattern, zero too, is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_name = self.name;
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: request points at `words`, which every caller makes at least as long as the struct of its command
        // (fixed structs, or as many entries as the request itself says).
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), number as _, &mut request) };
        if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn ask(&self, words: &mut [u32]) -> Result<(), String> {
        self.request(words).map_err(|error| match error.raw_os_error() {
            Some(libc::EOPNOTSUPP) => "the driver does not report this value".into(),
            _ => error.to_string(),
        })
    }

    /// Name of the interface's kernel driver.
    ///
    /// # Errors
    /// The driver's name is not known; the error contains the reason.
    pub fn driver(&self) -> Result<String, String> {
        // cmd, driver[32], version[32], fw_version[32], bus_info[32], erom_version[32], reserved2[12], 5 words.
        let mut words = [0u32; 49];
        words[0] = GDRVINFO;
        self.ask(&mut words)?;
        Ok(text(&bytes(&words[1..9])))
    }

    /// Speed of the interface's link in Mbit/s.
    ///
    /// # Errors
    /// The speed is not known, for example because the link is down; the error contains the reason.
    pub fn speed_mbit_s(&self) -> Result<i64, String> {
        // struct ethtool_cmd is the oldest request, and the kernel answers it for every driver with a speed.
        // cmd, supported, advertising, speed (low 16 bits) | duplex | port, ..., speed_hi in the eighth word.
        let mut words = [0u32; 11];
        words[0] = GSET;
        self.ask(&mut words)?;
        let bytes = bytes(&words);
        let low = u16::from_ne_bytes([bytes[12], bytes[13]]);
        let high = u16::from_ne_bytes([bytes[28], bytes[29]]);
        match u32::from(high) << 16 | u32::from(low) {
            0 | 0xffff | 0xffff_ffff => Err("the link's speed is not known".into()),
            speed => Ok(i64::from(speed)),
        }
    }

    /// Numbers of transmit and receive queues that the interface uses.
    ///
    /// # Errors
    /// The numbers of queues are not known; the error contains the reason.
    pub fn channels(&self) -> Result<(u32, u32), String> {
        // cmd, max rx tx other combined, rx tx other combined.
        let mut words = [0u32; 9];
        words[0] = GCHANNELS;
        self.ask(&mut words)?;
        let [rx, tx, combined] = [words[5], words[6], words[8]];
        Ok((tx + combined, rx + combined))
    }

    /// Delay before a receive interrupt of the interface in us, and whether the driver adapts this delay.
    ///
    /// # Errors
    /// The delay is not known; the error contains the reason.
    pub fn coalesce(&self) -> Result<(u32, bool), String> {
        // cmd, rx_usecs, rx_frames, rx_usecs_irq, rx_frames_irq, four of tx, stats, use_adaptive_rx, ...
        let mut words = [0u32; 23];
        words[0] = GCOALESCE;
        self.ask(&mut words)?;
        Ok((words[1], words[10] != 0))
    }

    /// Number of the PTP hardware clock of the interface, N in /dev/ptpN; `None` if it has no such clock.
    ///
    /// # Errors
    /// The number is not known; the error contains the reason.
    pub fn hardware_clock(&self) -> Result<Option<u32>, String> {
        // cmd, so_timestamping, phc_index, tx_types, tx_reserved[3], rx_filters, rx_reserved[3].
        let mut words = [0u32; 11];
        words[0] = GET_TS_INFO;
        self.ask(&mut words)?;
        // The kernel reports -1 for an interface without a clock.
        Ok(i32::try_from(words[2]).ok().map(i32::unsigned_abs))
    }

    /// Which frames the network card stamps (SIOCGHWTSTAMP).
    ///
    /// # Errors
    /// The driver does not report it, for example because the card makes no stamps.
    pub fn stamping(&self) -> io::Result<CardStamping> {
        self.stamping_call(SIOCGHWTSTAMP, CardStamping::default())
    }

    /// Sets which frames the network card stamps (SIOCSHWTSTAMP), and returns what the driver made of it, which can be more. Needs
    /// CAP_NET_ADMIN.
    ///
    /// # Errors
    /// The driver refuses, for example because the card cannot stamp these frames.
    pub fn set_stamping(&self, wanted: CardStamping) -> io::Result<CardStamping> {
        self.stamping_call(SIOCSHWTSTAMP, wanted)
    }

    fn stamping_call(&self, number: libc::c_ulong, wanted: CardStamping) -> io::Result<CardStamping> {
        // flags, tx_type, rx_filter.
        let mut words = [0, wanted.sent.cast_unsigned(), wanted.received.cast_unsigned()];
        self.call(number, &mut words)?;
        Ok(CardStamping { sent: words[1].cast_signed(), received: words[2].cast_signed() })
    }

    /// Makes the kernel compute checksums before it gives packets to a virtual device. This is for devices whose
    /// packets a program reads before the kernel would complete the checksum. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// The driver cannot leave the checksums to the kernel.
    pub fn fill_in_checksums(&self) -> io::Result<()> {
        self.request(&mut [STXCSUM, 0])
    }

    /// Makes the kernel write VLAN tags into frames. This is for virtual devices whose packets are read by a program
    /// that does not see tags in the packet's metadata. Needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// The driver cannot leave the VLAN tags to the kernel.
    pub fn put_tags_into_frames(&self) -> io::Result<()> {
        let mut asked = [GFLAGS, 0];
        self.request(&mut asked)?;
        self.request(&mut [SFLAGS, asked[1] & !FLAG_TXVLAN])?;
        self.request(&mut asked)?;
        match asked[1] & FLAG_TXVLAN {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }

    /// Names of the offload features that are switched on, in alphabetical order.
    ///
    /// # Errors
    /// The features are not known; the error contains the reason.
    pub fn offloads(&self) -> Result<Vec<String>, String> {
        // cmd, reserved, mask (64 bits), one word per bit set in the mask.
        let mut info = [GSSET_INFO, 0, 1 << SS_FEATURES, 0, 0];
        self.ask(&mut info)?;
        let count = if info[2] == 0 { 0 } else { info[4] as usize };
        if count == 0 || count > 4096 {
            return Err("the kernel names no features".into());
        }
        // cmd, string set, length, names.
        let mut names = vec![0u32; 3 + count * NAME_LENGTH / 4];
        (names[0], names[1], names[2]) = (GSTRINGS, SS_FEATURES, count as u32);
        self.ask(&mut names)?;
        // cmd, number of blocks; each block: available, requested, active, never changed.
        let blocks = count.div_ceil(32);
        let mut features = vec![0u32; 2 + blocks * 4];
        (features[0], features[1]) = (GFEATURES, blocks as u32);
        self.ask(&mut features)?;
        let names = bytes(&names[3..]);
        let is_on = |i: &usize| features[2 + i / 32 * 4 + 2] & (1 << (i % 32)) != 0;
        let mut on: Vec<String> = (0..count)
            .filter(is_on)
            .map(|i| text(&names[i * NAME_LENGTH..][..NAME_LENGTH]))
            .filter(|n| !n.is_empty())
            .collect();
        on.sort();
        Ok(on)
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_ne_bytes()).collect()
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_device_has_features_and_no_speed() {
        let lo = Ethtool::open("lo").unwrap();
        assert!(lo.speed_mbit_s().is_err());
        assert_eq!(lo.hardware_clock(), Ok(None));
        let offloads = lo.offloads().unwrap();
        assert!(offloads.iter().any(|name| name == "loopback"), "{offloads:?}");
        assert!(offloads.is_sorted());
    }

    #[test]
    fn a_device_that_does_not_exist_has_no_facts() {
        let none = Ethtool::open("tb-none").unwrap();
        assert!(none.speed_mbit_s().is_err() && none.offloads().is_err() && none.driver().is_err());
        assert!(Ethtool::open("a-name-that-is-too-long").is_err());
    }
}

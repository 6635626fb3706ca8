//! Settings of a guest on its kernel command line: written on the host, read by the first process of the guest. The
//! kernel ignores words that contain a dot.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use tailbound_model::{CpuList, Problem, VlanSpec};

/// Makes the [`Problem`] for a setting of a guest that cannot be parsed.
fn bad_line(what: String) -> Problem {
    Problem::new("guest_setting", what, "")
}

/// Hardware address (MAC address) of a network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Mac, Problem> {
        let bytes: Option<Vec<u8>> = text.split(':').map(|t| u8::from_str_radix(t, 16).ok()).collect();
        bytes
            .and_then(|b| b.try_into().ok())
            .map(Mac)
            .ok_or_else(|| bad_line(format!("`{text}` is not the hardware address of a card")))
    }
}

/// How a guest finds the network card of one of its interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Card {
    /// A network card that QEMU emulates; the guest finds it by its hardware address.
    Made(Mac),
    /// A network card of the host that is passed through to the guest (VFIO): the only card in the guest that is not a
    /// virtio card.
    Passed,
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Card::Made(mac) => mac.fmt(f),
            Card::Passed => f.write_str("passed"),
        }
    }
}

impl FromStr for Card {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Card, Problem> {
        if text == "passed" { Ok(Card::Passed) } else { text.parse().map(Card::Made) }
    }
}

/// Settings of one network interface of a guest: card, address, MTU and VLAN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NicLine {
    /// Network card of the guest that has this interface.
    pub card: Card,
    /// IPv4 address of the network interface in the guest.
    pub address: Ipv4Addr,
    /// Prefix length of the network of the guest's interface, in bits.
    pub prefix: u8,
    /// MTU of the guest's network interface in bytes.
    pub mtu: u32,
    /// VLAN on top of the interface; if a VLAN is set, the VLAN interface has the address.
    pub vlan: Option<VlanSpec>,
}

impl fmt::Display for NicLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}/{},{}", self.card, self.address, self.prefix, self.mtu)?;
        let Some(vlan) = &self.vlan else { return Ok(()) };
        write!(f, ",{}", vlan.id)?;
        vlan.egress.iter().try_for_each(|(from, to)| write!(f, ",{from}:{to}"))
    }
}

impl FromStr for NicLine {
    type Err = Problem;
    fn from_str(text: &str) -> Result<NicLine, Problem> {
        let bad =
            || bad_line(format!("`{text}` is not MAC,ADDRESS/PREFIX,MTU or MAC,ADDRESS/PREFIX,MTU,VLAN,FROM:TO..."));
        let words: Vec<&str> = text.split(',').collect();
        let [card, address, mtu, vlan @ ..] = &words[..] else { return Err(bad()) };
        let (address, prefix) = address.split_once('/').ok_or_else(bad)?;
        let vlan = match vlan {
            [] => None,
            [id, map @ ..] => {
                let entry = |word: &&str| {
                    let (from, to) = word.split_once(':')?;
                    Some((from.parse().ok()?, to.parse().ok()?))
                };
                let egress = map.iter().map(entry).collect::<Option<_>>().ok_or_else(bad)?;
                Some(VlanSpec { id: id.parse().map_err(|_| bad())?, egress })
            }
        };
        Ok(NicLine {
            card: card.parse()?,
            address: address.parse().map_err(|_| bad())?,
            prefix: prefix.parse().map_err(|_| bad())?,
            mtu: mtu.parse().map_err(|_| bad())?,
            vlan,
        })
    }
}

/// What a guest does after it has booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// After it has booted, the guest runs agents.
    #[default]
    Agents,
    /// After it has booted, the guest runs a shell on its console and ends with the shell.
    Shell,
    /// After it has booted, the guest reports on its console that it has booted, and ends.
    Probe,
}

/// The channel by which Tailbound on the host connects to the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The host connects over virtio-serial ports; their number is given.
    Ports(u32),
    /// The host connects over the virtio-serial ports that have Tailbound's names.
    Named,
    /// The host connects to a TCP port on the guest's interface with this card.
    Tcp(Mac, u16),
}

/// All settings of a guest that are written on its kernel command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub name: String,
    pub mode: Mode,
    pub channel: Option<Channel>,
    pub nics: Vec<NicLine>,
    pub irq_cpus: Option<CpuList>,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: String = self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        write!(f, "tailbound.name={name}")?;
        match self.mode {
            Mode::Agents => {}
            Mode::Shell => f.write_str(" tailbound.mode=shell")?,
            Mode::Probe => f.write_str(" tailbound.mode=probe")?,
        }
        match self.channel {
            Some(Channel::Ports(count)) => write!(f, " tailbound.ports={count}")?,
            Some(Channel::Named) => f.write_str(" tailbound.ports=named")?,
            Some(Channel::Tcp(mac, port)) => write!(f, " tailbound.tcp={mac},{port}")?,
            None => {}
        }
        for nic in &self.nics {
            write!(f, " tailbound.nic={nic}")?;
        }
        self.irq_cpus.as_ref().map_or(Ok(()), |cpus| write!(f, " tailbound.irq={cpus}"))
    }
}

impl Line {
    /// Parses the settings of a guest from a whole kernel command line.
    ///
    /// # Errors
    /// A setting has an unknown key or a value that cannot be parsed.
    pub fn read(text: &str) -> Result<Line, Problem> {
        let mut line =
            Line { name: "guest".into(), mode: Mode::Agents, channel: None, nics: Vec::new(), irq_cpus: None };
        let words = text.split_whitespace().filter_map(|w| w.strip_prefix("tailbound.")?.split_once('='));
        for (key, value) in words {
            let bad = || bad_line(format!("`tailbound.{key}={value}` on the kernel command line is not valid"));
            match (key, value) {
                ("name", name) => name.clone_into(&mut line.name),
                ("mode", "shell") => line.mode = Mode::Shell,
                ("mode", "probe") => line.mode = Mode::Probe,
                ("ports", "named") => line.channel = Some(Channel::Named),
                ("ports", count) => line.channel = Some(Channel::Ports(count.parse().map_err(|_| bad())?)),
                ("tcp", value) => {
                    let (mac, port) = value.split_once(',').ok_or_else(bad)?;
                    line.channel = Some(Channel::Tcp(mac.parse()?, port.parse().map_err(|_| bad())?));
                }
                ("nic", nic) => line.nics.push(nic.parse()?),
                ("irq", cpus) => line.irq_cpus = Some(cpus.parse().map_err(|_| bad())?),
                _ => return Err(bad()),
            }
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_parsed_as_they_were_written() {
        let mac = Mac([0x52, 0x54, 0, 0xaa, 0, 1]);
        let card = Card::Made(mac);
        let nic = NicLine { card, address: Ipv4Addr::new(10, 177, 0, 1), prefix: 24, mtu: 1500, vlan: None };
        let line = Line {
            name: "ping".into(),
            mode: Mode::Agents,
            channel: Some(Channel::Ports(30)),
            nics: vec![nic.clone()],
            irq_cpus: Some("0-1".parse().unwrap()),
        };
        let text = line.to_string();
        assert_eq!(
            text,
            "tailbound.name=ping tailbound.ports=30 tailbound.nic=52:54:00:aa:00:01,10.177.0.1/24,1500 tailbound.irq=0-1"
        );
        assert_eq!(Line::read(&format!("console=ttyS0 {text} quiet")), Ok(line.clone()));
        let other = Line {
            mode: Mode::Shell,
            channel: Some(Channel::Tcp(mac, 7777)),
            nics: Vec::new(),
            irq_cpus: None,
            ..line
        };
        assert_eq!(Line::read(&other.to_string()), Ok(other.clone()));
        let named = Line { channel: Some(Channel::Named), ..other };
        assert_eq!(Line::read(&named.to_string()), Ok(named));
        let passed = NicLine { card: Card::Passed, ..nic };
        assert_eq!(passed.to_string(), "passed,10.177.0.1/24,1500");
        assert_eq!(passed.to_string().parse(), Ok(passed));
        assert_eq!(
            Line::read("tailbound.nic=52:54:00:aa:00:01,10.177.0.1,1500"),
            Err(bad_line(
                "`52:54:00:aa:00:01,10.177.0.1,1500` is not MAC,ADDRESS/PREFIX,MTU or MAC,ADDRESS/PREFIX,MTU,VLAN,FROM:TO..."
                    .into()
            ))
        );
    }

    #[test]
    fn a_vlan_is_written_after_its_interface() {
        let with = |vlan| NicLine {
            card: Card::Made(Mac([0x52, 0x54, 0, 0xaa, 0, 1])),
            address: Ipv4Addr::new(10, 177, 0, 1),
            prefix: 24,
            mtu: 1500,
            vlan: Some(vlan),
        };
        let plain = with(VlanSpec { id: 4094, ..VlanSpec::default() });
        let mapped = with(VlanSpec { id: 10, egress: [(0, 1), (7, 7)].into() });
        assert_eq!(plain.to_string(), "52:54:00:aa:00:01,10.177.0.1/24,1500,4094");
        assert_eq!(mapped.to_string(), "52:54:00:aa:00:01,10.177.0.1/24,1500,10,0:1,7:7");
        for nic in [plain, mapped] {
            assert_eq!(nic.to_string().parse(), Ok(nic));
        }
        assert!("52:54:00:aa:00:01,10.177.0.1/24,1500,10,7".parse::<NicLine>().is_err());
    }
}

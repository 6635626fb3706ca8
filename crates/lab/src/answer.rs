//! Carries out the requests ([`Ask`]) of a lab on the host of an end, for example to read its network interfaces.

use crate::netns::NetNs;
use crate::{counters, datagram_socket, interface, links};
use std::io;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;
use tailbound_host::interface::{Ethtool, card_facts};
use tailbound_model::{Answer, Ask, DeviceAnswer, NodeCounts, Problem};

/// Carries out requests of a lab in the calling thread's network namespace, and keeps the sockets of the path check.
#[derive(Debug, Default)]
pub struct Answers {
    probe: Option<Probe>,
}

/// Sockets that one end uses for the path check.
#[derive(Debug)]
struct Probe {
    address: IpAddr,
    interface: String,
    plain: UdpSocket,
    group: Option<UdpSocket>,
}

impl Answers {
    /// Carries out a request of the lab and returns the answer. [`Ask::Received`] blocks for at most its `within_ns`.
    pub fn answer(&mut self, ask: Ask) -> Answer {
        self.attempt(ask)
            .unwrap_or_else(|e| Answer::Failed(Problem::new("request_failed", e.to_string(), ""), e.raw_os_error()))
    }

    fn attempt(&mut self, ask: Ask) -> io::Result<Answer> {
        Ok(match ask {
            Ask::Log => return Err(io::Error::other("the lab keeps no log")),
            Ask::WatchClock { .. } | Ask::ClockState | Ask::ClockHistory(_) => {
                return Err(io::Error::other("the lab watches no clock"));
            }
            Ask::Set { .. } | Ask::Changed | Ask::Restore => {
                return Err(io::Error::other("the lab does not change settings of the host"));
            }
            Ask::Facts => Answer::Facts(Box::new(tailbound_host::facts::collect())),
            Ask::Clock => Answer::Clock(tailbound_host::monotonic_ns()),
            Ask::Cpus => Answer::Cpus(tailbound_host::allowed_cpus()),
            Ask::Interfaces => Answer::Interfaces(interface::interfaces_of(&NetNs::own()?)?),
            // Values that the device does not report are left out.
            Ask::Device(name) => match Ethtool::open(&name) {
                Ok(device) => Answer::Device(DeviceAnswer {
                    speed_mbit_s: device.speed_mbit_s().ok(),
                    offloads: device.offloads().unwrap_or_default(),
                    card: card_facts(&name),
                }),
                Err(_) => Answer::Device(DeviceAnswer::default()),
            },
            Ask::Counters(interface) => Answer::Counters(counters::of_interface(&interface)),
            Ask::Counted => Answer::Counted(counters::counted()?),
            Ask::Links(to) => Answer::Links(links::links_here(to)?),
            Ask::Node => {
                let (processes, counted) = (tailbound_host::node::processes(), counters::counted()?);
                Answer::Node(NodeCounts { ns: counted.ns, interfaces: counted.interfaces, processes })
            }
            Ask::FreePort(address) => Answer::Port(UdpSocket::bind((address, 0))?.local_addr()?.port()),
            Ask::Resolve(name) => Answer::Addresses((name, 0).to_socket_addrs()?.map(|a| a.ip()).collect()),
            Ask::OpenProbe { address, interface, multicast } => {
                let plain = datagram_socket::open(address, &interface, multicast)?;
                let listens = plain.local_addr()?;
                self.probe = Some(Probe { address, interface, plain, group: None });
                Answer::Listens(listens)
            }
            Ask::JoinGroup => {
                let probe = self.probe()?;
                let group = datagram_socket::join_group(probe.address, &probe.interface)?;
                let listens = group.local_addr()?;
                probe.group = Some(group);
                Answer::Listens(listens)
            }
            Ask::Send { to, message, whole } => {
                datagram_socket::send(&self.probe()?.plain, to, message, whole)?;
                Answer::Sent
            }
            Ask::Received { message, group, within_ns } => {
                let probe = self.probe()?;
                let socket = if group { probe.group.as_ref() } else { Some(&probe.plain) };
                let socket = socket.ok_or_else(|| io::Error::other("no group was joined"))?;
                let within = Duration::from_nanos(within_ns.max(0) as u64);
                Answer::Received(datagram_socket::received(socket, message, within).is_some())
            }
        })
    }

    fn probe(&mut self) -> io::Result<&mut Probe> {
        self.probe.as_mut().ok_or_else(|| io::Error::other("no socket is open for the path check"))
    }
}

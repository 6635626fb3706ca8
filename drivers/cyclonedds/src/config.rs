//! Makes a Cyclone DDS configuration from the options of `open`.
//!
//! The XML is generated and never read from the environment. If the user gives a configuration, it replaces the
//! generated XML completely.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use tailbound_abi::side::{Fail, Outcome, Pair};
use tailbound_abi::{TB_EINVAL, TB_EUNSUPPORTED};

use crate::naming::Naming;
use crate::security::Security;
use crate::threads::{self, Threads};
use crate::watermarks::{self, Limit};

/// XML that makes Cyclone write the effective configuration into its trace. The driver gets the trace by a callback
/// (the trace sink), and no file is written.
const TRACE: &str = "<Tracing><Category>config</Category><OutputFile>/dev/null</OutputFile></Tracing>";

/// Number of the DDS domain if the options name no domain.
pub const DEFAULT_DOMAIN: u32 = 77;
/// Largest number of DDS participants that one session may have.
pub const MAX_PARTICIPANTS: usize = 2;
/// Largest number of a DDS domain whose UDP ports are below 65536.
pub const MAX_DOMAIN: u32 = 230;

/// The options of the driver's function `open`, parsed.
#[derive(Debug, Default)]
pub struct Options {
    /// Number of the DDS domain that the session joins on the network.
    pub domain: u32,
    /// How the session's topics and the message type are named in DDS.
    pub naming: Naming,
    /// Whether all sessions with the same DDS domain number share one Cyclone domain instance.
    pub shared: bool,
    /// Number of DDS participants that the session has.
    pub participants: usize,
    /// The user's own Cyclone configuration (in the form of `CYCLONEDDS_URI`), passed on to Cyclone unchanged.
    pub user: Option<String>,
    /// Keys of the options that have no effect because the user gave a configuration.
    pub ignored: Vec<String>,
    interface: Option<String>,
    address: Option<String>,
    peers: Vec<String>,
    multicast: Option<&'static str>,
    multicast_ttl: Option<i32>,
    max_message_size: Option<i32>,
    fragment_size: Option<i32>,
    receive_buffer: Option<i32>,
    send_buffer: Option<i32>,
    receive_threads: Option<usize>,
    max_participant_index: Option<i32>,
    threads: Vec<Threads>,
    limit: Limit,
    /// The limit of unacknowledged messages (`unacked_limit`), converted into bytes.
    mark: Option<u64>,
    /// Whether samples are sent by multicast; `None` means that Cyclone chooses.
    data_by_multicast: Option<bool>,
    /// Files of DDS Security.
    pub security: Security,
}

impl Options {
    /// Reads the options of `open`; the text of every failure names the key of the option.
    pub fn parse(pairs: &[Pair]) -> Outcome<Self> {
        let mut o = Options { domain: DEFAULT_DOMAIN, participants: 1, ..Options::default() };
        for pair in pairs {
            o.set(pair)?;
        }
        o.mark = o.limit.mark_bytes(o.fragment_size)?;
        o.choose_data()?;
        o.security.check()?;
        // The access control of Cyclone takes the internal number of the instance for the number of the domain.
        o.shared |= o.security.is_on();
        if let Some(user) = &o.user {
            if user.trim().is_empty() {
                return Err(Fail::invalid("config: empty; give XML or a file:// address"));
            }
            applies_to(user, o.domain)?;
            // The internal number of the instance must be the real domain number, because the user's configuration may
            // name it.
            o.shared = true;
            let general = ["domain", "naming", "config", "instance", "transport", "participants"];
            o.ignored = pairs.iter().filter(|p| !general.contains(&p.key)).map(|p| p.key.to_owned()).collect();
        }
        Ok(o)
    }

    /// Sets the multicast setting of Cyclone so that samples do not use multicast if only discovery may use it.
    fn choose_data(&mut self) -> Outcome {
        match (self.data_by_multicast, self.multicast) {
            (Some(false), None | Some("true")) => self.multicast = Some("spdp"),
            (Some(true), None) => self.multicast = Some("true"),
            (Some(true), Some("false" | "spdp")) => {
                return Err(Fail::invalid(
                    "data=multicast contradicts the option `multicast`, which forbids multicast for samples",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Replaces the names of peers by all addresses that the names have now. Cyclone itself uses only the first address
    /// of a name, which may be the address of this host.
    pub fn resolve_peers(&mut self) -> Outcome {
        if self.user.is_some() {
            return Ok(());
        }
        let mut found = Vec::new();
        for peer in &self.peers {
            if peer.parse::<IpAddr>().is_ok() || peer.parse::<SocketAddr>().is_ok() {
                found.push(peer.clone());
                continue;
            }
            let (name, port) = peer.rsplit_once(':').map_or((&peer[..], None), |(name, port)| (name, Some(port)));
            let addresses = (name, 0).to_socket_addrs();
            let addresses =
                addresses.map_err(|e| Fail::invalid(format!("peers: the name {name} has no address: {e}")))?;
            // The sockets use IPv4 too.
            let addresses = addresses.map(|a| a.ip()).filter(IpAddr::is_ipv4);
            found.extend(addresses.map(|a| port.map_or_else(|| a.to_string(), |port| format!("{a}:{port}"))));
        }
        self.peers = found;
        Ok(())
    }

    fn set(&mut self, pair: &Pair) -> Outcome<()> {
        let size = |max: i32| pair.number(TB_EINVAL, 1..=max).map(Some);
        match pair.key {
            "domain" => self.domain = pair.number(TB_EINVAL, 0..=MAX_DOMAIN)?,
            "interface" => self.interface = pair.text().map(str::to_owned),
            "address" => self.address = pair.text().map(str::to_owned),
            "peers" => self.peers = pair.list().map(str::to_owned).collect(),
            "multicast" => {
                self.multicast = Some(["true", "false", "spdp"][pair.word(TB_EINVAL, &["on", "off", "spdp"])?])
            }
            "multicast_ttl" => self.multicast_ttl = Some(pair.number(TB_EINVAL, 0..=255)?),
            "naming" => self.naming = [Naming::Dds, Naming::Ros2][pair.word(TB_EINVAL, &["dds", "ros2"])?],
            "instance" => self.shared = pair.word(TB_EINVAL, &["own", "shared"])? == 1,
            "participants" => self.participants = pair.number(TB_EINVAL, 1..=MAX_PARTICIPANTS)?,
            "config" => self.user = Some(pair.value.to_owned()),
            "max_message_size" => self.max_message_size = size(65_507)?,
            "fragment_size" => self.fragment_size = size(65_500)?,
            "socket_receive_buffer_size" => self.receive_buffer = size(i32::MAX)?,
            "socket_send_buffer_size" => self.send_buffer = size(i32::MAX)?,
            "receive_threads" => self.receive_threads = Some(pair.word(TB_EINVAL, &["single", "multiple"])?),
            "max_participant_index" => self.max_participant_index = Some(pair.number(TB_EINVAL, 0..=9999)?),
            "threads" => self.threads = threads::parse(pair)?,
            "unacked_limit" => self.limit.messages = Some(pair.number(TB_EINVAL, 1..=u64::MAX)?),
            "payload" => self.limit.payload = Some(pair.number(TB_EINVAL, 0..=u64::from(u32::MAX))?),
            "data" => self.data_by_multicast = Some(pair.word(TB_EINVAL, &["unicast", "multicast"])? == 1),
            "transport" if pair.value == "udp" => {}
            "transport" | "discovery_server" => {
                return Err(pair.bad(TB_EUNSUPPORTED, "the cyclonedds driver does not support this setting"));
            }
            _ if self.security.set(pair)? => {}
            _ => return Err(pair.bad(TB_EINVAL, "the cyclonedds driver has no such option")),
        }
        Ok(())
    }

    /// Returns the configuration for Cyclone: the user's configuration, or XML that is generated from the options.
    ///
    /// `external` is the domain number on the network, if this number differs from the number of the instance.
    pub fn xml(&self, external: Option<u32>) -> String {
        self.written(external, true)
    }

    /// Returns the Cyclone configuration for a program other than this driver, without Cyclone's trace.
    pub fn exported(&self) -> String {
        self.written(None, false)
    }

    fn written(&self, external: Option<u32>, traced: bool) -> String {
        if let Some(user) = &self.user {
            // A list of configurations is one configuration; the last one only makes Cyclone report the effective
            // values.
            return if self.is_traced() {
                format!("{user},<CycloneDDS><Domain Id=\"any\">{TRACE}</Domain></CycloneDDS>")
            } else {
                user.clone()
            };
        }
        let mut x = String::from("<CycloneDDS><Domain Id=\"any\">");
        threads::write(&mut x, &self.threads);
        self.security.write(&mut x, escape);
        x.push_str("<General>");
        let prefer = self.data_by_multicast == Some(true);
        let named = self.interface.is_some() || self.address.is_some();
        if named || prefer {
            x.push_str("<Interfaces><NetworkInterface");
            attribute(&mut x, "autodetermine", (!named).then_some("true"));
            attribute(&mut x, "prefer_multicast", prefer.then_some("true"));
            attribute(&mut x, "name", self.interface.as_deref());
            attribute(&mut x, "address", self.address.as_deref());
            x.push_str("/></Interfaces>");
        }
        element(&mut x, "AllowMulticast", self.multicast);
        element(&mut x, "MulticastTimeToLive", Some(self.multicast_ttl.unwrap_or(1)));
        // For retransmitted messages, Cyclone's own smaller limit remains, unless the limit is larger than the message
        // size.
        element(&mut x, "MaxMessageSize", self.max_message_size.map(|n| format!("{n} B")));
        element(&mut x, "FragmentSize", self.fragment_size.map(|n| format!("{n} B")));
        x.push_str("</General><Discovery>");
        element(&mut x, "ExternalDomainId", external);
        if !self.peers.is_empty() {
            // A participant without an index has arbitrary ports, so its peers could not find it.
            element(&mut x, "ParticipantIndex", Some("auto"));
            x.push_str("<Peers>");
            for peer in &self.peers {
                x.push_str("<Peer");
                attribute(&mut x, "Address", Some(peer));
                x.push_str("/>");
            }
            x.push_str("</Peers>");
        }
        element(&mut x, "MaxAutoParticipantIndex", self.max_participant_index);
        x.push_str("</Discovery><Internal>");
        for (name, bytes) in
            [("SocketReceiveBufferSize", self.receive_buffer), ("SocketSendBufferSize", self.send_buffer)]
        {
            if let Some(n) = bytes {
                let _ = write!(x, "<{name} min=\"default\" max=\"{n} B\"/>");
            }
        }
        element(&mut x, "MultipleReceiveThreads", self.receive_threads.map(|i| ["false", "true"][i]));
        watermarks::write_watermarks(&mut x, self.mark);
        // The effective configuration is read from Cyclone's trace while the domain is created.
        let _ = write!(x, "</Internal>{}</Domain></CycloneDDS>", if traced { TRACE } else { "" });
        x
    }

    /// Whether Cyclone reports the effective configuration. Cyclone does not report it if the user's configuration
    /// writes a trace of its own, which the driver does not change, or if the user's configuration names a file, which
    /// the driver does not read.
    pub fn is_traced(&self) -> bool {
        self.user.as_ref().is_none_or(|user| {
            roxmltree::Document::parse(user)
                .is_ok_and(|d| !d.descendants().any(|n| n.tag_name().name().eq_ignore_ascii_case("tracing")))
        })
    }
}

/// Checks the domain number in the user's configuration, because Cyclone silently ignores a `Domain` element with
/// another number. A text that is not XML is refused by Cyclone itself.
fn applies_to(user: &str, domain: u32) -> Outcome<()> {
    let Ok(document) = roxmltree::Document::parse(user) else { return Ok(()) };
    let named = |name: &str, wanted: &str| name.eq_ignore_ascii_case(wanted);
    let ids: Vec<&str> = document
        .root_element()
        .children()
        .filter(|n| named(n.tag_name().name(), "domain"))
        .map(|n| n.attributes().find(|a| named(a.name(), "id")).map_or("any", |a| a.value().trim()))
        .collect();
    let fits = |id: &&str| id.eq_ignore_ascii_case("any") || id.parse() == Ok(domain);
    if ids.is_empty() || ids.iter().any(fits) {
        return Ok(());
    }
    Err(Fail::invalid(format!(
        "config: the configuration is for domain {}, but the session is in domain {domain}: write Id=\"{domain}\" or Id=\"any\"",
        ids.join(", ")
    )))
}

fn attribute(x: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        let _ = write!(x, " {name}=\"{}\"", escape(value));
    }
}

fn element(x: &mut String, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        let _ = write!(x, "<{name}>{}</{name}>", escape(&value.to_string()));
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Outcome<Options> {
        let pairs: Vec<Pair> = pairs.iter().map(|&(key, value)| Pair { key, value }).collect();
        Options::parse(&pairs)
    }

    #[test]
    fn defaults_stay_on_the_link_and_off_domain_0() {
        let o = parse(&[]).unwrap();
        assert_eq!(o.domain, 77);
        assert!(o.xml(Some(77)).contains("<MulticastTimeToLive>1</MulticastTimeToLive>"));
        assert!(o.xml(Some(77)).contains("<ExternalDomainId>77</ExternalDomainId>"));
    }

    #[test]
    fn peers_make_the_participant_findable_and_values_are_escaped() {
        let xml = parse(&[("interface", "a\"<&b"), ("peers", "10.0.0.1, 10.0.0.2,")]).unwrap().xml(None);
        assert!(xml.contains("<NetworkInterface name=\"a&quot;&lt;&amp;b\"/>"), "{xml}");
        assert!(xml.contains("<ParticipantIndex>auto</ParticipantIndex>"), "{xml}");
        assert!(xml.contains("<Peer Address=\"10.0.0.1\"/><Peer Address=\"10.0.0.2\"/>"), "{xml}");
    }

    #[test]
    fn names_of_peers_stand_for_their_addresses() {
        let mut o = parse(&[("peers", "10.0.0.1:7400,localhost,localhost:7401")]).unwrap();
        o.resolve_peers().unwrap();
        let xml = o.xml(None);
        for address in ["10.0.0.1:7400", "127.0.0.1", "127.0.0.1:7401"] {
            assert!(xml.contains(&format!("<Peer Address=\"{address}\"/>")), "{xml}");
        }
        assert!(!xml.contains("localhost"), "{xml}");
        let mut none = parse(&[("peers", "no..name")]).unwrap();
        let text = none.resolve_peers().unwrap_err().text;
        assert!(text.starts_with("peers: the name no..name has no address"), "{text}");
    }

    #[test]
    fn a_users_configuration_is_used_as_it_is() {
        let o = parse(&[("config", "file:///etc/cdds.xml"), ("interface", "lo"), ("domain", "3")]).unwrap();
        assert_eq!(o.xml(Some(3)), "file:///etc/cdds.xml");
        assert!(o.shared);
        assert_eq!(o.ignored, ["interface"]);
    }

    #[test]
    fn a_configuration_for_another_domain_is_refused() {
        let open = |id: &str| {
            let xml = format!("<CycloneDDS><Domain {id}><General/></Domain></CycloneDDS>");
            parse(&[("config", &xml), ("domain", "7")])
        };
        for id in ["", "Id=\"any\"", "id=\"7\"", "Id=\" 7 \""] {
            assert!(open(id).is_ok(), "{id}");
        }
        let fail = open("Id=\"3\"").unwrap_err();
        assert!(fail.text.contains("domain 3") && fail.text.contains("domain 7"), "{}", fail.text);
    }

    #[test]
    fn faults_name_their_key() {
        for (key, value) in [
            ("domain", "231"),
            ("domain", "x"),
            ("multicast", "maybe"),
            ("nonsense", "1"),
            ("transport", "tcp"),
            ("max_message_size", "0"),
        ] {
            let fail = parse(&[(key, value)]).unwrap_err();
            assert!(fail.text.contains(key), "{}", fail.text);
        }
    }
}

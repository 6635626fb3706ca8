//! All that was seen since the begin of a capture.

use crate::calls::{Call, Calls};
use crate::chain::{self, Chain};
use crate::copies::Copies;
use crate::copies::Found::Copy;
use crate::header;
use crate::incidents::{HostTime, HostTimes};
use crate::known::Known;
use crate::lateness::Lateness;
use crate::names;
use crate::packet::{self, Datagram, FragmentId, Packet};
use crate::writer::{Carried, Finished, Origin, Writer};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use tailbound_document::UnreadReport;
use tailbound_rtps::{Content, EntityId, Guid, GuidPrefix, Message};

/// Port of the links of zenoh, and of its scouting.
const ZENOH_PORTS: [u16; 2] = [7447, 7446];
/// Largest number of writers that are distinguished.
const MOST_WRITERS: usize = 2_000;
/// Largest number of addresses of participants that are remembered.
const MOST_ADDRESSES: usize = 1_000;
/// Largest number of datagrams whose later IP fragments are waited for.
const MOST_DIVIDED: usize = 256;

/// A captured packet.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When it was captured: ns since 1970.
    pub stamp_ns: i64,
    /// Number of the interface.
    pub interface: i32,
    /// Whether the interface sent the packet, and did not receive it.
    pub is_sent: bool,
    /// Its first bytes, from the header of IP on.
    pub bytes: &'a [u8],
}

/// A sample whose first transmission was captured to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured {
    /// Its writer.
    pub writer: Guid,
    /// The number that the writer gave it.
    pub number: i64,
    /// When it was written, by its writer: ns since 1970; `None` = the writer gave no time.
    pub source_ns: Option<i64>,
    /// When the end of its first transmission was captured: ns since 1970.
    pub stamp_ns: i64,
}

/// All that was seen since the begin of a capture.
pub struct Watch {
    pub(crate) place: String,
    pub(crate) begin_ns: i64,
    here: BTreeSet<IpAddr>,
    /// Whether the capture asked participants to announce their writers and readers.
    pub(crate) asks: bool,
    pub(crate) packets: u64,
    pub(crate) copied: u64,
    pub(crate) zenoh: u64,
    pub(crate) unread: UnreadReport,
    pub(crate) known: Known,
    pub(crate) writers: BTreeMap<Guid, Writer>,
    /// Whether there were more writers than are distinguished.
    pub(crate) is_full: bool,
    copies: Copies,
    /// Times from the stamp of a sent packet until the next place had it.
    pub(crate) left_within: Lateness,
    /// Samples in datagrams whose last IP fragment was not captured yet.
    divided: HashMap<FragmentId, Vec<(Guid, Finished)>>,
    divided_order: VecDeque<FragmentId>,
    /// Samples since they were taken last; `None` = they are not asked for.
    samples: Option<Vec<Captured>>,
    /// What the CPUs of the host did meanwhile.
    pub(crate) host: HostTimes,
    pub(crate) chain: Option<Chain>,
    /// Calls of programs of ROS 2; `None` = they are not recorded.
    pub(crate) calls: Option<Calls>,
    /// Writers whose packets are no longer read.
    pub(crate) left_out: BTreeSet<Guid>,
}

impl Context {
    /// The reader for which a submessage is meant; `None` = all readers.
    fn reader(&self, entity: EntityId) -> Option<Guid> {
        let prefix = self.destination.filter(|_| entity != EntityId::UNKNOWN)?;
        Some(Guid { prefix, entity })
    }
}

/// Where a message came from, and what holds for the submessages that follow.
struct Context {
    from: SocketAddr,
    to: SocketAddr,
    stamp_ns: i64,
    is_sent: bool,
    source_ns: Option<i64>,
    destination: Option<GuidPrefix>,
}

impl Watch {
    /// `place`: where packets are captured, in words. `begin_ns`: when the capture begins. `here`: the addresses of the network
    /// namespace, beside those of the loopback network.
    pub fn new(place: String, begin_ns: i64, here: BTreeSet<IpAddr>) -> Watch {
        Watch {
            place,
            begin_ns,
            here,
            asks: false,
            packets: 0,
            copied: 0,
            zenoh: 0,
            unread: UnreadReport::default(),
            known: Known::default(),
            writers: BTreeMap::new(),
            is_full: false,
            copies: Copies::default(),
            left_within: Lateness::new(false),
            divided: HashMap::new(),
            divided_order: VecDeque::new(),
            samples: None,
            host: HostTimes::default(),
            chain: None,
            calls: None,
            left_out: BTreeSet::new(),
        }
    }

    /// Links the messages of these topics, at least two, from causes to effects.
    pub fn link(&mut self, topics: Vec<String>) {
        self.chain = Some(Chain::new(topics));
    }

    /// What the CPUs of the host did since the last call.
    pub fn host_did(&mut self, time: HostTime) {
        self.host.add(time);
    }

    /// Calls of programs of ROS 2 are recorded from now on.
    pub fn record_calls(&mut self) {
        self.calls = Some(Calls::default().with_waits());
    }

    /// Takes the next call of a program.
    pub fn call(&mut self, call: &Call<'_>) {
        if let Some(calls) = &mut self.calls {
            calls.call(call);
        }
    }

    /// All calls and packets until `now_ns` (ns since 1970) were read, and `lost` calls were not recorded since the begin.
    pub fn calls_until(&mut self, now_ns: i64, lost: u64) {
        if let Some(calls) = &mut self.calls {
            calls.lost(lost);
            calls.settle(now_ns);
        }
    }

    /// All calls and packets were read.
    pub fn calls_end(&mut self) {
        if let Some(calls) = &mut self.calls {
            calls.end();
        }
    }

    /// Participants were asked to announce their writers and readers.
    pub fn asks(&mut self) {
        self.asks = true;
    }

    /// A node of ROS 2 has these writers, whose identities are 32 hexadecimal digits.
    pub fn has_node<'a>(&mut self, name: &str, writers: impl Iterator<Item = &'a str>) {
        // A name of others must not change a terminal.
        let name = name.replace(char::is_control, " ");
        for guid in writers.filter_map(names::guid_of_digits) {
            self.known.nodes.insert(guid, name.clone());
        }
    }

    /// Addresses from which messages came.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        self.known.addresses.iter().copied()
    }

    /// Keeps each sample from now on, until it is taken.
    pub fn keep_samples(&mut self) {
        self.samples.get_or_insert_default();
    }

    /// Takes the samples that were captured since the last call.
    pub fn take_samples(&mut self) -> impl Iterator<Item = Captured> + '_ {
        self.samples.iter_mut().flat_map(|samples| samples.drain(..))
    }

    /// Takes the next packet of the capture.
    pub fn packet(&mut self, seen: Seen<'_>) {
        if !self.left_out.is_empty() && self.is_left_out(seen.bytes) {
            return;
        }
        if let Copy { left_within_ns } = self.copies.look(seen.stamp_ns, (seen.interface, seen.is_sent), seen.bytes) {
            self.copied += 1;
            if let Some(left_ns) = left_within_ns {
                self.left_within.record(left_ns);
            }
            return;
        }
        self.packets += 1;
        match packet::read(seen.bytes) {
            Packet::Datagram(datagram) => match Message::read_cut(datagram.payload, datagram.length) {
                Some(message) => self.message(message, &datagram, &seen),
                None => self.zenoh += u64::from([datagram.from, datagram.to].iter().any(is_of_zenoh)),
            },
            Packet::Fragment { of, is_last } => self.later_fragment(of, is_last, seen.stamp_ns),
            Packet::Tcp { ports } => self.zenoh += u64::from(ports.iter().any(|port| ZENOH_PORTS.contains(port))),
            Packet::Other => {}
        }
    }

    /// Whether the first sample in a packet is one of a writer that is no longer read.
    fn is_left_out(&self, bytes: &[u8]) -> bool {
        let Packet::Datagram(datagram) = packet::read(bytes) else { return false };
        let Some(message) = Message::read_cut(datagram.payload, datagram.length) else { return false };
        let mut samples = message.filter_map(|submessage| match submessage.content() {
            Content::Sample(sample) => Some(sample.guid()),
            _ => None,
        });
        samples.next().is_some_and(|guid| self.left_out.contains(&guid))
    }

    /// Counts the samples of topics since the last call, and, if asked for, reads no more packets of the topic with most of them. Returns
    /// its name. Topics of a chain are read.
    pub fn leave_out_busiest(&mut self, is_asked: bool) -> Option<String> {
        let mut topics: BTreeMap<String, (u64, Vec<Guid>)> = BTreeMap::new();
        for (guid, writer) in &mut self.writers {
            let count = std::mem::take(&mut writer.since_look);
            let topic = self.known.writers.get(guid).map(|found| found.topic.as_str());
            let in_ros = topic.and_then(names::ros_topic);
            let is_of_chain =
                |chain: &Chain| topic.is_some_and(|topic| chain.place(topic, in_ros.as_deref()).is_some());
            // A writer whose name is not known yet can be one of the chain.
            let may_be_of_chain = self.chain.as_ref().is_some_and(|chain| topic.is_none() || is_of_chain(chain));
            if count == 0 || self.left_out.contains(guid) || may_be_of_chain {
                continue;
            }
            let name = in_ros.or(topic.map(str::to_owned)).unwrap_or_else(|| names::guid_words(*guid));
            let (samples, writers) = topics.entry(name).or_default();
            *samples += count;
            writers.push(*guid);
        }
        let (name, (_, writers)) = topics.into_iter().filter(|_| is_asked).max_by_key(|(_, (samples, _))| *samples)?;
        self.left_out.extend(writers);
        Some(name)
    }

    fn message(&mut self, mut message: Message<'_>, datagram: &Datagram<'_>, seen: &Seen<'_>) {
        self.known.meet(message.source(), message.vendor());
        if self.known.addresses.len() < MOST_ADDRESSES {
            self.known.addresses.insert(datagram.from.ip());
        }
        let mut context = Context {
            from: datagram.from,
            to: datagram.to,
            stamp_ns: seen.stamp_ns,
            is_sent: seen.is_sent,
            source_ns: None,
            destination: None,
        };
        let mut finished = Vec::new();
        let mut is_protected = false;
        for submessage in message.by_ref() {
            let content = submessage.content();
            is_protected |= content == Content::Protected;
            if let Some(done) = self.submessage(submessage.source, &content, &mut context) {
                finished.push(done);
            }
        }
        self.unread.behind_copied += u64::from(message.unread() > 0);
        if is_protected {
            self.unread.protected += 1;
            self.known.protected.insert(message.source());
        }
        match datagram.goes_on {
            None => self.finish(finished, seen.stamp_ns),
            Some(of) => self.wait_for(of, finished),
        }
    }

    /// Returns a sample whose first transmission ends with the submessage.
    fn submessage(
        &mut self,
        source: GuidPrefix,
        content: &Content<'_>,
        context: &mut Context,
    ) -> Option<(Guid, Finished)> {
        let stamp_ns = context.stamp_ns;
        let of_source = |entity| Guid { prefix: source, entity };
        match content {
            Content::Timestamp(time) => context.source_ns = time.map(|time| time.unix_ns()),
            Content::Destination(prefix) => context.destination = Some(*prefix),
            Content::Sample(sample) if !sample.writer.is_of_application() => self.known.learn(sample),
            Content::Sample(sample) => {
                let vendor = *self.known.participants.get(&source)?;
                let guid = sample.guid();
                let from = context.from.ip();
                // A host receives no packet from another one with an address of the loopback network.
                let is_here = from.is_loopback() || context.is_sent && self.here.contains(&from);
                let by = Carried { from: context.from, to: context.to, source_ns: context.source_ns, stamp_ns };
                let begin_ns = self.begin_ns;
                let writer = self.room_for(guid)?;
                writer.comes_from(Origin { vendor, address: context.from, is_here });
                // Only a clock of this host shows when the capture began.
                let is_old = is_here && by.source_ns.is_some_and(|source_ns| source_ns < begin_ns);
                let done = writer.sample(sample, &by, is_old)?;
                return Some((guid, done));
            }
            Content::Heartbeat(heartbeat) if heartbeat.writer.is_of_application() => {
                let to = context.reader(heartbeat.reader);
                if let Some(writer) = self.room_for(of_source(heartbeat.writer)) {
                    writer.heartbeat(heartbeat, to);
                }
            }
            Content::Gap(gap) if gap.writer.is_of_application() => {
                let to = context.reader(gap.reader);
                if let Some(writer) = self.writers.get_mut(&of_source(gap.writer)) {
                    writer.gap(gap, to);
                }
            }
            Content::AckNack(acknowledgement) => {
                if let Some(writer) = self.addressed(context, acknowledgement.writer) {
                    writer.acknowledged(of_source(acknowledgement.reader), acknowledgement, stamp_ns);
                }
            }
            Content::NackOfFragments { reader, writer, sequence } => {
                if let Some(writer) = self.addressed(context, *writer) {
                    writer.misses_fragments(of_source(*reader), *sequence, stamp_ns);
                }
            }
            Content::Malformed => self.unread.malformed += 1,
            Content::Cut => self.unread.cut += 1,
            Content::Heartbeat(_) | Content::Gap(_) => {}
            Content::HeartbeatOfFragments | Content::Protected | Content::Other => {}
        }
        None
    }

    /// The writer of an application for which a submessage of a reader is meant.
    fn addressed(&mut self, context: &Context, entity: EntityId) -> Option<&mut Writer> {
        let guid = Guid { prefix: context.destination?, entity };
        if entity.is_of_application() { self.room_for(guid) } else { None }
    }

    /// A writer, with a new entry if there is room; `None` if there are too many.
    fn room_for(&mut self, guid: Guid) -> Option<&mut Writer> {
        if self.writers.len() >= MOST_WRITERS && !self.writers.contains_key(&guid) {
            self.is_full = true;
            return None;
        }
        Some(self.writers.entry(guid).or_insert_with(Writer::new))
    }

    fn finish(&mut self, finished: Vec<(Guid, Finished)>, stamp_ns: i64) {
        for (guid, sample) in finished {
            if let Some(samples) = &mut self.samples {
                let Finished { number, source_ns, .. } = sample;
                samples.push(Captured { writer: guid, number, source_ns, stamp_ns });
            }
            if let Some(writer) = self.writers.get_mut(&guid) {
                writer.finished(sample, stamp_ns);
            }
            self.in_calls(guid, sample, stamp_ns);
            self.in_chain(guid, sample, stamp_ns);
        }
    }

    /// Remembers when a message was on the wire, for the call that takes it.
    fn in_calls(&mut self, guid: Guid, sample: Finished, stamp_ns: i64) {
        let (Some(calls), Some(found)) = (&mut self.calls, self.known.writers.get(&guid)) else { return };
        if let (Some(topic), Some(source_ns)) = (names::ros_topic(&found.topic), sample.source_ns) {
            calls.on_wire(&topic, source_ns, stamp_ns);
        }
    }

    /// Gives the chain a message of one of its topics.
    fn in_chain(&mut self, guid: Guid, sample: Finished, stamp_ns: i64) {
        let (Some(chain), Some(found)) = (&mut self.chain, self.known.writers.get(&guid)) else { return };
        let Some(place) = chain.place(&found.topic, names::ros_topic(&found.topic).as_deref()) else { return };
        let is_here = self.writers.get(&guid).and_then(|writer| writer.origin).is_some_and(|origin| origin.is_here);
        chain.message(
            place,
            &chain::Message {
                at_ns: stamp_ns,
                written_ns: sample.source_ns.filter(|_| is_here),
                header_ns: sample.first_stamp_ns.filter(|_| header::begins(&found.type_name)),
            },
        );
    }

    /// Samples that are complete when the last IP fragment of their datagram is.
    fn wait_for(&mut self, of: FragmentId, finished: Vec<(Guid, Finished)>) {
        if self.divided_order.len() >= MOST_DIVIDED
            && let Some(oldest) = self.divided_order.pop_front()
        {
            self.divided.remove(&oldest);
        }
        if self.divided.insert(of, finished).is_none() {
            self.divided_order.push_back(of);
        }
    }

    fn later_fragment(&mut self, of: FragmentId, is_last: bool, stamp_ns: i64) {
        if !self.divided.contains_key(&of) {
            self.unread.fragments_alone += 1;
        } else if is_last {
            let finished = self.divided.remove(&of).unwrap_or_default();
            self.divided_order.retain(|other| *other != of);
            self.finish(finished, stamp_ns);
        }
    }
}

fn is_of_zenoh(address: &SocketAddr) -> bool {
    ZENOH_PORTS.contains(&address.port())
}

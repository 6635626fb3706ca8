//! The document of what was seen.

use crate::incidents::{OfWriter, incidents};
use crate::lateness::{Usual, range};
use crate::names::{guid_words, ros_topic};
use crate::vendor;
use crate::watch::Watch;
use crate::writer::Writer;
use std::collections::BTreeMap;
use tailbound_document::number::count;
use tailbound_document::{WatchReport, WatchedIncident, WatchedLateness, WatchedQos, WatchedTopic, WatchedWriter};
use tailbound_rtps::{Durability, EndpointFound, Guid};

impl Watch {
    /// The document of what was seen until now. `not_copied`: packets that the kernel could not copy. `shared_memory`: number of
    /// files of shared memory on this host, by middleware.
    pub fn report(&self, end_ns: i64, not_copied: u64, shared_memory: BTreeMap<String, u64>) -> WatchReport {
        let mut topics: BTreeMap<(Option<String>, Guid), WatchedTopic> = BTreeMap::new();
        for (guid, writer) in &self.writers {
            self.topic(&mut topics, *guid, Some(writer), end_ns);
        }
        for guid in self.known.writers.keys().filter(|guid| !self.writers.contains_key(guid)) {
            self.topic(&mut topics, *guid, None, end_ns);
        }
        let mut topics: Vec<WatchedTopic> = topics.into_values().collect();
        topics.sort_by_key(|topic| std::cmp::Reverse(latest(topic)));
        WatchReport {
            begin_ns: self.begin_ns,
            duration_ns: end_ns - self.begin_ns,
            place: self.place.clone(),
            packets: self.packets,
            copies: self.copied,
            not_copied,
            left_within: self.left_within.range(false),
            from_file: false,
            is_partial: self.is_full || !self.left_out.is_empty(),
            clock_step_ns: None,
            cpu_ns: None,
            cost: None,
            unread: self.unread,
            zenoh_packets: self.zenoh,
            shared_memory,
            participants: (self.known.participants.len() as u64).saturating_sub(u64::from(self.asks)),
            topics,
            chain: self.chain.as_ref().map(crate::chain::Chain::report),
            incidents: self.incidents(),
            calls: self.calls.as_ref().map(crate::calls::Calls::report),
            also: None,
            warnings: self.warnings(not_copied),
        }
    }

    /// Adds a writer to its topic. A writer whose topic is not known has an entry of its own.
    fn topic(
        &self,
        topics: &mut BTreeMap<(Option<String>, Guid), WatchedTopic>,
        guid: Guid,
        writer: Option<&Writer>,
        end_ns: i64,
    ) {
        let found = self.known.writers.get(&guid);
        let name = found.map(|found| found.topic.clone());
        let none = Guid { prefix: tailbound_rtps::GuidPrefix([0; 12]), entity: tailbound_rtps::EntityId::UNKNOWN };
        let key = (name.clone(), if name.is_some() { none } else { guid });
        let topic = topics.entry(key).or_insert_with(|| WatchedTopic {
            ros_topic: name.as_deref().and_then(ros_topic),
            type_name: found.map(|found| found.type_name.clone()),
            readers_announced: self.known.readers.values().filter(|reader| Some(&reader.topic) == name.as_ref()).count()
                as u64,
            topic: name,
            writers: Vec::new(),
        });
        topic.writers.push(self.writer(guid, found, writer, end_ns));
    }

    fn writer(&self, guid: Guid, found: Option<&EndpointFound>, writer: Option<&Writer>, end_ns: i64) -> WatchedWriter {
        let origin = writer.and_then(|writer| writer.origin);
        let vendor_id =
            origin.map(|origin| origin.vendor).or_else(|| self.known.participants.get(&guid.prefix).copied());
        WatchedWriter {
            guid: guid_words(guid),
            vendor: vendor_id.map_or_else(|| "not known".to_owned(), vendor::name),
            node: self.known.nodes.get(&guid).cloned(),
            participant: self.known.names.get(&guid.prefix).cloned(),
            address: origin.map(|origin| origin.address.to_string()),
            is_here: origin.is_some_and(|origin| origin.is_here),
            qos: found.filter(|_| !self.known.partial.contains(&guid)).map(qos),
            samples: writer.map_or(0, |writer| writer.samples),
            rate_hz: writer.and_then(rate_hz),
            interval: writer.and_then(|writer| range(&writer.interval)),
            bytes: writer.and_then(|writer| writer.bytes),
            lateness: writer.and_then(lateness),
            without_time: writer.map_or(0, |writer| writer.without_time),
            protocol: writer.map(|writer| writer.protocol(end_ns)).unwrap_or_default(),
        }
    }

    fn incidents(&self) -> Vec<WatchedIncident> {
        let of = |(guid, writer): (&Guid, &'_ Writer)| -> Option<(String, Usual)> {
            let is_other = !writer.origin?.is_here;
            let name = self.known.writers.get(guid).map(|found| found.topic.as_str());
            let name = name.map(|name| ros_topic(name).unwrap_or_else(|| name.to_owned()));
            Some((name.unwrap_or_else(|| guid_words(*guid)), writer.lateness.usual(is_other)?))
        };
        let writers = self.writers.iter().filter_map(|(guid, writer)| {
            let (name, usual) = of((guid, writer))?;
            Some(OfWriter { name, usual, latest: &writer.latest })
        });
        incidents(&writers.collect::<Vec<_>>(), &self.host)
    }

    fn warnings(&self, not_copied: u64) -> Vec<String> {
        let mut warnings = Vec::new();
        if not_copied > 0 {
            warnings.push(format!(
                "packets were not read fast enough, and the kernel could not copy all of them (missing: {}): retransmissions, numbers \
                 not seen and losses may be wrong",
                count(not_copied)
            ));
        }
        if self.is_full {
            let most = count(self.writers.len() as u64);
            warnings.push(format!("only the first {most} writers are shown; there are more"));
        }
        let sent = self.writers.iter().filter(|(_, writer)| writer.samples > 0);
        let unknown = sent.filter(|(guid, _)| !self.known.writers.contains_key(guid)).count();
        if unknown > 0 {
            let what = match self.asks {
                false => "--ask makes the participants of a domain announce them again",
                true => "their participants did not answer --ask: are they in another domain (--domain)?",
            };
            warnings.push(format!(
                "topics and types are not known of all writers (missing: {}), which were announced before the capture began, or in \
                 ways that it does not see; {what}",
                count(unknown as u64)
            ));
        }
        let protected = self.known.protected.len();
        if protected > 0 {
            warnings.push(format!(
                "messages are encrypted or signed (participants: {}): of encrypted samples, nothing is known",
                count(protected as u64)
            ));
        }
        warnings
    }
}

/// The latest message of a topic, for the order of topics.
fn latest(topic: &WatchedTopic) -> Option<i64> {
    topic.writers.iter().filter_map(|writer| writer.lateness.as_ref()).map(|late| late.range.max_ns).max()
}

fn qos(found: &EndpointFound) -> WatchedQos {
    let durability = match found.durability {
        Durability::Volatile => "volatile",
        Durability::TransientLocal => "transient-local",
        Durability::Transient => "transient",
        Durability::Persistent => "persistent",
    };
    WatchedQos {
        reliability: if found.is_reliable { "reliable" } else { "best-effort" }.to_owned(),
        durability: durability.to_owned(),
        deadline_ns: found.deadline_ns,
    }
}

fn rate_hz(writer: &Writer) -> Option<f64> {
    let span_ns = writer.last_ns - writer.first_ns;
    (writer.samples > 1 && span_ns > 0).then(|| (writer.samples - 1) as f64 * 1e9 / span_ns as f64)
}

/// Where the clock of the writer is another one, only differences to the fastest sample have a meaning.
fn lateness(writer: &Writer) -> Option<WatchedLateness> {
    let origin = writer.origin?;
    let range = writer.lateness.range(!origin.is_here)?;
    let begins = vendor::begins(origin.vendor).to_owned();
    Some(WatchedLateness { range, is_above_fastest: !origin.is_here, begins })
}

//! Writes the packets of a trace one after the other, so that only one packet is held in memory.

use crate::perfetto::schema::{
    ClockReading, ClockSnapshot, DebugAnnotation, EventType, ProcessDescriptor, SystemInfo, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Utsname,
};
use prost::Message;
use serde_json::Value;
use std::io::{self, Write};

/// Number of CLOCK_MONOTONIC in the schema.
const MONOTONIC: u32 = 3;
/// Number of CLOCK_BOOTTIME in the schema, in which the viewer expects the times of ftrace events.
const BOOTTIME: u32 = 6;
/// Sequence of packets that belong to no track. Each track has a sequence of its own, whose number is its uuid + 1, so
/// that the times of each sequence rise.
const COMMON_SEQUENCE: u32 = 1;

/// The packets of a trace on their way to a file.
pub(super) struct Packets<'a> {
    out: &'a mut dyn Write,
    tracks: u32,
    flows: u64,
}

/// A track of the trace: a row of the viewer with slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Track(u32);

/// What the viewer shows of a slice or an instant.
#[derive(Debug, Default)]
pub(super) struct Slice {
    name: String,
    categories: Vec<&'static str>,
    annotations: Vec<DebugAnnotation>,
    flows: Vec<u64>,
    ended_flows: Vec<u64>,
}

impl Slice {
    pub fn new(name: impl Into<String>, category: &'static str) -> Slice {
        Slice { name: name.into(), categories: vec![category], ..Slice::default() }
    }

    /// Adds a category, by which the viewer can select slices.
    pub fn category(mut self, category: Option<&'static str>) -> Slice {
        self.categories.extend(category);
        self
    }

    /// Adds a value with its name.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Slice {
        self.annotations.extend(annotation(Some(name), value.into()));
        self
    }

    /// Begins the flow with this number: an arrow to the slice that ends the flow.
    pub fn begins(mut self, flow: Option<u64>) -> Slice {
        self.flows.extend(flow);
        self
    }

    /// Ends the flow with this number.
    pub fn ends(mut self, flow: Option<u64>) -> Slice {
        self.ended_flows.extend(flow);
        self
    }
}

/// A JSON value as an annotation; `None` for null, which the schema does not have.
fn annotation(name: Option<&str>, value: Value) -> Option<DebugAnnotation> {
    let mut made = DebugAnnotation { name: name.map(str::to_owned), ..DebugAnnotation::default() };
    match value {
        Value::Null => return None,
        Value::Bool(value) => made.bool_value = Some(value),
        Value::Number(value) => match value.as_i64() {
            Some(whole) => made.int_value = Some(whole),
            None => made.double_value = value.as_f64(),
        },
        Value::String(value) => made.string_value = Some(value),
        Value::Array(values) => made.array_values = values.into_iter().filter_map(|v| annotation(None, v)).collect(),
        Value::Object(members) => {
            made.dict_entries = members.into_iter().filter_map(|(k, v)| annotation(Some(&k), v)).collect();
        }
    }
    Some(made)
}

/// A time as the schema has it. No monotonic time is negative; a damaged record may have one.
pub(super) fn time(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

impl<'a> Packets<'a> {
    pub fn new(out: &'a mut dyn Write) -> Packets<'a> {
        Packets { out, tracks: 0, flows: 0 }
    }

    /// Writes one packet of the common sequence.
    pub fn write(&mut self, packet: TracePacket) -> io::Result<()> {
        self.put(TracePacket { trusted_packet_sequence_id: Some(COMMON_SEQUENCE), ..packet })
    }

    fn put(&mut self, packet: TracePacket) -> io::Result<()> {
        self.out.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    /// Writes the packets at the begin of a trace. They say that its times are those of CLOCK_MONOTONIC. Because the
    /// viewer takes times of ftrace events for CLOCK_BOOTTIME, whose difference a record does not have, both clocks are
    /// set equal. `release` is the release of the kernel that recorded the events.
    pub fn begin(&mut self, at_ns: i64, release: Option<String>) -> io::Result<()> {
        let reading = |clock_id| ClockReading { clock_id: Some(clock_id), timestamp: Some(time(at_ns)) };
        let clocks = vec![reading(MONOTONIC), reading(BOOTTIME)];
        let snapshot = ClockSnapshot { clocks, primary_trace_clock: Some(MONOTONIC) };
        self.write(TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() })?;
        let Some(release) = release else { return Ok(()) };
        let utsname = Utsname { sysname: Some("Linux".into()), release: Some(release) };
        self.write(TracePacket {
            timestamp: Some(time(at_ns)),
            timestamp_clock_id: Some(MONOTONIC),
            system_info: Some(SystemInfo { utsname: Some(utsname) }),
            ..TracePacket::default()
        })
    }

    /// Creates a track below another track, or at the top.
    pub fn track(&mut self, name: &str, below: Option<Track>) -> io::Result<Track> {
        self.describe(TrackDescriptor { name: Some(name.into()), ..TrackDescriptor::default() }, below)
    }

    /// Creates a track at the top with a description, which the viewer shows on request.
    pub fn described_track(&mut self, name: &str, description: String) -> io::Result<Track> {
        let name = Some(name.to_owned());
        self.describe(TrackDescriptor { name, description: Some(description), ..TrackDescriptor::default() }, None)
    }

    /// Creates the track of a process: the viewer puts its threads and the tracks below it together.
    pub fn process_track(&mut self, name: &str, pid: i32) -> io::Result<Track> {
        let process = ProcessDescriptor { pid: Some(pid), process_name: Some(name.to_owned()) };
        self.describe(TrackDescriptor { process: Some(process), ..TrackDescriptor::default() }, None)
    }

    fn describe(&mut self, descriptor: TrackDescriptor, below: Option<Track>) -> io::Result<Track> {
        self.tracks += 1;
        let track = Track(self.tracks);
        let (uuid, parent_uuid) = (Some(track.uuid()), below.map(Track::uuid));
        let descriptor = TrackDescriptor { uuid, parent_uuid, ..descriptor };
        self.write(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(track)
    }

    /// Number of a new flow.
    pub fn flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    /// Writes a slice without slices inside it.
    pub fn slice(&mut self, track: Track, (begin_ns, end_ns): (i64, i64), slice: Slice) -> io::Result<()> {
        self.begin_slice(track, begin_ns, slice)?;
        self.end_slice(track, end_ns)
    }

    pub fn begin_slice(&mut self, track: Track, at_ns: i64, slice: Slice) -> io::Result<()> {
        self.event(track, at_ns, EventType::SliceBegin, slice)
    }

    /// Ends the slice of the track that began last.
    pub fn end_slice(&mut self, track: Track, at_ns: i64) -> io::Result<()> {
        self.event(track, at_ns, EventType::SliceEnd, Slice::default())
    }

    pub fn instant(&mut self, track: Track, at_ns: i64, slice: Slice) -> io::Result<()> {
        self.event(track, at_ns, EventType::Instant, slice)
    }

    fn event(&mut self, track: Track, at_ns: i64, kind: EventType, slice: Slice) -> io::Result<()> {
        let event = TrackEvent {
            debug_annotations: slice.annotations,
            r#type: Some(kind as i32),
            track_uuid: Some(track.uuid()),
            categories: slice.categories.into_iter().map(str::to_owned).collect(),
            name: Some(slice.name).filter(|name| !name.is_empty()),
            flow_ids: slice.flows,
            terminating_flow_ids: slice.ended_flows,
        };
        self.put(TracePacket {
            timestamp: Some(time(at_ns)),
            timestamp_clock_id: Some(MONOTONIC),
            trusted_packet_sequence_id: Some(COMMON_SEQUENCE + track.0),
            track_event: Some(event),
            ..TracePacket::default()
        })
    }
}

impl Track {
    fn uuid(self) -> u64 {
        u64::from(self.0)
    }
}

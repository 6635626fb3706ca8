//! Makes the trial of a condition from the condition's keys: fills in defaults and checks quantities.
//!
//! A value that is always wrong is an error. Values that are wrong only in combination are left to
//! [`rules`](crate::rules): with factors, some combinations may be impossible while others are possible.

mod arrangement;
mod clock;
mod container;
mod cpus;
mod driver;
mod duration;
mod ends;
mod flow;
mod gates;
mod host;
mod length;
mod loads;
mod pod;
mod police;
mod qos;
mod scheduling;
mod security;
mod shaping;
mod stream;
mod vlan;
mod vm;

use crate::error::Fault;
use crate::format::{
    AttributionChoice, CollectChoice, DiscoveryChoice, MeasureChoice, MemoryChoice, MiddlewareKeys, StudyFile,
    TimerSlackChoice,
};
use crate::options::Options;
use crate::source::Pos;
use crate::tree::Node;
use std::path::Path;
use tailbound_model::{
    Attribution, ByteSize, Collect, Discovery, Measure, MiddlewareSettings, Nanos, Rate, TrialSpec, payload_problem,
};

pub(crate) use arrangement::arrangement;
pub(crate) use clock::clock;
pub use driver::APART as BUILT_APART;
pub(crate) use driver::plain;
pub(crate) use ends::path_spec;
pub(crate) use loads::load_spec;
pub(crate) use scheduling::scheduling;
pub(crate) use security::security;
use stream::stream;
pub(crate) use vlan::vlan;

/// Largest payload in bytes: a DDS sequence and a socket buffer both count in 31 bits.
const MAX_PAYLOAD: ByteSize = ByteSize(1 << 31);
/// Largest number of a DDS domain for which UDP ports exist.
const MAX_DOMAIN: u32 = 232;

/// Positions in the study at which the errors of rules point; for default values, the first byte of the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Places {
    pub driver: Pos,
    pub pong_driver: Pos,
    pub on_overrun: Pos,
    pub rate: Pos,
    pub path: Pos,
    pub vlan: Pos,
    pub stream: Pos,
    pub discovery: Pos,
    pub measure: Pos,
    pub arrangement: Pos,
    pub ping: EndPlaces,
    pub pong: EndPlaces,
}

/// Positions in the study at which the values of one end are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndPlaces {
    pub place: Pos,
    pub cpus: Pos,
    pub scheduling: Pos,
    pub gates: Pos,
    pub shaping: Pos,
    pub police: Pos,
}

/// Context in which a study is loaded: the directory of the study's files, and facts about the machine.
pub(crate) struct Context<'a> {
    pub dir: &'a Path,
    pub options: &'a Options<'a>,
}

/// Makes the specification of the trial that the keys of one condition describe.
pub(crate) fn trial(file: &StudyFile, root: &Node, context: &Context<'_>) -> Result<(TrialSpec, Places), Fault> {
    let (driver, pong_driver) = driver::drivers(file, root)?;
    let usual = match &file.measure.value {
        MeasureChoice::Throughput(_) => Rate::Max,
        MeasureChoice::PingPong(_) | MeasureChoice::FanOut(_) => Rate::Period(Nanos::from_millis(1)),
    };
    let rate = file.rate.as_ref().map_or(usual, |r| r.value.0);
    let payload = file.payload.as_ref().map_or(ByteSize(64), |p| p.value.0);
    if let Some(at) = &file.payload
        && let Some(problem) = payload_problem(payload, payload, "every driver", MAX_PAYLOAD)
    {
        return Err(Fault { at: at.at, problem });
    }
    let domain = file.domain.as_ref().map_or(77, |d| d.value);
    if let Some(at) = file.domain.as_ref().filter(|_| domain > MAX_DOMAIN) {
        let help = "write 0 to 232, because the ports of higher domains lie beyond 65535";
        return Err(Fault::new(at.at, format!("domain {domain} does not exist")).help(help));
    }
    let measure = match &file.measure.value {
        MeasureChoice::PingPong(keys) => Measure::PingPong(length::ping_pong(keys, rate, file.measure.at, context)?),
        MeasureChoice::Throughput(keys) => Measure::Flow(flow::throughput(keys, rate, file.measure.at)?),
        MeasureChoice::FanOut(keys) => Measure::Flow(flow::fan_out(keys, rate, file.measure.at)?),
    };
    let of_ping_pong = match &file.measure.value {
        MeasureChoice::PingPong(keys) => Some(keys),
        MeasureChoice::Throughput(_) | MeasureChoice::FanOut(_) => None,
    };
    let arranged = file.arrangement.as_ref().map(|keys| arrangement(keys, measure.receive())).transpose()?;
    let (ping, pong, path) = ends::ends(file, context)?;
    let places = Places {
        driver: driver.at,
        pong_driver: pong_driver.map_or(driver.at, |d| d.at),
        on_overrun: of_ping_pong.and_then(|k| k.on_overrun.as_ref()).map_or(file.measure.at, |o| o.at),
        rate: file.rate.as_ref().map_or(file.measure.at, |r| r.at),
        path: path.at,
        vlan: file.vlan.as_ref().map_or(path.at, |v| v.at),
        stream: file.stream.as_ref().map_or(file.measure.at, |s| s.at),
        discovery: file.discovery.as_ref().map_or(driver.at, |d| d.at),
        measure: file.measure.at,
        arrangement: file.arrangement.as_ref().map_or(file.measure.at, |a| a.at),
        ping: ping.at,
        pong: pong.at,
    };
    if let Some(keys) = of_ping_pong {
        ends::check_hand_off(keys, &ping, &pong)?;
    }
    let secured = file.security.as_ref().map(|choice| security(choice, context.dir)).transpose()?.flatten();
    let of_driver = |choice| driver::driver(choice, secured.is_some(), context);
    let spec_driver = of_driver(driver)?;
    // Recording every context switch slows a flow down, so it is off for flows unless the study asks for it.
    let is_flow = measure.flow().is_some();
    let spec = TrialSpec {
        measure,
        payload,
        rate,
        stream: file.stream.as_ref().map(|keys| stream(keys, rate, &spec_driver)).transpose()?,
        pong_driver: pong_driver.map(of_driver).transpose()?.filter(|d| *d != spec_driver),
        driver: spec_driver,
        qos: file.qos.as_ref().map(qos::qos).transpose()?.unwrap_or_default(),
        domain,
        discovery: match file.discovery.as_ref().map(|d| d.value) {
            None | Some(DiscoveryChoice::Auto) => Discovery::Auto,
            Some(DiscoveryChoice::Multicast) => Discovery::Multicast,
            Some(DiscoveryChoice::Peers) => Discovery::Peers,
            Some(DiscoveryChoice::Dns) => Discovery::Dns,
            Some(DiscoveryChoice::Server) => Discovery::Server,
        },
        ping: ping.value,
        pong: pong.value,
        path: path.value,
        vlan: file.vlan.as_ref().map(|v| vlan(&v.value)).transpose()?.flatten(),
        arrangement: arranged,
        security: secured,
        middleware: file.middleware.map(middleware).unwrap_or_default(),
        collect: match file.collect {
            None | Some(CollectChoice::After) => Collect::After,
            Some(CollectChoice::Live) => Collect::Live,
        },
        attribution: match file.attribution.map(|key| key.0) {
            None if is_flow => Attribution::Off,
            None | Some(AttributionChoice::Auto | AttributionChoice::On) => Attribution::Auto,
            Some(AttributionChoice::Machine) => Attribution::Machine,
            Some(AttributionChoice::Packets) => Attribution::Packets,
            Some(AttributionChoice::Threads) => Attribution::Threads,
            Some(AttributionChoice::Off) => Attribution::Off,
        },
        quiet: file.quiet.as_ref().map(|q| q.value.0).unwrap_or_default(),
        loads: file.load.as_deref().map(|keys| loads::loads(keys, context)).transpose()?.unwrap_or_default(),
        host: file.host.as_ref().map(host::knobs).transpose()?.unwrap_or_default(),
    };
    Ok((spec, places))
}

fn middleware(keys: MiddlewareKeys) -> MiddlewareSettings {
    MiddlewareSettings {
        default_timer_slack: keys.timer_slack == Some(TimerSlackChoice::Default),
        unlocked_memory: keys.memory == Some(MemoryChoice::Unlocked),
    }
}

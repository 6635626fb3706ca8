//! What can be said about the gates of a study before anything runs.

use crate::{ETHERNET_BYTES, Entry, Frame, IP_UDP_BYTES, Rule, Schedule, Speed, Windows, predict};
use tailbound_model::{
    GateEntry, GatesBy, GatesFact, GatesSpec, LaunchBy, LaunchSpec, Nanos, PathEnd, PathSpec, Rate, Severity,
    StreamSpec, TrialSpec, Warning,
};

/// Speed that the kernel reports for the interfaces that Tailbound makes (veth), bit/s.
const MADE_BITS_PER_SECOND: u64 = 10_000_000_000;
/// Bytes of the tag of a VLAN.
const VLAN_BYTES: u64 = 4;
/// MTU of a path without a given one, bytes.
const USUAL_MTU: u32 = 1_500;
/// With more phases than this, the messages see the waits of nearly all of them.
const MOST_PHASES: u64 = 100;
/// Largest number of messages whose launch times are looked at.
const MOST_LAUNCHES: u64 = 100_000;
/// Clocks of two machines that nobody adjusts differ by about this part of the time.
const DRIFT_PPM: i64 = 1;
/// Flag of taprio: the network card opens and closes the gates (TCA_TAPRIO_ATTR_FLAG_FULL_OFFLOAD).
const BY_CARD: u32 = 2;

impl From<&GatesSpec> for Schedule {
    fn from(gates: &GatesSpec) -> Schedule {
        let ns = |time: Nanos| time.0.unsigned_abs();
        let entry = |entry: &GateEntry| Entry { gates: entry.open, interval_ns: ns(entry.time) };
        Schedule { entries: gates.entries.iter().map(entry).collect(), cycle_ns: gates.cycle.map_or(0, ns) }
    }
}

impl Schedule {
    /// The schedule that the kernel reported.
    pub fn of_kernel(gates: &GatesFact) -> Schedule {
        let entry = |e: &GateEntry| Entry { gates: e.open, interval_ns: e.time.0.unsigned_abs() };
        Schedule { entries: gates.entries.iter().map(entry).collect(), cycle_ns: gates.cycle_ns.unsigned_abs() }
    }
}

/// The times at which the gate of each traffic class of an interface is open, by the number of the class. Classes that no priority of
/// a socket belongs to, behind the last one with a priority, are left out.
pub fn windows_of_classes(gates: &GatesFact) -> Vec<Windows> {
    let schedule = Schedule::of_kernel(gates);
    let classes = gates.class_of_priority.iter().max().map_or(0, |last| u32::from(*last) + 1);
    (0..classes).map(|class| schedule.windows(class, Rule::Kernel)).collect()
}

/// What a user should know about the gates of a trial before it runs.
pub fn check(spec: &TrialSpec) -> Vec<Warning> {
    let ends = [("ping", &spec.ping.gates), ("pong", &spec.pong.gates)];
    let launch = spec.stream.and_then(|stream| stream.launch).filter(|launch| launch.by == LaunchBy::Etf);
    // Nothing is known of an existing queue.
    let launch = launch.map(|launch| without_offload(&launch).at_end("ping"));
    let of_end = |(end, gates): (&str, &Option<GatesSpec>)| {
        // Nothing is known of existing gates.
        let known = gates.as_ref().filter(|gates| gates.by != GatesBy::Existing);
        let found = known.map(|gates| of_gates(spec, gates, end == "ping")).unwrap_or_default();
        found.into_iter().map(|warning| warning.at_end(end)).collect::<Vec<_>>()
    };
    ends.into_iter().flat_map(of_end).chain(launch).chain(priority_of_vlan(spec)).collect()
}

/// Warning that the frames of the messages do not carry the priority of the messages in the tag of their VLAN.
fn priority_of_vlan(spec: &TrialSpec) -> Option<Warning> {
    let (vlan, priority) = (spec.vlan.as_ref()?, priority_of_messages(spec));
    if priority == 0 || vlan.egress.contains_key(&u32::from(priority)) {
        return None;
    }
    let what = format!(
        "the messages have the priority {priority}, which `vlan: egress` does not map, so that their frames carry the priority 0: \
         gates behind a bridge, a tunnel or another network namespace see the priority 0"
    );
    let help = format!("write for example `egress: {{ {priority}: {} }}`", priority.min(7));
    Some(Warning::new("priority_lost", Severity::Warning, what, help))
}

/// Warnings about interfaces with gates of the kernel that report no speed; `ends`: what was read of the ends of a trial.
pub fn unknown_speeds(ends: &[PathEnd], payload_bytes: u64) -> Vec<Warning> {
    /// Speed with which the kernel reckons if an interface reports none (`taprio_set_picos_per_byte` of net/sched/sch_taprio.c).
    const RECKONED: &str = "10Mbps";
    let is_by_kernel = |end: &&PathEnd| end.gates.as_ref().is_some_and(|gates| gates.flags & BY_CARD == 0);
    let unknown = ends.iter().filter(is_by_kernel).filter(|end| end.speed_mbit_s.is_none_or(|speed| speed <= 0));
    let warning = |end: &PathEnd| {
        let bytes = (payload_bytes + IP_UDP_BYTES).min(end.mtu.into()) + ETHERNET_BYTES;
        let wire = Nanos(Frame { bytes, speed: RECKONED.parse().ok()? }.wire_ns() as i64);
        let what = format!(
            "{} reports no speed, so that taprio reckons with {RECKONED}: a frame of {bytes} bytes waits until {wire} are left of \
             its window",
            end.interface
        );
        let help = "set the speed of the interface (`ethtool -s`), or make the windows long enough for this speed";
        Some(Warning::new("gate_speed_unknown", Severity::Warning, what, help).at_end(&end.end))
    };
    unknown.filter_map(warning).collect()
}

/// Note that no network card launches the messages.
fn without_offload(launch: &LaunchSpec) -> Warning {
    let what = format!(
        "no network card launches the messages: they leave up to {} before their launch time, when the queue gives them to the device",
        launch.ahead
    );
    let help = "with a smaller `ahead`, messages leave nearer to their launch time, and more of them miss it";
    Warning::new("launch_without_offload", Severity::Note, what, help)
}

/// Number of the class of the messages of a trial; `class_of_priority` has the class of each priority of a socket.
pub fn class_of_messages(spec: &TrialSpec, class_of_priority: &[u8]) -> u32 {
    // The kernel takes the lowest four bits (TC_PRIO_MAX).
    let priority = usize::from(priority_of_messages(spec)) & 15;
    class_of_priority.get(priority).map_or(0, |class| u32::from(*class))
}

/// Priority (SO_PRIORITY) of the messages of a trial.
pub fn priority_of_messages(spec: &TrialSpec) -> u8 {
    let given = spec.driver.options.get("priority").and_then(|text| text.trim().parse().ok());
    given.unwrap_or_default()
}

fn of_gates(spec: &TrialSpec, gates: &GatesSpec, is_of_ping: bool) -> Vec<Warning> {
    let schedule = Schedule::from(gates);
    let mut found = Vec::new();
    if schedule.differs() {
        let sum = Nanos(gates.entries.iter().map(|entry| entry.time.0).sum());
        let cycle = gates.cycle.unwrap_or_default();
        let (what, help) = if sum < cycle {
            (
                format!(
                    "the entries of the gates last {sum} and the cycle {cycle}: Linux begins with the first entry again after \
                     {sum}, and IEEE 802.1Q extends the last entry"
                ),
                "write an entry for the rest of the cycle, or remove `cycle`",
            )
        } else {
            (
                format!("the entries of the gates last {sum} and the cycle {cycle}, which cuts the list off"),
                "shorten the entries, or remove `cycle`",
            )
        };
        found.push(Warning::new("gates_cycle", Severity::Warning, what, help));
    }
    let own = class_of_messages(spec, &gates.class_of_priority());
    for (number, class) in gates.classes.iter().enumerate() {
        let windows = schedule.windows(number as u32, Rule::Kernel);
        if windows.open.is_empty() {
            let priorities = class.priorities.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
            let what = format!("the gate of class `{}` (priorities {priorities}) never opens", class.name);
            let (severity, help) = match number as u32 == own {
                true => (
                    Severity::Invalid,
                    "the measured messages belong to it: name it in an entry, or give the messages another `priority`",
                ),
                false => (
                    Severity::Warning,
                    "name it in an entry, if anything sends with these priorities, such as a PTP daemon",
                ),
            };
            found.push(Warning::new("gate_never_opens", severity, what, help));
        } else if number as u32 == own {
            found.extend(does_not_fit(spec, &class.name, &windows));
            // The stream of the ping counts from the begin of its own gates.
            let own = (class.name.as_str(), number as u32);
            found.extend(match spec.stream.filter(|_| is_of_ping) {
                Some(StreamSpec { offset, launch: Some(_) }) => refused_launches(spec, offset, own, &schedule),
                Some(stream) => at_phase(spec, &stream, (&class.name, gates.by.delay().0), &windows),
                None => beats(spec, windows.cycle_ns),
            });
        }
    }
    found
}

/// Note about the wait of the messages of a stream whose phase in the cycle is always the same.
///
/// `delay_ns`: from its arrival in the queue until a frame of the class can be launched, ns.
fn at_phase(
    spec: &TrialSpec,
    stream: &StreamSpec,
    (class, delay_ns): (&str, i64),
    windows: &crate::Windows,
) -> Option<Warning> {
    let Rate::Period(period) = spec.rate else { return None };
    let cycle_ns = i64::try_from(windows.cycle_ns).ok().filter(|ns| *ns > 0)?;
    if period.0 % cycle_ns != 0 {
        return beats(spec, windows.cycle_ns);
    }
    let phase_ns = stream.offset.0.rem_euclid(cycle_ns);
    let launched_ns = (phase_ns + delay_ns).rem_euclid(cycle_ns);
    let wait_ns = windows.wait_ns(launched_ns.unsigned_abs(), own_frame(spec)?)? as i64 + delay_ns;
    let [phase, cycle, wait] = [phase_ns, cycle_ns, wait_ns].map(Nanos);
    let what = format!(
        "each message is due {phase} after the begin of the cycle of {cycle}, and a frame that is ready then waits for {wait} for the \
         gate of class `{class}`"
    );
    let help = "the way to the queue comes on top: choose an `offset` that is earlier than the window by the time of a late wake-up";
    Some(Warning::new("stream_phase", Severity::Note, what, help))
}

/// Warning about messages whose launch times are not in a window of their class, so that the kernel drops them. `class`: name and number.
fn refused_launches(
    spec: &TrialSpec,
    offset: Nanos,
    (class, number): (&str, u32),
    schedule: &Schedule,
) -> Option<Warning> {
    let (Rate::Period(period), wire_ns) = (spec.rate, own_frame(spec)?.wire_ns()) else { return None };
    let cycle_ns = match schedule.cycle_ns {
        0 => schedule.entries.iter().map(|entry| entry.interval_ns).sum(),
        cycle_ns => cycle_ns,
    };
    let [offset_ns, period_ns] = [offset, period].map(|time| time.0.unsigned_abs());
    let all = cycle_ns.checked_div(gcd(period_ns, cycle_ns))?.clamp(1, MOST_LAUNCHES);
    let phase_ns = |message: u64| (offset_ns + message * (period_ns % cycle_ns)) % cycle_ns;
    let refused = (0..all).filter(|message| !schedule.takes_launch(number, phase_ns(*message), wire_ns)).count();
    if refused == 0 {
        return None;
    }
    let help = "choose another `offset` or rate: the launch time has to be later than the begin of an entry that opens the gate, and \
                the frame has to end before the entry does";
    let (severity, what) = if all == 1 {
        let [phase, cycle] = [phase_ns(0), cycle_ns].map(|ns| Nanos(ns as i64));
        let what = format!(
            "the launch time of each message is {phase} after the begin of the cycle of {cycle}, when the gate of class `{class}` is \
             not open for it, so that the kernel drops all messages"
        );
        (Severity::Invalid, what)
    } else {
        let what = format!(
            "the gate of class `{class}` is not open at the launch times of {refused} of {all} messages, so that the kernel drops them"
        );
        (if refused as u64 == all { Severity::Invalid } else { Severity::Warning }, what)
    };
    Some(Warning::new("launch_outside_window", severity, what, help))
}

/// The frame of a message that fits into one; of a larger one, its first frame. `None` = the speed of the interface is not known.
fn own_frame(spec: &TrialSpec) -> Option<Frame> {
    let mtu = match spec.path {
        PathSpec::Veth { mtu, .. }
        | PathSpec::Bridge { mtu }
        | PathSpec::Macvtap { mtu }
        | PathSpec::Xdp { mtu, .. }
        | PathSpec::OpenVswitch { mtu, .. } => u64::from(mtu.unwrap_or(USUAL_MTU)),
        PathSpec::Loopback | PathSpec::Datagram { .. } | PathSpec::Existing { .. } => return None,
    };
    let header = ETHERNET_BYTES + spec.vlan.as_ref().map_or(0, |_| VLAN_BYTES);
    let bytes = (spec.payload.0 + IP_UDP_BYTES).min(mtu) + header;
    Some(Frame { bytes, speed: Speed::of_bits_per_second(MADE_BITS_PER_SECOND)? })
}

/// Warning if the largest frame of a message fits into no window of its class.
fn does_not_fit(spec: &TrialSpec, class: &str, windows: &crate::Windows) -> Option<Warning> {
    let frame = own_frame(spec)?;
    if predict(windows, frame).fits {
        return None;
    }
    let (bytes, wire) = (frame.bytes, Nanos(frame.wire_ns() as i64));
    let what = format!(
        "a frame of at least {bytes} bytes needs the wire for {wire} or longer and fits into no window of class `{class}`"
    );
    Some(Warning::new(
        "gate_too_short",
        Severity::Invalid,
        what,
        "make a window of the class longer, or the payload smaller",
    ))
}

/// Note about the phases in the cycle at which the messages are due, if they are few.
fn beats(spec: &TrialSpec, cycle_ns: u64) -> Option<Warning> {
    let Rate::Period(period) = spec.rate else { return None };
    let period_ns = u64::try_from(period.0).ok().filter(|ns| *ns > 0)?;
    let phases = cycle_ns / gcd(period_ns, cycle_ns);
    if phases > MOST_PHASES {
        return None;
    }
    let [period, cycle] = [period_ns, cycle_ns].map(|ns| Nanos(ns as i64));
    // A schedule and messages on different clocks slip by one cycle in this time.
    let sweep = Nanos((cycle_ns as i64).saturating_mul(1_000_000 / DRIFT_PPM));
    let what = match phases {
        1 => format!(
            "the period of {period} is a multiple of the cycle of {cycle}: all messages are due at the same phase of the \
             cycle, as long as both follow one clock; at a difference of 1 ppm, the phase goes through a cycle in {sweep}"
        ),
        _ => format!(
            "with a period of {period} and a cycle of {cycle}, messages are due at {phases} phases of the cycle, one after \
             another, and the waits for the gate repeat after {phases} messages"
        ),
    };
    let help = "choose a period that is due at more phases of the cycle, so that the waits of all phases are measured";
    Some(Warning::new("gates_beat", Severity::Note, what, help))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_a_speed_is_named_if_the_kernel_opens_its_gates() {
        let end = |speed_mbit_s, flags| PathEnd {
            end: "ping".into(),
            interface: "eth0".into(),
            mtu: 1_500,
            speed_mbit_s,
            gates: Some(GatesFact { flags, ..GatesFact::default() }),
            ..PathEnd::default()
        };
        let said = |end| unknown_speeds(&[end], 64).into_iter().map(|w| w.problem.what).collect::<Vec<_>>();
        // 106 bytes and 24 more on the wire, at 800 ns each.
        let expected = "eth0 reports no speed, so that taprio reckons with 10Mbps: a frame of 106 bytes waits until 104 us are left \
                        of its window";
        assert_eq!([end(None, 0), end(Some(-1), 1)].map(said), [[expected], [expected]]);
        assert_eq!([end(Some(1_000), 0), end(None, BY_CARD)].map(said), [Vec::<String>::new(), Vec::new()]);
    }
}

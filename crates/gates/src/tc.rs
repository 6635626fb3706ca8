//! Reads gate schedules from the JSON of `tc -j qdisc show`, the program of iproute2.

use crate::{Entry, Schedule};
use serde::Deserialize;
use tailbound_model::Problem;

/// Number of traffic classes that the kernel can have (TC_QOPT_MAX_QUEUE).
const MOST_CLASSES: u32 = 16;

/// A gate schedule of a device, or of an end of a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configured {
    /// Name of the network device or of the end; `None` if tc was asked about one device only, whose name it does not print then.
    pub device: Option<String>,
    /// Number of traffic classes: the classes are 0 to this number minus 1.
    pub classes: u32,
    /// Names of the classes, in the order of their numbers; empty if they have none.
    pub names: Vec<String>,
    /// The schedule in force.
    pub schedule: Schedule,
}

/// Longest cycle that is read, ns.
const LONGEST_CYCLE_NS: u64 = 60_000_000_000;

#[derive(Deserialize)]
struct Discipline {
    kind: String,
    dev: Option<String>,
    #[serde(default)]
    options: serde_json::Value,
}

#[derive(Deserialize)]
struct Options {
    tc: u32,
    #[serde(default)]
    cycle_time: u64,
    schedule: Option<Vec<Row>>,
}

#[derive(Deserialize)]
struct Row {
    gatemask: Mask,
    /// The kernel has 32 bits for it.
    interval: u32,
}

/// A number, or a text with a hexadecimal number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Mask {
    Number(u64),
    Text(String),
}

/// Reads the schedules from the output of `tc -j qdisc show`: of the device with this name, or of all devices. tc does not print
/// the name if it was asked about one device only.
///
/// # Errors
/// The text is not such an output, it has no `taprio` of the device, or a schedule cannot be one.
pub fn schedules(text: &str, device: Option<&str>) -> Result<Vec<Configured>, Problem> {
    let all: Vec<Discipline> = serde_json::from_str(text).map_err(|e| unreadable(text, &e))?;
    let gated: Vec<&Discipline> = all.iter().filter(|discipline| discipline.kind == "taprio").collect();
    if gated.is_empty() {
        let kinds: Vec<&str> = all.iter().map(|discipline| discipline.kind.as_str()).collect();
        let what = match kinds.as_slice() {
            [] => "there is no queue discipline in the output of tc".to_owned(),
            kinds => format!("there is no queue discipline `taprio` in the output of tc, but {}", kinds.join(", ")),
        };
        return Err(Problem::new("no_gates", what, "run `tc -j qdisc show dev DEVICE` for the device with the gates"));
    }
    let is_it = |one: &&Discipline| device.is_none() || one.dev.is_none() || one.dev.as_deref() == device;
    let names: Vec<String> = gated.iter().filter_map(|one| Some(format!("`{}`", one.dev.as_ref()?))).collect();
    let chosen: Vec<&Discipline> = gated.into_iter().filter(is_it).collect();
    if let (Some(device), []) = (device, chosen.as_slice()) {
        let what = format!("there is no schedule of device `{device}`");
        return Err(Problem::new("no_gates", what, format!("devices with a schedule: {}", names.join(", "))));
    }
    chosen.into_iter().map(configured).collect()
}

/// The problem of a text that is no JSON.
fn unreadable(text: &str, error: &serde_json::Error) -> Problem {
    // tc writes a schedule that has not begun as an object without a name, which is no JSON.
    if text.contains("\"taprio\"") && text.matches("\"base_time\"").count() > text.matches("\"taprio\"").count() {
        return Problem::new(
            "gates_pending",
            format!("a schedule has not begun yet, and tc does not write valid JSON about it ({error})"),
            "run tc again when the schedule has begun (at its base time)",
        );
    }
    let what = format!("this is not the output of `tc -j qdisc show`: {error}");
    Problem::new("bad_gates", what, "write the file by `tc -j qdisc show dev DEVICE > FILE`")
}

fn configured(discipline: &Discipline) -> Result<Configured, Problem> {
    let of = |what: String| {
        let help = "write the file by `tc -j qdisc show dev DEVICE > FILE` again";
        let of = discipline.dev.as_ref().map_or_else(String::new, |device| format!(" of device `{device}`"));
        Problem::new("bad_gates", format!("taprio{of}: {what}"), help)
    };
    let options = Options::deserialize(&discipline.options).map_err(|e| of(e.to_string()))?;
    let rows = options.schedule.filter(|rows| !rows.is_empty());
    let rows =
        rows.ok_or_else(|| of("there is no schedule in force: all gates are open until its base time".into()))?;
    if !(1..=MOST_CLASSES).contains(&options.tc) {
        return Err(of(format!("it has {} traffic classes; 1 to {MOST_CLASSES} are possible", options.tc)));
    }
    if options.cycle_time > LONGEST_CYCLE_NS {
        return Err(of(format!("its cycle of {} ns is too long; a minute is possible", options.cycle_time)));
    }
    let entry = |(number, row): (usize, &Row)| {
        let gates = match &row.gatemask {
            Mask::Number(gates) => u32::try_from(*gates).ok(),
            Mask::Text(text) => {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
            }
        };
        match (gates, row.interval) {
            (None, _) => Err(of(format!("the gates of entry {number} are no hexadecimal number"))),
            (_, 0) => Err(of(format!("entry {number} lasts 0 ns"))),
            (Some(gates), interval_ns) => Ok(Entry { gates, interval_ns: interval_ns.into() }),
        }
    };
    let entries = rows.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
    let schedule = Schedule { entries, cycle_ns: options.cycle_time };
    Ok(Configured { device: discipline.dev.clone(), classes: options.tc, names: Vec::new(), schedule })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As iproute2 6.1 prints it.
    const TAPRIO: &str = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
        {"kind":"taprio","handle":"8001:","dev":"eth0","root":true,"refcnt":9,"options":{"tc":2,"map":[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0],
        "queues":[{"offset":0,"count":1},{"offset":1,"count":1}],"clockid":"TAI","base_time":1700000000000000000,"cycle_time":20000000,
        "cycle_time_extension":0,"schedule":[{"index":0,"cmd":"S","gatemask":"0x1","interval":5000000},
        {"index":1,"cmd":"S","gatemask":"0x2","interval":15000000}]}},{"kind":"pfifo","dev":"eth0","parent":"8001:1","options":{"limit":1000}}]"#;

    #[test]
    fn a_schedule_is_read_from_tc() {
        let entries = [(1, 5_000_000), (2, 15_000_000)].map(|(gates, interval_ns)| Entry { gates, interval_ns });
        let schedule = Schedule { entries: entries.to_vec(), cycle_ns: 20_000_000 };
        let one = |device: Option<&str>| Configured {
            device: device.map(str::to_owned),
            classes: 2,
            names: Vec::new(),
            schedule: schedule.clone(),
        };
        assert_eq!(schedules(TAPRIO, None), Ok(vec![one(Some("eth0"))]));
        // As tc answers about one device.
        assert_eq!(schedules(&TAPRIO.replace("\"dev\":\"eth0\",", ""), Some("eth0")), Ok(vec![one(None)]));
        assert_eq!(schedules(&TAPRIO.replace("\"0x2\"", "2"), None), schedules(TAPRIO, None));
    }

    #[test]
    fn what_is_no_schedule_is_said() {
        let pending = TAPRIO.replace("]}},{\"kind\":\"pfifo\"", "],{\"base_time\":1}}},{\"kind\":\"pfifo\"");
        let texts = [
            "gates: 5",
            &pending,
            "[]",
            r#"[{"kind":"noqueue","dev":"lo"},{"kind":"fq_codel","dev":"eth0"}]"#,
            r#"[{"kind":"taprio","dev":"eth0","options":{"tc":2}}]"#,
            r#"[{"kind":"taprio","options":{"schedule":[]}}]"#,
            &TAPRIO.replace("\"tc\":2", "\"tc\":17"),
            &TAPRIO.replace("\"0x2\"", "\"two\""),
            &TAPRIO.replace("15000000", "0"),
            &TAPRIO.replace("15000000", "5000000000"),
            &TAPRIO.replace("20000000", "9223372036854775808"),
        ];
        let said = texts.map(|text| schedules(text, None).expect_err("no schedule").paragraph());
        insta::assert_snapshot!(said.join("\n"), @r"
        this is not the output of `tc -j qdisc show`: expected value at line 1 column 1
          help: write the file by `tc -j qdisc show dev DEVICE > FILE`
        a schedule has not begun yet, and tc does not write valid JSON about it (key must be a string at line 5 column 69)
          help: run tc again when the schedule has begun (at its base time)
        there is no queue discipline in the output of tc
          help: run `tc -j qdisc show dev DEVICE` for the device with the gates
        there is no queue discipline `taprio` in the output of tc, but noqueue, fq_codel
          help: run `tc -j qdisc show dev DEVICE` for the device with the gates
        taprio of device `eth0`: there is no schedule in force: all gates are open until its base time
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio: missing field `tc`
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio of device `eth0`: it has 17 traffic classes; 1 to 16 are possible
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio of device `eth0`: the gates of entry 1 are no hexadecimal number
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio of device `eth0`: entry 1 lasts 0 ns
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio of device `eth0`: invalid value: integer `5000000000`, expected u32
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        taprio of device `eth0`: its cycle of 9223372036854775808 ns is too long; a minute is possible
          help: write the file by `tc -j qdisc show dev DEVICE > FILE` again
        ");
    }
}

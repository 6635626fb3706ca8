//! Tests of `tailbound clock` inside an emulated guest with simulated network cards (netdevsim), whose hardware clocks (ptp_mock) are
//! set by linuxptp: what was done to a clock is known.

use crate::inside_guest::Guest;
use serde_json::Value;
use std::path::Path;

const TARGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target");

/// Paths of the kernel, of the module and of the program that sets a clock; `None` if something is missing here.
fn needed() -> Option<[String; 3]> {
    let files = ["guests/rt-backports.deb", "guests/modules/netdevsim.ko", "clocks/usr/sbin/phc_ctl"];
    let files = files.map(|file| Path::new(TARGET).join(file));
    if !files.iter().all(|file| file.exists()) {
        println!(
            "skipped: needs netdevsim for the newer real-time kernel (dev/setup vm), and linuxptp (dev/setup test)"
        );
        return None;
    }
    Some(files.map(|file| file.canonicalize().unwrap().display().to_string()))
}

/// The text that the script printed between `<<42` and `>>42`. The echo of the script has other words there.
fn printed(console: &str) -> &str {
    let (_, rest) = console.split_once("<<42").unwrap_or_else(|| panic!("{console}"));
    rest.split_once(">>42").unwrap_or_else(|| panic!("{console}")).0
}

fn pair(value: &Value) -> [f64; 2] {
    [0, 1].map(|n| value[n].as_f64().unwrap_or_else(|| panic!("not a pair: {value}")))
}

fn holds(value: &Value, truth: f64) -> bool {
    let [low, high] = pair(value);
    low <= truth && truth <= high
}

/// Test: one of two hardware clocks is stepped by 0.5 ms, and seconds later its rate is changed by 20 ppm. Both are proved with ranges
/// that hold the truth, and nothing is said to have happened to the other clock or to the clock of the system.
#[test]
fn a_step_and_a_change_of_rate_are_found_within_their_bounds() {
    let Some([kernel, module, phc_ctl]) = needed() else { return };
    let script = format!(
        r#"
:
:
:
:
:
cd /root
for N in 10 11; do echo "$N 1 4" > /sys/bus/netdevsim/new_device; done
(sleep 9; {phc_ctl} /dev/ptp1 adj 0.0005; sleep 9; {phc_ctl} /dev/ptp1 freq 20000) >set 2>&1 &
tailbound clock --for 27s --format json >found 2>&1
echo "<<$((6*7))"; cat found; echo ">>$((6*7))"
cat set
sleep 1
exit
"#
    );
    let console = Guest::with_kernel(&kernel).shell(&["--module", &module, "--with", &phc_ctl], script);
    let found: Value = serde_json::from_str(printed(&console)).unwrap_or_else(|e| panic!("{e}: {console}"));
    assert_eq!(found["tai_offset_s"], 0);
    let clocks = found["clocks"].as_array().unwrap();
    let listed: Vec<_> =
        clocks.iter().map(|c| ["clock", "name", "read_by"].map(|key| c[key].as_str().unwrap())).collect();
    let mock = |path| [path, "Mock-up PTP clock", "PTP_SYS_OFFSET"];
    let system = ["CLOCK_REALTIME", "clock of the system", "clock_gettime"];
    assert_eq!(listed, [system, mock("/dev/ptp0"), mock("/dev/ptp1")]);
    assert_eq!([&clocks[1], &clocks[2]].map(|c| c["interfaces"].to_string()), [r#"["eth0"]"#, r#"["eth1"]"#]);
    for clock in clocks {
        let readings = clock["readings"].as_array().unwrap();
        assert_eq!(readings.len(), 28, "{clock}");
        for reading in readings.iter().filter(|reading| reading["offset_ns"].is_array()) {
            let [low, high] = pair(&reading["offset_ns"]);
            let half_width = reading["half_width_ns"].as_f64().unwrap();
            // Offsets are about 1.8e18 ns, which a float represents to 256 ns.
            assert!((2.0 * half_width - (high - low)).abs() <= 513.0, "{reading}");
        }
    }
    // The mock clock runs at the rate of CLOCK_MONOTONIC_RAW. The clock of the system runs at the rate of its oscillator.
    for steady in &clocks[..2] {
        assert_eq!(steady["changes"], Value::Array(Vec::new()), "{steady}");
        assert_eq!(steady["steady"].as_array().unwrap().len(), 1, "{steady}");
    }
    assert!(holds(&clocks[1]["steady"][0]["rate_ppb"], 0.0), "{}", clocks[1]["steady"]);
    let [changes, steady] = ["changes", "steady"].map(|key| clocks[2][key].as_array().unwrap());
    assert_eq!((changes.len(), steady.len()), (2, 3), "{changes:?} {steady:?}\n{console}");
    println!("step {}, change of rate {}", changes[0]["step_ns"], changes[1]["rate_change_ppb"]);
    let is_proved = |value: &Value| !holds(value, 0.0);
    assert!(holds(&changes[0]["step_ns"], 500_000.0) && is_proved(&changes[0]["step_ns"]), "{changes:?}");
    assert!(holds(&changes[0]["rate_change_ppb"], 0.0), "{changes:?}");
    assert!(
        holds(&changes[1]["rate_change_ppb"], 20_000.0) && is_proved(&changes[1]["rate_change_ppb"]),
        "{changes:?}"
    );
    assert!(holds(&changes[1]["step_ns"], 0.0), "{changes:?}");
    for (part, truth) in steady.iter().zip([0.0, 0.0, 20_000.0]) {
        assert!(holds(&part["rate_ppb"], truth), "{part}: {truth}");
    }
}

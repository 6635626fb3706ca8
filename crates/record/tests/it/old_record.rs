//! A record of format 1.0, written by the first release, must stay readable.

use std::path::Path;
use tailbound_model::{Metric, Outcome};
use tailbound_record::{Record, Status};

fn old() -> Record {
    Record::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/record-1.0")).expect("it opens")
}

#[test]
fn the_manifest_is_read() {
    let record = old();
    assert_eq!(record.status(), Status::Valid);
    assert_eq!(record.manifest.plan.study, "example");
    assert_eq!(record.manifest.plan.conditions.len(), 1);
    assert_eq!(record.hosts().into_iter().filter(Result::is_ok).count(), 1);
    assert_eq!(record.threads(0)[0].as_ref().unwrap().ends, ["ping", "pong"]);
}

#[test]
fn the_samples_are_read() {
    let record = old();
    let (mut slots, mut lost, mut warm_up, mut longest) = (0, 0, 0, 0);
    record
        .slots(0, &mut |batch| {
            for i in 0..batch.len() {
                slots += 1;
                warm_up += usize::from(batch.warm_up[i]);
                lost += usize::from(batch.outcome[i] == Outcome::Lost as u8);
                longest = longest.max(batch.metric(Metric::RoundTrip, i).unwrap_or(0));
            }
        })
        .unwrap();
    assert_eq!((slots, lost, warm_up), (65, 1, 5));
    assert!((40_000..49_001).contains(&longest), "the script's longest way is 49 us, found {longest}");
}

/// The history of a clock of format 2.0 before chrony's errors of its reference and the clocks of ports were stored.
#[test]
fn an_earlier_history_of_a_clock_is_read() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("clocks")).unwrap();
    std::fs::copy(data.join("record-1.0/manifest.json"), dir.path().join("manifest.json")).unwrap();
    std::fs::copy(data.join("clocks-2.0/0-vm.json"), dir.path().join("clocks/0-vm.json")).unwrap();
    let histories = Record::open(dir.path()).expect("it opens").clocks(0);
    let [Ok(history)] = &histories[..] else { panic!("{histories:?}") };
    assert_eq!((history.offsets.len(), history.offsets[1].path_delay_ns), (3, Some(250_000)));
    assert!(history.root_errors.is_empty() && history.port_clocks.is_empty());
}

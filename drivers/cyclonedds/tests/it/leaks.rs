//! Tests that opening and closing many sessions leaves no descriptor or thread behind. This is the only test in its
//! process, because it counts the descriptors and threads of the process.

use crate::common::{matched, on_lo, open};
use tailbound_driver::{Kind, Kv, ReceiveMode};

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).unwrap().count()
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn open_and_close() {
    let ((a, _), (b, _)) = (open(&on_lo(181)), open(&on_lo(181)));
    let writer = a.create(Kind::Writer, "leaks", 1000, &Kv::new(), 0).unwrap();
    let reader = b.create(Kind::Reader(ReceiveMode::Block), "leaks", 1000, &Kv::new(), 0).unwrap();
    matched(&[(&a, writer), (&b, reader)]);
    for seq in 0..100 {
        a.send(writer, seq, &[0; 1000]).unwrap();
    }
}

#[test]
fn a_hundred_sessions_leave_nothing() {
    for _ in 0..20 {
        open_and_close();
    }
    let before = (entries("/proc/self/fd"), entries("/proc/self/task"), resident_kib());
    for _ in 0..50 {
        open_and_close();
    }
    let after = (entries("/proc/self/fd"), entries("/proc/self/task"), resident_kib());
    assert_eq!((before.0, before.1), (after.0, after.1));
    assert!(after.2 < before.2 + 4096, "resident: {} KiB before, {} KiB after", before.2, after.2);
    println!("{before:?} -> {after:?}");
}

//! Tests of `tailbound clock` on a machine whatever its clocks: its error messages. Readings of clocks are tested in a guest.

use crate::support::{Bench, exit_and_stderr};
use std::io;
use tailbound_host::PtpError;

#[test]
fn what_is_no_clock_is_said() {
    let bench = Bench::new();
    let refused = |flags: &str| {
        let output = bench.tailbound().arg("clock").args(flags.split_whitespace()).output().unwrap();
        let (code, text) = exit_and_stderr(&output);
        format!("exit {code}\n{text}")
    };
    let flags = ["--device /dev/null", "--device /dev/ptp-gone", "--interface lo", "--interface tb-none"];
    insta::assert_snapshot!(flags.map(refused).join("\n"));
}

/// Test: the messages of errors that depend on the machine and its user.
#[test]
fn a_machine_without_clocks_and_a_clock_that_cannot_be_read_are_said() {
    let error = io::Error::from_raw_os_error;
    let device = || "/dev/ptp0".into();
    let errors = [
        PtpError::NoClock,
        PtpError::NotOpened(device(), error(libc::EACCES)),
        PtpError::NotRead(device(), error(libc::EOPNOTSUPP)),
    ];
    insta::assert_snapshot!(errors.map(|e| e.problem().paragraph()).join("\n"));
}

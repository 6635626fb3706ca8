//! Messages that wait for an executor, which handles another message.

use crate::support::{Bench, may_be_real_time, succeeded};
use serde_json::Value;
use std::process::Command;

/// A library that lets the ping sleep for 30 ms before its datagrams 2,001 and 5,001 are sent, within the driver's call, and the
/// pong for 1 ms before its answers to the messages before them. Adds begin and end of each sleep of the ping (monotonic ns) to the
/// file that SLEEPS names.
const SLEEPS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

long syscall(long number, ...) {
    static long (*next)(long, ...);
    static int sent;
    long a[6];
    char name[16] = "";
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
    va_end(list);
    if (!next) next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_sendto && prctl(PR_GET_NAME, name) == 0 && strncmp(name, "tb-p", 4) == 0) {
        int is_ping = strcmp(name, "tb-ping") == 0;
        struct timespec length = {0, is_ping ? 30000000 : 1000000};
        sent++;
        if (sent == 2000 + is_ping || sent == 5000 + is_ping) {
            struct timespec begin, end;
            clock_gettime(CLOCK_MONOTONIC, &begin);
            nanosleep(&length, NULL);
            clock_gettime(CLOCK_MONOTONIC, &end);
            FILE *times = is_ping ? fopen(getenv("SLEEPS"), "a") : NULL;
            if (times) fprintf(times, "%ld%09ld %ld%09ld\n", begin.tv_sec, begin.tv_nsec, end.tv_sec, end.tv_nsec);
            if (times) fclose(times);
        }
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"#;

/// Test: messages are on their way while the executor of the ping sleeps in the send call of the next one.
#[test]
fn an_answer_waits_for_the_executor_that_sends_another_message() {
    if !may_be_real_time() {
        return;
    }
    let bench = Bench::new();
    let (source, library) = (bench.path("sleeps.c"), bench.path("sleeps.so"));
    std::fs::write(&source, SLEEPS).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).output().unwrap();
    succeeded(&built);
    let study = "measure: { ping-pong: { duration: 4 s, warm_up: 100, timeout: 1 s, receive: executor } }\nrate: 2 kHz\ndriver: udp\n\
                 path: loopback\nattribution: packets\nends: { ping: { cpus: \"0\" }, pong: { cpus: \"1\" } }\n";
    let sleeps = bench.path("sleeps.txt");
    let mut command = bench.to_run(bench.tailbound(), "record", study);
    succeeded(&command.env("LD_PRELOAD", &library).env("SLEEPS", &sleeps).output().unwrap());
    if !bench.is_recorded_by_bpf("ping") {
        return;
    }
    let report = bench.report();
    let incidents = report["conditions"][0]["incidents"].as_array().unwrap();
    let sleeps = std::fs::read_to_string(sleeps).unwrap();
    let times: Vec<i64> = sleeps.split_whitespace().map(|ns| ns.parse().unwrap()).collect();
    assert_eq!(times.len(), 4, "two sleeps: {sleeps}");
    for sleep in times.chunks(2) {
        let overlaps =
            |i: &&Value| i["begin_ns"].as_i64().unwrap() < sleep[1] && sleep[0] < i["end_ns"].as_i64().unwrap();
        let worst = incidents.iter().filter(overlaps).max_by_key(|i| i["excess_ns"].as_i64());
        let incident = worst.expect("the sleep made messages late");
        let is = |e: &&Value| e["cause"] == "executor" && e["end"] == "ping" && e["evidence"] == "seen";
        let entries = incident["ledger"].as_array().unwrap().iter();
        let named_ns: i64 = entries.filter(is).map(|e| e["ns_low"].as_i64().unwrap()).sum();
        let (excess_ns, slept_ns) = (incident["excess_ns"].as_i64().unwrap(), sleep[1] - sleep[0]);
        // Limit: a message was due shortly before the sleep; of 30 ms, the answer was not there yet for 1 ms, and then the
        // messages are handled that have waited.
        assert!(excess_ns > 25_000_000 && named_ns > 20_000_000, "{named_ns}: {incident:#}");
        assert!(
            named_ns * 10 > slept_ns * 6 && named_ns * 10 < slept_ns * 13,
            "{named_ns} of {slept_ns}: {incident:#}"
        );
    }
}

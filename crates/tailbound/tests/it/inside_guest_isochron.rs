//! Test of isochron beside the driver udp, inside an emulated guest with two joined network cards that QEMU emulates.

use crate::inside_guest_clocks::{KERNEL, TWO_JOINED, found, guest_with_joined_cards, needed};
use std::process::{Command, Stdio};

/// Number of messages of each run.
const MESSAGES: usize = 100;
const PERIOD_NS: u64 = 20_000_000;
const OFFSET_NS: u64 = 3_000_000;

/// Test: both send the same stream, over the cards and over VLANs of the cards. The messages of isochron are due at their times of
/// CLOCK_TAI, and the latencies of both, from the due time, are compared.
#[test]
fn isochron_sends_the_same_stream_beside_udp() {
    let Some([kernel, qemu]) = needed([KERNEL, "qemu"]) else { return };
    let found_by_path = Command::new("sh").args(["-c", "command -v isochron"]).stdout(Stdio::null()).status();
    if !found_by_path.is_ok_and(|status| status.success()) {
        println!("skipped: needs isochron, of dev/setup test");
        return;
    }
    let study = format!(
        "study: beside\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {MESSAGES}, warm_up: 5, timeout: 5 s }} }}\nrate: 50 Hz\n\
         stream: {{ offset: {OFFSET_NS} ns }}\nattribution: off\nquiet: off\n\
         ends:\n  ping: {{ place: {{ existing-netns: a }} }}\n  pong: {{ place: {{ existing-netns: b }} }}\n\
         factors:\n  driver: [udp, {{ isochron: {{ priority: 5 }} }}]\n  path:\n    \
         - {{ existing: {{ ping: {{ interface: eth0 }}, pong: {{ interface: eth1 }} }} }}\n    \
         - {{ existing: {{ ping: {{ interface: tag0 }}, pong: {{ interface: tag1 }} }} }}\n"
    );
    let lines = format!(
        "{TWO_JOINED}\n\
         for E in 'a eth0 tag0 1' 'b eth1 tag1 2'; do set -- $E; ip -n $1 link add link $2 name $3 type vlan id 5 egress 5:5\n\
         ip -n $1 address add 10.9.5.$4/24 dev $3; ip -n $1 link set $3 up; done >done 2>&1\n\
         cat > beside.yaml <<'END'\n{study}END\n\
         tailbound run beside.yaml --out beside -q >>done 2>&1\n\
         cd beside/logs; grep ^message *-ping.log >>../../done; cd ../..\n\
         (echo '{{'; tailbound report beside --format json | sed -n '/^  \"side_by_side\": \\[$/,/^  \\]/p' | sed '$s/,$//'; \
         echo '}}') >found 2>>done"
    );
    let options = ["--module", "e1000e", "--module", "8021q", "--with", "ip,isochron"];
    let (found, console) = found(&guest_with_joined_cards(&kernel, &qemu, "e1000e"), &options, &lines);
    let pairs = found["side_by_side"].as_array().unwrap_or_else(|| panic!("{found:#}\n{console}"));
    assert_eq!(pairs.len(), 2, "{found:#}\n{console}");
    for pair in pairs {
        println!("{pair}");
        assert_eq!(pair["names"].to_string(), r#"["isochron","udp"]"#);
        let same = pair["same"].as_array().unwrap();
        assert_eq!(
            (&same[0]["what"], &same[0]["statistic"]),
            (&"one_way_from_due_ns".into(), &"mean".into()),
            "{pair}"
        );
        assert!(
            same.iter().all(|figure| figure["a"].as_f64() > Some(0.0) && figure["b"].as_f64() > Some(0.0)),
            "{pair}"
        );
        let apart = pair["apart"].to_string();
        assert!(apart.contains("from the due time of a message until a thread of the receiver had it"), "{apart}");
        assert!(same.len() > 1 || apart.contains("messages were lost"), "{pair}");
    }
    // message SECONDS.NANOSECONDS SECONDS.NANOSECONDS ...
    let due = console
        .lines()
        .filter_map(|line| line.split_once("message ")?.1.split(' ').next()?.replace('.', "").parse().ok());
    let due: Vec<u64> = due.collect();
    assert_eq!(due.len(), 2 * MESSAGES, "{console}");
    assert!(due.iter().all(|ns| ns % PERIOD_NS == OFFSET_NS), "{due:?}");
}

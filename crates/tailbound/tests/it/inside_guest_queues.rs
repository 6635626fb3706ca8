//! Tests, inside an emulated guest, of queue disciplines that a run sets at interfaces of the user, and of what is there afterwards.

use crate::inside_guest::{Guest, unpacked};
use crate::inside_guest_clocks::{CARDS, KERNEL, TWO_CARDS, needed};

/// Lines that join the cards `eth0` and `eth1` over the namespaces `a` and `b`.
pub const JOINED: &str = "ip netns add a; ip netns add b; ip link set eth0 netns a; ip link set eth1 netns b\n\
    A=$(ip -n a -o link show eth0 | cut -d: -f1); B=$(ip -n b -o link show eth1 | cut -d: -f1)\n\
    exec 3</var/run/netns/a 4</var/run/netns/b; echo \"3:$A 4:$B\" > /sys/bus/netdevsim/link_device\n\
    ip -n a address add 10.9.0.1/24 dev eth0; ip -n b address add 10.9.0.2/24 dev eth1\n\
    ip -n a link set eth0 up; ip -n b link set eth1 up";

/// A study over existing interfaces in these two namespaces, with these gates of the ping.
fn study([ping, pong]: [&str; 2], slots: u32, gates: &str) -> String {
    format!(
        "study: card\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 10, timeout: 2 s }} }}\nrate: 97 Hz\n\
         driver: {{ udp: {{ priority: 7 }} }}\nattribution: off\n\
         path: {{ existing: {{ ping: {{ interface: {ping} }}, pong: {{ interface: {pong} }} }} }}\nends:\n  \
         pong: {{ place: {{ existing-netns: b }} }}\n  ping:\n    place: {{ existing-netns: a }}\n    gates:\n{gates}      \
         classes: [{{ name: stream, priorities: [7] }}, {{ name: rest }}]\n      \
         entries: [{{ open: [stream], for: 5 ms }}, {{ open: [rest], for: 15 ms }}]\n"
    )
}

/// The text that the script printed between `<<NAME` and `NAME>>`. The echo of the script has other words there.
pub fn section<'a>(console: &'a str, name: &str) -> &'a str {
    let begin = format!("<<{name}42\n");
    let (_, rest) = console.rsplit_once(&begin).unwrap_or_else(|| panic!("{name}: {console}"));
    rest.split_once(&format!("{name}42>>")).unwrap_or_else(|| panic!("{name}: {console}")).0.trim()
}

/// Lines that print the output of a command as a section.
pub fn print(name: &str, command: &str) -> String {
    format!("echo \"<<{name}$((6*7))\"; {command}; echo \"{name}$((6*7))>>\"\n")
}

/// Lines of a script that write a study to a file.
pub fn file(name: &str, text: &str) -> String {
    format!("cat > {name}.yaml <<'END'\n{text}END\n")
}

/// The queue disciplines of an interface in the namespace `a`, without the numbers of packets and users.
pub fn shown(interface: &str) -> String {
    format!("tc -n a qdisc show dev {interface} | sed 's/ refcnt [0-9]*//'")
}

/// Lines that run the study `long` until this word is in the queue disciplines of an interface in the namespace `a`, kill the run, and
/// clean up. The sections `killed`, `list`, `cleanup` and `cleaned` show the queue disciplines and what Tailbound prints.
pub fn kill_and_clean_up(interface: &str, word: &str) -> String {
    let queues = shown(interface);
    [
        "tailbound run long.yaml --out long -q >said 2>&1 & RUN=$!".to_owned(),
        format!("for N in $(seq 300); do tc -n a qdisc show dev {interface} | grep -q '{word}' && break; sleep 0.1; done; sleep 1"),
        "kill -9 $RUN; sleep 1".to_owned(),
        print("killed", &queues),
        print("list", "tailbound lab list"),
        print("cleanup", "tailbound lab cleanup"),
        print("cleaned", &queues),
    ]
    .join("\n")
}

/// Test: a run lets a card open and close the gates, whose driver accepts the schedule and lets frames leave at any time. The
/// queue disciplines of a user are replaced only on request, and are back after the run, and after a run was killed.
#[test]
fn what_a_card_had_is_back_after_a_run_and_after_a_killed_run() {
    let Some([kernel, module]) = needed([KERNEL, CARDS]) else { return };
    let offload = |slots, rest: &str| study(["eth0", "eth1"], slots, &format!("      by: offload\n{rest}"));
    let queues = shown("eth0");
    let mut lines = vec![
        "cd /root; export TMPDIR=/root".to_owned(),
        TWO_CARDS.to_owned(),
        JOINED.to_owned(),
        file("card", &offload(200, "")),
        file("replace", &offload(50, "      replace: yes\n")),
        file("speed", &study(["eth0", "eth1"], 50, "      replace: yes\n")),
        file("long", &offload(20_000, "      replace: yes\n")),
        print("default", &queues),
        "tailbound run card.yaml --out card -q >said 2>&1; tailbound report card --format json >found 2>>said".into(),
        print("report", "packed cat found"),
        print("restored", &queues),
        "tc -n a qdisc replace dev eth0 root handle 10: fq_codel limit 555 target 7777us".into(),
        print("foreign", &queues),
        print("refused", "tailbound run card.yaml --out refused -q 2>&1"),
        "tailbound run replace.yaml --out replaced -q >said 2>&1; tailbound run speed.yaml --out speed -q >>said 2>&1"
            .into(),
        print("speed", "packed tailbound report speed --format json"),
        print("replaced", "packed tailbound report replaced --format json"),
        print("back", &queues),
        kill_and_clean_up("eth0", "taprio"),
    ];
    lines.extend([
        "tc -n a qdisc replace dev eth0 root handle 20: htb; tc -n a class add dev eth0 parent 20: classid 20:1 htb rate 1mbit".into(),
        print("classes", "tailbound run replace.yaml --out classes -q 2>&1"),
        "tc -n a qdisc del dev eth0 root; echo 1".into(),
        print("end", "true"),
    ]);
    let modules = ["--module", &module, "--module", "sch_htb", "--with", "ip,tc"];
    let console = Guest::with_kernel(&kernel).shell(&modules, lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    let json = |name| unpacked(of(name), &console);
    for name in ["report", "replaced"] {
        let report = json(name);
        let codes: Vec<&str> =
            report["warnings"].as_array().unwrap().iter().filter_map(|warning| warning["code"].as_str()).collect();
        assert!(report["status"] == "invalid" && codes.contains(&"gate_not_effective"), "{codes:?}\n{console}");
        println!("{name}: {}", report["conditions"][0]["gates"][0]["outside"]);
        let gates = &report["path"][0]["ends"][0]["gates"];
        println!("{gates}");
    }
    let speed = json("speed");
    let warnings = speed["warnings"].as_array().unwrap().iter();
    let unknown = warnings.filter(|warning| warning["code"] == "gate_speed_unknown").count();
    assert_eq!((&speed["status"], unknown), (&"valid".into(), 1), "{}", speed["warnings"]);
    assert_eq!(of("default"), "qdisc noqueue 0: root");
    assert_eq!(of("restored"), of("default"));
    assert!(of("foreign").contains("qdisc fq_codel 10: root limit 555p"), "{console}");
    assert_eq!(of("back"), of("foreign"));
    assert!(of("killed").contains("qdisc taprio"), "{console}");
    assert!(of("list").contains("give eth0 its queue discipline `fq_codel 10:` back"), "{console}");
    assert!(of("cleanup").contains("gave eth0 `fq_codel 10:` back"), "{console}");
    assert_eq!(of("cleaned"), of("foreign"));
    insta::assert_snapshot!([of("refused"), of("classes")].join("\n"));
}

/// Test: a class with credits sends a stream of large messages as fast as its idle slope, and the class without credits sends the same
/// stream faster.
#[test]
fn credits_limit_a_bulk_stream_to_its_idle_slope() {
    let Some([kernel]) = needed([KERNEL]) else { return };
    let guest = Guest::with_kernel(&kernel);
    let shaping = "shaping: { classes: [{ name: stream, priorities: [7] }, { name: rest }], credits: { stream: { idle_slope_kbit_s: 4000, high_credit_bytes: 20000 } } }";
    let text = format!(
        "study: bulk\nquestion: q\nmeasure: {{ throughput: {{ duration: 4 s }} }}\nrate: max\npayload: 1000 B\nplace: netns\npath: veth\n\
         factors: {{ driver: [{{ udp: {{ priority: 7 }} }}, {{ udp: {{ priority: 0 }} }}] }}\nends:\n  ping: {{ {shaping} }}\n"
    );
    let report = guest.run_of_any_status(&[], &text);
    let record = guest.record();
    let mut rates = Vec::new();
    for (trial, condition) in record.manifest.trials.iter().zip(report["conditions"].as_array().unwrap()) {
        let end = &trial.path.as_ref().unwrap().ends[0];
        let found = end.shaping.as_ref().unwrap();
        let credit = found.credits[&0];
        assert_eq!((found.queues.as_slice(), credit.idle_slope_kbit_s, credit.offload), (&[1, 1][..], 4_000, false));
        assert_eq!(credit.send_slope_kbit_s, -9_996_000);
        println!("{} {}", condition["levels"], condition["flow"]["payload_mbit_s"]);
        rates.push(condition["flow"]["payload_mbit_s"]["median"].as_f64().unwrap());
    }
    // 1,000 of 1,042 bytes of each frame (headers of Ethernet, IP and UDP) are payload.
    let most = 4.0 * 1_000.0 / 1_042.0;
    // Limits: the high credit of 20,000 bytes is 1 % of what the slope permits in 4 s, and 1 % are 20 frames at the ends of the window.
    // If the timer of the queue is more than 40 ms late on a busy machine, credit is lost, so that the class gets less.
    assert!((most * 0.8..most * 1.02).contains(&rates[0]), "{most}: {rates:?}");
    // Without credits, the same stream is faster.
    assert!(rates[1] > most * 1.02, "{rates:?}");
}

/// A study of messages at all phases of a gate that is open for 5 of 20 ms.
fn policed(slots: u32) -> String {
    format!(
        "study: police\nquestion: q\nmeasure: {{ ping-pong: {{ slots: {slots}, warm_up: 20, timeout: 1 s }} }}\nrate: 97 Hz\n\
         driver: udp\nattribution: off\npath: veth\nplace: netns\nends:\n  pong:\n    police: {{ entries: \
         [{{ gate: open, for: 5 ms }}, {{ gate: closed, for: 15 ms }}] }}\n"
    )
}

/// A guest that has act_gate. With an older QEMU, it can hang when a filter is added (docs/src/guests.md).
fn guest_that_polices() -> Option<Guest> {
    let [qemu] = needed(["qemu"])?;
    Some(Guest::with_kernel(crate::support::guests::KERNEL).with_devices(&qemu, ""))
}

/// Test: of messages at all phases, the gate at the receiver drops up to about three quarters, as the kernel counts, and the report says how many.
#[test]
fn a_gate_for_received_packets_is_the_reason_of_what_it_drops() {
    let Some(guest) = guest_that_polices() else { return };
    let report = guest.run_of_any_status(&[], &policed(400));
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let manifest = guest.record().manifest;
    let fact = manifest.trials[0].ends["pong"].police.as_ref().unwrap();
    assert_eq!((fact.cycle_ns, fact.entries[1].open), (20_000_000, false));
    let (packets, dropped) = (fact.packets, fact.dropped);
    // Every message of 420 reaches the gate once; nothing else is sent while messages are measured.
    assert_eq!(packets, 420, "{fact:?}");
    // 15 of 20 ms. Limits: on a busy machine, the timers of an emulated guest are late by milliseconds; a third of the packets or more
    // is dropped then, and never more than nine tenths.
    assert!((0.33..0.9).contains(&(dropped as f64 / packets as f64)), "{fact:?}");
    let condition = &report["conditions"][0];
    let losses = condition["losses"].as_array().unwrap();
    let lost = condition["counts"]["lost"].as_u64().unwrap();
    assert_eq!((losses.len(), losses[0]["count"].as_u64()), (1, Some(lost)), "{losses:?}");
    assert_eq!(losses[0]["reason"], "the gate for packets that the pong end receives was closed (policing)");
    assert_eq!((&losses[0]["where"], &losses[0]["evidence"]), (&"on_the_way_out".into(), &"at_most".into()));
    let sentence = "as the kernel counted, the gate for packets that the pong end receives was closed (policing)";
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["text"].as_str().unwrap().contains(sentence)), "{findings:?}");
    // The 20 messages of the warm-up are no losses of the report, but were policed too.
    assert!((lost..=lost + 20).contains(&dropped), "{dropped} dropped, {lost} lost");
}

/// Test: with a limit of bytes, one message passes in each window. A gate for the messages alone does not count the packets of a load.
#[test]
fn a_gate_for_received_messages_passes_the_bytes_of_its_entry() {
    let Some(guest) = guest_that_polices() else { return };
    // A message of 64 bytes has 100 with the headers of the driver, UDP and IP. The messages are due every 10 ms, two in each cycle of 20 ms.
    let text = policed(200).replace("rate: 97 Hz", "rate: 100 Hz\nload: [{ run: { udp-stream: { rate: 500 Hz } } }]");
    let entries = "only: messages, entries: [{ gate: open, for: 20 ms, most: 150 B }]";
    let (begin, _) = text.split_once("entries: [").unwrap();
    let report = guest.run_of_any_status(&[], &format!("{begin}{entries} }}\n"));
    assert_eq!(report["status"], "valid", "{}", report["warnings"]);
    let manifest = guest.record().manifest;
    let fact = manifest.trials[0].ends["pong"].police.as_ref().unwrap();
    println!("{fact:?} {}", report["conditions"][0]["losses"]);
    assert!(fact.port.is_some() && fact.entries[0].most_bytes == Some(150), "{fact:?}");
    // Every message of 220 reaches the gate once, and nothing else does.
    assert_eq!((fact.packets, fact.dropped), (220, fact.overfull), "{fact:?}");
    // Limits: the timer of the gate can be late by several cycles on a busy machine, and then fewer messages pass.
    assert!((100..200).contains(&fact.dropped), "{fact:?}");
    let losses = report["conditions"][0]["losses"].as_array().unwrap();
    let named =
        losses.iter().filter(|loss| loss["reason"].as_str().is_some_and(|text| text.contains("had passed the bytes")));
    assert!(named.count() == 1 && losses.len() == 1, "{losses:?}");
}

/// Test: the gate ends with the network namespace that has it, also if the run is killed.
#[test]
fn a_killed_run_leaves_no_gate_for_received_packets() {
    let Some(guest) = guest_that_polices() else { return };
    let namespaces = "for p in /proc/[0-9]*; do readlink $p/ns/net; done | sort -u | wc -l";
    let lines = [
        "cd /root; export TMPDIR=/root".to_owned(),
        file("long", &policed(20_000)),
        print("before", namespaces),
        "tailbound run long.yaml --out long -q >said 2>&1 & RUN=$!".into(),
        "sleep 15".into(),
        print("during", namespaces),
        "kill -9 $RUN; sleep 3; tailbound lab cleanup".into(),
        print("after", namespaces),
        print("list", "tailbound lab list"),
        print("end", "true"),
    ];
    let console = guest.shell(&[], lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    assert!(of("during") != of("before"), "{console}");
    let nothing = "nothing: no run is active, and no run left changes on this host";
    assert_eq!((of("after"), of("list")), (of("before"), nothing), "{console}");
}

/// Test: interfaces that cannot have gates, and what is said about them.
#[test]
fn interfaces_that_cannot_have_gates_are_named_with_the_words_of_the_kernel() {
    let Some([kernel]) = needed([KERNEL]) else { return };
    let pair = |ping: &str, pong: &str, queues: &str| {
        format!(
            "ip link add {ping} netns a {queues} type veth peer name {pong} netns b\n\
             ip -n a address add 10.9.0.1/24 dev {ping}; ip -n b address add 10.9.0.2/24 dev {pong}\n\
             ip -n a link set {ping} up; ip -n b link set {pong} up"
        )
    };
    let own = study(["own0", "own1"], 20, "").replace("place: { existing-netns: a }", "place: process");
    let lines = [
        "cd /root; export TMPDIR=/root; ip netns add a; ip netns add b".to_owned(),
        pair("one0", "one1", ""),
        file("one", &study(["one0", "one1"], 20, "")),
        print("one", "tailbound run one.yaml --out one -q 2>&1"),
        pair("two0", "two1", "numtxqueues 2"),
        file("two", &study(["two0", "two1"], 20, "      by: offload\n")),
        print("before", &shown("two0")),
        print("offload", "tailbound run two.yaml --out two -q 2>&1"),
        print("after", &shown("two0")),
        file("software", &study(["two0", "two1"], 100, "")),
        "tailbound run software.yaml --out software -q >said 2>&1".into(),
        print("software", "packed tailbound report software --format json"),
        print("restored", &shown("two0")),
        print("dry", "tailbound run software.yaml --dry-run 2>&1 | grep taprio"),
        "ip link add own0 numtxqueues 2 type veth peer name own1 netns b; ip address add 10.8.0.1/24 dev own0".into(),
        "ip link set own0 up; ip -n b address add 10.8.0.2/24 dev own1; ip -n b link set own1 up".into(),
        "ip route add default dev own0".into(),
        file("own", &own),
        print("route", "tailbound run own.yaml --out own -q 2>&1"),
        print("end", "true"),
    ];
    let console = Guest::with_kernel(&kernel).shell(&["--with", "ip,tc"], lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    assert_eq!(of("after"), of("before"));
    assert_eq!(of("restored"), of("before"));
    let report = unpacked(of("software"), &console);
    assert_eq!(report["status"], "valid", "{console}");
    let counts = &report["conditions"][0]["gates"][0];
    assert_eq!((&counts["outside"], &report["conditions"][0]["counts"]["answered"]), (&0.into(), &100.into()));
    insta::assert_snapshot!(["one", "offload", "route", "dry"].map(of).join("\n"));
}

/// Test: interfaces whose drivers have no frame preemption are named before anything is changed at them.
#[test]
fn interfaces_without_frame_preemption_are_named_and_left_as_they_are() {
    let Some([kernel, module]) = needed([KERNEL, CARDS]) else { return };
    let preempting = |interfaces| {
        let text = study(interfaces, 20, "      by: offload\n");
        text.replace("{ name: rest }", "{ name: rest, preemptible: yes }")
    };
    let lines = [
        "cd /root; export TMPDIR=/root".to_owned(),
        TWO_CARDS.to_owned(),
        JOINED.to_owned(),
        "ip link add two0 netns a numtxqueues 2 type veth peer name two1 netns b\n\
         ip -n a address add 10.8.0.1/24 dev two0; ip -n b address add 10.8.0.2/24 dev two1\n\
         ip -n a link set two0 up; ip -n b link set two1 up"
            .into(),
        file("card", &preempting(["eth0", "eth1"])),
        file("veth", &preempting(["two0", "two1"])),
        print("before", &[shown("eth0"), shown("two0")].join("; ")),
        print("card", "tailbound run card.yaml --out card -q 2>&1"),
        print("veth", "tailbound run veth.yaml --out veth -q 2>&1"),
        print("after", &[shown("eth0"), shown("two0")].join("; ")),
        print("list", "tailbound lab list"),
        print("dry", "tailbound run card.yaml --dry-run 2>&1 | grep taprio"),
        print("end", "true"),
    ];
    let modules = ["--module", &module, "--with", "ip,tc"];
    let console = Guest::with_kernel(&kernel).shell(&modules, lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    assert_eq!(of("after"), of("before"));
    assert!(of("list").starts_with("nothing: no run is active"), "{console}");
    insta::assert_snapshot!(["card", "veth", "dry"].map(of).join("\n"));
}

/// Test: traffic classes and credits are set at an interface of the user, with the speed that it reports. The queue disciplines of a
/// user are replaced only on request, and are back after the run, and after a run was killed.
#[test]
fn what_an_interface_had_is_back_after_a_run_with_shaping_and_after_a_killed_run() {
    let Some([kernel]) = needed([KERNEL]) else { return };
    let shaped = |slots, rest: &str| {
        study(["two0", "two1"], slots, "").split("    gates:").next().unwrap().to_owned()
            + &format!(
                "    shaping: {{ classes: [{{ name: stream, priorities: [7] }}, {{ name: rest }}], \
                 credits: {{ stream: {{ idle_slope_kbit_s: 4000 }} }}{rest} }}\n"
            )
    };
    let queues = shown("two0");
    let lines = [
        "cd /root; export TMPDIR=/root; ip netns add a; ip netns add b".to_owned(),
        "ip link add two0 netns a numtxqueues 2 type veth peer name two1 netns b\n\
         ip -n a address add 10.9.0.1/24 dev two0; ip -n b address add 10.9.0.2/24 dev two1\n\
         ip -n a link set two0 up; ip -n b link set two1 up"
            .into(),
        file("plain", &shaped(50, "")),
        file("replace", &shaped(50, ", replace: yes")),
        file("long", &shaped(20_000, ", replace: yes")),
        print("default", &queues),
        "tailbound run plain.yaml --out plain -q >said 2>&1".into(),
        print("report", "packed tailbound report plain --format json"),
        print("restored", &queues),
        "tc -n a qdisc replace dev two0 root handle 10: fq_codel limit 555 target 7777us".into(),
        print("foreign", &queues),
        print("refused", "tailbound run plain.yaml --out refused -q 2>&1"),
        "tailbound run replace.yaml --out replaced -q >said 2>&1".into(),
        print("replaced", "packed tailbound report replaced --format json"),
        print("back", &queues),
        kill_and_clean_up("two0", "cbs"),
        print("dry", "tailbound run replace.yaml --dry-run 2>&1 | grep mqprio"),
        print("end", "true"),
    ];
    let with = ["--with", "ip,tc"];
    let console = Guest::with_kernel(&kernel).shell(&with, lines.join("\n") + "\nsleep 1\nexit\n");
    let of = |name| section(&console, name);
    for name in ["report", "replaced"] {
        let report = unpacked(of(name), &console);
        assert_eq!(report["status"], "valid", "{}\n{console}", report["warnings"]);
        // The kernel reports 10 Gbit/s for a veth.
        let shaping = report["path"][0]["ends"][0]["shaping"].as_str().unwrap_or_else(|| panic!("{console}"));
        assert!(shaping.starts_with("class 0: idle slope 4000 kbit/s, send slope -9996000 kbit/s"), "{shaping}");
    }
    assert_eq!(of("restored"), of("default"));
    assert!(of("foreign").contains("qdisc fq_codel 10: root limit 555p"), "{console}");
    assert_eq!(of("back"), of("foreign"));
    assert!(of("killed").contains("qdisc mqprio") && of("killed").contains("qdisc cbs"), "{console}");
    assert!(of("list").contains("give two0 its queue discipline `fq_codel 10:` back"), "{console}");
    assert!(of("cleanup").contains("gave two0 `fq_codel 10:` back"), "{console}");
    assert_eq!(of("cleaned"), of("foreign"));
    insta::assert_snapshot!(["refused", "dry"].map(of).join("\n"));
}

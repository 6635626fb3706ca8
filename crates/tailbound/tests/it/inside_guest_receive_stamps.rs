//! Tests of the receive stamps of network cards, inside an emulated guest with two joined cards that QEMU emulates.

use crate::inside_guest::Guest;
use crate::inside_guest_clocks::{KERNEL, TWO_JOINED, found, guest_with_joined_cards, needed};
use serde_json::Value;

const HWSTAMP_CTL: &str = "clocks/usr/sbin/hwstamp_ctl";

/// Runs the lines in a guest with two joined cards of this model; returns the report and the console.
fn run(model: &str, options: &[&str], lines: &str) -> Option<(Value, String)> {
    let [kernel, qemu, hwstamp_ctl] = needed([KERNEL, "qemu", HWSTAMP_CTL])?;
    let guest: Guest = guest_with_joined_cards(&kernel, &qemu, model);
    let with = format!("ip,tc,unshare,{hwstamp_ctl}");
    let before = format!(
        "A=\"ip netns exec a {hwstamp_ctl} -i eth0\"; B=\"ip netns exec b {hwstamp_ctl} -i eth1\"\n\
         stamping() {{ echo \"$1:\" $($A | grep -v settings) $($B | grep -v settings) >>done; }}\n"
    );
    Some(found(&guest, &[options, &["--with", &with]].concat(), &(before + lines)))
}

fn study(slots: u32, rate: &str) -> String {
    format!(
        "cat > card.yaml <<'END'\nstudy: card\nquestion: q\n\
         measure: {{ ping-pong: {{ slots: {slots}, warm_up: 5, timeout: 2 s }} }}\nrate: {rate}\n\
         driver: {{ udp: {{ timestamps: hardware }} }}\nattribution: off\n\
         path: {{ existing: {{ ping: {{ interface: eth0 }}, pong: {{ interface: eth1 }} }} }}\n\
         ends:\n  ping: {{ place: {{ existing-netns: a }} }}\n  pong: {{ place: {{ existing-netns: b }} }}\nEND\n"
    )
}

/// Lines that make two cards of QEMU's model igb stamp every frame of IPv4 that they receive.
///
/// The model (hw/net/igb_core.c of QEMU 10) stamps a received frame if all of this holds: the type of the frame is in one of the eight
/// registers ETQF (at 0x5CB0) with the bits 26 (enabled) and 30 (stamp); the second byte behind the type has the lower half 2, as the
/// version in a message of PTP; the first byte is bits 8 to 15 of TSYNCRXCFG (at 0x5F50), as the kind of the message; and the bit 0 (valid)
/// of TSYNCRXCTL (at 0xB620) is clear. Packets of IPv4 begin with 0x45 and the byte for the type of service, which tc sets to 2 here. The
/// bit is set by each stamp. A real 82576 clears it when its driver reads the stamp, the model when RXSATRH (at 0xB630) is read, which
/// the driver does not do: a loop of the test reads it 20 ms after each stamp. This is a property of the emulated card, not of what is
/// tested: from the register with the stamp on, everything is as with a card that stamps all frames.
const STAMP_ALL_OF_IPV4: &str = "for E in 'a eth0' 'b eth1'; do set -- $E\n\
     tc -n $1 qdisc add dev $2 clsact\n\
     tc -n $1 filter add dev $2 egress protocol ip matchall action pedit ex munge ip tos set 2 pipe action csum ip4h; done >>done 2>&1\n\
     clearing() { while :; do [ $(($(devmem $(($1 + 0xb620))) & 1)) = 0 ] || { usleep 20000; devmem $(($1 + 0xb630)) >/dev/null; }; \
     usleep 5000; done; }\n\
     for C in $CARDS; do devmem $((C + 0x5cb0)) 32 $((1 << 30 | 1 << 26 | 0x0800)); devmem $((C + 0x5f50)) 32 0x4500; clearing $C & \
     CLEARING=\"$CLEARING $!\"; done\n";

/// Lines that make the end pong of the study a host with a clock that is 1,000 s ahead: a program named ssh runs the command in the network
/// namespace b.
const PONG_WITH_ANOTHER_CLOCK: &str = "cat > /bin/ssh <<'END'\n#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift 2\n\
     exec ip netns exec b unshare --time --monotonic 1000 --fork sh -c \"$*\"\nEND\n\
     chmod +x /bin/ssh; ip -n b link set lo up\n\
     sed 's/existing-netns: b/ssh: { host: other, program: \\/bin\\/tailbound }/' card.yaml > apart.yaml\n";

/// Test: the receiving card stamps each message and each answer, so that wire and receive path are parts of their own, and the wire is
/// shorter than the receive path. What the cards stamp is not changed, because they can stamp no more: that is named. If the pong has
/// another clock, the wire is a range that holds the wire of the same cards by one clock.
#[test]
fn the_receiving_card_stamps_each_message() {
    const MESSAGES: u32 = 40;
    let lines = format!(
        "CARDS=$(for N in eth0 eth1; do head -1 /sys/class/net/$N/device/resource | cut -d' ' -f1; done)\n{TWO_JOINED}\n\
         $A -t 1 -r 12 >done 2>&1; $B -t 1 -r 12 >>done 2>&1; stamping before\n{STAMP_ALL_OF_IPV4}{}\
         tailbound run card.yaml --out card -q >>done 2>&1; stamping after\n\
         {PONG_WITH_ANOTHER_CLOCK}tailbound run apart.yaml --out apart -q >>done 2>&1; kill $CLEARING\n\
         (echo '['; tailbound report card --format json; echo ', {{'; tailbound report apart --format json | \
         sed -n '/^      .stages.: \\[$/,/^      \\]/p' | sed '$s/,$//'; echo '}}]') >found 2>>done",
        // At a lower rate than what the loop that clears the bit can keep.
        study(MESSAGES, "2 Hz")
    );
    let options = ["--command-line", "iomem=relaxed", "--module", "igb"];
    let modules = ["sch_ingress", "cls_matchall", "act_pedit", "act_csum"].map(|module| ["--module", module]);
    let Some((found, console)) = run("igb", &[&options, modules.as_flattened()].concat(), &lines) else { return };
    let [found, apart] = [&found[0], &found[1]];
    let stages_of = |report: &Value| {
        let stages = report["stages"].as_array();
        stages.filter(|stages| stages.len() == 2).unwrap_or_else(|| panic!("{report:#}\n{console}")).clone()
    };
    let (stages, stages_apart) = (stages_of(&found["conditions"][0]), stages_of(apart));
    for (of, apart) in stages.iter().zip(&stages_apart) {
        let number = |key: &str| of[key].as_u64().unwrap_or_else(|| panic!("{key}: {of:#}\n{console}"));
        println!("{}: {} of {MESSAGES} without a receive stamp of the card", of["end"], number("without_card_rx"));
        assert_eq!((number("messages"), number("without_received")), (MESSAGES.into(), 0), "{of:#}");
        // A guest whose CPUs other programs use reads a stamp too late, after the loop has cleared it, or clears it after the next frame:
        // such messages must be counted.
        let stamped = u64::from(MESSAGES) - number("without_card_rx");
        assert!(stamped >= u64::from(MESSAGES / 2) && number("without_card") <= 6, "{of:#}\n{console}");
        let part = |stages: &[&str]| {
            let part = of["parts"].as_array().unwrap().iter().find(|part| part["stages"] == serde_json::json!(stages));
            part.unwrap_or_else(|| panic!("{stages:?}: {of:#}\n{console}"))
        };
        let [wire, path, thread] = ["wire", "receive_path", "thread"].map(|stage| part(&[stage]));
        println!("{wire} {path} {thread}");
        assert_eq!(path["messages"], stamped, "{of:#}");
        let [wire_error, path_error] = [wire, path].map(|part| part["error_ns"].as_i64().unwrap());
        let card_widths = [&of["card_width_ns"], &of["receiver_card_width_ns"]].map(|ns| ns.as_i64().unwrap());
        assert_eq!(wire_error, card_widths.iter().sum::<i64>());
        assert!(path_error > card_widths[1] && card_widths.iter().all(|ns| *ns > 0), "{of:#}");
        // What is known about the model: QEMU copies the frame from one card to the other within one call, and only then interrupts
        // the guest, which runs the driver in an emulated processor. Clocks that were wrong, or exchanged stamps, would show here.
        let median_ns = |part: &Value| part["p50_ns"].as_i64().unwrap();
        assert!(median_ns(wire) - wire_error < median_ns(path), "{of:#}");
        let [low, high] = ["low", "high"].map(|side| &apart["wire_range"][side]);
        println!("{low} {high}");
        let counted =
            ["without_card_rx", "without_wire"].map(|key| apart[key].as_u64().unwrap_or(0)).iter().sum::<u64>();
        assert_eq!(low["messages"].as_u64().unwrap() + counted, u64::from(MESSAGES), "{apart:#}");
        assert!(median_ns(low) <= median_ns(wire) + wire_error, "{of:#} {apart:#}");
        assert!(median_ns(high) >= median_ns(wire) - wire_error, "{of:#} {apart:#}");
        let names = apart["parts"].as_array().unwrap().iter().map(|part| part["stages"].to_string());
        let named = names.collect::<Vec<_>>().concat();
        assert!(named.contains(r#"["receive_path"]["thread"]"#) && !named.contains("wire"), "{named}");
    }
    for interface in ["eth0", "eth1"] {
        let named = format!(
            "the network card of {interface}, which stamps `sent on, received ptpv2-event`, cannot be set to stamp all"
        );
        assert!(found["warnings"].to_string().contains(&named), "{}", found["warnings"]);
    }
    for when in ["before", "after"] {
        let line = format!("{when}: tx_type 1 rx_filter 12 tx_type 1 rx_filter 12");
        assert!(console.lines().any(|seen| seen == line), "{line}\n{console}");
    }
}

/// Test: a card whose driver can stamp all received frames is set to do so for the trial. Which frames it stamps is as before after the
/// run, and after `lab cleanup` if the run was killed. QEMU's model e1000e accepts the setting and stamps nothing, which the report says.
#[test]
fn which_received_frames_a_card_stamps_is_set_and_set_back() {
    let lines = format!(
        "{TWO_JOINED}\n$A -r 12 >done 2>&1; $B -t 1 -r 1 >>done 2>&1; stamping before\n{}\
         tailbound run card.yaml --out card -q >>done 2>&1; stamping after\n\
         tailbound run card.yaml --set measure.slots=2000 --out killed -q >>done 2>&1 &\n\
         RUN=$!; for N in $(seq 120); do $A | grep -q 'rx_filter 1$' && break; sleep 1; done; stamping during\n\
         for P in /proc/[0-9]*; do tr '\\0' ' ' <$P/cmdline | grep -q 'tailbound agent ' && RUN=\"$RUN ${{P#/proc/}}\"; done\n\
         kill -9 $RUN; sleep 1; stamping killed; tailbound lab cleanup >>done 2>&1; stamping cleaned\n\
         tailbound report card --format json >found 2>>done",
        study(100, "19 Hz")
    );
    let Some((found, console)) = run("e1000e", &["--module", "e1000e"], &lines) else { return };
    let [own, set] = ["tx_type 0 rx_filter 12", "tx_type 1 rx_filter 1"];
    for (when, of_ping) in [("before", own), ("after", own), ("during", set), ("killed", set), ("cleaned", own)] {
        let line = format!("{when}: {of_ping} tx_type 1 rx_filter 1");
        assert!(console.lines().any(|seen| seen == line), "{line}\n{console}");
    }
    let warnings = found["warnings"].to_string();
    assert!(warnings.contains("the network card stamped none of the received messages"), "{warnings}\n{console}");
    assert!(!warnings.contains("card_receive_stamping"), "{warnings}\n{console}");
}

//! Test of the study `clock` with ptp4l inside an emulated guest, whose clock may be set: a servo that is disturbed on purpose.

use crate::inside_guest_clocks::{KERNEL, found, guest_with_joined_cards, needed};
use serde_json::Value;

/// Lines that start two ptp4l: a master by the clock of the network card eth1, which nobody adjusts, and a slave that keeps CLOCK_REALTIME
/// in step with it by stamps of the kernel.
///
/// QEMU's model of the card (hw/net/igb_core.c of QEMU 10) stamps only messages of PTP whose first byte is in TSYNCRXCFG (at 0x5F50), here
/// 1 for Delay_Req, and only while the bit 0 of TSYNCRXCTL (at 0xB620) is clear. The model clears it when RXSATRH (at 0xB630) is read,
/// which the driver does not do: a loop reads it.
const MASTER_AND_SLAVE: &str = "dmesg -n 1; C=$(head -1 /sys/class/net/eth1/device/resource | cut -d' ' -f1)\n\
     ip netns add m; ip link set eth1 netns m; ip link set eth0 up; ip -n m link set eth1 up; sleep 5\n\
     phc_ctl /dev/ptp1 set adj 37 >done 2>&1\n\
     OPTIONS='-m -2 --logSyncInterval -2 --logAnnounceInterval -1 --logMinDelayReqInterval -1 --tx_timestamp_timeout 500'\n\
     ip netns exec m ptp4l -H --free_running 1 $OPTIONS -i eth1 --priority1 1 --uds_address /root/master >m.log 2>&1 &\n\
     ptp4l -S -s $OPTIONS -i eth0 --uds_address /root/ptp4l >s.log 2>&1 &\n\
     (while :; do [ $(($(devmem $((C + 0xb620))) & 1)) = 0 ] || { usleep 10000; devmem $((C + 0xb630)) >/dev/null; }; usleep 5000; done) &\n\
     sleep 2; devmem $((C + 0x5f50)) 32 0x0100\n";

/// Test: CLOCK_REALTIME is stepped by 0.6 s; the step and the time in which its servo has not brought it back are marked. The step is
/// more than any rate explains, unless two readings are more than 2.4 s apart.
#[test]
fn a_servo_that_is_disturbed_on_purpose_is_found_by_the_study_clock() {
    let files = [KERNEL, "qemu", "clocks/usr/sbin/ptp4l", "clocks/usr/sbin/phc_ctl"];
    let Some([kernel, qemu, ptp4l, phc_ctl]) = needed(files) else { return };
    let lines = format!(
        "PATH=$PATH:{}\n{MASTER_AND_SLAVE}\
         tailbound run clock -q --out clock --set clock.by.socket=/root/ptp4l --set 'clock.within=50 ms' --set 'clock.for=5 s' \
         --set 'rate=20 Hz' --set 'measure.duration=24 s' --set repeat=1 --set attribution=off --set quiet=off \
         --set 'load=[[], [{{ run: {{ command: [sh, -c, phc_ctl CLOCK_REALTIME adj 0.6 && exec sleep 3600] }}, start: 10 s }}]]' >>done 2>&1\n\
         tail -20 m.log s.log >>done; cat clock/clocks/0-* | grep -o 'port_clocks[^]]*' >>done\n\
         tailbound report clock | grep -A 4 'Clock of' >>done; \
         (echo '{{'; tailbound report clock --format json | sed -n '/^  \"clock_history\": \\[$/,/^  \\]/p' | sed '$s/,$//'; echo '}}') >found 2>>done",
        ptp4l.rsplit_once('/').unwrap().0
    );
    let with = format!("ip,{ptp4l},{phc_ctl}");
    let options = ["--command-line", "iomem=relaxed", "--module", "igb", "--with", &with];
    let (found, console) = found(&guest_with_joined_cards(&kernel, &qemu, "igb"), &options, &lines);
    let histories = found["clock_history"].as_array().unwrap_or_else(|| panic!("{found:#}\n{console}"));
    let of_condition = |condition: usize| {
        histories.iter().find(|of| of["condition"] == condition).unwrap_or_else(|| panic!("{histories:#?}\n{console}"))
    };
    let windows = |condition: usize, kind: &str| {
        let all = of_condition(condition)["windows"].as_array().unwrap();
        all.iter().filter(|window| window["kind"] == kind).cloned().collect::<Vec<Value>>()
    };
    println!("{}", console.split("Clock of").skip(1).collect::<Vec<_>>().join("Clock of"));
    assert_eq!(windows(0, "beyond_bound"), Vec::<Value>::new(), "{console}");
    let beyond = windows(1, "beyond_bound");
    assert!(!beyond.is_empty() && beyond[0]["why"].to_string().contains("beyond the bound of 50 ms"), "{console}");
    assert_eq!(windows(0, "stepped"), Vec::<Value>::new(), "{console}");
    let stepped = windows(1, "stepped");
    let words = "CLOCK_REALTIME was stepped by";
    assert!(!stepped.is_empty() && stepped[0]["why"].as_str().unwrap().starts_with(words), "{stepped:#?}\n{console}");
    let messages = &of_condition(1)["messages"];
    assert!(["inside", "outside"].iter().all(|part| messages[part]["messages"].as_u64() > Some(0)), "{messages}");
    // The slave takes its stamps from the kernel, although its card has a clock.
    assert!(console.contains(r#"port_clocks":[{"port":1,"interface":"eth0","is_hardware":false}"#), "{console}");
}

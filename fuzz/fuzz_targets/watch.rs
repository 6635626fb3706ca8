//! Fuzzes what watching makes of packets: the input is a sequence of packets of RTPS over UDP, each with its length in front, or, if it
//! begins as one, a file of another program.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tailbound_watch::{Seen, Watch, read_capture};

fuzz_target!(|bytes: &[u8]| {
    if let [0xd4, 0xc3, ..] | [0xa1, 0xb2, ..] | [0x4d, 0x3c, ..] | [0x0a, 0x0d, ..] = bytes {
        let mut watch = Watch::new("fuzz".into(), 0, Default::default());
        watch.link(vec!["rt/a".into(), "rt/b".into()]);
        if let Ok(found) = read_capture(std::io::Cursor::new(bytes.to_vec()), |packet| watch.packet(packet)) {
            let report = watch.report(found.span_ns.1, 0, Default::default());
            assert_eq!(report.packets + report.copies, found.packets);
        }
        return;
    }
    let mut watch = Watch::new("fuzz".into(), 0, Default::default());
    watch.keep_samples();
    let (mut rest, mut packets) = (bytes, 0_u64);
    while let Some((head, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::from(head[0]).min(tail.len());
        let (packet, behind) = tail.split_at(length);
        rest = behind;
        packets += 1;
        // Byte 1: an interface, and the time since the last packet. Bytes 2 and 3: the kind of packet.
        let mut whole = vec![0x45, 0, 1, 0, 0, head[3], head[2] & 0x20, head[2] & 1, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 2];
        if head[2] & 2 == 0 {
            whole.extend([0x1c, 0xf3, 0x1c, 0xf3, 1, 0, 0, 0]);
            whole.extend(b"RTPS\x02\x05\x01\x10");
            whole.extend([head[3] % 4; 12]);
        }
        whole.extend(packet);
        let stamp_ns = packets as i64 * 1_000 * i64::from(head[1]);
        watch.packet(Seen { stamp_ns, interface: i32::from(head[1] % 3), is_sent: head[1] % 2 == 0, bytes: &whole });
    }
    let samples = watch.take_samples().count() as u64;
    let report = watch.report(i64::MAX / 2, 0, Default::default());
    assert_eq!(report.packets + report.copies, packets);
    let counted: u64 = report.topics.iter().flat_map(|topic| &topic.writers).map(|writer| writer.samples).sum();
    assert!(samples <= counted, "{samples} of {counted}");
});

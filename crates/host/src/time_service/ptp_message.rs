//! Management messages of PTP (IEEE 1588-2019, clause 15 and annex D) as `ptp4l` exchanges them over its socket, and the messages
//! that linuxptp adds (`tlv.h` of linuxptp: TIME_STATUS_NP, SUBSCRIBE_EVENTS_NP, PORT_PROPERTIES_NP, PORT_HWCLOCK_NP).
//!
//! All numbers are big-endian. Lengths in a message are never trusted: what lies beyond the message is [`NotAMessage`].

use tailbound_model::PortState;

/// Bytes of the header of a PTP message, before the target port of a management message.
const HEADER: usize = 34;
/// Bytes before the TLV of a management message.
const BEFORE_TLV: usize = 48;
/// Type of a management message, in the low half of the first byte.
const MANAGEMENT: u8 = 0x0D;
/// Version of PTP, in the low half of the second byte.
const VERSION: u8 = 2;
const TLV_MANAGEMENT: u16 = 1;
const TLV_ERROR: u16 = 2;
const RESPONSE: u8 = 2;
/// Bytes of the bitmask of events (`EVENT_BITMASK_CNT` of linuxptp).
const EVENT_BYTES: usize = 64;
/// Bits of the events (`notification.h` of linuxptp); NOTIFY_TIME_SYNC exists since linuxptp 4.0.
const NOTIFY_PORT_STATE: u8 = 1 << 0;
const NOTIFY_TIME_SYNC: u8 = 1 << 1;
const SUBSCRIBE: u16 = 0xC003;

/// A data set of the service, with its number (managementId).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum DataSet {
    /// Steps removed, offset and mean path delay (currentDS).
    Current = 0x2001,
    /// The parent and the grandmaster (parentDS).
    Parent = 0x2002,
    /// Offset of UTC, and the time scale (timePropertiesDS).
    TimeProperties = 0x2003,
    /// State of a port (portDS).
    Port = 0x2004,
    /// Offset and time of the last synchronisation (linuxptp).
    TimeStatus = 0xC000,
    /// Network interface of a port, and who makes its time stamps (linuxptp; refused on the socket for readers).
    PortProperties = 0xC004,
    /// Hardware clock of a port (linuxptp 4.0 and later).
    PortHardwareClock = 0xC009,
}

/// Offset and time of the last synchronisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeStatus {
    /// Clock minus master, ns.
    pub offset_ns: i64,
    /// Time of the clock at which the last Sync message arrived, ns; 0 before the first, or after a step.
    pub ingress_ns: i64,
    /// False if this clock is its own grandmaster.
    pub has_master: bool,
}

/// The answer to a request, or the report of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PtpAnswer {
    /// Offset and time of the last synchronisation.
    TimeStatus(TimeStatus),
    /// State of a port.
    Port {
        /// Number of the port, from 1.
        port: u16,
        /// State of the port.
        state: PortState,
        /// Base-2 logarithm of the time between two Sync messages, s.
        log_sync_interval: i8,
    },
    /// Time stamps of a port.
    PortProperties {
        /// Number of the port, from 1.
        port: u16,
        /// True if the time stamps come from a hardware clock; false if the kernel makes them.
        is_hardware: bool,
        /// Network interface of the port.
        interface: String,
    },
    /// Hardware clock of a port.
    PortHardwareClock {
        /// Number of the port, from 1.
        port: u16,
        /// Number of the clock (N of /dev/ptpN); `None` if the port has none.
        index: Option<u32>,
    },
    /// Distance to the master.
    Current {
        /// Number of clocks between the grandmaster and this clock, itself included.
        steps_removed: u16,
        /// Mean delay of the path to the master, ns.
        path_delay_ns: i64,
    },
    /// The grandmaster's identity, as linuxptp writes it: `0a1b2c.fffe.3d4e5f`.
    Parent(String),
    /// TAI minus UTC, and the time scale.
    TimeProperties {
        /// TAI minus UTC, s; `None` if the master does not say that it is valid.
        utc_offset_s: Option<i16>,
        /// True if the time of the master is TAI.
        is_tai: bool,
    },
    /// The service reports events to this client from now on.
    Subscribed,
    /// The service refuses a request, with the number of the error (table 59 of the standard).
    Refused {
        /// Number of the data set that was asked for.
        id: u16,
        /// Number of the error.
        error: u16,
    },
}

/// The bytes are not a management message that was asked for: their meaning or their length is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a management message of PTP that this client asks for")]
pub struct NotAMessage;

/// Who asks, and whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Envelope {
    /// Identity of this client: any number that no other client has.
    pub client: u64,
    /// Number of the request.
    pub sequence: u16,
    /// Number of the PTP domain.
    pub domain: u8,
    /// High half of the first byte (majorSdoId): 1 for the profile of IEEE 802.1AS, otherwise 0.
    pub sdo: u8,
}

impl Envelope {
    /// The message that asks for a data set.
    pub fn get(&self, of: DataSet) -> Vec<u8> {
        self.message(0, of as u16, &[])
    }

    /// The message that asks the service to report each synchronisation, and each change of a port, for a time.
    pub fn subscribe(&self, duration_s: u16) -> Vec<u8> {
        let mut body = vec![0; 2 + EVENT_BYTES];
        body[..2].copy_from_slice(&duration_s.to_be_bytes());
        body[2] = NOTIFY_PORT_STATE | NOTIFY_TIME_SYNC;
        self.message(1, SUBSCRIBE, &body)
    }

    fn message(&self, action: u8, id: u16, body: &[u8]) -> Vec<u8> {
        let length = (BEFORE_TLV + 6 + body.len()) as u16;
        let mut bytes = vec![self.sdo << 4 | MANAGEMENT, VERSION];
        bytes.extend(length.to_be_bytes());
        // Domain, minorSdoId, flags, correction, messageTypeSpecific.
        bytes.push(self.domain);
        bytes.extend([0; 15]);
        bytes.extend(self.client.to_be_bytes());
        bytes.extend(1_u16.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        // The control field of a management message, and the interval of a message that is not sent regularly.
        bytes.extend([4, 0x7F]);
        // All ports of all clocks, but no further than this service.
        bytes.extend([0xFF; 10]);
        bytes.extend([0, 0, action, 0]);
        bytes.extend(TLV_MANAGEMENT.to_be_bytes());
        bytes.extend((2 + body.len() as u16).to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend(body);
        bytes
    }
}

/// Reads an answer of the service.
///
/// # Errors
/// The bytes are no such answer, or are cut off.
pub fn parse(bytes: &[u8]) -> Result<PtpAnswer, NotAMessage> {
    let length = usize::from(u16::from_be_bytes(at(bytes, 2)?));
    let message = bytes.get(..length).filter(|m| m.len() >= BEFORE_TLV).ok_or(NotAMessage)?;
    let is_answer = message[0] & 0x0F == MANAGEMENT && message[1] & 0x0F == VERSION;
    if !is_answer || message[HEADER + 12] & 0x0F != RESPONSE {
        return Err(NotAMessage);
    }
    let tlv = &message[BEFORE_TLV..];
    let content = tlv.get(4..4 + usize::from(u16::from_be_bytes(at(tlv, 2)?))).ok_or(NotAMessage)?;
    match u16::from_be_bytes(at(tlv, 0)?) {
        TLV_MANAGEMENT => body(u16::from_be_bytes(at(content, 0)?), content.get(2..).ok_or(NotAMessage)?),
        TLV_ERROR => Ok(PtpAnswer::Refused {
            error: u16::from_be_bytes(at(content, 0)?),
            id: u16::from_be_bytes(at(content, 2)?),
        }),
        _ => Err(NotAMessage),
    }
}

fn body(id: u16, data: &[u8]) -> Result<PtpAnswer, NotAMessage> {
    // A time interval is in units of 2^-16 ns.
    let interval = |from| Ok(i64::from_be_bytes(at(data, from)?) >> 16);
    Ok(match id {
        id if id == DataSet::TimeStatus as u16 => {
            // Fixed by linuxptp: offset, ingress, two rates, time base, phase change, then whether there is a master.
            let has_master = i32::from_be_bytes(at(data, 38)?) != 0;
            at::<8>(data, 42)?;
            let [offset_ns, ingress_ns] = [i64::from_be_bytes(at(data, 0)?), i64::from_be_bytes(at(data, 8)?)];
            PtpAnswer::TimeStatus(TimeStatus { offset_ns, ingress_ns, has_master })
        }
        id if id == DataSet::Port as u16 => {
            let [state, _] = at(data, 10)?;
            let [_, _, log_sync_interval, ..]: [u8; 6] = at(data, 20)?;
            let port = u16::from_be_bytes(at(data, 8)?);
            let log_sync_interval = log_sync_interval.cast_signed();
            PtpAnswer::Port { port, state: PortState::from_number(state), log_sync_interval }
        }
        id if id == DataSet::Current as u16 => {
            PtpAnswer::Current { steps_removed: u16::from_be_bytes(at(data, 0)?), path_delay_ns: interval(10)? }
        }
        id if id == DataSet::Parent as u16 => {
            let [a, b, c, d, e, f, g, h]: [u8; 8] = at(data, 24)?;
            PtpAnswer::Parent(format!("{a:02x}{b:02x}{c:02x}.{d:02x}{e:02x}.{f:02x}{g:02x}{h:02x}"))
        }
        id if id == DataSet::TimeProperties as u16 => {
            let [flags, _] = at(data, 2)?;
            let is_valid = flags & 1 << 2 != 0;
            let utc_offset_s = i16::from_be_bytes(at(data, 0)?);
            PtpAnswer::TimeProperties { utc_offset_s: is_valid.then_some(utc_offset_s), is_tai: flags & 1 << 3 != 0 }
        }
        id if id == DataSet::PortProperties as u16 => {
            // Port identity, state, kind of the time stamps (0: software; all others: hardware), and the length of the name.
            let [_, stamps, length] = at(data, 10)?;
            let name = data.get(13..13 + usize::from(length)).ok_or(NotAMessage)?;
            PtpAnswer::PortProperties {
                port: u16::from_be_bytes(at(data, 8)?),
                is_hardware: stamps != 0,
                interface: String::from_utf8_lossy(name).into_owned(),
            }
        }
        id if id == DataSet::PortHardwareClock as u16 => {
            let index = i32::from_be_bytes(at(data, 10)?);
            at::<16>(data, 0)?;
            PtpAnswer::PortHardwareClock { port: u16::from_be_bytes(at(data, 8)?), index: u32::try_from(index).ok() }
        }
        SUBSCRIBE => PtpAnswer::Subscribed,
        _ => return Err(NotAMessage),
    })
}

/// N bytes from a place on.
fn at<const N: usize>(bytes: &[u8], from: usize) -> Result<[u8; N], NotAMessage> {
    bytes.get(from..).and_then(|rest| rest.first_chunk()).copied().ok_or(NotAMessage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: Envelope = Envelope { client: 0x0102_0304_0506_0708, sequence: 0x1234, domain: 24, sdo: 1 };

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// The bytes of an answer of port 2 of the clock 0a1b2cfffe3d4e5f, field by field: header, target, hops, action, TLV.
    fn answer(action: &str, tlv_type: &str, id: &str, data: &str) -> Vec<u8> {
        let data = bytes(data);
        let (length, tlv) = (54 + data.len(), 2 + data.len());
        let head = format!(
            "0D 02 {length:04x} 18 00 0000 0000000000000000 00000000 0a1b2cfffe3d4e5f 0002 1234 04 7f \
             0102030405060708 0001 00 00 {action} 00 {tlv_type} {tlv:04x} {id}"
        );
        [bytes(&head), data].concat()
    }

    #[test]
    fn requests_have_the_layout_of_the_standard() {
        let head = "1d 02 0036 18 00 0000 0000000000000000 00000000 0102030405060708 0001 1234 04 7f";
        let target = "ffffffffffffffff ffff 00 00";
        assert_eq!(ENVELOPE.get(DataSet::TimeStatus), bytes(&format!("{head} {target} 00 00 0001 0002 c000")));
        let head = head.replace("0036", "0078");
        let events = format!("0e10 03 {}", "00".repeat(63));
        assert_eq!(ENVELOPE.subscribe(3_600), bytes(&format!("{head} {target} 01 00 0001 0044 c003 {events}")));
    }

    #[test]
    fn answers_are_read_by_the_layout_of_the_standard() {
        let of = |id: &str, data: &str| parse(&answer("02", "0001", id, data)).unwrap();
        // Offset -2 ns, ingress 1,000,000,001 ns, two rates, time base, phase change, a master.
        let status = "fffffffffffffffe 000000003b9aca01 00000005 00000006 0007 0000 0000000000000000 0000 00000001 0011223344556677";
        let expected = TimeStatus { offset_ns: -2, ingress_ns: 1_000_000_001, has_master: true };
        assert_eq!(of("c000", status), PtpAnswer::TimeStatus(expected));
        // Port 2, SLAVE, delay request interval 0, peer delay 345.5 ns, announce 1, timeout 3, sync -4, end to end, 0, 2.
        let port = "0a1b2cfffe3d4e5f 0002 09 00 0000000001598000 01 03 fc 01 00 02";
        let expected = PtpAnswer::Port { port: 2, state: PortState::Slave, log_sync_interval: -4 };
        assert_eq!(of("2004", port), expected);
        // One step, offset 1 ns, path delay 25,000 ns.
        let current = "0001 0000000000010000 0000000061a80000";
        assert_eq!(of("2001", current), PtpAnswer::Current { steps_removed: 1, path_delay_ns: 25_000 });
        let parent = "0011223344556677 0001 00 00 ffff 7fffffff 80 f8 fe ffff 80 0a1b2cfffe3d4e5f";
        assert_eq!(of("2002", parent), PtpAnswer::Parent("0a1b2c.fffe.3d4e5f".into()));
        assert_eq!(of("2003", "0025 0c a0"), PtpAnswer::TimeProperties { utc_offset_s: Some(37), is_tai: true });
        assert_eq!(of("2003", "0025 00 a0"), PtpAnswer::TimeProperties { utc_offset_s: None, is_tai: false });
        assert_eq!(of("c003", &format!("0e10{}", "03".repeat(64))), PtpAnswer::Subscribed);
        // Port 2, SLAVE, software or hardware, four bytes of a name, and a padding byte that linuxptp adds.
        for (stamps, is_hardware) in [("00", false), ("01", true), ("03", true)] {
            let properties = of("c004", &format!("0a1b2cfffe3d4e5f 0002 09 {stamps} 04 65746831 00"));
            assert_eq!(properties, PtpAnswer::PortProperties { port: 2, is_hardware, interface: "eth1".into() });
        }
        for (number, index) in [("00000003", Some(3)), ("ffffffff", None)] {
            let clock = of("c009", &format!("0a1b2cfffe3d4e5f 0002 {number} 00 00"));
            assert_eq!(clock, PtpAnswer::PortHardwareClock { port: 2, index });
        }
        let refused = parse(&answer("02", "0002", "0006", "c003 00000000")).unwrap();
        assert_eq!(refused, PtpAnswer::Refused { id: 0xC003, error: 6 });
    }

    /// Test: what two releases of ptp4l sent, between two network namespaces with software time stamps; pmc of linuxptp 3.1.1 showed the
    /// same values of the same service (offset and delay of a moment later). ptp4l 4.4 reported the synchronisation by itself.
    #[test]
    fn answers_of_real_services_are_read() {
        let of_release_3_1_1 = "0d02006800000000000000000000000000000000ae26a6fffec0a32e00000001047f000000000000004d0001000002000001\
            0034c000000000000000012d18ec0c8f6984e0160000000000000000000000000000000000000000000000000001ea6fe7fffe84d4a2";
        let of_release_4_4 = "0d120068000000000000000000000000000000008e3c1ffffee852640000000c007f000000000000004d0001010102000001\
            0034c000fffffffffffffb6e18ec0c951bf865cc00000000000000000000000000000000000000000000000000016a74e0fffe9490c8";
        for (sent, offset_ns, ingress_ns) in
            [(of_release_3_1_1, 301, 1_795_824_161_504_157_718), (of_release_4_4, -1_170, 1_795_824_185_972_909_516)]
        {
            let expected = TimeStatus { offset_ns, ingress_ns, has_master: true };
            assert_eq!(parse(&bytes(sent)), Ok(PtpAnswer::TimeStatus(expected)));
        }
        let head = "0d02HHHH00000000000000000000000000000000ae26a6fffec0a32e0001PPPP047f000000000000004d000100000200";
        let of =
            |length: &str, rest: &str| parse(&bytes(&(head.replace("HHHH", length).replace("PPPP", "0001") + rest)));
        let current = of("0048", "00010014200100010000 00000 12d0000 000000000 9150000");
        assert_eq!(current, Ok(PtpAnswer::Current { steps_removed: 1, path_delay_ns: 2_325 }));
        let parent = of("0056", "000100222002ea6fe7fffe84d4a200010000ffff7fffffff0af8feffff80ea6fe7fffe84d4a2");
        assert_eq!(parent, Ok(PtpAnswer::Parent("ea6fe7.fffe.84d4a2".into())));
        let port = of("0050", "0001001c2004ae26a6fffec0a32e000108fd0000000000000000ff03fd010002");
        let expected = PtpAnswer::Port { port: 1, state: PortState::Uncalibrated, log_sync_interval: -3 };
        assert_eq!(port, Ok(expected));
        let time = of("003a", "000100062003002500a0");
        assert_eq!(time, Ok(PtpAnswer::TimeProperties { utc_offset_s: None, is_tai: false }));
    }

    #[test]
    fn what_is_cut_off_or_random_is_no_message_and_never_a_panic() {
        let whole = [
            ("c000", "ff".repeat(50)),
            ("2004", "09".repeat(26)),
            ("2001", "01".repeat(18)),
            ("2002", "02".repeat(32)),
            ("2003", "03".repeat(4)),
            ("c004", "04".repeat(17)),
            ("c009", "00".repeat(16)),
        ];
        for (id, data) in whole {
            let whole = answer("02", "0001", id, &data);
            parse(&whole).unwrap();
            for end in 0..whole.len() {
                assert_eq!(parse(&whole[..end]), Err(NotAMessage), "{id} cut off at {end}");
                // The same with a length that agrees with what is left.
                let mut cut = whole[..end].to_vec();
                if let Some(length) = cut.get_mut(2..4) {
                    length.copy_from_slice(&(end as u16).to_be_bytes());
                }
                assert_eq!(parse(&cut), Err(NotAMessage), "{id} cut off at {end}, with this length");
            }
            // And with the length of the TLV too, down to one byte less than the data set has.
            for end in BEFORE_TLV + 6..whole.len() - 1 {
                let mut cut = whole[..end].to_vec();
                cut[2..4].copy_from_slice(&(end as u16).to_be_bytes());
                let tlv = (end - BEFORE_TLV - 4) as u16;
                cut[BEFORE_TLV + 2..BEFORE_TLV + 4].copy_from_slice(&tlv.to_be_bytes());
                // The last bytes of some data sets are of no interest, so that their absence may be read over.
                let _ = parse(&cut);
            }
        }
        assert_eq!(parse(&answer("00", "0001", "c000", "")), Err(NotAMessage), "a request is no answer");
        assert_eq!(parse(&answer("02", "0001", "2000", &"00".repeat(20))), Err(NotAMessage), "an unknown data set");
        // Numbers of Marsaglia's xorshift, so that each run has the same ones.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut read = 0;
        for _ in 0..200_000 {
            let mut message = answer("02", "0001", "c000", &"00".repeat(50));
            for _ in 0..=random() % 4 {
                let place = random() as usize % message.len();
                message[place] = random() as u8;
            }
            message.truncate((random() as usize % (message.len() * 2)).max(1));
            read += u32::from(parse(&message).is_ok());
        }
        assert!((1_000..200_000).contains(&read), "{read} of 200,000 were messages");
    }
}

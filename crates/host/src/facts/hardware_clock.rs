//! Facts about the PTP hardware clocks of the host, and about CLOCK_TAI. Conversions of time stamps do not use these facts.

use super::source::Collector;
use crate::clock::tai_offset_s;
use crate::ptp_clock::{PtpClock, PtpDevice, PtpError, PtpInterface, PtpReading, ptp_devices};

pub(super) fn read(c: &mut Collector) {
    let key = "clock.tai_offset_s";
    // A copied tree of files has no clock and no devices.
    if !c.is_live() {
        c.put_number(key, "adjtimex", Err("not read from a copy of the files".into()));
        return;
    }
    c.put_number(key, "adjtimex", tai_offset_s().map(i64::from).map_err(|e| format!("adjtimex: {e}")));
    for device in ptp_devices().unwrap_or_default() {
        put(c, &device);
    }
}

/// Adds the name of a clock, its network interfaces, and one reading of it beside CLOCK_REALTIME.
fn put(c: &mut Collector, device: &PtpDevice) {
    let key = |word: &str| format!("clock.ptp{}.{word}", device.number);
    c.put_text(key("name"), "/sys/class/ptp", Ok(device.name.clone()));
    c.put_text(key("interfaces"), "ETHTOOL_GET_TS_INFO", Ok(device.interfaces.join(" ")));
    let reading = PtpClock::open(&device.path()).and_then(|clock| Ok((clock.interface, clock.read()?)));
    let reading = reading.map_err(|e: PtpError| e.problem().what);
    let source = reading.as_ref().map_or("PTP_CLOCK_GETCAPS", |(interface, _)| interface.name());
    let of = |value: fn(&PtpReading) -> i64| reading.as_ref().map(|(_, reading)| value(reading)).map_err(Clone::clone);
    c.put_number(key("offset_ns"), source, of(PtpReading::middle_ns));
    c.put_number(key("half_width_ns"), source, of(PtpReading::half_width_ns));
    let read_by = reading.as_ref().map(|(interface, _): &(PtpInterface, _)| interface.name().to_owned());
    c.put_text(key("read_by"), source, read_by.map_err(Clone::clone));
}

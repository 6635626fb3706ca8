//! Facts about the wall clock from the programs that adjust it: chrony and linuxptp. Conversions of time stamps do not
//! use these facts.

use super::source::Collector;
use crate::time_service::{ChronyTracking, DataSet, Ptp4l, PtpAnswer, TimeServiceError, chrony_tracking};
use std::io;
use std::path::Path;
use std::time::Duration;
use tailbound_model::PTP4L_SOCKET;

/// Longest wait for an answer of linuxptp, which normally answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn read(c: &mut Collector) {
    // Programs are asked, and a copied tree of files has no running programs.
    if !c.is_live() {
        return;
    }
    let is_missing =
        |e: &TimeServiceError| matches!(e, TimeServiceError::NoChronyc(e) if e.kind() == io::ErrorKind::NotFound);
    match chrony_tracking() {
        Err(e) if is_missing(&e) => {}
        tracking => put_chrony(c, tracking.map_err(|e| e.problem().what)),
    }
    if c.exists(PTP4L_SOCKET) {
        put_ptp(c);
    }
}

fn put_chrony(c: &mut Collector, tracking: Result<ChronyTracking, String>) {
    let of = |figure: fn(&ChronyTracking) -> i64| tracking.as_ref().map(figure).map_err(Clone::clone);
    let source = "chronyc tracking";
    c.put_number("clock.chrony.offset_ns", source, of(|t| t.offset_ns));
    c.put_number("clock.chrony.root_delay_ns", source, of(|t| t.root_delay_ns));
    c.put_number("clock.chrony.root_dispersion_ns", source, of(|t| t.root_dispersion_ns));
    c.put_text("clock.chrony.leap", source, tracking.map(|t| t.leap));
}

fn put_ptp(c: &mut Collector) {
    let source = "ptp4l, TIME_STATUS_NP and PARENT_DATA_SET";
    let connection = Ptp4l::connect(Path::new(PTP4L_SOCKET), 0, &std::env::temp_dir());
    let mut connection = connection.map_err(|e| e.problem().what);
    let mut answer = |of| {
        let connection = connection.as_mut().map_err(|why| why.clone())?;
        let asked = connection.ask(of).and_then(|()| connection.next(PATIENCE));
        asked.map_err(|e| e.problem().what)?.ok_or_else(|| "ptp4l does not answer".to_owned())
    };
    let status = answer(DataSet::TimeStatus).and_then(|answer| match answer {
        PtpAnswer::TimeStatus(status) => Ok(status),
        _ => Err("ptp4l does not report this value".to_owned()),
    });
    let grandmaster = answer(DataSet::Parent).and_then(|answer| match answer {
        PtpAnswer::Parent(grandmaster) => Ok(grandmaster),
        _ => Err("ptp4l does not report this value".to_owned()),
    });
    c.put_number("clock.ptp.master_offset_ns", source, status.as_ref().map(|s| s.offset_ns).map_err(Clone::clone));
    c.put_text("clock.ptp.grandmaster", source, grandmaster);
    c.put_flag("clock.ptp.grandmaster_present", source, status.map(|s| s.has_master));
}

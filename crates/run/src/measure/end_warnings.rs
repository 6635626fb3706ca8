//! Warnings about what an end lost or could not do, from the counters of its sample memory and of its receiver.

use crate::hot::Header;
use std::sync::atomic::Ordering::Relaxed;
use tailbound_driver::Code;
use tailbound_model::*;
use tailbound_wire::{Order, Role};

/// Warnings about one end. `dropped`: rows that did not fit into the memory. `takes`: number of calls of the driver to take a
/// message that failed, and the code of the last one.
pub(super) fn of(role: Role, order: &Order, header: &Header, dropped: u64, takes: (u64, Code)) -> Vec<Warning> {
    let mut all = Vec::new();
    let mut warn = |code, severity, text, remedy| {
        all.push(Warning::new(code, severity, text, remedy).at_end(role.word()));
    };
    match (dropped, order.ring.is_some()) {
        (0, _) => {}
        (_, false) => {
            let text = format!("{dropped} rows did not fit into the sample memory");
            warn("buffer_full", Severity::Invalid, text, "");
        }
        (_, true) => {
            let what = if !role.receives() { "slots were not sent" } else { "rows were not kept" };
            let text = format!("{dropped} {what}: the samples in memory were not stored in time");
            let remedy =
                "check whether the agent or the controller got no CPU, and whether the disk of the record is slow";
            warn("buffer_full", Severity::Invalid, text, remedy);
        }
    }
    let (failed, code) = takes;
    if failed > 0 {
        let text = format!("{failed} calls to take a message failed; the driver's last error: {code}");
        let remedy = "`tailbound driver check` finds what the driver does wrong";
        warn("receive_failed", Severity::Invalid, text, remedy);
    }
    let late = header.late.load(Relaxed);
    if late > 0 {
        let after = Nanos(crate::live_collect::settle_ns(&order.spec));
        let text = format!(
            "{late} answers came more than {after} after the message was sent, when its slot was already stored"
        );
        warn("late_answers", Severity::Warning, text, "use a longer timeout, or `collect: after`");
    }
    let raced = header.raced.load(Relaxed);
    if raced > 0 {
        let text = format!("{raced} answers came while their slot was being stored");
        warn("late_answers", Severity::Invalid, text, "use a longer timeout, or `collect: after`");
    }
    let refused = header.refused.load(Relaxed);
    if refused > 0 {
        let code = Code(header.refusal.load(Relaxed) as i32);
        let text = format!("{refused} answers were not sent; the driver's last refusal: {code}");
        warn("send_failed", Severity::Warning, text, "");
    }
    all
}

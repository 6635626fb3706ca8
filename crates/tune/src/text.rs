//! The receipt as text for a terminal or a file.

use crate::pair::Guard;
use crate::reboot::Reboot;
use crate::receipt::{CauseLine, Gain, Met, OfLimit, Outcome, Receipt, Replayed, RuleName, Tried, Verdict};
use std::fmt::Write;
use tailbound_model::Nanos;

/// Ratios of the CPU times between which a change of the CPU time is not worth a sentence, and above which it is a warning.
const CPU_LESS: f64 = 0.9;
const CPU_MORE: f64 = 1.1;

/// Number of causes that the text names.
const CAUSES: usize = 3;

/// The receipt as text: the gain first, then what was tried and why it was kept or reverted.
pub fn render(receipt: &Receipt) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", headline(receipt));
    if let Some(more) = receipt.gain.and_then(|gain| cpu_words(gain.cpu_time?)) {
        let _ = writeln!(text, "{more}");
    }
    if let Some(limit) = &receipt.limit {
        let _ = writeln!(text, "{}", limit_words(limit));
    }
    let _ = writeln!(text);
    causes(&mut text, "Causes before", &receipt.causes_before);
    if receipt.gain.is_some() {
        causes(&mut text, "Causes after", &receipt.causes_after);
    }
    if !receipt.tried.is_empty() {
        let _ = writeln!(text, "Tried, in this order:");
    }
    for tried in &receipt.tried {
        let _ = writeln!(text, "  {:<12} {}", word(&tried.outcome), tried.candidate.text);
        let _ = writeln!(text, "  {:<12} {}", "", evidence(tried));
        if let Some(more) = cpu_of(tried) {
            let _ = writeln!(text, "  {:<12} {more}", "");
        }
        if !tried.candidate.settings.is_empty() {
            let _ = writeln!(text, "  {:<12} --set '{}'", "", tried.candidate.settings.join("' --set '"));
        }
    }
    for reboot in &receipt.reboots {
        let _ = writeln!(text, "\n{}", reboot_words(reboot, receipt));
    }
    for changed in &receipt.changed {
        let _ = writeln!(text, "Changed with a reboot: {changed}.");
    }
    let rule = match receipt.rule {
        RuleName::Looks => "paired t test after 4, 6, 9 and 12 pairs",
        RuleName::LongLooks => "paired t test after 6, 9, 12, 16 and 20 pairs",
        RuleName::Symmetry => "symmetry e-process after each pair, up to 20 pairs",
    };
    let _ = writeln!(
        text,
        "\nRule: {rule}; error rate {} % for all candidates together. A gain of 20 % needs about {:.0} pairs here.",
        percent(receipt.alpha),
        receipt.baseline.needed_pairs.ceil().max(2.0),
    );
    text
}

/// The result of one candidate in a line.
pub fn result_line(tried: &Tried) -> String {
    let cpu = cpu_of(tried).map(|words| format!(". {words}")).unwrap_or_default();
    format!("{}: {}{cpu}", word(&tried.outcome), evidence(tried))
}

/// The gain of a receipt that was measured again, beside its first gain.
pub fn render_replay(receipt: &Receipt, replayed: &Replayed) -> String {
    let gain = &replayed.gain;
    let first =
        receipt.gain.as_ref().map(|first| format!("\nFirst measured: {}.", interval(first))).unwrap_or_default();
    let confirmed = if gain.confirmed { "The gain is confirmed" } else { "The gain is not confirmed" };
    let guard = gain.broke_guard.map(|guard| format!(", and {}", guard_words(guard))).unwrap_or_default();
    let limit = replayed.limit.as_ref().map(|limit| format!("\n{}", limit_words(limit))).unwrap_or_default();
    format!(
        "{confirmed}: {} is {} instead of {} ({}){guard}.{limit}{first}",
        receipt.figure,
        time(gain.with_ns),
        time(gain.without_ns),
        interval(gain),
    )
}

fn headline(receipt: &Receipt) -> String {
    let figure = &receipt.figure;
    let now = time(receipt.baseline.figure_ns);
    match &receipt.gain {
        Some(gain) if gain.confirmed => {
            let predicted = predicted(receipt).map(|ns| format!("; predicted: {}", time(ns))).unwrap_or_default();
            format!(
                "{figure} is {} instead of {} ({}){predicted}.",
                time(gain.with_ns),
                time(gain.without_ns),
                interval(gain)
            )
        }
        Some(gain) if gain.broke_guard.is_some() => format!(
            "The gain is not confirmed: {figure} is {} instead of {} ({}), but {}.",
            time(gain.with_ns),
            time(gain.without_ns),
            interval(gain),
            gain.broke_guard.map_or("", guard_words),
        ),
        Some(gain) => format!(
            "The gain is not confirmed on fresh trials: {figure} is {} instead of {} ({}).",
            time(gain.with_ns),
            time(gain.without_ns),
            interval(gain),
        ),
        None if receipt.tried.is_empty() => {
            format!("Nothing was tried: no rule answers a cause that was seen or counted here. {figure} is {now}.")
        }
        None => format!("Nothing that was tried makes {figure} smaller; it is {now}."),
    }
}

/// The smallest prediction among the kept changes, ns.
pub(crate) fn predicted(receipt: &Receipt) -> Option<f64> {
    let kept = receipt.tried.iter().filter(|t| t.outcome == Outcome::Kept);
    kept.filter_map(|t| t.candidate.predicted).map(|p| p.then_ns).reduce(f64::min)
}

fn causes(text: &mut String, title: &str, causes: &[CauseLine]) {
    if causes.is_empty() {
        let _ = writeln!(text, "{title}: none was seen.");
        return;
    }
    let _ = writeln!(text, "{title}:");
    for cause in causes.iter().take(CAUSES) {
        let _ = writeln!(text, "  {:>3.0} %  {}", 100.0 * cause.share, cause.text);
    }
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Kept => "kept",
        Outcome::Reverted | Outcome::BrokeGuard(_) => "reverted",
        Outcome::NotNeeded => "not needed",
        Outcome::NotPossible(_) => "not possible",
        Outcome::NoTimeLeft => "not tried",
    }
}

fn evidence(tried: &Tried) -> String {
    let measured = match tried.ratio {
        Some([value, low, high]) => {
            format!(
                "{} of the figure without it (95 %: {} to {}), {} pairs",
                share(value),
                share(low),
                share(high),
                tried.pairs
            )
        }
        None => String::new(),
    };
    match (&tried.outcome, tried.verdict) {
        (Outcome::NotPossible(reason), _) => reason.clone(),
        (Outcome::NoTimeLeft, _) => "the time of --budget does not suffice".to_owned(),
        (Outcome::BrokeGuard(guard), _) => format!("{measured}: better, but {}", guard_words(*guard)),
        (Outcome::NotNeeded, _) => {
            let beside = tried.left_out.and_then(|out| out.ratio).map(|[value, low, high]| {
                format!(" (beside them: {} of the figure, {} to {})", share(value), share(low), share(high))
            });
            let beside = beside.unwrap_or_default();
            format!("{measured}: better, but not shown to be needed beside the other kept changes{beside}")
        }
        (_, Some(Verdict::Futile)) if tried.ratio.is_some_and(|[_, low, _]| low > 1.0) => {
            let words = verdict_words(Verdict::Futile);
            format!("{measured}: {words}; it looks worse, which {} pairs do not prove", tried.pairs)
        }
        (_, Some(verdict)) => format!("{measured}: {}", verdict_words(verdict)),
        (_, None) => measured,
    }
}

/// A sentence about the CPU time with a candidate that was measured, if it was kept or its rule names the CPU time.
fn cpu_of(tried: &Tried) -> Option<String> {
    let (is_kept, is_watched) = (tried.outcome == Outcome::Kept, tried.candidate.watches_cpu_time);
    match tried.cpu_time {
        _ if tried.pairs == 0 || !(is_kept || is_watched || broke_cpu_guard(tried)) => None,
        None => (is_watched || broke_cpu_guard(tried)).then(|| "The CPU time of the ends was not read.".to_owned()),
        Some(ratio) if is_kept => cpu_words(ratio).or_else(|| is_watched.then(|| times(ratio))),
        Some(ratio) => Some(times(ratio)),
    }
}

fn broke_cpu_guard(tried: &Tried) -> bool {
    tried.outcome == Outcome::BrokeGuard(Guard::CpuTime)
}

/// A sentence about the CPU time with kept changes, if its interval lies outside of 0.9 to 1.1.
fn cpu_words(ratio: [f64; 3]) -> Option<String> {
    let [_, low, high] = ratio;
    match (low > CPU_MORE, high < CPU_LESS) {
        (true, _) => Some(format!("Warning: {}", times(ratio))),
        (_, true) => Some(times(ratio)),
        _ => None,
    }
}

fn times([value, low, high]: [f64; 3]) -> String {
    format!("CPU time per message x {value:.2} (95 %: {low:.2} to {high:.2}).")
}

fn reboot_words(reboot: &Reboot, receipt: &Receipt) -> String {
    let [value, low, high] = reboot.ratio;
    format!(
        "The host was rebooted during this run (boot {}, then {}). {} equal pairs after it: {} is {}, {} of the baseline (95 %: {} \
         to {}). No pair has a trial from before and one from after.",
        reboot.before,
        reboot.after,
        reboot.pairs,
        receipt.figure,
        time(reboot.figure_ns),
        share(value),
        share(low),
        share(high),
    )
}

/// Whether a limit is met before and after, e.g. "Limit of b.yaml: p99 of round_trip at most 1 ms. Before: not met, ..."
fn limit_words(limit: &OfLimit) -> String {
    let word = |met: Met| match met {
        Met::Met => "met",
        Met::NotMet => "not met",
        Met::Undecided => "undecided",
    };
    let mut text = format!("L{}.", &limit.declared.to_string()[1..]);
    for (when, side) in [("Before", &limit.before), ("After", &limit.after)] {
        if let Some(side) = side {
            let _ = write!(text, " {when}: {}, {}.", word(side.met), side.found);
        }
    }
    text
}

fn guard_words(guard: Guard) -> &'static str {
    match guard {
        Guard::Median => "the median is larger",
        Guard::Missed => "more messages are lost or late beyond the timeout",
        Guard::CpuTime => "the CPU time per message is above the limit of --guard, or was not read",
    }
}

fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoWorse => "no gain found, and no more than 5 % worse",
        Verdict::Futile => "a gain of 10 % is excluded",
        Verdict::Undecided => "undecided",
    }
}

fn interval(gain: &Gain) -> String {
    let [value, low, high] = gain.ratio;
    format!("{}, 95 %: {} to {}, {} fresh pairs", share(value), share(low), share(high), gain.pairs)
}

/// A ratio as a percentage with three significant digits.
fn share(ratio: f64) -> String {
    format!("{} %", percent(ratio))
}

fn percent(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    let digits = if percent >= 100.0 {
        0
    } else if percent >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{percent:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A time with three significant digits.
fn time(ns: f64) -> String {
    let digits = ns.max(1.0).log10().floor() as i32 - 2;
    let step = 10_f64.powi(digits.max(0));
    Nanos(((ns / step).round() * step) as i64).to_string()
}

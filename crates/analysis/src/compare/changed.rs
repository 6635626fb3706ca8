//! Finds the circumstances that differ between two runs, apart from their figures.

use serde_json::Value;
use std::collections::BTreeMap;
use tailbound_document::Change;
use tailbound_model::FactValue;
use tailbound_record::Record;

/// Facts that describe one moment, such as a load average: they differ between any two runs, so a difference does not
/// show a change of the system.
const OF_A_MOMENT: [&str; 9] = [
    "cpu.frequency_now_highest_khz",
    "cpu.frequency_now_lowest_khz",
    "cpu.steal_ppm",
    "cpu.steal_ticks",
    "kernel.uptime_s",
    "load.1min",
    "load.5min",
    "memory.available_kib",
    "memory.swap_free_kib",
];

/// End of the key of a setting of Cyclone DDS that is drawn anew in each run.
const RANDOM_SEED: &str = "[@seed]";

/// Whether a fact describes one moment: one of the list above, or an offset of a clock with its error.
fn is_of_a_moment(key: &str) -> bool {
    OF_A_MOMENT.contains(&key) || key.starts_with("clock.") && key.ends_with("_ns")
}

/// Returns the circumstances that differ between two records, or that only one of the records contains.
pub(crate) fn between(a: &Record, b: &Record) -> Vec<Change> {
    let (a, b) = (described(a), described(b));
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let text = |side: &BTreeMap<String, String>, key: &String| side.get(key).cloned().unwrap_or("not described".into());
    let change = |key: &String| Change { what: key.clone(), a: text(&a, key), b: text(&b, key) };
    keys.into_iter().map(change).filter(|c| c.a != c.b).collect()
}

fn described(record: &Record) -> BTreeMap<String, String> {
    let manifest = &record.manifest;
    let mut all = BTreeMap::new();
    all.insert("tailbound".to_owned(), manifest.tailbound.clone());
    all.insert("study".to_owned(), manifest.plan.study.clone());
    for (i, facts) in record.hosts().into_iter().flatten().enumerate() {
        let at = if i == 0 { String::new() } else { format!("host {}: ", i + 1) };
        all.insert(format!("{at}host"), facts.host);
        all.insert(format!("{at}boot"), facts.boot_id);
        for fact in facts.facts.into_iter().filter(|f| !is_of_a_moment(&f.key)) {
            let value = match fact.value {
                FactValue::Text(text) if fact.key.starts_with("irq.") => without_counts(&text),
                FactValue::Text(text) => text,
                FactValue::Number(n) => n.to_string(),
                FactValue::Flag(flag) => if flag { "yes" } else { "no" }.to_owned(),
                FactValue::Unknown(_) => "not known".to_owned(),
            };
            all.insert(format!("{at}{}", fact.key), value);
        }
    }
    for (name, description) in &manifest.drivers {
        for key in ["version", "versions", "library", "native"] {
            if let Some(value) = description.get(key) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                all.insert(format!("driver {name}: {key}"), text);
            }
        }
    }
    // Settings that are the same in all conditions are compared here; settings that vary are matched condition by
    // condition.
    let specs = manifest.plan.conditions.iter().filter_map(|c| serde_json::to_value(&c.spec).ok());
    let mut same: Option<BTreeMap<String, String>> = None;
    for spec in specs {
        let mut leaves = BTreeMap::new();
        flatten("", &spec, &mut leaves);
        match &mut same {
            None => same = Some(leaves),
            Some(same) => same.retain(|key, value| leaves.get(key) == Some(value)),
        }
    }
    all.extend(same.unwrap_or_default());
    for (end, of_end) in manifest.trials.first().iter().flat_map(|t| &t.ends) {
        for (policy, value) in &of_end.qos {
            all.insert(format!("{end} qos.{policy}"), value.clone());
        }
        if let Some(value) = &of_end.transport {
            let mut leaves = BTreeMap::new();
            flatten(&format!("{end} transport"), &of_every_run(value), &mut leaves);
            leaves.retain(|key, _| !key.ends_with(RANDOM_SEED));
            all.extend(leaves.into_iter().map(|(key, text)| (key, without_names_of_labs(&text))));
        }
    }
    all
}

/// What a driver says about its transport, without what is new in each run (identifiers of participants, lines of its log) and
/// without the text of the configuration, which repeats its values.
fn of_every_run(transport: &Value) -> Value {
    const NEW_OR_REPEATED: [&str; 4] = ["participant", "participants", "notes", "xml"];
    let Value::Object(members) = transport else { return transport.clone() };
    let kept = members.iter().filter(|(key, _)| !NEW_OR_REPEATED.contains(&key.as_str()));
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Replaces the part of an interface's name that is new in each run: `tb344f34a7-p0` becomes `tb*-p0`.
fn without_names_of_labs(text: &str) -> String {
    const DIGITS: usize = 8;
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("tb") {
        let (before, name) = rest.split_at(at + 2);
        kept.push_str(before);
        let is_name = name.as_bytes().get(DIGITS) == Some(&b'-')
            && name.bytes().take(DIGITS).all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if is_name {
            kept.push('*');
        }
        rest = if is_name { &name[DIGITS..] } else { name };
    }
    kept + rest
}

/// Removes the number of interrupts since boot, which grows all the time, from each interrupt of a fact about a network
/// card: `128 enp1s0: CPUs 0-1, on 1, 42 times` becomes `128 enp1s0: CPUs 0-1, on 1`.
fn without_counts(fact: &str) -> String {
    let mut kept = String::new();
    for (i, part) in fact.split(", ").enumerate() {
        let after_number = part.trim_start_matches(|c: char| c.is_ascii_digit());
        match after_number.strip_prefix(" times").filter(|_| after_number.len() < part.len()) {
            Some(next) => kept.push_str(next),
            None => {
                kept.push_str(if i == 0 { "" } else { ", " });
                kept.push_str(part);
            }
        }
    }
    kept
}

/// Adds every value of a JSON document to `leaves`, under its dotted path such as `a.b.0`.
fn flatten(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(members) => members.iter().for_each(|(key, member)| flatten(&below(key), member, leaves)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| flatten(&below(&i.to_string()), item, leaves));
        }
        Value::Null => {}
        Value::String(text) => drop(leaves.insert(path.to_owned(), text.clone())),
        other => drop(leaves.insert(path.to_owned(), other.to_string())),
    }
}

/// Factors that have the same level in all conditions of the record, with this level.
pub(crate) fn shared(record: &Record) -> BTreeMap<String, String> {
    let conditions = &record.manifest.plan.conditions;
    let Some(first) = conditions.first() else { return BTreeMap::new() };
    let same = |(factor, level): &(&String, &String)| conditions.iter().all(|c| c.levels.get(*factor) == Some(level));
    first.levels.iter().filter(same).map(|(f, l)| (f.clone(), l.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::{flatten, is_of_a_moment, of_every_run, without_counts, without_names_of_labs};
    use std::collections::BTreeMap;

    #[test]
    fn what_is_new_in_each_run_is_no_change_of_the_transport() {
        let described = |run: &str, name: &str, size: u32| {
            let value = serde_json::json!({ "participant": run, "participants": [run], "xml": format!("<a>{name}</a>"),
                "notes": [format!("started by {run}")],
                "interfaces": format!("{name}-p0 (index 2), {name}-p1"), "fragment_size": size });
            let mut leaves = BTreeMap::new();
            flatten("ping transport", &of_every_run(&value), &mut leaves);
            leaves.into_iter().map(|(key, text)| (key, without_names_of_labs(&text))).collect::<Vec<_>>()
        };
        let first = described("01107f9d", "tb344f34a7", 1_344);
        assert_eq!(first, described("0110759b", "tb71c64eca", 1_344));
        assert_eq!(first[1], ("ping transport.interfaces".into(), "tb*-p0 (index 2), tb*-p1".into()));
        assert_ne!(first, described("01107f9d", "tb344f34a7", 1_300));
        for same in ["tb", "", "tbd-1", "tb344f34a", "atb12345678x", "tb34\u{e4}4f34-"] {
            assert_eq!(without_names_of_labs(same), same);
        }
    }

    #[test]
    fn offsets_of_clocks_are_no_changes_and_their_names_are() {
        let of_a_moment = ["clock.ptp0.offset_ns", "clock.ptp0.half_width_ns", "clock.chrony.offset_ns", "load.1min"];
        assert!(of_a_moment.into_iter().all(is_of_a_moment));
        let of_the_system = ["clock.ptp0.name", "clock.ptp0.read_by", "clock.tai_offset_s", "timer.slack_ns"];
        assert!(!of_the_system.into_iter().any(is_of_a_moment));
    }

    #[test]
    fn the_number_of_interrupts_is_no_change_and_their_cpu_is_one() {
        let fact = |cpu: u32, count: u32| {
            format!(
                "37 virtio2-config: CPUs 0-1, on 0, 0 times; 38 virtio2-input.0: CPUs 0,1, on {cpu}, {count} times; and 3 more"
            )
        };
        let expected = "37 virtio2-config: CPUs 0-1, on 0; 38 virtio2-input.0: CPUs 0,1, on 1; and 3 more";
        assert_eq!(without_counts(&fact(1, 42)), expected);
        assert_eq!(without_counts(&fact(1, 4711)), expected);
        assert_ne!(without_counts(&fact(0, 42)), expected);
        assert_eq!(without_counts("/sys shows no network card"), "/sys shows no network card");
    }
}

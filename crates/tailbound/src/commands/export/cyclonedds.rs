//! Cyclone DDS 11: the very configuration that the driver runs with, and its threads.

use super::{Source, xml};
use tailbound_run::vendor;

/// A file for CYCLONEDDS_URI.
pub fn configuration(mut source: Source) -> Result<String, String> {
    let scheduling = &source.end.scheduling;
    let threads = vendor::threads(scheduling, source.driver);
    for (role, policy) in &threads.left_out {
        source.notes.push(format!("role {role}: {policy}: Cyclone has `realtime` (fifo) and `timeshare` only"));
    }
    let asked = scheduling.policy.is_some() || scheduling.cpus.is_some() || !scheduling.roles.is_empty();
    // A configuration of the driver's user says it all.
    if asked && source.option("threads").is_none() {
        source.options.push(("threads".into(), threads.option));
    }
    source.notes.push(format!("domain {}: given where the participant is made", source.spec.domain));
    let main = scheduling.of_role("main", false);
    if main.policy.is_some() || main.cpus.is_some() {
        source.notes.push(format!("threads of the application itself: {main}"));
    }
    if !source.spec.qos.is_empty() {
        let qos: Vec<String> = source.spec.qos.iter().map(|(k, v)| format!("{k} {v}")).collect();
        source.notes.push(format!("QoS is not in this file: {}", qos.join(", ")));
    }
    let own = ["domain", "naming", "instance", "transport"];
    let options: Vec<(&str, &str)> =
        source.options.iter().map(|(k, v)| (k.as_str(), v.as_str())).filter(|(k, _)| !own.contains(k)).collect();
    let dense = tailbound_driver_cyclonedds::configuration(&options)?;
    let mut head = vec![format!("Cyclone DDS 11: {}", source.what), "For CYCLONEDDS_URI=file:///...".into()];
    head.extend(source.notes.iter().map(|note| format!("- {note}")));
    Ok(xml::comment(&head) + &xml::indented(&dense))
}

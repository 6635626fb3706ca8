//! Writes a configuration of Cyclone DDS 11: the configuration that the driver uses, and settings of threads.

use super::{Source, xml};
use crate::failure::Failure;
use tailbound_run::vendor_threads;

/// Makes the text of a configuration file of Cyclone DDS, for CYCLONEDDS_URI.
pub fn configuration(mut source: Source) -> Result<String, Failure> {
    let scheduling = &source.end.scheduling;
    let threads = vendor_threads::threads(scheduling, source.driver);
    for (role, policy) in &threads.left_out {
        source.notes.push(format!(
            "role {role}: {policy} is not in this file: Cyclone DDS has only `realtime` (fifo) and `timeshare`"
        ));
    }
    let has_policies = scheduling.policy.is_some() || scheduling.cpus.is_some() || !scheduling.roles.is_empty();
    // If the user set the option `threads`, it is not replaced.
    if has_policies && source.option("threads").is_none() {
        source.options.push(("threads".into(), threads.option));
    }
    source.notes.push(format!(
        "domain {} is not in this file: the application sets the domain when it creates its participant",
        source.spec.domain
    ));
    let main = scheduling.of_role("main", false);
    if main.policy.is_some() || main.cpus.is_some() {
        source.notes.push(format!("scheduling of the application's own threads is not in this file: {main}"));
    }
    if !source.spec.qos.is_empty() {
        let qos: Vec<String> = source.spec.qos.iter().map(|(k, v)| format!("{k} {v}")).collect();
        source.notes.push(format!("QoS is not in this file: {}", qos.join(", ")));
    }
    let own = ["domain", "naming", "instance", "transport"];
    let options: Vec<(&str, &str)> =
        source.options.iter().map(|(k, v)| (k.as_str(), v.as_str())).filter(|(k, _)| !own.contains(k)).collect();
    let dense = tailbound_driver_cyclonedds::configuration(&options).map_err(|fail| Failure::bad_input(fail.text))?;
    let mut head = vec![format!("Cyclone DDS 11: {}", source.what), "For CYCLONEDDS_URI=file:///...".into()];
    head.extend(source.notes.iter().map(|note| format!("- {note}")));
    Ok(xml::comment(&head) + &xml::indented(&dense))
}

/// Makes the text of a configuration of Cyclone DDS that only schedules threads.
pub fn threads(source: Source) -> Result<String, Failure> {
    let threads = vendor_threads::threads(&source.end.scheduling, source.driver);
    let left_out = |(role, policy): &(String, tailbound_model::Policy)| {
        format!("role {role}: {policy} is not in this file: Cyclone DDS has only `realtime` (fifo) and `timeshare`")
    };
    let notes: Vec<String> = threads.left_out.iter().map(left_out).collect();
    let options = [("threads", threads.option.as_str())];
    let dense = tailbound_driver_cyclonedds::configuration(&options).map_err(|fail| Failure::bad_input(fail.text))?;
    let inside = dense.split_once("<Threads>").and_then(|(_, rest)| rest.split_once("</Threads>"));
    let inside = inside.map_or("", |(inside, _)| inside);
    let head = if notes.is_empty() { String::new() } else { xml::comment(&notes) };
    let dense = format!("<CycloneDDS><Domain Id=\"any\"><Threads>{inside}</Threads></Domain></CycloneDDS>");
    Ok(head + &xml::indented(&dense))
}

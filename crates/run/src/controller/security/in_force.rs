//! Compares the protection that drivers report with the protection that the study asks for.

use serde_json::Value;
use std::collections::BTreeMap;
use tailbound_model::*;
use tailbound_record::TrialRecord;
use tailbound_wire::EndReady;

/// What a driver reports about DDS Security: member `security` of the description of its transport.
fn reported(end: &EndReady) -> Option<&Value> {
    end.transport.as_ref()?.get("security").filter(|security| !security.is_null())
}

/// Facts about the DDS Security of a trial, before its ends have reported anything.
pub(in crate::controller) fn facts(spec: &TrialSpec) -> Option<SecurityFacts> {
    let asked = spec.security.as_ref()?;
    Some(SecurityFacts {
        governance: asked.governance.to_string(),
        protections: asked.governance.protections().to_string(),
        certificates: asked.files.clone().map_or_else(|| "made for the run".into(), |files| format!("of {files}")),
        in_force: BTreeMap::new(),
    })
}

/// Writes into the record of a trial what the driver of an end reports.
pub(in crate::controller) fn record(trial: &mut TrialRecord, end: &EndReady) {
    let facts = trial.path.as_mut().and_then(|path| path.security.as_mut());
    if let (Some(facts), Some(reported)) = (facts, reported(end)) {
        facts.in_force.insert(end.name.clone(), words(reported));
    }
}

/// Words about the report of a driver: each part and its protection, or the plug-ins if the driver reports no parts.
fn words(reported: &Value) -> String {
    let parts = reported["in_force"].as_object().map(|parts| {
        let part = |(part, kind): (&String, &Value)| format!("{part} {}", kind.as_str().unwrap_or("not known"));
        parts.iter().map(part).collect::<Vec<_>>().join(", ")
    });
    match (parts, reported["from"].as_str()) {
        (Some(parts), Some(from)) if !parts.is_empty() => format!("{parts} ({from})"),
        (Some(parts), None) if !parts.is_empty() => parts,
        _ => format!("plug-ins {}", reported["plugins"].as_str().unwrap_or("loaded")),
    }
}

/// Warns if a driver reports no security, or another protection than the study asks for. The trial is then invalid.
pub(in crate::controller) fn differences(spec: &TrialSpec, end: &EndReady) -> Option<Warning> {
    let asked = spec.security.as_ref()?;
    let text = match reported(end) {
        None => "the study asks for DDS Security, the driver reports none".to_owned(),
        Some(reported) => {
            let parts = asked.governance.protections().parts();
            let (part, kind, found) = parts.iter().find_map(|(part, kind)| {
                let found = reported["in_force"].get(part)?.as_str()?;
                (found != kind.word()).then_some((part, kind.word(), found))
            })?;
            format!("the governance of the study says {part} {kind}, the driver reports {part} {found}")
        }
    };
    let remedy = "use the same release of Tailbound on all hosts, or another driver";
    Some(Warning::new("security_not_as_asked", Severity::Invalid, text, remedy).at_end(end.name.clone()))
}

/// Adds to the finding that the ends have not found each other that only some of them have DDS Security.
pub(in crate::controller) fn hint<'a>(
    finding: Option<String>,
    mut ends: impl Iterator<Item = &'a EndReady> + Clone,
) -> Option<String> {
    let finding = finding?;
    let secured = ends.clone().find(|end| reported(end).is_some());
    let plain = ends.find(|end| end.transport.is_some() && reported(end).is_none());
    Some(match (secured, plain) {
        (Some(secured), Some(plain)) => format!(
            "{finding}; a likely reason: {} has DDS Security and {} has none, and such participants do not find each \
             other",
            secured.name, plain.name
        ),
        _ => finding,
    })
}

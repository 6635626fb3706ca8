//! Text form of levels: equal values have equal texts, so `1024 B` and `1 KiB` are the same level.

use crate::format::{ArrangementKeys, Cpus, LoadKeys, PathChoice, SchedulingKeys, SecurityChoice, VlanChoice};
use crate::read::{At, read};
use crate::resolve::{arrangement, load_spec, path_spec, scheduling, vlan};
use crate::shape::Shape;
use crate::tree::{Kind, Node};
use std::fmt::Display;
use std::str::FromStr;
use tailbound_model::{ByteSize, Governance, Nanos, Rate, ReceiveMode};

/// The canonical text of a level. An invalid level keeps its own text; its error is reported when the level is read.
pub(crate) fn text(node: &Node, shape: &Shape) -> String {
    typed(node, shape).unwrap_or_else(|| generic(node, shape))
}

/// Text of a level whose type is known, e.g. `veth mtu 9000`, `fifo 80`; `None` if the type has no special text.
fn typed(node: &Node, shape: &Shape) -> Option<String> {
    match shape {
        Shape::Choice { name, .. } if name == "PathChoice" => {
            path_spec(&read::<PathChoice>(node).ok()?).ok().map(|path| path.to_string())
        }
        Shape::Keys { name, .. } if name == "SchedulingKeys" => {
            let scheduling = scheduling(&read::<SchedulingKeys>(node).ok()?, node.at).ok()?;
            let plain = scheduling.roles.is_empty() && !scheduling.by_vendor;
            plain.then(|| scheduling.policy.map(|policy| policy.to_string())).flatten()
        }
        Shape::Keys { name, .. } if name == "ArrangementKeys" => {
            let keys = At { at: node.at, value: read::<ArrangementKeys>(node).ok()? };
            // The receive mode is not known here. If executors are given, the mode must be `executor`.
            let receive = keys.value.executors.map_or(ReceiveMode::Block, |_| ReceiveMode::Executor);
            arrangement(&keys, receive).ok().map(|a| a.to_string())
        }
        Shape::Keys { name, .. } if name == "VlanChoice" => {
            let asked = vlan(&read::<VlanChoice>(node).ok()?).ok()?;
            Some(asked.map_or_else(|| "off".to_owned(), |vlan| vlan.to_string()))
        }
        Shape::Keys { name, .. } if name == "SecurityChoice" => match read::<SecurityChoice>(node).ok()? {
            SecurityChoice::Off => Some("off".to_owned()),
            SecurityChoice::On(keys) if keys.files.is_none() => Some(Governance::from(keys.governance).to_string()),
            SecurityChoice::On(_) => None,
        },
        Shape::Keys { name, .. } if name == "HostKeys" => {
            let nothing = matches!(&node.kind, Kind::Null) || matches!(&node.kind, Kind::Map(keys) if keys.is_empty());
            nothing.then(|| "as found".into())
        }
        Shape::List => {
            let loads = read::<Vec<At<LoadKeys>>>(node).ok()?;
            let loads: Vec<String> = loads.iter().filter_map(|l| Some(load_spec(&l.value).ok()?.to_string())).collect();
            (!loads.is_empty()).then(|| loads.join(" + "))
        }
        Shape::Leaf { format } => {
            let written = node.text()?;
            match format.as_str() {
                "size" => Some(spelled::<ByteSize>(written)),
                "duration" | "warm-up" => Some(spelled::<Nanos>(written)),
                "rate" => Some(spelled::<Rate>(written)),
                "cpus" => match read::<Cpus>(node).ok()?.0 {
                    Some(list) => Some(list.to_string()),
                    None => Some("any".into()),
                },
                _ => None,
            }
        }
        _ => None,
    }
}

/// Text of a quantity as its unit type writes it. If digits would be lost, the text of the study file is kept.
fn spelled<T: FromStr + Display + PartialEq>(written: &str) -> String {
    let written = written.trim();
    let Ok(value) = written.parse::<T>() else { return written.into() };
    let shown = value.to_string();
    if shown.parse().is_ok_and(|again: T| again == value) { shown } else { written.into() }
}

fn generic(node: &Node, shape: &Shape) -> String {
    match &node.kind {
        Kind::Null => "nothing".into(),
        Kind::Text(text) => text.trim().into(),
        Kind::List(items) if items.is_empty() => "none".into(),
        Kind::List(items) => {
            let any = Shape::Leaf { format: String::new() };
            let items: Vec<String> = items.iter().map(|item| text(item, &any)).collect();
            format!("[{}]", items.join(", "))
        }
        Kind::Map(entries) => {
            let any = Shape::Leaf { format: String::new() };
            let inner = |key: &str| match shape {
                Shape::Keys { keys, .. } => keys.get(key).unwrap_or(&any),
                Shape::Choice { words, .. } => words.get(key).and_then(Option::as_ref).unwrap_or(&any),
                Shape::AnyWord(content) | Shape::Named(content) => content,
                _ => &any,
            };
            let mut parts: Vec<String> = entries
                .iter()
                .map(|(key, value)| match value.kind {
                    Kind::Null => key.text.clone(),
                    Kind::Map(ref inner) if inner.is_empty() => key.text.clone(),
                    _ => format!("{} {}", key.text, text(value, inner(&key.text))),
                })
                .collect();
            parts.sort();
            parts.join(", ")
        }
    }
}

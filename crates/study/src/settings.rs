//! Applies `--set key=value` arguments to a study from which the section `factors` has already been taken out. A key is
//! written as in `factors`: names of nested keys, separated by dots.

use crate::error::{Fault, advice};
use crate::factors::{Factor, Study, factor};
use crate::path::{Miss, Mode, Setting};
use crate::shape::{self, NOT_VARIED};
use crate::source::Pos;
use crate::tree::{Key, Kind, Node, parse};

/// Applies one `--set` argument; `source` is the index of the argument among the texts from which the plan is made.
pub(crate) fn apply(study: &mut Study, argument: &str, source: u16) -> Result<(), Fault> {
    let Some((path, written)) = argument.split_once('=') else {
        let at = Pos { source, start: 0, len: argument.len() as u32 };
        let fault = Fault::new(at, format!("`{argument}` is not of the form key=value"));
        return Err(fault.help("for example `--set payload=1KiB` or `--set payload=[64B,1KiB]`"));
    };
    let at = Pos { source, start: 0, len: path.len() as u32 };
    let path = path.trim();
    // Spaces replace the key, so positions in the value are positions in the argument.
    let padded = format!("{:width$}{written}", "", width = argument.len() - written.len());
    let mut value = parse(&padded, source)?;
    if value.kind == Kind::Null {
        value.at = at;
    }
    if let Some(factor) = study.factors.iter_mut().find(|f| f.names.is_some() && f.path == path) {
        return choose(factor, value);
    }
    let known = shape::setting_paths();
    let setting = Setting { path, at, known: &known, mode: Mode::Replace };
    if shape::at(path).is_none() || path == "factors" {
        return Err(setting.unknown());
    }
    if in_levels(&mut study.factors, &setting, &value)? {
        return Ok(());
    }
    let varied = !NOT_VARIED.contains(&path.split('.').next().unwrap_or(""));
    let levels = matches!(value.kind, Kind::List(_)) && varied;
    let below_factor = study.factors.iter().any(|f| path.starts_with(&format!("{}.", f.path)));
    let existing = study.factors.iter().position(|f| f.path == path);
    if levels || existing.is_some() || below_factor {
        let place = value.at;
        let list = if levels { value } else { Node { at: place, kind: Kind::List(vec![value]) } };
        let factor = factor(path, at, list)?;
        if existing.is_none() {
            drop_rivals(&mut study.base, path);
            release(&mut study.base, &path.split('.').collect::<Vec<_>>());
        }
        replace(&mut study.factors, existing, factor);
        return Ok(());
    }
    drop_rivals(&mut study.base, path);
    match setting.apply(&mut study.base, shape::study(), value) {
        Ok(()) => Ok(()),
        Err(Miss::Fault(fault) | Miss::OtherChoice(fault)) => Err(fault),
    }
}

/// Sets a value in every named level that sets the same key, or that sets a map which contains the key. Returns true if
/// there was such a level. If one level of a factor sets the key, all levels of the factor set the key afterwards,
/// because the given value applies to every condition.
fn in_levels(factors: &mut [Factor], setting: &Setting<'_>, value: &Node) -> Result<bool, Fault> {
    let mut found = false;
    for factor in factors.iter_mut().filter(|f| f.names.is_some()) {
        let mut whole = false;
        for (key, node) in factor.levels.iter_mut().flat_map(entries) {
            let Some(rest) = setting.path.strip_prefix(key.text.as_str()) else { continue };
            if rest.is_empty() {
                *node = value.clone();
                whole = true;
            } else if rest.starts_with('.') {
                let mut root = Node { at: node.at, kind: Kind::Map(Vec::new()) };
                let above = Setting { path: &key.text, at: key.at, known: setting.known, mode: Mode::Replace };
                let set = above.apply(&mut root, shape::study(), node.clone());
                match set.and_then(|()| setting.apply(&mut root, shape::study(), value.clone())) {
                    Ok(()) => {}
                    Err(Miss::OtherChoice(_)) => continue,
                    Err(Miss::Fault(fault)) => return Err(fault),
                }
                let inner = key.text.split('.').try_fold(&root, |at, segment| at.get(segment));
                *node = inner.cloned().unwrap_or_else(|| node.clone());
                found = true;
            }
        }
        for level in factor.levels.iter_mut().filter(|level| whole && level.get(setting.path).is_none()) {
            if let Kind::Map(entries) = &mut level.kind {
                entries.push((Key { at: setting.at, text: setting.path.to_owned() }, value.clone()));
            }
        }
        found |= whole;
    }
    Ok(found)
}

/// The entries of a named level: each key that the level sets, with its value.
fn entries(level: &mut Node) -> impl Iterator<Item = &mut (Key, Node)> {
    match &mut level.kind {
        Kind::Map(entries) => entries.iter_mut(),
        _ => [].iter_mut(),
    }
}

/// Keeps only the named levels of a factor that the value lists.
fn choose(factor: &mut Factor, value: Node) -> Result<(), Fault> {
    let chosen = match value.kind {
        Kind::List(items) => items,
        _ => vec![value],
    };
    let names = factor.names.clone().unwrap_or_default();
    let (mut levels, mut kept) = (Vec::new(), Vec::new());
    for node in chosen {
        let written = node.text().unwrap_or_default().trim();
        let Some(index) = names.iter().position(|name| name == written) else {
            let all: Vec<&str> = names.iter().map(String::as_str).collect();
            let reason = format!("`{written}` is not a level of `{}`", factor.path);
            return Err(Fault::new(node.at, reason).help(advice(written, &all)));
        };
        if kept.contains(&names[index]) {
            let reason = format!("the level `{written}` of `{}` is given twice", factor.path);
            return Err(Fault::new(node.at, reason).help("remove one of the two levels"));
        }
        levels.push(factor.levels[index].clone());
        kept.push(names[index].clone());
    }
    if levels.is_empty() {
        let help = format!("the levels of the factor are: {}", names.join(", "));
        return Err(Fault::new(factor.at, format!("no level of the factor `{}` is selected", factor.path)).help(help));
    }
    (factor.levels, factor.names) = (levels, Some(kept));
    Ok(())
}

fn replace(factors: &mut Vec<Factor>, existing: Option<usize>, factor: Factor) {
    match existing {
        Some(index) => factors[index] = factor,
        None => factors.push(factor),
    }
}

/// Removes the fixed value of a key, because a factor replaces the value.
fn release(node: &mut Node, path: &[&str]) {
    // The name of a host setting may contain dots.
    let mut keys = (1..=path.len()).map(|n| (path[..n].join("."), &path[n..]));
    match keys.find(|(key, _)| node.get(key).is_some()) {
        Some((key, [])) => drop(node.remove(&key)),
        Some((key, rest)) => {
            if let Some(inner) = node.get_mut(&key) {
                release(inner, rest);
            }
        }
        None => {
            // The segment is not a key here, so it may be an option of the chosen word.
            if let Kind::Map(entries) = &mut node.kind
                && let [(_, options)] = entries.as_mut_slice()
                && !path.is_empty()
            {
                release(options, path);
            }
        }
    }
}

/// The keys of the length of a trial exclude each other: setting one of them removes the others from the study.
fn drop_rivals(base: &mut Node, path: &str) {
    const LENGTHS: [&str; 3] = ["slots", "duration", "loops"];
    let Some(key) = LENGTHS.iter().find(|key| path.rsplit('.').next() == Some(key)) else { return };
    let Some(measure) = base.get_mut("measure").filter(|_| path.starts_with("measure.")) else { return };
    if let Kind::Map(entries) = &mut measure.kind {
        for (_, options) in entries {
            LENGTHS.iter().filter(|other| *other != key).for_each(|other| drop(options.remove(other)));
        }
    }
}

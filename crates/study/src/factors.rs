//! Factors: key paths of the study (such as `measure.slots`) with their levels, and the combinations of levels.

use crate::error::Fault;
use crate::levels;
use crate::path::{Miss, Mode, Setting, reserved};
use crate::shape::{self, NOT_VARIED, RESERVED};
use crate::source::Pos;
use crate::tree::{Key, Kind, Node};

/// Largest number of conditions in a study; a larger number is probably a mistake.
const MAX_CONDITIONS: usize = 10_000;

/// One factor of the study with its levels.
#[derive(Debug, Clone)]
pub(crate) struct Factor {
    /// Path of the factor, as written in the study, for example `measure.slots`.
    pub path: String,
    /// Position in the study at which the factor's path is written.
    pub at: Pos,
    /// Levels of the factor, in the order of the study.
    pub levels: Vec<Node>,
    /// Names of the levels, if each level is a map of several paths; the path of the factor is then a name too.
    pub names: Option<Vec<String>>,
}

/// A study, divided into keys with a fixed value and factors.
#[derive(Debug)]
pub(crate) struct Study {
    /// The YAML tree of the study without the key `factors`.
    pub base: Node,
    /// The factors of the study, the factor that varies most slowly first.
    pub factors: Vec<Factor>,
}

/// One combination of levels, in the form of a YAML tree of a study.
pub(crate) struct Combination {
    /// The tree of the study with the chosen levels inserted.
    pub root: Node,
    /// Index of the level that the combination chooses, for each factor.
    pub chosen: Vec<usize>,
    /// Error of this combination: an option that a factor varies does not exist with the chosen level of another
    /// factor.
    pub impossible: Option<Fault>,
}

/// Separates the factors from the other keys in the YAML tree of the study.
pub(crate) fn split(mut root: Node) -> Result<Study, Fault> {
    match &root.kind {
        Kind::Map(_) => {}
        Kind::Null => {
            let help = "a study needs at least `measure: ping-pong` and a `driver`";
            return Err(Fault::new(root.at, "the study is empty").help(help));
        }
        _ => {
            let reason = format!("a study is a map of keys and values, found {}", root.what());
            return Err(Fault::new(root.at, reason).help("write keys and values, such as `measure: ping-pong`"));
        }
    }
    if let Some((key, _)) = root.entries().iter().find(|(key, _)| RESERVED.contains(&key.text.as_str())) {
        return Err(reserved(key.at, &key.text));
    }
    let mut factors = Vec::new();
    if let Some((key, node)) = root.remove("factors") {
        match node.kind {
            Kind::Map(entries) => {
                for (key, value) in entries {
                    factors.push(factor(&key.text, key.at, value)?);
                }
            }
            _ => {
                let reason = format!("`factors` must be a map from paths to lists of levels, found {}", node.what());
                let at = if node.kind == Kind::Null { key.at } else { node.at };
                return Err(Fault::new(at, reason).help("for example `factors: { payload: [64 B, 1 KiB] }`"));
            }
        }
    }
    Ok(Study { base: root, factors })
}

/// Reads one factor; each level is checked as far as possible without the other factors.
pub(crate) fn factor(path: &str, at: Pos, value: Node) -> Result<Factor, Fault> {
    if is_fixed(path) {
        let help = "a factor is the path of a key of the study, such as `payload`";
        return Err(Fault::new(at, format!("`{path}` cannot be varied")).help(help));
    }
    let value = match value.kind {
        Kind::Map(entries) if shape::at(path).is_none() => return named(path, at, entries, value.at),
        kind => Node { kind, ..value },
    };
    let Kind::List(levels) = value.kind else {
        let written = value.text().unwrap_or("...");
        let place = if value.kind == Kind::Null { at } else { value.at };
        let reason = format!("the factor `{path}` needs a list of levels, found {}", value.what());
        return Err(Fault::new(place, reason).help(format!("write `{path}: [{written}]`")));
    };
    if levels.is_empty() {
        let help = "give at least one level, or remove the factor";
        return Err(Fault::new(value.at, format!("the factor `{path}` has no levels")).help(help));
    }
    let shape = shape::at(path);
    let mut texts: Vec<String> = Vec::new();
    for level in &levels {
        let text = shape.map_or_else(String::new, |shape| levels::text(level, shape));
        if shape.is_some() && texts.contains(&text) {
            let reason = format!("the level `{text}` of `{path}` is given twice");
            return Err(Fault::new(level.at, reason).help("remove one of the two levels"));
        }
        texts.push(text);
    }
    Ok(Factor { path: path.into(), at, levels, names: None })
}

/// Reads a factor with named levels: each level has a name and is a map from key paths to values.
fn named(path: &str, at: Pos, entries: Vec<(Key, Node)>, place: Pos) -> Result<Factor, Fault> {
    let known = shape::factor_paths();
    if entries.is_empty() {
        let help = "give at least one level, or remove the factor";
        return Err(Fault::new(place, format!("the factor `{path}` has no levels")).help(help));
    }
    let (mut levels, mut names): (Vec<Node>, Vec<String>) = Default::default();
    for (name, level) in entries {
        let Kind::Map(keys) = &level.kind else {
            let place = if level.kind == Kind::Null { name.at } else { level.at };
            let reason = format!(
                "the level `{}` of `{path}` must be a map from paths to values, found {}",
                name.text,
                level.what()
            );
            return Err(Fault::new(place, reason).help(format!(
                "`{path}` is not the path of a key of the study, so each of its levels must be a name with a map, as \
                     in `{path}: {{ tuned: {{ place: netns }} }}`"
            )));
        };
        if let Some((key, _)) = keys.iter().find(|(key, _)| shape::at(&key.text).is_none() || is_fixed(&key.text)) {
            let setting = Setting { path: &key.text, at: key.at, known: &known, mode: Mode::Vary };
            return Err(setting.unknown());
        }
        names.push(name.text);
        levels.push(level);
    }
    Ok(Factor { path: path.into(), at, levels, names: Some(names) })
}

/// True if the key path begins with a key that describes the whole study and cannot be varied.
fn is_fixed(path: &str) -> bool {
    NOT_VARIED.contains(&path.split('.').next().unwrap_or(""))
}

impl Factor {
    /// Text of the level of this factor that has the given index.
    pub fn level(&self, index: usize) -> String {
        if let Some(names) = &self.names {
            return names.get(index).cloned().unwrap_or_default();
        }
        match (self.levels.get(index), shape::at(&self.path)) {
            (Some(level), Some(shape)) => levels::text(level, shape),
            _ => String::new(),
        }
    }
}

impl Study {
    /// Makes all combinations of levels; the first factor varies most slowly.
    pub fn combinations(&self) -> Result<Vec<Combination>, Fault> {
        let mut count = 1usize;
        for factor in &self.factors {
            count = count.saturating_mul(factor.levels.len());
            if count > MAX_CONDITIONS {
                let reason = format!("the factors give more than {MAX_CONDITIONS} conditions");
                return Err(Fault::new(factor.at, reason).help("use fewer factors or levels"));
            }
        }
        let known = shape::factor_paths();
        (0..count).map(|number| self.combination(number, &known)).collect()
    }

    fn combination(&self, mut number: usize, known: &[String]) -> Result<Combination, Fault> {
        let mut chosen = vec![0; self.factors.len()];
        for (i, factor) in self.factors.iter().enumerate().rev() {
            chosen[i] = number % factor.levels.len();
            number /= factor.levels.len();
        }
        let mut root = self.base.clone();
        let mut impossible = None;
        let mut sets: Vec<(&str, Pos, &Node)> = Vec::new();
        for (factor, chosen) in self.factors.iter().zip(&chosen) {
            let level = &factor.levels[*chosen];
            match &factor.names {
                None => sets.push((&factor.path, factor.at, level)),
                Some(_) => sets.extend(level.entries().iter().map(|(key, value)| (key.text.as_str(), key.at, value))),
            }
        }
        // An option can only be set below a word that is already chosen, so short paths come first.
        sets.sort_by_key(|(path, ..)| path.split('.').count());
        for (path, at, value) in sets {
            let setting = Setting { path, at, known, mode: Mode::Vary };
            match setting.apply(&mut root, shape::study(), value.clone()) {
                Ok(()) => {}
                Err(Miss::OtherChoice(fault)) => impossible = impossible.or(Some(fault)),
                Err(Miss::Fault(fault)) => return Err(fault),
            }
        }
        Ok(Combination { root, chosen, impossible })
    }
}

//! Sets a value by its key path in the study: `payload`, `ends.ping.cpus`, `measure.slots`.
//!
//! A key path is a list of names, separated by dots. If the value of a key is a choice, the next name is either a word
//! of the choice or an option of the chosen word: `measure.slots` is the option `slots` of the measurement that the
//! study names. If an option of a bare word is set, the word becomes a map.

use crate::error::{Fault, advice};
use crate::shape::{RESERVED, Shape};
use crate::source::Pos;
use crate::tree::{Key, Kind, Node};
use tailbound_model::nearest;

/// Whether an existing value of the study may be replaced when another value is set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// Mode of the option `--set`: an existing value of the study is replaced.
    Replace,
    /// Mode for factors: an existing value is an error, because a key of a study cannot be both fixed and varied.
    Vary,
}

/// Reason why a value could not be set in the study.
#[derive(Debug, PartialEq)]
pub(crate) enum Miss {
    /// The study, or the path of the value to be set, contains an error.
    Fault(Fault),
    /// The path is an option of one value of a key (for example of a driver), and with this combination of levels of the
    /// study's factors the key has another value.
    OtherChoice(Fault),
}

/// A key path whose value is to be set in the study.
pub(crate) struct Setting<'a> {
    /// The path, as written in the study or the `--set` argument.
    pub path: &'a str,
    /// Position in the study or the `--set` argument at which the path is written.
    pub at: Pos,
    /// All key paths that exist in studies. Error messages suggest one of these key paths.
    pub known: &'a [String],
    pub mode: Mode,
}

impl Setting<'_> {
    /// Sets `value` at the key path in the YAML tree `root` of the study.
    pub fn apply(&self, root: &mut Node, shape: &Shape, value: Node) -> Result<(), Miss> {
        let segments: Vec<&str> = self.path.split('.').collect();
        self.descend(root, shape, &segments, 0, value)
    }

    /// Makes the error for a key path that does not exist in studies.
    pub fn unknown(&self) -> Fault {
        let first = self.path.split('.').next().unwrap_or("");
        if RESERVED.contains(&first) {
            return reserved(self.at, first);
        }
        if first == "factors" {
            return Fault::new(self.at, format!("`{}` cannot be set or varied", self.path))
                .help("name the factor itself, for example `payload=[64B,1KiB]`");
        }
        let fault = Fault::new(self.at, format!("`{}` is not the path of a key of a study", self.path));
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        if let Some(near) = nearest(self.path, known.iter().copied()) {
            return fault.help(format!("did you mean `{near}`?"));
        }
        // For a path like `measure.slot_count`, the correct part decides which keys can follow.
        let parent = self.path.rsplit_once('.').map_or("", |(parent, _)| parent);
        let siblings: Vec<&str> = known
            .iter()
            .copied()
            .filter(|k| k.rsplit_once('.').map_or("", |(p, _)| p) == parent)
            .map(|k| k.rsplit('.').next().unwrap_or(k))
            .collect();
        match siblings.is_empty() {
            true => {
                let top: Vec<&str> = known.iter().copied().filter(|k| !k.contains('.')).collect();
                fault.help(advice(first, &top))
            }
            false => fault.help(advice(self.path.rsplit('.').next().unwrap_or(""), &siblings)),
        }
    }

    fn descend(&self, node: &mut Node, shape: &Shape, path: &[&str], done: usize, value: Node) -> Result<(), Miss> {
        let Some(&segment) = path.get(done) else {
            if self.mode == Mode::Vary && node.kind != Kind::Null {
                let reason = format!("`{}` is a factor and has a fixed value too", self.path);
                return Err(Miss::Fault(Fault::new(self.at, reason).help("remove the factor or the fixed value")));
            }
            *node = value;
            return Ok(());
        };
        match shape {
            Shape::Leaf { .. } | Shape::List => Err(Miss::Fault(self.unknown())),
            Shape::Keys { keys, open, .. } => {
                let any = Shape::Leaf { format: String::new() };
                let inner = match keys.get(segment) {
                    Some(inner) => inner,
                    None if *open && done > 0 && !segment.is_empty() => &any,
                    None => return Err(Miss::Fault(self.unknown())),
                };
                self.descend(self.entry(node, segment)?, inner, path, done + 1, value)
            }
            Shape::Named(inner) => {
                let Some(n) = inner.name_length(&path[done..]) else { return Err(Miss::Fault(self.unknown())) };
                let name = path[done..done + n].join(".");
                self.descend(self.entry(node, &name)?, inner, path, done + n, value)
            }
            Shape::AnyWord(inner) => {
                let Some(word) = chosen(node) else { return Err(self.no_choice(path, done)) };
                let named = done + 2 == path.len();
                if named && word != segment {
                    return Err(self.other_choice(path, done, &word));
                }
                self.descend(self.option(node, &word)?, inner, path, done + usize::from(named), value)
            }
            Shape::Choice { default, words, .. } => {
                let named = words.contains_key(segment);
                let of_any = |s: &Option<Shape>| s.as_ref().is_some_and(|s| s.has(segment));
                if !named && !words.values().any(of_any) {
                    return Err(Miss::Fault(self.unknown()));
                }
                let default = if named { Some(segment.to_owned()) } else { default.clone() };
                let Some(word) = chosen(node).or(default) else { return Err(self.no_choice(path, done)) };
                match words.get(&word) {
                    Some(Some(inner)) if named && word == segment => {
                        self.descend(self.option(node, &word)?, inner, path, done + 1, value)
                    }
                    Some(Some(inner)) if !named && inner.has(segment) => {
                        self.descend(self.option(node, &word)?, inner, path, done, value)
                    }
                    _ => Err(self.other_choice(path, done, &word)),
                }
            }
        }
    }

    /// Returns the value of a key of a map; if the key is absent, the key is added.
    fn entry<'n>(&self, node: &'n mut Node, key: &str) -> Result<&'n mut Node, Miss> {
        if node.kind == Kind::Null {
            node.kind = Kind::Map(Vec::new());
        }
        let what = node.what();
        let Kind::Map(entries) = &mut node.kind else {
            let reason = format!("expected a map with the key `{key}`, found {what}");
            return Err(Miss::Fault(Fault::new(node.at, reason)));
        };
        let index = entries.iter().position(|(k, _)| k.text == key).unwrap_or_else(|| {
            entries.push((Key { at: self.at, text: key.into() }, Node::null(self.at)));
            entries.len() - 1
        });
        Ok(&mut entries[index].1)
    }

    /// Returns the options of the chosen word; a bare word without options is replaced by a map with the word as its
    /// only key.
    fn option<'n>(&self, node: &'n mut Node, word: &str) -> Result<&'n mut Node, Miss> {
        if !matches!(&node.kind, Kind::Map(entries) if entries.len() == 1) {
            let at = if node.kind == Kind::Null { self.at } else { node.at };
            *node = Node { at, kind: Kind::Map(vec![(Key { at, text: word.into() }, Node::null(at))]) };
        }
        self.entry(node, word)
    }

    fn other_choice(&self, path: &[&str], done: usize, word: &str) -> Miss {
        let place = path[..done].join(".");
        let reason = format!("`{}` is not possible: `{place}` is {word}, which has no `{}`", self.path, path[done]);
        Miss::OtherChoice(Fault::new(self.at, reason))
    }

    fn no_choice(&self, path: &[&str], done: usize) -> Miss {
        let place = path[..done].join(".");
        let reason = format!("`{}` is an option of `{place}`, which the study does not set", self.path);
        Miss::Fault(Fault::new(self.at, reason).help(format!("set `{place}` too")))
    }
}

impl Shape {
    fn has(&self, segment: &str) -> bool {
        matches!(self, Shape::Keys { keys, open, .. } if *open || keys.contains_key(segment))
    }
}

/// The word of a choice that is written at this node of the study's YAML tree.
fn chosen(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(word) => Some(word.clone()),
        Kind::Map(entries) if entries.len() == 1 => Some(entries[0].0.text.clone()),
        _ => None,
    }
}

/// Makes the error for a key of a study that is reserved for a later release.
pub(crate) fn reserved(at: Pos, key: &str) -> Fault {
    Fault::new(at, format!("`{key}` is reserved for a later release; this release does not support it"))
        .help(format!("remove `{key}`"))
}

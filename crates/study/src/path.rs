//! Setting a value by its path in the study: `payload`, `ends.ping.cpus`, `measure.slots`.
//!
//! A segment that is not a key where it stands descends through the word that is chosen there: `measure.slots` is the
//! option `slots` of whatever measure the study names, and a bare word becomes a map when one of its options is set.

use crate::error::{Fault, advice, nearest};
use crate::shape::{RESERVED, Shape};
use crate::source::Pos;
use crate::tree::{Key, Kind, Node};

/// Whether a value that is there already may be replaced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    /// `--set`: yes.
    Replace,
    /// A factor: no, a thing cannot be fixed and varied.
    Vary,
}

/// Why a value could not be set.
#[derive(Debug, PartialEq)]
pub(crate) enum Miss {
    /// The study is wrong.
    Fault(Fault),
    /// The path is an option of another choice than the one made here.
    OtherChoice(Fault),
}

/// One value to set.
pub(crate) struct Setting<'a> {
    /// The path as written.
    pub path: &'a str,
    /// Where it is written.
    pub at: Pos,
    /// All paths that would do.
    pub known: &'a [String],
    pub mode: Mode,
}

impl Setting<'_> {
    /// Sets `value` in `root`.
    pub fn apply(&self, root: &mut Node, shape: &Shape, value: Node) -> Result<(), Miss> {
        let segments: Vec<&str> = self.path.split('.').collect();
        self.descend(root, shape, &segments, 0, value)
    }

    /// The fault of a path that names nothing.
    pub fn unknown(&self) -> Fault {
        let first = self.path.split('.').next().unwrap_or("");
        if RESERVED.contains(&first) {
            return reserved(self.at, first);
        }
        let fault = Fault::new(self.at, format!("`{}` is not a path in the study", self.path));
        if first == "factors" {
            return fault.help("name the factor itself, for example `payload=[64B,1KiB]`");
        }
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        if let Some(near) = nearest(self.path, known.iter().copied()) {
            return fault.help(format!("did you mean `{near}`?"));
        }
        // Of a path like `measure.slot_count` the part that is right tells what can follow.
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
                let reason = format!("`{}` is varied here and has a fixed value too", self.path);
                return Err(Miss::Fault(Fault::new(self.at, reason).help("remove one of the two")));
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

    /// The value of a key, made when absent.
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

    /// The options of the chosen word: a bare word becomes a map.
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

/// The word that a choice makes.
fn chosen(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(word) => Some(word.clone()),
        Kind::Map(entries) if entries.len() == 1 => Some(entries[0].0.text.clone()),
        _ => None,
    }
}

/// The fault of a key that a later release will have.
pub(crate) fn reserved(at: Pos, key: &str) -> Fault {
    Fault::new(at, format!("`{key}` is reserved: not supported by this release")).help(format!("remove `{key}`"))
}

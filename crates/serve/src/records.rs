//! Finds the records in a folder.

use std::fs;
use std::path::{Path, PathBuf};
use tailbound_record::{Manifest, Record, RecordError, Status};

/// Number of levels of folders in which records are searched.
const DEPTH: usize = 3;

/// A directory with a manifest: a record, or a damaged record.
pub(crate) struct Found {
    /// Path of the record below the served folder; this path is the name of the record.
    pub name: String,
    pub dir: PathBuf,
    /// Manifest of the record, or the reason why the manifest cannot be read.
    pub manifest: Result<Manifest, RecordError>,
}

/// Finds all records below `folder`, the latest first. Symbolic links are not followed, so nothing outside the folder
/// is shown.
pub(crate) fn all(folder: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    // The folder may itself be a record.
    if folder.join("manifest.json").is_file() {
        let name = folder.canonicalize().ok().and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()));
        found.push(read(folder, name.unwrap_or_else(|| "record".into())));
    } else {
        look_into(folder, "", DEPTH, &mut found);
    }
    let began = |f: &Found| f.manifest.as_ref().map_or(0, |m| m.began_unix_ns);
    found.sort_by(|a, b| began(b).cmp(&began(a)).then_with(|| a.name.cmp(&b.name)));
    found
}

/// True if the folder, or a folder at most three levels below it, is a record.
pub fn has_records(folder: &Path) -> bool {
    !all(folder).is_empty()
}

fn look_into(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<Found>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // A name that is not valid UTF-8 cannot be requested.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !entry.file_type().is_ok_and(|t| t.is_dir()) {
            continue;
        }
        let (dir, name) = (entry.path(), format!("{prefix}{name}"));
        if dir.join("manifest.json").is_file() {
            found.push(read(&dir, name));
        } else if depth > 1 {
            look_into(&dir, &format!("{name}/"), depth - 1, found);
        }
    }
}

fn read(dir: &Path, name: String) -> Found {
    let manifest = Record::open(dir).map(|r| r.manifest);
    Found { name, dir: dir.to_owned(), manifest }
}

impl Found {
    /// Status of the found record, in one word.
    pub fn status(&self) -> &'static str {
        match self.manifest.as_ref().map(|m| m.status) {
            Ok(Status::Valid) => "valid",
            Ok(Status::Invalid) => "invalid",
            Ok(Status::Incomplete) => "incomplete",
            Err(_) => "unreadable",
        }
    }

    /// Names of the drivers of the record, each once, in the order of the plan.
    pub fn drivers(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for condition in self.manifest.iter().flat_map(|m| &m.plan.conditions) {
            if !names.contains(&condition.spec.driver.name.as_str()) {
                names.push(&condition.spec.driver.name);
            }
        }
        names
    }

    /// True if every word of `query` occurs in the name, study, question, status, drivers or levels of the record.
    pub fn fits(&self, query: &str) -> bool {
        let mut text = format!("{} {} {}", self.name, self.status(), self.drivers().join(" "));
        if let Ok(manifest) = &self.manifest {
            text.push_str(&format!(" {} {}", manifest.plan.study, manifest.plan.question));
            for (factor, level) in manifest.plan.conditions.iter().flat_map(|c| &c.levels) {
                text.push_str(&format!(" {factor}={level}"));
            }
        }
        let text = text.to_lowercase();
        query.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

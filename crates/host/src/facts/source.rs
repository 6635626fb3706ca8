//! Reads files into facts; if a file cannot be read, its fact contains the reason.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tailbound_model::{CpuList, Fact, FactValue};

/// Collects facts of a host from the files below a root directory, normally `/`.
pub(super) struct Collector {
    root: PathBuf,
    facts: Vec<Fact>,
}

impl Collector {
    pub fn new(root: &Path) -> Collector {
        Collector { root: root.to_owned(), facts: Vec::new() }
    }

    /// Whether the files are the files of the running host, not a copied or invented tree.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    pub fn finish(self) -> Vec<Fact> {
        let mut facts = self.facts;
        facts.sort_by(|a, b| a.key.cmp(&b.key));
        facts
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Text of a file without surrounding white space, or the reason why the file could not be read.
    pub fn read(&self, path: &str) -> Result<String, String> {
        self.read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    pub fn read_bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.path(path)).map_err(|error| reason(path, &error))
    }

    /// The integer that a file contains, or the reason why it could not be read.
    pub fn read_number(&self, path: &str) -> Result<i64, String> {
        let text = self.read(path)?;
        text.parse().map_err(|_| format!("`{text}` is not a number"))
    }

    /// Sorted names of the entries of a directory; empty if the directory does not exist.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.ok()?.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub fn put(&mut self, key: impl Into<String>, source: &str, value: FactValue) {
        self.facts.push(Fact { key: key.into(), value, source: source.to_owned() });
    }

    pub fn put_text(&mut self, key: impl Into<String>, source: &str, value: Result<String, String>) {
        self.put(key, source, value.map_or_else(FactValue::Unknown, FactValue::Text));
    }

    pub fn put_number(&mut self, key: impl Into<String>, source: &str, value: Result<i64, String>) {
        self.put(key, source, value.map_or_else(FactValue::Unknown, FactValue::Number));
    }

    pub fn put_flag(&mut self, key: impl Into<String>, source: &str, value: Result<bool, String>) {
        self.put(key, source, value.map_or_else(FactValue::Unknown, FactValue::Flag));
    }

    /// Adds a fact of the host whose value is the text of a file.
    pub fn text(&mut self, key: &str, path: &str) {
        let value = self.read(path);
        self.put_text(key, path, value);
    }

    /// Adds a fact of the host whose value is the number in a file.
    pub fn number(&mut self, key: &str, path: &str) {
        let value = self.read_number(path);
        self.put_number(key, path, value);
    }

    /// Adds a fact of the host whose value is the flag (0 or 1) in a file.
    pub fn flag(&mut self, key: &str, path: &str) {
        let value = self.read_number(path).map(|n| n != 0);
        self.put_flag(key, path, value);
    }

    /// Adds a fact whose value is the chosen word in a file: the word in brackets of a list of choices (`always
    /// [madvise] never`), or else the whole text with single spaces.
    pub fn choice(&mut self, key: &str, path: &str) {
        let value = self.read(path).map(|text| crate::setting_text::normalised(&text));
        self.put_text(key, path, value);
    }

    /// Adds a fact read from one file for each CPU; in `path`, the letter `N` is replaced by the number of the CPU.
    pub fn per_cpu(&mut self, key: &str, cpus: &[u32], path: &str) {
        let values = cpus.iter().map(|&cpu| (cpu, self.read(&path.replace('N', &cpu.to_string()))));
        let value = grouped(values);
        self.put_text(key, path, value);
    }
}

/// Joins the values of a fact for several CPUs: one value if it is equal for all CPUs, else each value with its CPUs,
/// such as `powersave (CPU 0-3), performance (CPU 4)`.
pub(super) fn grouped(values: impl Iterator<Item = (u32, Result<String, String>)>) -> Result<String, String> {
    let mut groups: BTreeMap<Result<String, String>, CpuList> = BTreeMap::new();
    for (cpu, value) in values {
        groups.entry(value).or_default().0.insert(cpu);
    }
    if groups.keys().all(Result::is_err) {
        return Err(groups.into_keys().find_map(Result::err).unwrap_or_else(|| "no CPU was read".into()));
    }
    if groups.len() == 1 {
        return groups.into_keys().next().expect("one group");
    }
    let mut groups: Vec<(Result<String, String>, CpuList)> = groups.into_iter().collect();
    groups.sort_by(|a, b| a.1.cmp(&b.1));
    let parts = groups.into_iter().map(|(value, cpus)| {
        let value = value.unwrap_or_else(|why| format!("not readable: {why}"));
        format!("{value} (CPU {cpus})")
    });
    Ok(parts.collect::<Vec<_>>().join(", "))
}

fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if path.starts_with("/sys/kernel/debug") => {
            "the file does not exist (debugfs is not mounted, or the kernel has no such setting)".into()
        }
        io::ErrorKind::NotFound => "the file does not exist on this kernel or machine".into(),
        io::ErrorKind::PermissionDenied => "only root may read this value".into(),
        _ => error.to_string(),
    }
}

//! Runs `tailbound import --bag`: reads what rosbag2 recorded, and makes a study of it.

use crate::cli::Import;
use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tailbound_model::ExitCode;
use tailbound_report::number::{count, three_digits, time};
use tailbound_watch::{Bag, BagError, read_mcap};

/// The program that reads recordings of the form sqlite.
const SQLITE: &str = "sqlite3";

pub fn import_bag(args: &Import, path: &Path) -> CommandResult {
    if let Some(study) = args.save_study.as_ref().filter(|study| study.exists()) {
        return Err(super::watch_files::not_written(study, &std::io::ErrorKind::AlreadyExists.into(), "--save-study"));
    }
    let mut bag = Bag::new();
    for file in files(path)? {
        read(&file, &mut bag)?;
    }
    let report = bag.report(format!("the recording {}", path.display())).map_err(|e| refused(path, &e))?;
    let length = time(report.duration_ns as f64);
    outln!("{} topics in {length} of {}: messages, per second, bytes", report.topics.len(), path.display());
    for topic in &report.topics {
        let Some(writer) = topic.writers.first() else { continue };
        let name = topic.ros_topic.as_deref().unwrap_or_default();
        let rate = writer.rate_hz.map_or_else(|| "-".to_owned(), three_digits);
        let bytes = match writer.bytes {
            Some((least, most)) if least == most => count(u64::from(least)),
            Some((least, most)) => format!("{} to {}", count(u64::from(least)), count(u64::from(most))),
            None => "-".to_owned(),
        };
        outln!("  {name}: {}, {rate}, {bytes}", count(writer.samples));
    }
    for warning in &report.warnings {
        errln!("warning: {warning}");
    }
    if let Some(study) = &args.save_study {
        super::watch_files::save_study(&report, args.topic.as_deref(), study)?;
    }
    Ok(ExitCode::Done)
}

/// The files of a recording: the path itself, or those in its directory.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|e| refused(path, &e))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    if files.iter().any(|file| file.to_string_lossy().ends_with(".zstd")) {
        return Err(refused(path, &"its files are compressed as a whole")
            .help("decompress them first: `zstd -d FILE.zstd`, or `ros2 bag convert`"));
    }
    files.retain(|file| ["mcap", "db3"].map(|end| Some(std::ffi::OsStr::new(end))).contains(&file.extension()));
    // `name_10.mcap` comes after `name_2.mcap`.
    let number = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let digits = stem.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        digits.parse::<u64>().unwrap_or(0)
    };
    files.sort_by_key(|file| (number(file), file.clone()));
    let about = std::fs::read_to_string(path.join("metadata.yaml")).unwrap_or_default();
    let mode = about.lines().find_map(|line| line.trim().strip_prefix("compression_mode:")).unwrap_or_default();
    if mode.trim().trim_matches(['"', '\'']).eq_ignore_ascii_case("message") {
        return Err(refused(path, &"each of its messages is compressed, so that their sizes are not known")
            .help("decompress it first: `ros2 bag convert`"));
    }
    if files.is_empty() {
        return Err(refused(path, &"the directory has no file that ends with .mcap or .db3")
            .help("name the directory or the file that `ros2 bag record` has written"));
    }
    Ok(files)
}

fn read(file: &Path, bag: &mut Bag) -> Result<(), Failure> {
    if file.extension().is_some_and(|end| end == "db3") {
        return read_sqlite(file, bag);
    }
    let input = File::open(file).map_err(|e| refused(file, &e))?;
    read_mcap(BufReader::new(input), bag).map_err(|e| match e {
        BagError::NoMcap => {
            Failure::not_fit(format!("{}: {e}", file.display())).help("use a package, or build with `--features bags`")
        }
        e => refused(file, &e).help("name the directory or the file that `ros2 bag record` has written"),
    })
}

/// Reads a file of the form sqlite by the program `sqlite3`.
fn read_sqlite(file: &Path, bag: &mut Bag) -> Result<(), Failure> {
    if !file.is_file() {
        return Err(refused(file, &"there is no such file"));
    }
    let mut names = BTreeMap::new();
    query(file, "SELECT id, hex(name), hex(type), hex(offered_qos_profiles) FROM topics", |row| {
        if let [id, name, kind, offered] = row {
            let (name, kind, offered) = (text(name), text(kind), text(offered));
            bag.topic(&name, &kind, &offered);
            names.insert((*id).to_owned(), name);
        }
    })?;
    query(file, "SELECT topic_id, timestamp, length(data) FROM messages ORDER BY timestamp", |row| {
        if let [id, at, bytes] = row
            && let (Some(name), Ok(at_ns), Ok(bytes)) = (names.get(*id), at.parse(), bytes.parse())
        {
            bag.message(name, at_ns, bytes);
        }
    })
}

/// Gives the cells of each row of a query to `each`.
fn query(file: &Path, query: &str, mut each: impl FnMut(&[&str])) -> Result<(), Failure> {
    let mut command = Command::new(SQLITE);
    command.args(["-readonly", "-list", "-separator", "|"]).arg(file).arg(query);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| {
        Failure::not_fit(format!(
            "{}: the program {SQLITE}, which reads recordings of this form, cannot be started: {e}",
            file.display()
        ))
        .help("install it, in Debian by `apt install sqlite3`, or convert the recording to MCAP: `ros2 bag convert`")
    })?;
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.map_err(|e| refused(file, &e))?;
            each(&line.split('|').collect::<Vec<_>>());
        }
    }
    let output = child.wait_with_output().map_err(|e| refused(file, &e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("the program said nothing").to_owned();
        return Err(refused(file, &BagError::NoBag(said))
            .help("name the directory or the file that `ros2 bag record` has written"));
    }
    Ok(())
}

/// A text in hexadecimal digits, in which no row or cell ends early.
fn text(digits: &str) -> String {
    let byte = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Vec<u8> = (0..digits.len()).step_by(2).filter_map(byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn refused(path: &Path, what: &dyn std::fmt::Display) -> Failure {
    Failure::bad_input(format!("{}: {what}", path.display()))
}

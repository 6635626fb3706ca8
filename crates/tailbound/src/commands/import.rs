//! Runs `tailbound import`: converts the output of another benchmark program to a record that names the program.

use crate::cli::Import;
use crate::failure::{CommandResult, Failure};
use crate::output::{colour, out, outln, width};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tailbound_model::{ExitCode, Imported, Plan, ReportSpec, ToolSummary};
use tailbound_record::{Manifest, RecordWriter, Status};
use tailbound_tools::Tool;

/// Circumstances of a program's run that the user can state. The record marks each circumstance that the user does not
/// state as unknown.
const CIRCUMSTANCES: [&str; 8] = ["payload", "rate", "path", "place", "scheduling", "host", "version", "date"];

pub fn import(args: &Import) -> CommandResult {
    if let Some(path) = &args.bag {
        return super::import_bag::import_bag(args, path);
    }
    if let Some(path) = &args.ros2_trace {
        return super::import_trace::import_trace(args, path);
    }
    let tool = tailbound_tools::find(args.tool.as_deref().unwrap_or_default())
        .map_err(|e| Failure::of(ExitCode::BadInput, e))?;
    let known = known(&args.known)?;
    let imported: Result<Vec<_>, _> = args.files.iter().map(|file| import_file(&tool, file, &known)).collect();
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("tailbound-{}", tool.tool)));
    if dir.exists() {
        return Err(
            Failure::bad_input(format!("{} exists already", dir.display())).help("name another directory with --out")
        );
    }
    let manifest = manifest(&tool, imported?);
    RecordWriter::create(&dir, manifest).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let record = tailbound_record::Record::open(&dir).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let report = tailbound_report::analyse(&record).map_err(|e| Failure::of(ExitCode::RunFailed, e))?;
    let page = dir.join("report.html");
    super::report::write(&page, tailbound_report::render_html(&report))?;
    out!("{}", tailbound_report::render_terminal(&report, width(), colour()));
    outln!("\n{}", page.display());
    Ok(super::report::code(report.status))
}

fn known(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut known = BTreeMap::new();
    for word in given {
        let refused = |reason: String| Failure::bad_input(format!("`--known {word}`: {reason}"));
        let (key, value) = word.split_once('=').ok_or_else(|| refused("KEY=VALUE is expected".into()))?;
        if !CIRCUMSTANCES.contains(&key) {
            return Err(refused(format!("`{key}` is not a known key"))
                .help(format!("these exist: {}", CIRCUMSTANCES.join(", "))));
        }
        if known.insert(key.to_owned(), value.trim().to_owned()).is_some() {
            return Err(refused(format!("`{key}` is given twice")));
        }
    }
    Ok(known)
}

fn import_file(tool: &Tool, file: &Path, known: &BTreeMap<String, String>) -> Result<Imported, Failure> {
    let refused = |reason: String| Failure::bad_input(format!("{}: {reason}", file.display()));
    let bytes = std::fs::read(file).map_err(|e| refused(format!("cannot be read: {e}")))?;
    let text = String::from_utf8_lossy(&bytes);
    let figures = tailbound_tools::figures(tool, &text).map_err(|e| refused(e.to_string()))?;
    let unknown = CIRCUMSTANCES.iter().filter(|k| !known.contains_key(**k)).map(|k| (*k).to_owned()).collect();
    Ok(Imported {
        file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect(),
        known: known.iter().filter(|(k, _)| *k != "version").map(|(k, v)| (k.clone(), v.clone())).collect(),
        unknown,
        summary: ToolSummary {
            tool: tool.tool.clone(),
            version: known.get("version").cloned(),
            definition: tool.definition(),
            figures,
            ..ToolSummary::default()
        },
    })
}

/// Makes the manifest of an imported record. It has no conditions and trials, because Tailbound planned and ran
/// nothing.
fn manifest(tool: &Tool, imported: Vec<Imported>) -> Manifest {
    let plan = Plan {
        study: format!("imported-{}", tool.tool),
        question: format!("What did {} print?", tool.tool),
        seed: 0,
        factors: Vec::new(),
        conditions: Vec::new(),
        trials: Vec::new(),
        report: ReportSpec::default(),
        source: String::new(),
        clock: None,
        settings: Vec::new(),
    };
    let begun = Manifest::begun(plan, "", std::env::args().collect());
    let run_id = format!("{:08x}", (begun.began_unix_ns / 1000) as u32);
    Manifest { run_id, status: Status::Valid, imported, ..begun }
}

//! `tailbound import`: outputs of other programs as a record that says what it is.

use crate::cli::Import;
use crate::exit::{Failure, Outcome};
use crate::say::{out, outln};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tailbound_model::{ExitCode, Imported, Plan, ReportSpec, ToolSummary};
use tailbound_record::{Manifest, RecordWriter, Status};
use tailbound_tools::Tool;

/// What there is to know of a run. Whatever nobody says is not known.
const TO_KNOW: [&str; 8] = ["payload", "rate", "path", "place", "scheduling", "host", "version", "date"];

pub fn import(args: &Import) -> Outcome {
    let bad = |e: String| Failure::new(ExitCode::BadInput, e);
    let tool = tailbound_tools::find(&args.tool).map_err(|e| bad(e.to_string()))?;
    let known = known(&args.known).map_err(bad)?;
    let imported: Result<Vec<_>, _> = args.files.iter().map(|file| one(&tool, file, &known)).collect();
    let dir = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("tailbound-{}", tool.tool)));
    if dir.exists() {
        return Err(bad(format!("{} is there already: name another directory with --out", dir.display())));
    }
    let manifest = manifest(&tool, imported.map_err(bad)?);
    RecordWriter::create(&dir, manifest).map_err(|e| Failure::new(ExitCode::RunFailed, e))?;
    let record = tailbound_record::Record::open(&dir).map_err(|e| Failure::new(ExitCode::RunFailed, e))?;
    let report = tailbound_report::analyse(&record).map_err(|e| Failure::new(ExitCode::RunFailed, e))?;
    let page = dir.join("report.html");
    super::report::write(&page, tailbound_report::render_html(&report))?;
    out!("{}", tailbound_report::render_terminal(&report, super::report::width(), super::report::colour()));
    outln!("\n{}", page.display());
    Ok(super::report::code(report.status))
}

fn known(given: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut known = BTreeMap::new();
    for word in given {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("`--known {word}`: write KEY=VALUE"))?;
        if !TO_KNOW.contains(&key) {
            return Err(format!("`--known {word}`: there is no `{key}`; there are {}", TO_KNOW.join(", ")));
        }
        if known.insert(key.to_owned(), value.trim().to_owned()).is_some() {
            return Err(format!("`--known {word}`: `{key}` is given twice"));
        }
    }
    Ok(known)
}

fn one(tool: &Tool, file: &Path, known: &BTreeMap<String, String>) -> Result<Imported, String> {
    let octets = std::fs::read(file).map_err(|e| format!("{}: cannot be read: {e}", file.display()))?;
    let text = String::from_utf8_lossy(&octets);
    let figures = tailbound_tools::figures(tool, &text).map_err(|e| format!("{}: {e}", file.display()))?;
    let unknown = TO_KNOW.iter().filter(|k| !known.contains_key(**k)).map(|k| (*k).to_owned()).collect();
    Ok(Imported {
        file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: Sha256::digest(&octets).iter().map(|b| format!("{b:02x}")).collect(),
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

/// A record without conditions and trials: nothing was planned or run.
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
        settings: Vec::new(),
    };
    let begun = Manifest::begun(plan, "", std::env::args().collect());
    let run_id = format!("{:08x}", (begun.began_unix_ns / 1000) as u32);
    Manifest { run_id, status: Status::Valid, imported, ..begun }
}

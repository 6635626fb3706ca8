//! Turns the path of an HTTP request into a page.

use crate::options::Options;
use crate::records::{self, Found};
use crate::short::{Short, Shorts};
use crate::verdicts::Verdicts;
use crate::{list, target};
use hyper::StatusCode;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tailbound_model::Problem;
use tailbound_record::Record;
use tailbound_report::{Perfetto, Report, escape_html, render_frame};

const HTML: &str = "text/html; charset=utf-8";

/// Name of the trace of a record.
const TRACE: &str = "trace.pftrace";

/// Other forms of a report, to which its page has links: the name of each file, and what it is.
const FILES: [(&str, &str); 4] =
    [("report.json", "JSON"), ("report.csv", "CSV"), ("report.md", "Markdown"), (TRACE, "trace for ui.perfetto.dev")];

/// Largest number of reports that are kept in memory, because computing a report of millions of messages takes seconds.
const KEPT: usize = 8;

/// Time for which one request for the list may compute results and verdicts. Further records get theirs with the next request.
const AT_ONCE: Duration = Duration::from_secs(4);

/// Answer to an HTTP request: status, content type and content.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub kind: &'static str,
    pub content: Vec<u8>,
    /// Name under which a browser saves the content; without a name, the browser shows the content.
    pub file: Option<&'static str>,
}

impl Answer {
    fn page(text: String) -> Answer {
        Answer { status: StatusCode::OK, kind: HTML, content: text.into(), file: None }
    }

    /// Makes a page that says why a request is refused.
    pub fn refused(status: StatusCode, text: &str) -> Answer {
        let main = format!("<p class=\"lead\">{}</p>\n<p><a href=\"/\">All records</a></p>", escape_html(text));
        let page = render_frame(status.canonical_reason().unwrap_or("Refused"), &main);
        Answer { status, kind: HTML, content: page.into(), file: None }
    }
}

/// The folder of records to be served, and the reports of its records that are kept in memory.
pub(crate) struct Pages {
    options: Options,
    made: Mutex<HashMap<PathBuf, (SystemTime, Arc<Report>)>>,
    shorts: Shorts,
    verdicts: Verdicts,
}

impl Pages {
    pub fn new(options: Options) -> Pages {
        Pages { options, made: Mutex::default(), shorts: Shorts::default(), verdicts: Verdicts::default() }
    }

    pub fn names(&self) -> &[String] {
        &self.options.names
    }

    /// Returns the answer to `GET target`, where the target is a path with a query.
    pub fn answer(&self, request: &str) -> Answer {
        let Some((path, query)) = target::parse(request) else {
            return Answer::refused(StatusCode::BAD_REQUEST, "the address of the page is not valid");
        };
        let found = records::all(&self.options.folder);
        let value = |key: &str| query.get(key).map_or("", String::as_str);
        match path.as_str() {
            "/" => {
                let folder = self.options.folder.display().to_string();
                let dirs: Vec<_> = found.iter().filter(|f| f.manifest.is_ok()).map(|f| f.dir.as_path()).collect();
                let end = Instant::now() + AT_ONCE;
                let shorts = self.shorts.of(&dirs, end, short);
                let verdicts = self.verdicts.of(&list::follow(&found, &shorts), end);
                let results = (&shorts, &verdicts);
                Answer::page(list::page(&folder, &found, results, value("q"), self.options.compare.is_some()))
            }
            "/compare" => self.compare(&found, value("a"), value("b")),
            path => self.record(&found, path),
        }
    }

    /// Answers a request for the report of a record: `/records/NAME/`, or another form of the report such as
    /// `/records/NAME/report.json`.
    fn record(&self, found: &[Found], path: &str) -> Answer {
        let asked = path.strip_prefix("/records/").and_then(|p| p.rsplit_once('/'));
        let Some((record, form)) = asked.and_then(|(name, form)| Some((named(found, name)?, form))) else {
            return Answer::refused(StatusCode::NOT_FOUND, "the server has no page with this address");
        };
        if !matches!(form, "" | "report.json" | "report.csv" | "report.md" | TRACE) {
            return Answer::refused(
                StatusCode::NOT_FOUND,
                "the report has no such format: use report.json, report.csv, report.md or trace.pftrace",
            );
        }
        let report = match self.report(record) {
            Ok(report) => report,
            Err(problem) => return Answer::refused(StatusCode::INTERNAL_SERVER_ERROR, &problem.to_string()),
        };
        let (kind, text) = match form {
            TRACE => return trace(record, &report),
            "report.json" => ("application/json", tailbound_report::render_json(&report)),
            "report.csv" => ("text/csv; charset=utf-8", tailbound_report::render_csv(&report)),
            "report.md" => ("text/markdown; charset=utf-8", tailbound_report::render_markdown(&report)),
            _ => (HTML, tailbound_report::render_html_with_files(&report, &FILES)),
        };
        Answer { kind, ..Answer::page(text) }
    }

    /// Returns the report of a record. The report is computed again only if the manifest of the record has changed.
    fn report(&self, found: &Found) -> Result<Arc<Report>, Problem> {
        let changed = std::fs::metadata(found.dir.join("manifest.json")).and_then(|m| m.modified());
        let changed = changed.map_err(|e| Problem::new("record_io", format!("{}: {e}", found.name), ""))?;
        let lock = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, report)) = lock().get(&found.dir).filter(|(of, _)| *of == changed) {
            return Ok(report.clone());
        }
        // What lies beside the served folder must not be shown.
        let has_others = found.dir != self.options.folder;
        let analyse = if has_others { tailbound_report::analyse_since_last } else { tailbound_report::analyse };
        let made = Record::open(&found.dir).and_then(|record| analyse(&record));
        let report = Arc::new(made?);
        let mut made = lock();
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(found.dir.clone(), (changed, report.clone()));
        Ok(report)
    }

    fn compare(&self, found: &[Found], a: &str, b: &str) -> Answer {
        let Some(compare) = self.options.compare else {
            return Answer::refused(StatusCode::NOT_FOUND, "the server has no page with this address");
        };
        let (Some(a), Some(b)) = (named(found, a), named(found, b)) else {
            return Answer::refused(StatusCode::NOT_FOUND, "choose exactly two records of the list");
        };
        match compare(&a.dir, &b.dir) {
            Ok(page) => Answer::page(page),
            Err(problem) => Answer::refused(StatusCode::UNPROCESSABLE_ENTITY, &problem.to_string()),
        }
    }
}

/// Computes the result of a record in a few figures. A record that cannot be read has none.
fn short(dir: &Path) -> Option<Short> {
    let record = Record::open(dir).ok()?;
    Short::of(&tailbound_report::analyse(&record).ok()?)
}

/// Answers with the trace of a record for the viewer Perfetto.
fn trace(found: &Found, report: &Report) -> Answer {
    let failed = |text: &str| Answer::refused(StatusCode::INTERNAL_SERVER_ERROR, text);
    let record = match Record::open(&found.dir) {
        Ok(record) => record,
        Err(error) => return failed(&error.to_string()),
    };
    let trace = match Perfetto::of(&record, report, &[]) {
        Ok(trace) => trace,
        Err(error) => return Answer::refused(StatusCode::NOT_FOUND, &error.to_string()),
    };
    let mut content = Vec::new();
    match trace.write(&mut content) {
        Ok(_) => Answer { status: StatusCode::OK, kind: "application/octet-stream", content, file: Some(TRACE) },
        Err(error) => failed(&error.to_string()),
    }
}

/// Finds a record by its name. The name in a request is never used as a path.
fn named<'a>(found: &'a [Found], name: &str) -> Option<&'a Found> {
    found.iter().find(|f| f.name == name)
}

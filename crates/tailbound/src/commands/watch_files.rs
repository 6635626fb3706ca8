//! The files that `tailbound watch` writes: samples, metrics, and the study of what was seen.

use super::capture_dir::{REPORT, SAMPLES};
use super::report::replace_metrics;
use crate::cli::{MetricsFile, Watch};
use crate::failure::Failure;
use crate::output::errln;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tailbound_host::{Capture, realtime_ns};
use tailbound_report::WatchReport;
use tailbound_watch::{Captured, NoStudy, Watch as State, guid_words};

/// How often the file of --metrics is written.
const BETWEEN_METRICS: Duration = Duration::from_secs(5);

/// Writes the study that repeats what was seen.
pub fn save_study(report: &WatchReport, topic: Option<&str>, path: &Path) -> Result<(), Failure> {
    let saved = tailbound_watch::study(report, topic).map_err(|error| match error {
        NoStudy::NothingSeen => Failure::bad_input(format!(
            "{}: no study can be made, because no topic with a known name was seen with two samples",
            path.display()
        ))
        .help("no topic has a known rate: watch for longer, or with --ask, which makes participants announce their topics again"),
        NoStudy::NoSuchTopic(names) => Failure::bad_input(format!(
            "{}: no study can be made of the topic `{}`, of which no two samples were seen",
            path.display(),
            topic.unwrap_or_default()
        ))
        .help(format!("topics that were seen: {}", names.join(", "))),
    })?;
    File::create_new(path)
        .and_then(|mut file| file.write_all(saved.text.as_bytes()))
        .map_err(|e| not_written(path, &e, "--save-study"))?;
    let (topic, path) = (saved.topic, path.display());
    errln!("{path} measures {topic} beside {} other writers: tailbound run {path}", saved.loads);
    Ok(())
}

/// What is written while packets are captured.
pub struct Files<'a> {
    out: Option<&'a Path>,
    samples: Option<SampleFile>,
    /// All samples, if another host captures too.
    pub kept: Option<Vec<Captured>>,
    metrics: Option<&'a MetricsFile>,
    metrics_at: Instant,
    /// The first file that could not be written. No other is written after it.
    pub failed: Option<Failure>,
}

impl<'a> Files<'a> {
    pub fn create(args: &'a Watch, state: &mut State) -> Result<Files<'a>, Failure> {
        let mut samples =
            args.samples.as_deref().map(|path| SampleFile::create(path.to_owned(), "--samples")).transpose()?;
        if let Some(out) = &args.out {
            std::fs::create_dir(out).map_err(|e| not_written(out, &e, "--out"))?;
            samples = Some(SampleFile::create(out.join(SAMPLES), "--out")?);
        }
        let kept = args.also.is_some().then(Vec::new);
        if samples.is_some() || kept.is_some() {
            state.keep_samples();
        }
        Ok(Files {
            out: args.out.as_deref(),
            samples,
            kept,
            metrics: args.metrics.as_ref(),
            metrics_at: Instant::now(),
            failed: None,
        })
    }

    /// Appends the samples of a turn, and writes the metrics when their time has come.
    pub fn turn(&mut self, state: &mut State, capture: &mut Capture) {
        self.samples(state);
        if self.metrics.is_some() && self.metrics_at.elapsed() >= BETWEEN_METRICS {
            self.metrics_at = Instant::now();
            let dropped = capture.dropped().unwrap_or(0);
            self.metrics(&state.report(realtime_ns(), dropped, Default::default()));
        }
    }

    pub fn samples(&mut self, state: &mut State) {
        let taken: Vec<Captured> = state.take_samples().collect();
        if let (Some(file), None) = (&mut self.samples, &self.failed) {
            self.failed = file.write(taken.iter().copied()).err();
        }
        if let Some(kept) = &mut self.kept {
            kept.extend(taken);
        }
    }

    /// Writes what was seen, and its page, into the directory of `--out`.
    pub fn record(&mut self, report: &WatchReport) {
        if let Some(out) = self.out {
            let json = serde_json::to_vec_pretty(report).map_err(Failure::unexpected);
            let written = json.and_then(|json| write(&out.join(REPORT), &json));
            let page = tailbound_report::render_watch_html(report);
            let failed = written.and_then(|()| write(&out.join("report.html"), page.as_bytes())).err();
            self.failed = self.failed.take().or(failed);
        }
    }

    pub fn metrics(&mut self, report: &WatchReport) {
        if let (Some(MetricsFile { path, format }), None) = (self.metrics, &self.failed) {
            let text = tailbound_report::render_watch_metrics(report, *format);
            self.failed = replace_metrics(path, text).err();
        }
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, content)
        .map_err(|e| Failure::bad_input(format!("{} cannot be written: {e}", path.display())).help("make room for it"))
}

/// The file of `--samples`.
struct SampleFile {
    /// The flag that asked for it.
    flag: &'static str,
    path: PathBuf,
    file: BufWriter<File>,
}

impl SampleFile {
    fn create(path: PathBuf, flag: &'static str) -> Result<SampleFile, Failure> {
        let file = File::create_new(&path).map_err(|e| not_written(&path, &e, flag))?;
        let mut file = SampleFile { flag, path, file: BufWriter::new(file) };
        file.line("writer,number,source_ns,captured_ns")?;
        Ok(file)
    }

    /// Appends samples. What is written is in the file after each turn, so that a killed command leaves whole lines.
    fn write(&mut self, samples: impl Iterator<Item = Captured>) -> Result<(), Failure> {
        for Captured { writer, number, source_ns, stamp_ns } in samples {
            let source = source_ns.map(|ns| ns.to_string()).unwrap_or_default();
            self.line(&format!("{},{number},{source},{stamp_ns}", guid_words(writer)))?;
        }
        self.file.flush().map_err(|e| not_written(&self.path, &e, self.flag))
    }

    fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.file, "{text}").map_err(|e| not_written(&self.path, &e, self.flag))
    }
}

pub fn not_written(path: &Path, error: &std::io::Error, flag: &str) -> Failure {
    Failure::bad_input(format!("{} cannot be written: {error}", path.display()))
        .help(format!("name a new file with {flag}"))
}

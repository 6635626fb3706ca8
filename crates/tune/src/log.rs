//! The pairs of a run on disk, so that an interrupted run goes on where it was.
//!
//! The loop depends only on the seed and the measured pairs. To resume, it runs again from its begin, and [`Logged`] answers
//! from the file until the file ends.

use crate::bench::{Arms, Bench, PairError, Stage};
use crate::candidate::Candidate;
use crate::pair::{BASELINE_PAIRS, Pair};
use crate::reboot::{AfterReboot, Reboot, check};
use crate::receipt::{CauseLine, Tried};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One answer of the bench.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    stage: Stage,
    first: usize,
    /// Settings of the side with the change, to notice that the file belongs to another run.
    with: Vec<String>,
    /// Absent if the settings were not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pairs: Option<Vec<Pair>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_possible: Option<String>,
    /// Time that the loop had taken after this answer, ms.
    elapsed_ms: u64,
    /// Boot of the host in which the pairs were measured; absent in the files of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    boot: Option<String>,
}

impl Line {
    /// True for equal pairs that were measured again after a reboot.
    fn is_after_reboot(&self) -> bool {
        self.stage == Stage::Baseline && self.first > 0
    }
}

/// Why the file of the pairs cannot be used.
#[derive(Debug)]
pub enum LogError<E> {
    /// The file cannot be read or written.
    File(PathBuf, io::Error),
    /// The file does not fit the run: the number of the line.
    OtherRun(PathBuf, usize),
    /// Another process uses the file.
    InUse(PathBuf),
    /// The host was rebooted, and the run cannot go on after it.
    AfterReboot(AfterReboot),
    /// The bench failed.
    Bench(E),
}

/// A bench that writes each answer to a file, and first gives the answers that the file has.
///
/// If the host was rebooted since, equal pairs are measured before any other pair. Their line is one of the baseline, with a number
/// of earlier pairs above 0.
pub struct Logged<B> {
    bench: B,
    /// Boot of the host now.
    boot: String,
    /// Boot of the host in which the last pairs were measured.
    boot_of_pairs: Option<String>,
    baseline: Vec<Pair>,
    reboots: Vec<Reboot>,
    path: PathBuf,
    file: File,
    known: VecDeque<Line>,
    read: usize,
    before: Duration,
}

impl<B: Bench> Logged<B> {
    /// Opens the file, which may not exist yet. A last line that was cut off while it was written is removed. `boot` is the boot id
    /// of the host.
    ///
    /// # Errors
    /// The file cannot be read or written, or a line before the last is damaged.
    pub fn open(bench: B, path: &Path, boot: &str) -> Result<Logged<B>, LogError<B::Error>> {
        let failed = |e: io::Error| LogError::File(path.to_owned(), e);
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LogError::InUse(path.to_owned())),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut known = VecDeque::new();
        for (number, line) in whole.lines().enumerate() {
            known.push_back(serde_json::from_str(line).map_err(|_| LogError::OtherRun(path.to_owned(), number + 1))?);
        }
        file.set_len(whole.len() as u64).map_err(failed)?;
        Ok(Logged {
            bench,
            boot: boot.to_owned(),
            boot_of_pairs: None,
            baseline: Vec::new(),
            reboots: Vec::new(),
            path: path.to_owned(),
            file,
            known,
            read: 0,
            before: Duration::ZERO,
        })
    }

    fn note(&mut self, line: &Line) {
        self.read += 1;
        self.before = Duration::from_millis(line.elapsed_ms);
    }

    /// Measures equal pairs after a reboot, compares them with the baseline, and writes them to the file. If the check fails, they
    /// are not written, so that the run can go on once the reason is gone.
    fn check_again(&mut self) -> Result<(), PairError<LogError<B::Error>>> {
        let (boot, first) = (self.boot.clone(), BASELINE_PAIRS * (self.reboots.len() + 1));
        let orders: Vec<bool> = (0..BASELINE_PAIRS).map(|pair| pair % 2 == 1).collect();
        let again = match self.bench.pairs(&Stage::Baseline, first, &Arms::default(), &orders) {
            Err(PairError::Failed(e)) => return Err(PairError::Failed(LogError::Bench(e))),
            Err(PairError::NotPossible(reason)) => return Err(PairError::NotPossible(reason)),
            Ok(pairs) => pairs,
        };
        self.rebooted(&boot, &again).map_err(PairError::Failed)?;
        let elapsed_ms = self.elapsed().as_millis() as u64;
        let (stage, with, pairs, boot) = (Stage::Baseline, Vec::new(), Some(again), Some(boot));
        self.write(&Line { stage, first, with, pairs, not_possible: None, elapsed_ms, boot }).map_err(PairError::Failed)
    }

    /// Compares the equal pairs of another boot with the baseline.
    fn rebooted(&mut self, boot: &str, again: &[Pair]) -> Result<(), LogError<B::Error>> {
        let before = self.boot_of_pairs.replace(boot.to_owned()).unwrap_or_default();
        let reboot = check((&before, &self.baseline), (boot, again)).map_err(LogError::AfterReboot)?;
        self.reboots.push(reboot);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), LogError<B::Error>> {
        let text = serde_json::to_string(line).map_err(io::Error::from).map(|text| text + "\n");
        text.and_then(|text| self.file.write_all(text.as_bytes()))
            .and_then(|()| self.file.sync_data())
            .map_err(|e| LogError::File(self.path.clone(), e))
    }
}

impl<B: Bench> Bench for Logged<B> {
    type Error = LogError<B::Error>;

    fn pairs(
        &mut self,
        stage: &Stage,
        first: usize,
        arms: &Arms,
        with_first: &[bool],
    ) -> Result<Vec<Pair>, PairError<Self::Error>> {
        while let Some(line) = self.known.pop_front_if(|line| line.is_after_reboot()) {
            self.note(&line);
            let again = line.pairs.unwrap_or_default();
            self.rebooted(line.boot.as_deref().unwrap_or_default(), &again).map_err(PairError::Failed)?;
        }
        if let Some(line) = self.known.pop_front() {
            if line.stage == Stage::Baseline {
                self.baseline = line.pairs.clone().unwrap_or_default();
            }
            self.note(&line);
            self.boot_of_pairs.clone_from(&line.boot);
            if line.stage != *stage || line.first != first || line.with != arms.with {
                return Err(PairError::Failed(LogError::OtherRun(self.path.clone(), self.read)));
            }
            return line.pairs.ok_or(PairError::NotPossible(line.not_possible.unwrap_or_default()));
        }
        if self.boot_of_pairs.as_ref().is_some_and(|boot| *boot != self.boot) && !self.baseline.is_empty() {
            self.check_again()?;
        }
        let answer = match self.bench.pairs(stage, first, arms, with_first) {
            Err(PairError::Failed(e)) => return Err(PairError::Failed(LogError::Bench(e))),
            Err(PairError::NotPossible(reason)) => Err(reason),
            Ok(pairs) => Ok(pairs),
        };
        // Without a candidate's settings, a refusal ends the run. It is not written, so that the run can go on once its reason is gone.
        if let (Err(reason), false) = (&answer, matches!(stage, Stage::Screen(_))) {
            return Err(PairError::NotPossible(reason.clone()));
        }
        let elapsed_ms = self.elapsed().as_millis() as u64;
        let (stage, with, boot) = (stage.clone(), arms.with.clone(), Some(self.boot.clone()));
        let (pairs, not_possible) = (answer.clone().ok(), answer.clone().err());
        self.write(&Line { stage, first, with, pairs, not_possible, elapsed_ms, boot }).map_err(PairError::Failed)?;
        answer.map_err(PairError::NotPossible)
    }

    /// The candidates that the first attempt found: after an interruption, other facts of the machine must not give other ones.
    fn candidates(&mut self) -> Result<Vec<Candidate>, Self::Error> {
        let path = self.path.with_file_name("candidates.json");
        let failed = |e: io::Error| LogError::File(path.clone(), e);
        match std::fs::read(&path) {
            Ok(bytes) => return serde_json::from_slice(&bytes).map_err(|e| failed(e.into())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(e)),
        }
        let found = self.bench.candidates().map_err(LogError::Bench)?;
        let partial = path.with_extension("partial");
        let text = serde_json::to_vec_pretty(&found).map_err(|e| failed(e.into()))?;
        std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path)).map_err(failed)?;
        Ok(found)
    }

    fn causes(&mut self, stage: &Stage) -> Result<Vec<CauseLine>, Self::Error> {
        self.bench.causes(stage).map_err(LogError::Bench)
    }

    fn tried(&mut self, tried: &Tried) {
        self.bench.tried(tried);
    }

    fn reboots(&self) -> Vec<Reboot> {
        self.reboots.clone()
    }

    fn elapsed(&self) -> Duration {
        // While answers come from the file, the time is the one of the run that wrote them, so that decisions about time are the same.
        if self.known.is_empty() { self.before + self.bench.elapsed() } else { self.before }
    }
}

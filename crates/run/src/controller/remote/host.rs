//! One other host: the way to it, and the agent there that answers for it.

use super::asked::{Asked, beat};
use super::not_fit;
use crate::controller::RunError;
use crate::controller::agent::SILENCE;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tailbound_guest::Look;
use tailbound_host::journal::Journal;
use tailbound_lab::Far;
use tailbound_lab::netns::NetNs;
use tailbound_model::*;

/// So many hosts are asked at the same time.
const AT_ONCE: usize = 8;

/// How processes are started on another host.
pub(super) trait Way: Send + Sync {
    /// A command of this host that starts Tailbound there, with its standard streams; arguments follow.
    fn program(&self) -> Command;

    /// The agent that answers for it.
    fn answering(&self, run_id: &str) -> Command {
        let mut command = self.program();
        command.args(["agent", "--run-token", run_id]);
        command
    }

    /// That agent is there: what is to be looked at before it is asked anything.
    ///
    /// # Errors
    /// It is not as asked.
    fn started(&self) -> Result<(), RunError> {
        Ok(())
    }

    /// How long something there may be silent before it is lost.
    fn patience(&self) -> Duration {
        SILENCE
    }

    /// The address that it was given for others to reach it by, where it was given one.
    fn address(&self) -> Option<IpAddr> {
        None
    }

    /// Its network namespace, where that is one of this host.
    fn netns(&self) -> Option<NetNs> {
        None
    }

    /// What of it is not any more as it was asked for.
    fn changed(&self) -> Vec<String> {
        Vec::new()
    }

    /// How it ended, or why it stands still, where it does and somebody knows.
    fn ended(&self) -> Option<String> {
        None
    }

    /// What the program that runs it tells of it, or why that is not to be had; nothing where it is no guest, or has ended.
    fn look(&self) -> Option<Result<Look, String>> {
        None
    }

    /// Leaves it; why something could not be removed that was to be.
    fn leave(self: Box<Self>, journal: &Journal) -> Option<String>;
}

/// A host that is not asked yet.
pub(super) struct Known {
    pub way: Box<dyn Way>,
    pub place: PlaceSpec,
    /// As it is called in sentences: `host guest-1`.
    pub called: String,
    /// As the record knows it: two may call themselves the same.
    pub named: String,
}

/// Another host, reached.
pub(in crate::controller) struct Host {
    /// The place that it is.
    pub place: PlaceSpec,
    /// As it is called in sentences: `host guest-1`.
    called: String,
    /// `None` when it was left.
    way: Mutex<Option<Box<dyn Way>>>,
    address: Option<IpAddr>,
    netns: Option<NetNs>,
    /// How long something there may be silent before it is lost.
    pub patience: Duration,
    /// The node of a cluster that it is on.
    pub node: Option<String>,
    /// Its name as a pod of a cluster.
    pub pod: Option<String>,
    /// Who looks at that node while ends measure, where the study asks for it.
    pub observer: Option<Arc<Host>>,
    /// CPUs that an agent may use there.
    pub cpus: Vec<u32>,
    pub facts: HostFacts,
    /// What to know of it before measuring, as sentences.
    pub remarks: Vec<String>,
    /// Why what it measures shows function only, where it does.
    pub functional_only: Option<String>,
    asked: Arc<Mutex<Asked>>,
}

impl Host {
    /// Starts the agent that answers for it.
    ///
    /// # Errors
    /// Tailbound does not start there, or is of another release.
    pub(super) fn over(known: Known, (run_id, journal): (&str, &Journal), help: &Help<'_>) -> Result<Host, RunError> {
        let mut all = Host::over_all(vec![known], (run_id, journal), help)?;
        Ok(all.swap_remove(0))
    }

    /// As `over`, of several hosts at the same time. If one fails, all of them are left.
    pub(super) fn over_all(
        all: Vec<Known>,
        (run_id, journal): (&str, &Journal),
        help: &Help<'_>,
    ) -> Result<Vec<Host>, RunError> {
        let mut answers = Vec::new();
        for some in all.chunks(AT_ONCE) {
            answers.extend(std::thread::scope(|scope| {
                let asking: Vec<_> = some
                    .iter()
                    .map(|known| scope.spawn(|| Host::ask_it(&*known.way, &known.called, run_id, help)))
                    .collect();
                asking
                    .into_iter()
                    .map(|a| a.join().unwrap_or_else(|_| Err(not_fit("asking it failed", ""))))
                    .collect::<Vec<_>>()
            }));
        }
        if answers.iter().any(Result::is_err) {
            for known in all {
                known.way.leave(journal);
            }
            return answers.into_iter().find_map(Result::err).map_or_else(|| Ok(Vec::new()), Err);
        }
        let host = |(Known { way, place, called, named }, (asked, cpus, facts))| {
            let facts = HostFacts { host: named, ..facts };
            let (address, netns, patience) = (way.address(), way.netns(), way.patience());
            let asked = Arc::new(Mutex::new(asked));
            beat(&asked);
            Host {
                place,
                called,
                way: Mutex::new(Some(way)),
                address,
                netns,
                patience,
                node: None,
                pod: None,
                observer: None,
                cpus,
                facts,
                remarks: Vec::new(),
                functional_only: None,
                asked,
            }
        };
        Ok(all.into_iter().zip(answers.into_iter().flatten()).map(host).collect())
    }

    fn ask_it(
        way: &dyn Way,
        called: &str,
        run_id: &str,
        help: &Help<'_>,
    ) -> Result<(Asked, Vec<u32>, HostFacts), RunError> {
        let (mut asked, hello) = Asked::start(way.answering(run_id), way.patience())
            .map_err(|text| not_fit(format!("{called}{}: {text}", help.program), help.by_hand))?;
        if hello.tailbound != env!("CARGO_PKG_VERSION") {
            let text = format!("{called} has Tailbound {}, this is {}", hello.tailbound, env!("CARGO_PKG_VERSION"));
            return Err(not_fit(text, help.other_release));
        }
        if let Err(e) = way.started() {
            asked.leave();
            return Err(e);
        }
        let fail = |text: String| not_fit(format!("{called}: {text}"), "");
        match (asked.ask(Ask::Cpus), asked.ask(Ask::Facts)) {
            (Ok(Told::Cpus(cpus)), Ok(Told::Facts(facts))) => Ok((asked, cpus, *facts)),
            (Err(e), _) | (_, Err(e)) => Err(fail(e.to_string())),
            _ => Err(fail("its agent answers something else than it was asked".into())),
        }
    }

    /// The process that carries the stream to its agent.
    pub fn carrier(&self) -> Option<i32> {
        Some(self.asked.lock().ok()?.carrier())
    }

    /// It has answered until now.
    pub fn answers(&self) -> bool {
        self.asked.lock().is_ok_and(|asked| asked.answers())
    }

    /// How it ended, or why it stands still, where it does and somebody knows.
    pub fn ended(&self) -> Option<String> {
        let text = self.way.lock().ok()?.as_ref()?.ended()?;
        Some(self.says(&text))
    }

    /// What the program that runs it tells of it at this moment, or why that is not to be had; nothing where it is no guest,
    /// or has ended.
    pub fn look(&self) -> Option<Result<Look, String>> {
        self.way.lock().ok()?.as_ref()?.look()
    }

    /// Makes settings there.
    pub fn set(&self, run_id: &str, settings: &[KnobSpec]) -> Result<Vec<KnobDone>, RunError> {
        let (run, settings) = (format!("{run_id}-there"), settings.to_vec());
        match Far::ask(self, Ask::Set { run, settings }) {
            Ok(Told::Set(done)) => Ok(done.into_iter().map(|d| self.named(d)).collect()),
            Ok(Told::Failed(text, _)) => Err(not_fit(self.says(&text), "")),
            Ok(other) => Err(not_fit(self.says(&format!("it said {other:?} in place of settings")), "")),
            Err(e) => Err(not_fit(e, "")),
        }
    }

    /// What of them is not so any more.
    pub fn changed(&self) -> Vec<String> {
        match Far::ask(self, Ask::Changed) {
            Ok(Told::Changed(texts)) => texts.iter().map(|t| self.says(t)).collect(),
            Ok(other) => vec![self.says(&format!("it said {other:?} in place of its settings"))],
            // A host that is lost is told of where it is missed.
            Err(_) => Vec::new(),
        }
    }

    /// What of the place itself is not any more as it was asked for.
    pub fn differs(&self) -> Vec<String> {
        let texts = self.way.lock().ok().and_then(|way| Some(way.as_ref()?.changed())).unwrap_or_default();
        texts.iter().map(|t| self.says(t)).collect()
    }

    /// Puts them back; they are put back by its agent, too, when it ends.
    pub fn put_back(&self) -> PutBackTold {
        match Far::ask(self, Ask::PutBack) {
            Ok(Told::PutBack(PutBackTold { settings, left_alone, failed })) => PutBackTold {
                settings: settings.into_iter().map(|d| self.named(d)).collect(),
                left_alone: left_alone.iter().map(|t| self.says(t)).collect(),
                failed: failed.iter().map(|t| self.says(t)).collect(),
            },
            _ => PutBackTold::default(),
        }
    }

    fn named(&self, done: KnobDone) -> KnobDone {
        KnobDone { at: self.called.clone(), ..done }
    }

    fn says(&self, text: &str) -> String {
        format!("{}: {text}", self.called)
    }

    /// Leaves it; why something could not be removed that was to be.
    pub fn leave(&self, journal: &Journal) -> Option<String> {
        if let Ok(mut asked) = self.asked.lock() {
            asked.leave();
        }
        let way = self.way.lock().ok()?.take()?;
        way.leave(journal).map(|text| self.says(&text))
    }
}

/// What to do when Tailbound does not start there.
pub(super) struct Help<'a> {
    /// The program, in brackets with a blank before it, where the user named it.
    pub program: &'a str,
    /// It does not start.
    pub by_hand: &'a str,
    /// It is of another release.
    pub other_release: &'a str,
}

impl Far for Host {
    fn name(&self) -> &str {
        &self.called
    }

    fn address(&self) -> Option<IpAddr> {
        self.address
    }

    fn netns(&self) -> Option<NetNs> {
        self.netns.clone()
    }

    fn ask(&self, ask: Ask) -> io::Result<Told> {
        let mut asked = self.asked.lock().map_err(|_| io::Error::other("its agent is not to be had"))?;
        asked.ask(ask).map_err(|e| io::Error::new(e.kind(), self.says(&e.to_string())))
    }

    fn program(&self) -> Command {
        match self.way.lock().ok().as_ref().and_then(|way| way.as_ref()) {
            Some(way) => way.program(),
            // It was left: nothing can be started there any more.
            None => Command::new("false"),
        }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.called)
    }
}

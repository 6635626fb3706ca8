//! The settings of a block of trials while they are in force.

use super::{KnobError, Place, Setting, find};
use crate::journal::{EntryId, Journal, JournalError};
use crate::undo::Undone;
use tailbound_model::{KnobDone, KnobSpec};

/// Settings in force. Dropping them puts nothing back: the journal does.
#[derive(Debug, Default)]
pub struct Knobs {
    held: Vec<Held>,
}

#[derive(Debug)]
struct Held {
    setting: Box<dyn Setting>,
    place: Place,
    /// `None`: it had the value already, nothing was changed.
    entry: Option<EntryId>,
    done: KnobDone,
}

/// What putting back came to.
#[derive(Debug, Default)]
pub struct PutBack {
    /// All settings, with what became of each.
    pub settings: Vec<KnobDone>,
    /// Those that somebody else had changed, as sentences.
    pub left_alone: Vec<String>,
    /// What could not be put back; it stays in the journal.
    pub failed: Vec<JournalError>,
}

impl Knobs {
    /// Sets a knob in the places that have it, the undo written first, and reads it back.
    ///
    /// # Errors
    /// See [`KnobError`]. What was set stays set until [`put_back`](Knobs::put_back).
    pub fn set(&mut self, spec: &KnobSpec, ends: &[Place], journal: &Journal) -> Result<(), KnobError> {
        for place in find::places(spec, ends) {
            for setting in find::find(spec, &place)? {
                self.set_one(spec, setting, &place, journal)?;
            }
        }
        Ok(())
    }

    fn set_one(
        &mut self,
        spec: &KnobSpec,
        mut setting: Box<dyn Setting>,
        place: &Place,
        journal: &Journal,
    ) -> Result<(), KnobError> {
        let (key, what) = (spec.key(), setting.what());
        let wanted = setting.spelled(&spec.wanted());
        let failed = |deed, e: &std::io::Error| KnobError::of(&key, what.clone(), deed, &wanted, e);
        let before = place.inside(|| setting.read()).map_err(|e| failed("read", &e))?;
        let mut entry = None;
        let mut written = Ok(());
        if before != wanted || setting.is_held() {
            entry = Some(journal.before(setting.undo(&before, &wanted))?);
            written = place.inside(|| setting.write(&wanted)).map_err(|e| failed("set", &e));
        }
        let read = place.inside(|| setting.read()).map_err(|e| failed("read", &e));
        let found = read.as_ref().unwrap_or(&wanted).clone();
        if let (Err(_), Some(id)) = (&written, entry)
            && read.as_ref().is_ok_and(|now| *now == before)
        {
            // Nothing was changed.
            journal.done(id)?;
            return written;
        }
        let undo = setting.undo(&before, &found);
        let (name, value) = (place.name.clone(), found.clone());
        let done = KnobDone { key, what, at: name, wanted: wanted.clone(), before, found: value, put_back: None };
        let (key, what) = (done.key.clone(), done.what.clone());
        self.held.push(Held { setting, place: place.clone(), entry, done });
        if read? == wanted && written.is_ok() {
            return Ok(());
        }
        // The undo must know what really is there, or it would take it for somebody else's doing.
        if let Some(id) = entry {
            journal.update(id, undo)?;
        }
        written?;
        Err(KnobError::Differs { key, what, wanted, found })
    }

    /// What is in force, in the order in which it was set.
    pub fn settings(&self) -> Vec<KnobDone> {
        self.held.iter().map(|h| h.done.clone()).collect()
    }

    /// Reads all of them again; a sentence for each that is not any more as it was set.
    pub fn verify(&self) -> Vec<String> {
        let differs = |h: &Held| {
            let (key, what, wanted) = (&h.done.key, &h.done.what, &h.done.wanted);
            match h.place.inside(|| h.setting.read()) {
                Ok(now) if now == *wanted => None,
                Ok(now) => Some(format!("{key}: {what} was set to `{wanted}`, and is `{now}` now")),
                Err(e) => Some(format!("{key}: {what} cannot be read any more: {e}")),
            }
        };
        self.held.iter().filter_map(differs).collect()
    }

    /// Puts all of them back, the last one first; goes on past failures.
    pub fn put_back(self, journal: &Journal) -> PutBack {
        let mut all = PutBack::default();
        for held in self.held.into_iter().rev() {
            let Held { mut setting, place, entry, mut done } = held;
            setting.release();
            let became = match entry.map(|id| journal.undo(id)) {
                None => "was so before: nothing to put back".to_owned(),
                Some(Ok(Undone::LeftAlone(why))) => {
                    all.left_alone.push(why.clone());
                    why
                }
                Some(Ok(outcome)) => match place.inside(|| setting.read()) {
                    Ok(now) if now == done.before => format!("put back to `{now}`"),
                    _ if outcome == Undone::AlreadyGone => "went with what it was set for".to_owned(),
                    now => format!("put back, and is `{}` now", now.unwrap_or_else(|e| e.to_string())),
                },
                Some(Err(error)) => {
                    let text = format!("NOT put back: {error}");
                    all.failed.push(error);
                    text
                }
            };
            done.put_back = Some(became);
            all.settings.push(done);
        }
        all.settings.reverse();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::FileSetting;
    use super::*;
    use std::fs;

    fn spec(value: &str) -> KnobSpec {
        KnobSpec::Sysctl { name: "test.setting".into(), value: value.into() }
    }

    fn setup(value: &str) -> (tempfile::TempDir, Box<FileSetting>, Journal) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("setting");
        fs::write(&path, value).unwrap();
        let journal = Journal::create_in(&dir.path().join("journal"), "run").unwrap();
        (dir, Box::new(FileSetting::of(path, None)), journal)
    }

    #[test]
    fn a_setting_is_set_read_back_and_put_back() {
        let (dir, setting, journal) = setup("50\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("0"), setting, &Place::own(), &journal).unwrap();
        let file = dir.path().join("setting");
        assert_eq!(fs::read_to_string(&file).unwrap(), "0");
        assert_eq!(knobs.verify(), Vec::<String>::new());
        assert_eq!((knobs.settings()[0].before.as_str(), knobs.settings()[0].found.as_str()), ("50", "0"));
        let back = knobs.put_back(&journal);
        assert_eq!(back.settings[0].put_back.as_deref(), Some("put back to `50`"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "50");
        journal.finish().unwrap();
    }

    #[test]
    fn a_setting_that_has_the_value_is_not_touched() {
        let (_dir, setting, journal) = setup("always [madvise] never\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("madvise"), setting, &Place::own(), &journal).unwrap();
        assert!(journal.open_entries().is_empty());
        assert_eq!(
            knobs.put_back(&journal).settings[0].put_back.as_deref(),
            Some("was so before: nothing to put back")
        );
    }

    #[test]
    fn what_somebody_else_changed_is_told_and_left_alone() {
        let (dir, setting, journal) = setup("50\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("0"), setting, &Place::own(), &journal).unwrap();
        fs::write(dir.path().join("setting"), "7\n").unwrap();
        assert!(knobs.verify()[0].ends_with("was set to `0`, and is `7` now"), "{:?}", knobs.verify());
        let back = knobs.put_back(&journal);
        assert!(back.left_alone[0].contains("somebody else changed it"), "{back:?}");
        assert_eq!(fs::read_to_string(dir.path().join("setting")).unwrap(), "7\n");
    }

    #[test]
    fn what_does_not_exist_or_cannot_be_set_is_named_and_leaves_no_entry() {
        let (_dir, _, journal) = setup("");
        let mut knobs = Knobs::default();
        let none = KnobSpec::Sysctl { name: "net.core.no_such_setting".into(), value: "1".into() };
        let error = knobs.set(&none, &[], &journal).unwrap_err();
        assert_eq!(
            error.to_string(),
            "host.sysctl.net.core.no_such_setting: /proc/sys/net/core/no_such_setting does not exist here: this kernel \
             or network namespace has no such setting"
        );
        // Read-only for everybody, root too.
        let release = KnobSpec::Sysctl { name: "kernel.osrelease".into(), value: "1".into() };
        assert!(matches!(super::super::check(&release, &[], false), Err(KnobError::Refused { .. })));
        assert!(knobs.set(&release, &[], &journal).is_err());
        assert!(journal.open_entries().is_empty());
    }
}

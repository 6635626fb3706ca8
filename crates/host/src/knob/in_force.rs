//! The host settings in force during a group of consecutive trials with equal settings.

use super::error::KnobError;
use super::find;
use super::place::Place;
use super::setting::Setting;
use crate::journal::{EntryId, Journal, JournalError};
use crate::undo::Undone;
use tailbound_model::{KnobDone, KnobSpec};

/// Host settings in force. If this value is dropped, nothing is restored; the undo entries stay in the journal.
#[derive(Debug, Default)]
pub struct Knobs {
    settings: Vec<SettingInForce>,
}

#[derive(Debug)]
struct SettingInForce {
    setting: Box<dyn Setting>,
    place: Place,
    /// Journal entry that restores the setting; `None` if the setting had the requested value already, so that nothing
    /// was changed.
    entry: Option<EntryId>,
    done: KnobDone,
}

/// Results of restoring the host settings of a run.
#[derive(Debug, Default)]
pub struct Restored {
    /// All host settings of the run, each with the result of restoring it.
    pub settings: Vec<KnobDone>,
    /// Sentences about host settings that were not restored because another program had changed them.
    pub left_alone: Vec<String>,
    /// Errors of settings that could not be restored; the entries of these settings stay in the journal.
    pub failed: Vec<JournalError>,
}

impl Knobs {
    /// Sets a knob in all places that have it: for each setting, writes the undo to the journal, changes the setting
    /// and reads it back.
    ///
    /// # Errors
    /// A setting could not be read or set, see [`KnobError`]. Settings changed before the error stay until
    /// [`restore`](Knobs::restore).
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
        let failed = |action, e: &std::io::Error| KnobError::of(&key, what.clone(), action, &wanted, e);
        let before = place.inside(|| setting.read()).map_err(|e| failed("read", &e))?;
        let mut entry = None;
        let mut written = Ok(());
        if before != wanted || setting.lasts_while_open() {
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
        let done = KnobDone { key, what, at: name, wanted: wanted.clone(), before, found: value, restored: None };
        let (key, what) = (done.key.clone(), done.what.clone());
        self.settings.push(SettingInForce { setting, place: place.clone(), entry, done });
        if read? == wanted && written.is_ok() {
            return Ok(());
        }
        // The undo must contain the value that is really in force, or it would take this value for a change by somebody
        // else.
        if let Some(id) = entry {
            journal.update(id, undo)?;
        }
        written?;
        Err(KnobError::Differs { key, what, wanted, found })
    }

    /// All host settings in force, in the order in which they were set.
    pub fn settings(&self) -> Vec<KnobDone> {
        self.settings.iter().map(|h| h.done.clone()).collect()
    }

    /// Reads all settings again and returns a sentence for each setting whose value has changed.
    pub fn verify(&self) -> Vec<String> {
        let differs = |h: &SettingInForce| {
            let (key, what, wanted) = (&h.done.key, &h.done.what, &h.done.wanted);
            match h.place.inside(|| h.setting.read()) {
                Ok(now) if now == *wanted => None,
                Ok(now) => Some(format!("{key}: {what} was set to `{wanted}`, and is `{now}` now")),
                Err(e) => Some(format!("{key}: {what} cannot be read any more: {e}")),
            }
        };
        self.settings.iter().filter_map(differs).collect()
    }

    /// Restores all host settings, the last setting first, and continues after failures.
    pub fn restore(self, journal: &Journal) -> Restored {
        let mut all = Restored::default();
        for in_force in self.settings.into_iter().rev() {
            let SettingInForce { mut setting, place, entry, mut done } = in_force;
            setting.release();
            let became = match entry.map(|id| journal.undo(id)) {
                None => "the setting had this value before: nothing to restore".to_owned(),
                Some(Ok(Undone::LeftAlone(why))) => {
                    all.left_alone.push(why.clone());
                    why
                }
                Some(Ok(outcome)) => match place.inside(|| setting.read()) {
                    Ok(now) if now == done.before => format!("restored to `{now}`"),
                    _ if outcome == Undone::AlreadyGone => {
                        "nothing to restore: the interface or thread that had the setting does not exist any more"
                            .to_owned()
                    }
                    now => {
                        let now = now.unwrap_or_else(|e| e.to_string());
                        format!("the setting was restored, but its value is now `{now}`")
                    }
                },
                Some(Err(error)) => {
                    let text = format!("NOT restored: {error}");
                    all.failed.push(error);
                    text
                }
            };
            done.restored = Some(became);
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
    fn a_setting_is_set_read_back_and_restored() {
        let (dir, setting, journal) = setup("50\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("0"), setting, &Place::own(), &journal).unwrap();
        let file = dir.path().join("setting");
        assert_eq!(fs::read_to_string(&file).unwrap(), "0");
        assert_eq!(knobs.verify(), Vec::<String>::new());
        assert_eq!((knobs.settings()[0].before.as_str(), knobs.settings()[0].found.as_str()), ("50", "0"));
        let back = knobs.restore(&journal);
        assert_eq!(back.settings[0].restored.as_deref(), Some("restored to `50`"));
        assert_eq!(fs::read_to_string(&file).unwrap(), "50");
        journal.finish().unwrap();
    }

    #[test]
    fn a_setting_that_has_the_value_is_not_changed() {
        let (_dir, setting, journal) = setup("always [madvise] never\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("madvise"), setting, &Place::own(), &journal).unwrap();
        assert!(journal.open_entries().is_empty());
        assert_eq!(
            knobs.restore(&journal).settings[0].restored.as_deref(),
            Some("the setting had this value before: nothing to restore")
        );
    }

    #[test]
    fn a_setting_changed_by_somebody_else_is_reported_and_left_alone() {
        let (dir, setting, journal) = setup("50\n");
        let mut knobs = Knobs::default();
        knobs.set_one(&spec("0"), setting, &Place::own(), &journal).unwrap();
        fs::write(dir.path().join("setting"), "7\n").unwrap();
        assert!(knobs.verify()[0].ends_with("was set to `0`, and is `7` now"), "{:?}", knobs.verify());
        let back = knobs.restore(&journal);
        assert!(back.left_alone[0].contains("somebody else changed it"), "{back:?}");
        assert_eq!(fs::read_to_string(dir.path().join("setting")).unwrap(), "7\n");
    }

    #[test]
    fn a_missing_or_read_only_setting_is_named_and_leaves_no_entry() {
        let (_dir, _, journal) = setup("");
        let mut knobs = Knobs::default();
        let none = KnobSpec::Sysctl { name: "net.core.no_such_setting".into(), value: "1".into() };
        let error = knobs.set(&none, &[], &journal).unwrap_err();
        assert_eq!(
            error.to_string(),
            "host.sysctl.net.core.no_such_setting: /proc/sys/net/core/no_such_setting does not exist here: this kernel \
             or network namespace has no such setting"
        );
        // This file is read-only for all users, including root.
        let release = KnobSpec::Sysctl { name: "kernel.osrelease".into(), value: "1".into() };
        assert!(matches!(super::super::check(&release, &[], false), Err(KnobError::Refused { .. })));
        assert!(knobs.set(&release, &[], &journal).is_err());
        assert!(journal.open_entries().is_empty());
    }
}

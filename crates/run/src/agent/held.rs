//! Settings of this host that a controller on another one asks for. The journal of this host knows them, and they are put
//! back at the latest when the agent ends.

use crate::controller::reasons;
use tailbound_host::journal::{self, Journal};
use tailbound_host::knob::Knobs;
use tailbound_model::{Ask, KnobSpec, PutBackTold, Told};

#[derive(Default)]
pub(super) struct Settings {
    held: Option<(Knobs, Journal)>,
}

impl Settings {
    /// The answer, where settings are asked for.
    pub fn answer(&mut self, ask: &Ask) -> Option<Told> {
        Some(match ask {
            Ask::Set { run, settings } => match self.set(run, settings) {
                Ok(()) => Told::Set(self.held.iter().flat_map(|(knobs, _)| knobs.settings()).collect()),
                Err(text) => Told::Failed(text, None),
            },
            Ask::Changed => Told::Changed(self.held.iter().flat_map(|(knobs, _)| knobs.verify()).collect()),
            Ask::PutBack => Told::PutBack(self.put_back()),
            _ => return None,
        })
    }

    /// Makes all of them, or none.
    fn set(&mut self, run: &str, settings: &[KnobSpec]) -> Result<(), String> {
        self.put_back();
        // What a run that was killed has left here would be taken for what was there before.
        let _ = journal::cleanup(&mut |_| ());
        let journal = Journal::create(run).map_err(|e| e.to_string())?;
        let (knobs, journal) = self.held.insert((Knobs::default(), journal));
        let of_host = settings.iter().filter(|s| !s.is_of_network());
        let mut all = of_host.chain(settings.iter().filter(|s| s.is_of_network()));
        let made = all.try_for_each(|s| knobs.set(s, &[], journal).map_err(|e| e.to_string()));
        // All of them together: one may have changed another.
        let made = made.and_then(|()| knobs.verify().into_iter().next().map_or(Ok(()), Err));
        made.map_err(|text| match self.put_back().failed {
            left if left.is_empty() => text,
            left => format!("{text}; and a setting could NOT be put back: {}", left.join("; ")),
        })
    }

    /// Puts all of them back.
    pub fn put_back(&mut self) -> PutBackTold {
        let Some((knobs, journal)) = self.held.take() else { return PutBackTold::default() };
        let back = knobs.put_back(&journal);
        let mut failed: Vec<String> = back.failed.iter().flat_map(reasons).collect();
        if failed.is_empty() {
            failed.extend(journal.finish().err().map(|e| e.to_string()));
        }
        PutBackTold { settings: back.settings, left_alone: back.left_alone, failed }
    }
}

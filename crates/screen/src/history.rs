//! How many samples each writer sent between two documents.

use std::collections::{BTreeMap, VecDeque};
use tailbound_document::WatchReport;

/// Most values of a writer: one for each second of a minute.
const MOST: usize = 60;
/// Heights of a bar, from nothing to the largest value.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The values of all writers, by their identity.
#[derive(Debug, Default)]
pub struct History {
    writers: BTreeMap<String, Values>,
}

#[derive(Debug, Default)]
struct Values {
    /// Samples until the last document.
    last: u64,
    new: VecDeque<u64>,
}

impl History {
    /// Adds the samples of each writer since the last document.
    pub fn add(&mut self, report: &WatchReport) {
        for writer in report.topics.iter().flat_map(|topic| &topic.writers) {
            let values = self.writers.entry(writer.guid.clone()).or_default();
            values.new.push_back(writer.samples.saturating_sub(values.last));
            values.last = writer.samples;
            if values.new.len() > MOST {
                values.new.pop_front();
            }
        }
    }

    /// The newest values of a writer, oldest first, at most `most`.
    pub fn newest(&self, guid: &str, most: usize) -> Vec<u64> {
        let values = self.writers.get(guid).map(|values| &values.new);
        values.into_iter().flatten().copied().skip(values.map_or(0, |v| v.len().saturating_sub(most))).collect()
    }

    /// The newest values as bars of one line, scaled to the largest of them.
    pub fn bars(&self, guid: &str, most: usize) -> String {
        let values = self.newest(guid, most);
        let largest = values.iter().copied().max().unwrap_or(0).max(1);
        let bar = |value: &u64| BARS[(value * (BARS.len() as u64 - 1)).div_ceil(largest) as usize];
        values.iter().map(bar).collect()
    }
}

//! Late messages that belong together, told by the messages between them.
//!
//! C. A. T. Ferro, J. Segers, Inference for Clusters of Extreme Values, J. R. Statist. Soc. B 65 (2003): the extremal
//! index from the distances between late messages, and the run length of the declustering from the index.

use super::peaks::Exceedances;

/// Late messages with fewer than a run of messages between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cluster {
    /// Place of the first.
    pub at: u64,
    /// How many they are.
    pub size: usize,
    /// The latest, less the threshold.
    pub peak: f64,
}

pub(crate) struct Clusters {
    all: Vec<Cluster>,
    pub extremal_index: f64,
}

impl std::ops::Deref for Clusters {
    type Target = [Cluster];
    fn deref(&self) -> &[Cluster] {
        &self.all
    }
}

impl Clusters {
    pub fn of(above: &Exceedances) -> Clusters {
        // The last sequence that begins at or before a place.
        let sequence = |at: u64| above.starts.partition_point(|s| *s <= at);
        let distance =
            |pair: &[(u64, f64)]| (sequence(pair[0].0) == sequence(pair[1].0)).then(|| pair[1].0 - pair[0].0);
        let distances: Vec<Option<u64>> = above.values.windows(2).map(distance).collect();
        let mut known: Vec<u64> = distances.iter().flatten().copied().collect();
        let extremal_index = extremal_index(&known);
        let run = run_length(&mut known, extremal_index);
        let mut all: Vec<Cluster> = Vec::new();
        for (i, (at, x)) in above.values.iter().enumerate() {
            let near = i > 0 && distances[i - 1].is_some_and(|d| d <= run);
            match all.last_mut().filter(|_| near) {
                Some(cluster) => {
                    cluster.size += 1;
                    cluster.peak = cluster.peak.max(*x);
                }
                None => all.push(Cluster { at: *at, size: 1, peak: *x }),
            }
        }
        Clusters { all, extremal_index }
    }

    /// How many messages the cluster of an average late message has; `n` are late.
    pub fn mean_size(&self, n: f64) -> f64 {
        self.all.iter().map(|c| (c.size * c.size) as f64).sum::<f64>() / n
    }

    /// The peaks, rising.
    pub fn peaks(&self) -> Vec<f64> {
        let mut peaks: Vec<f64> = self.all.iter().map(|c| c.peak).collect();
        peaks.sort_unstable_by(f64::total_cmp);
        peaks
    }
}

/// The intervals estimator: Ferro & Segers 2003, equations 2 to 4.
fn extremal_index(distances: &[u64]) -> f64 {
    let n = distances.len() as f64;
    if distances.is_empty() {
        return 1.0;
    }
    let less = if distances.iter().all(|d| *d <= 2) { [0.0, 0.0] } else { [1.0, 2.0] };
    let sum: f64 = distances.iter().map(|d| *d as f64 - less[0]).sum();
    let squares: f64 = distances.iter().map(|d| (*d as f64 - less[0]) * (*d as f64 - less[1])).sum();
    if squares > 0.0 { (2.0 * sum * sum / (n * squares)).min(1.0) } else { 1.0 }
}

/// The largest distances are those between clusters: as many as the index says, fewer where it falls among equals.
fn run_length(distances: &mut [u64], index: f64) -> u64 {
    distances.sort_unstable_by(|a, b| b.cmp(a));
    let between = (index * (distances.len() + 1) as f64) as usize;
    distances.get(between).copied().unwrap_or(0)
}

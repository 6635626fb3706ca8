//! Clusters: late messages that belong together, found by the number of messages between them.
//!
//! C. A. T. Ferro, J. Segers, Inference for Clusters of Extreme Values, J. R. Statist. Soc. B 65 (2003): the extremal
//! index follows from the distances between late messages, and the run length of the declustering follows from the
//! index.

use super::peaks::Exceedances;

/// A cluster: late messages with fewer messages between them than the run length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cluster {
    /// Position of the first message of the cluster among all messages.
    pub at: u64,
    /// Number of late messages in the cluster (late messages that lie close together).
    pub size: usize,
    /// The largest value in the cluster minus the threshold, in ns.
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
        // The last sequence that begins at or before this position.
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

    /// Mean size of the cluster to which a late message belongs; `n` messages are late.
    pub fn mean_size(&self, n: f64) -> f64 {
        self.all.iter().map(|c| (c.size * c.size) as f64).sum::<f64>() / n
    }

    /// The latest values (peaks) of all clusters of late messages, in rising order.
    pub fn peaks(&self) -> Vec<f64> {
        let mut peaks: Vec<f64> = self.all.iter().map(|c| c.peak).collect();
        peaks.sort_unstable_by(f64::total_cmp);
        peaks
    }
}

/// The intervals estimator of the extremal index: Ferro & Segers 2003, equations 2 to 4.
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

/// The run length, in messages. The largest distances between late messages are distances between clusters, and the
/// extremal index says how many clusters there are. If several distances are equal at the limit, fewer clusters are
/// formed.
fn run_length(distances: &mut [u64], index: f64) -> u64 {
    distances.sort_unstable_by(|a, b| b.cmp(a));
    let between = (index * (distances.len() + 1) as f64) as usize;
    distances.get(between).copied().unwrap_or(0)
}

//! Lists of CPU numbers, written as for `taskset -c`.

use crate::Problem;
use crate::units::not_a_quantity;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of CPU numbers; its text form is, for example, `0-1,3`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(pub BTreeSet<u32>);

impl CpuList {
    /// The CPU list that contains only the CPU `cpu`.
    pub fn one(cpu: u32) -> Self {
        CpuList(BTreeSet::from([cpu]))
    }
    /// True if the CPU list contains no CPU.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for CpuList {
    type Err = Problem;
    fn from_str(text: &str) -> Result<Self, Problem> {
        let error = || not_a_quantity(text, "a CPU list such as `0-1,3`");
        let mut set = BTreeSet::new();
        for part in text.split(',') {
            let part = part.trim();
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high): (u32, u32) =
                (low.trim().parse().map_err(|_| error())?, high.trim().parse().map_err(|_| error())?);
            if low > high || high >= 4096 {
                return Err(error());
            }
            set.extend(low..=high);
        }
        Ok(CpuList(set))
    }
}

impl TryFrom<String> for CpuList {
    type Error = Problem;
    fn try_from(text: String) -> Result<Self, Problem> {
        if text.is_empty() { Ok(CpuList::default()) } else { text.parse() }
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> String {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<u32> = self.0.iter().copied().collect();
        let mut i = 0;
        while i < cpus.len() {
            let mut j = i;
            while j + 1 < cpus.len() && cpus[j + 1] == cpus[j] + 1 {
                j += 1;
            }
            if i > 0 {
                f.write_str(",")?;
            }
            if i == j {
                write!(f, "{}", cpus[i])?
            } else {
                write!(f, "{}-{}", cpus[i], cpus[j])?
            }
            i = j + 1;
        }
        Ok(())
    }
}

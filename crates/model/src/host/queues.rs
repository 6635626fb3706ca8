//! Queue disciplines of an interface (tc(8)), as the kernel reports them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Parent of the queue discipline for all packets that an interface sends (`TC_H_ROOT` of linux/pkt_sched.h).
pub const ROOT: u32 = 0xffff_ffff;

/// A queue discipline of an interface, with everything that is needed to set it again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueDiscipline {
    /// Name of the kind, such as `fq_codel`.
    pub kind: String,
    /// [`ROOT`], or a class of another queue discipline: its handle plus the number of the class.
    pub parent: u32,
    /// Its own handle, of which the lower half is zero; zero = the kernel has set it by default, or chooses the handle.
    pub handle: u32,
    /// Bytes of its options (TCA_OPTIONS).
    pub options: Vec<u8>,
    /// Bytes of its size table (TCA_STAB); empty = it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_table: Vec<u8>,
}

impl QueueDiscipline {
    /// A queue discipline for all packets of an interface, with these options.
    pub fn at_root(kind: &str, options: Vec<u8>) -> QueueDiscipline {
        QueueDiscipline { kind: kind.to_owned(), parent: ROOT, options, ..QueueDiscipline::default() }
    }

    /// Whether the kernel has set it by default. Nobody else can set a queue discipline without a handle.
    pub fn is_default(&self) -> bool {
        self.handle == 0
    }
}

impl fmt::Display for QueueDiscipline {
    /// For example `fq_codel 8001:`, as tc(8) names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:x}:", self.kind, self.handle >> 16)
    }
}

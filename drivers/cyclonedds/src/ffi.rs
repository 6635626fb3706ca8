//! C functions of Cyclone DDS that this driver calls: the generated bindings, and declarations that the bindings lack.

pub use cyclors::*;

/// Values of [`StatKeyValue::kind`], the kind of a Cyclone statistic.
pub mod stat_kind {
    /// Kind of a Cyclone statistic: its value is a `u32`.
    pub const UINT32: u32 = 0;
}

/// One statistic of a Cyclone entity (`dds_stat_keyvalue` of `dds/ddsc/dds_statistics.h`).
#[repr(C)]
pub struct StatKeyValue {
    /// Name of the Cyclone statistic; Cyclone owns the string.
    pub name: *const core::ffi::c_char,
    /// Kind of the value of the Cyclone statistic, from `DDS_STAT_KIND_*`.
    pub kind: u32,
    /// Value of the statistic; for a 32-bit kind only the first four bytes are used.
    pub value: StatValue,
}

/// Value of one statistic of Cyclone.
#[repr(C)]
pub union StatValue {
    /// Value of the Cyclone statistic, if the statistic has a 32-bit kind.
    pub u32: u32,
    /// Value of the Cyclone statistic, if the statistic has another kind.
    pub u64: u64,
}

/// Head of the C struct `dds_statistics`; `count` pairs of name and value follow the head.
#[repr(C)]
pub struct Statistics {
    /// Cyclone entity to which the statistics belong.
    pub entity: dds_entity_t,
    /// Internal data of Cyclone in the struct of statistics.
    pub opaque: u64,
    /// Time at which Cyclone last refreshed the statistics.
    pub time: i64,
    /// Number of name and value pairs in the struct of statistics.
    pub count: usize,
    /// The pairs of name and value in the struct of statistics: `count` pairs follow in memory.
    pub kv: [StatKeyValue; 0],
}

unsafe extern "C" {
    /// Creates and fills the statistics of an entity; null if the entity has no statistics.
    pub fn dds_create_statistics(entity: dds_entity_t) -> *mut Statistics;
    /// Frees Cyclone statistics that `dds_create_statistics` made.
    pub fn dds_delete_statistics(stat: *mut Statistics);
}

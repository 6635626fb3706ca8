//! The C functions of Cyclone DDS that this driver calls: the generated bindings and what they lack.

pub use cyclors::*;

/// Kinds of [`StatKeyValue`].
pub mod stat_kind {
    /// The value is a `u32`.
    pub const UINT32: u32 = 0;
}

/// One statistic of an entity (`dds_stat_keyvalue` of `dds/ddsc/dds_statistics.h`).
#[repr(C)]
pub struct StatKeyValue {
    /// Name, owned by the library.
    pub name: *const core::ffi::c_char,
    /// `DDS_STAT_KIND_*`.
    pub kind: u32,
    /// The value; only the first four bytes count for a 32-bit kind.
    pub value: StatValue,
}

/// Value of a statistic.
#[repr(C)]
pub union StatValue {
    /// For 32-bit kinds.
    pub u32: u32,
    /// For all others.
    pub u64: u64,
}

/// Head of `dds_statistics`; `count` pairs follow it.
#[repr(C)]
pub struct Statistics {
    /// Entity that the values belong to.
    pub entity: dds_entity_t,
    /// Internal.
    pub opaque: u64,
    /// Time of the last refresh.
    pub time: i64,
    /// Number of pairs.
    pub count: usize,
    /// The pairs.
    pub kv: [StatKeyValue; 0],
}

unsafe extern "C" {
    /// Makes and fills the set of statistics that an entity keeps; null if it keeps none.
    pub fn dds_create_statistics(entity: dds_entity_t) -> *mut Statistics;
    /// Frees a set.
    pub fn dds_delete_statistics(stat: *mut Statistics);
}

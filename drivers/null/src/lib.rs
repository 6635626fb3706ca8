//! Placeholder.
/// The driver table.
pub fn table() -> *const tailbound_abi::tb_driver { core::ptr::null() }

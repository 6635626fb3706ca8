//! The `cyclonedds` driver as a shared object: the same table as the linked one, found by the loader's symbol.

/// Entry point of the driver ABI, version 1.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tailbound_abi::tb_driver {
    tailbound_driver_cyclonedds::table()
}

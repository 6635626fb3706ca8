//! The `cyclonedds` driver as a shared object: its symbol returns the same table as the linked driver.

/// Entry point of the driver ABI, version 1: returns the driver's table.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tailbound_abi::tb_driver {
    tailbound_driver_cyclonedds::table()
}

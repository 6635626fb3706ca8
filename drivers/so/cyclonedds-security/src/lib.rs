//! The `cyclonedds` driver with DDS Security as a shared object: the same sources, with a Cyclone library that has the
//! security plug-ins and links OpenSSL.

// Used for its feature `dds_security` only.
use cyclors as _;

/// Entry point of the driver ABI, version 1: returns the driver's table.
#[unsafe(no_mangle)]
pub extern "C" fn tailbound_driver_v1() -> *const tailbound_abi::tb_driver {
    tailbound_driver_cyclonedds::table()
}

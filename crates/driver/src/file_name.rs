//! File names of the shared objects that contain drivers.

/// File names of a driver's shared object: the name of an installed driver, and the name that the build uses in its
/// target directory.
pub fn file_names(name: &str) -> [String; 2] {
    [format!("libtailbound_driver_{name}.so"), format!("libtailbound_driver_{name}_so.so")]
}

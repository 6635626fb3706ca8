//! The bundle: this program, its drivers, every library they need and the loader of those libraries, in one directory.
//!
//! In: files of this host. Out: a directory that runs on any Linux of the same processor family, whatever its
//! distribution and C library, because nothing of the far side is loaded:
//!
//! ```text
//! bundle.json                          what is in it; its hash names the content
//! bin/tailbound
//! lib/ld-linux-x86-64.so.2, libc.so.6, ...
//! lib/tailbound/drivers/libtailbound_driver_*.so
//! ```
//!
//! It is started as `lib/LOADER --library-path lib bin/tailbound ...` ([`Bundle::start`]). It knows nothing of agents,
//! hosts or how a directory gets to the far side.
//!
//! [`image`] wraps the same content as an image for container runtimes.

mod closure;
mod error;
mod image;
mod manifest;
mod pack;

pub use error::BundleError;
pub use image::{BadName, Image, ImageName, image};
pub use manifest::{Bundle, BundleFile, FORMAT, MANIFEST};
pub use pack::{Contents, pack};

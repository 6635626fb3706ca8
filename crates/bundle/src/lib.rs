//! The bundle: this program, its drivers, every library that they need and the loader of these libraries, in one
//! directory.
//!
//! Input: files of this host. Output: a directory that runs on every Linux host of the same processor family,
//! independent of distribution and C library, because no library of the other host is used:
//!
//! ```text
//! bundle.json                          list of all files; its hash identifies the content
//! bin/tailbound
//! lib/ld-linux-x86-64.so.2, libc.so.6, ...
//! lib/tailbound/drivers/libtailbound_driver_*.so, libtailbound_tracer.so
//! ```
//!
//! A bundle is started as `lib/LOADER --library-path lib bin/tailbound ...` ([`Bundle::start`]). This crate knows
//! nothing of agents, of hosts, or of how a directory is copied to another host.
//!
//! [`image`] wraps the same content as an image for container runtimes.

mod closure;
mod contents;
mod error;
mod image;
mod manifest;
mod pack;
mod partial;

pub use contents::Contents;
pub use error::BundleError;
pub use image::{BadName, Image, ImageName, image};
pub use manifest::{Bundle, BundleFile, FORMAT, MANIFEST};
pub use pack::pack;

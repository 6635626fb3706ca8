//! The library that was built against the ROS 2 that is sourced (`drivers/rclcpp/shim.h`): its functions, and where it is found.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EIO, TB_EUNSUPPORTED, search_directories};

use crate::environment::{distribution, version};
use crate::types::Profile;

/// Name of the library.
pub const LIBRARY: &str = "libtailbound_rclcpp.so";
/// `TBR_VERSION` of shim.h.
const VERSION: u32 = 1;

/// Results of functions, as in shim.h.
pub const OK: c_int = 0;
pub const FULL: c_int = -2;
pub const TIMED_OUT: c_int = -3;

/// `tbr_options`.
#[repr(C)]
pub struct RawOptions {
    pub domain: u64,
    pub node: *const c_char,
    pub executor: i32,
    pub threads: u32,
    pub callback_groups: i32,
    pub send_by: i32,
    pub intra_process: u8,
    pub loan: u8,
    pub serialized: u8,
    pub reserved: u8,
}

/// `tbr_message`.
#[repr(C)]
pub struct RawMessage {
    pub seq: u64,
    pub data: *const u8,
    pub len: u64,
    pub writer: u64,
    pub source_ns: i64,
    pub taken_ns: i64,
}

/// `tbr_status`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Status {
    pub qos: Profile,
    pub matched: u64,
    pub matched_inside: u64,
    pub discovered: u64,
    pub incompatible: i32,
    pub policy: i32,
    pub failed: u64,
}

/// `tbr_on_message`.
pub type OnMessage = unsafe extern "C" fn(*mut c_void, *const RawMessage);
/// `tbr_drop`.
pub type Drop = unsafe extern "C" fn(*mut c_void);

/// `tbr_table`.
#[repr(C)]
pub struct Table {
    version: u32,
    reserved: u32,
    distribution: *const c_char,
    rclcpp: *const c_char,
    last_error: unsafe extern "C" fn() -> *const c_char,
    pub open: unsafe extern "C" fn(*const RawOptions) -> *mut c_void,
    pub close: unsafe extern "C" fn(*mut c_void),
    pub writer: unsafe extern "C" fn(*mut c_void, *const c_char, *const Profile, u64) -> *mut c_void,
    pub reader:
        unsafe extern "C" fn(*mut c_void, *const c_char, *const Profile, OnMessage, *mut c_void, Drop) -> *mut c_void,
    pub send: unsafe extern "C" fn(*mut c_void, u64, *const u8, u64) -> c_int,
    pub acked: unsafe extern "C" fn(*mut c_void, i64) -> c_int,
    pub status: unsafe extern "C" fn(*mut c_void, *mut Status) -> c_int,
    pub destroy: unsafe extern "C" fn(*mut c_void),
}

/// The library, loaded.
pub struct Shim {
    pub f: &'static Table,
    /// Path of the library.
    pub path: PathBuf,
}

// SAFETY: the table is constant data of a library that stays loaded; its functions may be called from any thread.
unsafe impl Send for Shim {}
// SAFETY: see `Send`.
unsafe impl Sync for Shim {}

impl Shim {
    /// The error of a function that failed in this thread; `what` says what was wanted.
    #[cold]
    pub fn error(&self, what: &str) -> Fail {
        // SAFETY: the function returns a string that lives until the next failure of this thread.
        let text = unsafe { CStr::from_ptr((self.f.last_error)()) }.to_string_lossy();
        Fail::new(TB_EIO, format!("{what}: rclcpp: {text}"))
    }
}

/// Directory of the libraries for the sourced distribution in a directory of drivers.
pub fn directory(distribution: &str) -> String {
    format!("rclcpp-{distribution}")
}

/// The file for the sourced distribution, in the first directory that has one.
///
/// # Errors
/// There is none; the text says what to do.
fn file() -> Outcome<PathBuf> {
    let sourced = distribution().unwrap_or_else(|| "unknown".to_owned());
    let searched = search_directories();
    let paths = searched.iter().map(|place| place.join(directory(&sourced)).join(LIBRARY));
    let Some(found) = paths.into_iter().find(|path| path.is_file()) else {
        let text = format!(
            "the part of the driver that is compiled against ROS 2 is missing for the distribution `{sourced}`; build it once: \
             `tailbound driver build rclcpp`"
        );
        return fail(TB_EUNSUPPORTED, text);
    };
    Ok(found)
}

/// Why the driver cannot be used, as far as that is known before the library is loaded.
pub fn lacks() -> Option<String> {
    file().err().map(|fail| fail.text.into_owned())
}

/// The library for the ROS 2 that is sourced; it is loaded at the first call and stays loaded until the process ends.
///
/// # Errors
/// It is missing, cannot be loaded, or was built for another ROS 2 or another release of Tailbound.
pub fn shim() -> Outcome<&'static Shim> {
    static SHIM: OnceLock<Result<Shim, String>> = OnceLock::new();
    let loaded = SHIM.get_or_init(|| load().map_err(|e| e.text.into_owned()));
    loaded.as_ref().map_err(|text| Fail::new(TB_EUNSUPPORTED, text.clone()))
}

fn load() -> Outcome<Shim> {
    let path = file()?;
    let again = "build it again: `tailbound driver build rclcpp`";
    let unfit = |why: String| Fail::new(TB_EUNSUPPORTED, format!("{}: {why}; {again}", path.display()));
    // SAFETY: initialisers of ROS 2 and of the library run, as in every program of ROS 2.
    let library = unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) };
    let library = library.map_err(|e| unfit(format!("it cannot be loaded: {}", crate::library::cause(&e))))?;
    type Entry = unsafe extern "C" fn() -> *const Table;
    // SAFETY: by shim.h the function has this type.
    let entry = unsafe { library.get::<Entry>(b"tailbound_rclcpp_v1\0") }.map(|entry| *entry);
    let entry = entry.map_err(|_| unfit("it is no library of this driver".into()))?;
    // SAFETY: the function has no argument and returns constant data. Every version of the table begins with its version.
    let f: &'static Table = unsafe { &*entry() };
    if f.version != VERSION {
        return Err(unfit(format!("it was built by another release of Tailbound (interface {})", f.version)));
    }
    // SAFETY: constant strings of the library.
    let [for_distribution, for_rclcpp] =
        [f.distribution, f.rclcpp].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    let sourced = [distribution(), version("rclcpp")].map(Option::unwrap_or_default);
    if [&for_distribution, &for_rclcpp] != [&sourced[0], &sourced[1]] {
        let [distribution, rclcpp] = &sourced;
        return Err(unfit(format!(
            "it was built for {for_distribution} with rclcpp {for_rclcpp}, and {distribution} with rclcpp {rclcpp} is sourced"
        )));
    }
    // The code must stay: threads of a middleware can run after the last session.
    std::mem::forget(library);
    Ok(Shim { f, path })
}

//! The functions of ROS 2 that the driver calls, found by their names in the libraries that are sourced.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tailbound_abi::side::{Fail, Outcome, fail};
use tailbound_abi::{TB_EIO, TB_EUNSUPPORTED};

use crate::environment;
use crate::types::{
    Allocator, EndOptions, ErrorString, Handle, InContext, MessageInfo, NodeOptions, Profile, RclContext, Serialized,
    WaitSet,
};

/// Library with the type support of `std_msgs/msg/UInt8MultiArray`.
const STD_MSGS: &str = "libstd_msgs__rosidl_typesupport_c.so";

/// Function of a callback for new messages: argument, number of messages.
pub type OnMessages = unsafe extern "C" fn(*const c_void, usize);
/// Function that gets the log messages of ROS 2: place, severity, logger, time, format, and its arguments (`va_list *`).
pub type OutputHandler = unsafe extern "C" fn(*const c_void, c_int, *const c_char, i64, *const c_char, *mut c_void);

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Pointers to the functions of ROS 2, by their names.
        #[derive(Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Finds all functions in the library and in the ones to which it is linked.
            fn find(library: &Library) -> Outcome<Functions> {
                // SAFETY: the types are those of the headers of ROS 2, see `types`.
                Ok(Functions { $($name: unsafe { symbol(library, stringify!($name)) }?,)* })
            }
        }
    };
}

functions! {
    rcutils_get_default_allocator() -> Allocator;
    rcutils_get_error_string() -> ErrorString;
    rcutils_reset_error();
    rcutils_logging_set_output_handler(OutputHandler);
    rcl_init_options_init(*mut Handle, Allocator) -> c_int;
    rcl_init_options_set_domain_id(*mut Handle, usize) -> c_int;
    rcl_init_options_fini(*mut Handle) -> c_int;
    rcl_init(c_int, *const *const c_char, *const Handle, *mut RclContext) -> c_int;
    rcl_shutdown(*mut RclContext) -> c_int;
    rcl_context_fini(*mut RclContext) -> c_int;
    rcl_node_get_default_options() -> NodeOptions;
    rcl_node_init(*mut InContext, *const c_char, *const c_char, *mut RclContext, *const NodeOptions) -> c_int;
    rcl_node_fini(*mut InContext) -> c_int;
    rcl_publisher_get_default_options() -> EndOptions;
    rcl_publisher_init(*mut Handle, *const InContext, *const c_void, *const c_char, *const EndOptions) -> c_int;
    rcl_publisher_fini(*mut Handle, *mut InContext) -> c_int;
    rcl_publisher_get_actual_qos(*const Handle) -> *const Profile;
    rcl_publisher_get_subscription_count(*const Handle, *mut usize) -> c_int;
    rcl_publisher_wait_for_all_acked(*const Handle, i64) -> c_int;
    rcl_publish_serialized_message(*const Handle, *const Serialized, *mut c_void) -> c_int;
    rcl_subscription_get_default_options() -> EndOptions;
    rcl_subscription_init(*mut Handle, *const InContext, *const c_void, *const c_char, *const EndOptions) -> c_int;
    rcl_subscription_fini(*mut Handle, *mut InContext) -> c_int;
    rcl_subscription_get_actual_qos(*const Handle) -> *const Profile;
    rcl_subscription_get_publisher_count(*const Handle, *mut usize) -> c_int;
    rcl_subscription_set_on_new_message_callback(*const Handle, Option<OnMessages>, *const c_void) -> c_int;
    rcl_take_serialized_message(*const Handle, *mut Serialized, *mut MessageInfo, *mut c_void) -> c_int;
    rcl_guard_condition_init(*mut InContext, *mut RclContext, Allocator) -> c_int;
    rcl_guard_condition_fini(*mut InContext) -> c_int;
    rcl_trigger_guard_condition(*mut InContext) -> c_int;
    rcl_wait_set_init(*mut WaitSet, usize, usize, usize, usize, usize, usize, *mut RclContext, Allocator) -> c_int;
    rcl_wait_set_fini(*mut WaitSet) -> c_int;
    rcl_wait_set_clear(*mut WaitSet) -> c_int;
    rcl_wait_set_add_subscription(*mut WaitSet, *const Handle, *mut usize) -> c_int;
    rcl_wait_set_add_guard_condition(*mut WaitSet, *const InContext, *mut usize) -> c_int;
    rcl_wait(*mut WaitSet, i64) -> c_int;
    rcl_count_publishers(*const InContext, *const c_char, *mut usize) -> c_int;
    rcl_count_subscribers(*const InContext, *const c_char, *mut usize) -> c_int;
    rcl_publisher_event_init(*mut Handle, *const Handle, c_int) -> c_int;
    rcl_subscription_event_init(*mut Handle, *const Handle, c_int) -> c_int;
    rcl_take_event(*mut Handle, *mut c_void) -> c_int;
    rcl_event_fini(*mut Handle) -> c_int;
    rmw_get_implementation_identifier() -> *const c_char;
}

/// The libraries of ROS 2, loaded.
pub struct Ros {
    /// Functions of rcutils, rcl and rmw.
    pub f: Functions,
    /// Type support of `std_msgs/msg/UInt8MultiArray`.
    pub type_support: *const c_void,
    /// Name of the RMW, e.g. `rmw_cyclonedds_cpp`.
    pub rmw: String,
    /// Path of the library in which the functions of the RMW are.
    pub rmw_library: String,
    /// Path of rcl.
    pub rcl_library: String,
}

// SAFETY: the type support is constant data of a library that stays loaded.
unsafe impl Send for Ros {}
// SAFETY: see `Send`.
unsafe impl Sync for Ros {}

/// The libraries of ROS 2 that are sourced; they are loaded at the first call and stay loaded until the process ends. `rmw`: the
/// middleware that ROS 2 shall load.
///
/// # Errors
/// No ROS 2 is sourced, two of them are, a library or its RMW is missing, or a function is; or the RMW is another one.
pub fn ros(rmw: Option<&str>) -> Outcome<&'static Ros> {
    static ROS: OnceLock<Result<Ros, String>> = OnceLock::new();
    let loaded = ROS.get_or_init(|| load(rmw).map_err(|e| e.text.into_owned()));
    let ros = loaded.as_ref().map_err(|text| Fail::new(TB_EUNSUPPORTED, text.clone()))?;
    match rmw {
        Some(wanted) if wanted != ros.rmw => Err(Fail::invalid(format!(
            "rmw={wanted}: this process has the middleware {}. A ROS 2 that was built with one middleware cannot load another one, and \
             a process has one",
            ros.rmw
        ))),
        _ => Ok(ros),
    }
}

fn load(rmw: Option<&str>) -> Outcome<Ros> {
    environment::one_installation()?;
    if let Some(name) = rmw {
        environment::set("RMW_IMPLEMENTATION", name)?;
    }
    // Functions of rcutils and of the RMW are found through rcl, because it is linked to them.
    let rcl = open(environment::RCL).map_err(|why| Fail::new(TB_EUNSUPPORTED, environment::not_sourced(&why)))?;
    let std_msgs = open(STD_MSGS).map_err(|why| {
        let text = format!("the type support of std_msgs cannot be loaded: {why}; install std_msgs, for example `apt install ros-{}-std-msgs`",
            environment::distribution().unwrap_or_else(|| "jazzy".into()));
        Fail::new(TB_EUNSUPPORTED, text)
    })?;
    let f = Functions::find(&rcl)?;
    let handle = "rosidl_typesupport_c__get_message_type_support_handle__std_msgs__msg__UInt8MultiArray";
    // SAFETY: by its name, this function of rosidl has no argument and returns constant data.
    let type_support = unsafe {
        let function: unsafe extern "C" fn() -> *const c_void = symbol(&std_msgs, handle)?;
        function()
    };
    // SAFETY: the handler is a function that stays. It gets the messages of all contexts of the process.
    unsafe { (f.rcutils_logging_set_output_handler)(crate::log::handler) };
    // SAFETY: the function has no argument; it loads the RMW if that is chosen at run time.
    let rmw = unsafe { (f.rmw_get_implementation_identifier)() };
    if rmw.is_null() || type_support.is_null() {
        let chosen = std::env::var("RMW_IMPLEMENTATION")
            .map_or_else(|_| "its default".into(), |name| format!("RMW_IMPLEMENTATION={name}"));
        return fail(
            TB_EUNSUPPORTED,
            format!("the middleware of ROS 2 ({chosen}) cannot be loaded: {}", last_error(&f)),
        );
    }
    // SAFETY: a string that ends with a NUL byte and is constant.
    let rmw = unsafe { CStr::from_ptr(rmw) }.to_string_lossy().into_owned();
    let rmw_library = environment::loaded_library(&format!("lib{rmw}.so"));
    let rcl_library = environment::loaded_library(environment::RCL);
    // The code must stay: threads of a middleware can run after the last session.
    std::mem::forget((rcl, std_msgs));
    Ok(Ros { f, type_support, rmw, rmw_library, rcl_library })
}

fn open(name: &str) -> Result<Library, String> {
    // SAFETY: the initialisers of a ROS 2 library that the user has sourced run, as in every program of ROS 2.
    unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| cause(&error))
}

/// Text of the innermost cause of an error.
pub fn cause(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = next.to_string();
        cause = next.source();
    }
    text
}

/// Finds a function by its name.
///
/// # Safety
/// `T` is the type of the function with this name.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Outcome<T> {
    // SAFETY: the caller states the type.
    let found = unsafe { library.get::<T>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| {
        Fail::new(
            TB_EUNSUPPORTED,
            format!("the function {name} is missing in this ROS 2; the driver needs Humble or a later distribution"),
        )
    })
}

/// Text of the last error of ROS 2 in this thread; the error is cleared.
fn last_error(f: &Functions) -> String {
    // SAFETY: both functions have no argument.
    let text = unsafe {
        let text = (f.rcutils_get_error_string)();
        (f.rcutils_reset_error)();
        text
    };
    let end = text.0.iter().position(|byte| *byte == 0).unwrap_or(text.0.len());
    String::from_utf8_lossy(&text.0[..end]).into_owned()
}

impl Ros {
    /// Converts the result of a function; `what` is the name of the function.
    ///
    /// # Errors
    /// The result is not success. The text is the one of ROS 2.
    #[inline]
    pub fn check(&self, what: &str, result: c_int) -> Outcome {
        if result == crate::types::RET_OK { Ok(()) } else { Err(self.error(what, result)) }
    }

    /// Clears the error of a function whose result is not needed: what stays would be printed with the next error of the thread.
    #[inline]
    pub fn ignore(&self, result: c_int) {
        if result != crate::types::RET_OK {
            // SAFETY: the function has no argument.
            unsafe { (self.f.rcutils_reset_error)() };
        }
    }

    /// The error of a function of ROS 2 that failed; it is cleared there.
    #[cold]
    pub fn error(&self, what: &str, result: c_int) -> Fail {
        Fail::new(TB_EIO, format!("{what}: {} (code {result})", last_error(&self.f)))
    }
}

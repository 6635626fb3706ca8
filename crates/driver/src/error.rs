//! Errors of drivers: a driver that cannot be used, and a call that a driver refused.

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;

use tailbound_abi as abi;

/// Result code `TB_E*` of a driver's function. The type is `Copy`, so a failing call allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub c_int);

impl Code {
    /// Error code of a driver's function: an argument or option is not valid.
    pub const EINVAL: Code = Code(abi::TB_EINVAL);
    /// Error code of a driver's function: memory or another resource ran out.
    pub const ENOMEM: Code = Code(abi::TB_ENOMEM);
    /// Error code of a driver's function: the deadline of the call passed.
    pub const ETIMEDOUT: Code = Code(abi::TB_ETIMEDOUT);
    /// Error code of a driver's function: the call would have to block.
    pub const EWOULDBLOCK: Code = Code(abi::TB_EWOULDBLOCK);
    /// Error code of a driver's function: the driver does not support the function, mode or option.
    pub const EUNSUPPORTED: Code = Code(abi::TB_EUNSUPPORTED);
    /// Error code of a driver's function: the payload is too long.
    pub const ETOOBIG: Code = Code(abi::TB_ETOOBIG);
    /// Error code of a driver's function: the end point or session does not exist, or was closed.
    pub const ECLOSED: Code = Code(abi::TB_ECLOSED);
    /// Error code of a driver's function: the middleware or the operating system refused the call.
    pub const EIO: Code = Code(abi::TB_EIO);
    /// Error code of a driver's function: a QoS policy is not supported or contradicts another policy.
    pub const EQOS: Code = Code(abi::TB_EQOS);

    /// Name of the result code's constant in the C header.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            abi::TB_OK => "TB_OK",
            abi::TB_WOKEN => "TB_WOKEN",
            abi::TB_EINVAL => "TB_EINVAL",
            abi::TB_ENOMEM => "TB_ENOMEM",
            abi::TB_ETIMEDOUT => "TB_ETIMEDOUT",
            abi::TB_EWOULDBLOCK => "TB_EWOULDBLOCK",
            abi::TB_EUNSUPPORTED => "TB_EUNSUPPORTED",
            abi::TB_ETOOBIG => "TB_ETOOBIG",
            abi::TB_ECLOSED => "TB_ECLOSED",
            abi::TB_EIO => "TB_EIO",
            abi::TB_EQOS => "TB_EQOS",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown code {}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A failed call of a driver's function, with the driver's error text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("driver {driver}: {call}: {text} ({code})")]
pub struct DriverError {
    /// Name of the driver whose function failed.
    pub driver: String,
    /// Name of the driver's function that failed.
    pub call: &'static str,
    /// Error code that the driver's function returned.
    pub code: Code,
    /// Error text: the answer of `last_error` for the calling thread, or a general text if the driver gave none.
    pub text: String,
}

/// Guesses the name of the package with a shared library, by the naming rule of the Debian policy manual (8.1): the
/// library's name and the version of its interface, with a hyphen between two digits.
fn debian_package(library: &str) -> Option<String> {
    let (name, version) = library.split_once(".so.")?;
    let hyphen = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    Some(format!("{name}{hyphen}{version}").to_lowercase().replace('_', "-"))
}

/// The reason why a driver cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Error: the file of the driver does not exist.
    #[error("driver {}: no such file", path.display())]
    FileMissing {
        /// Path at which the driver's file was expected.
        path: PathBuf,
    },
    /// Error: no searched directory contains a file for a driver of this name.
    #[error(
        "driver `{name}`: no {} in {}; install the driver's package, or set TAILBOUND_DRIVER_PATH to the directory with this file",
        crate::file_name::file_names(name).join(" or "),
        searched.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// Name of the driver that was not found.
        name: String,
        /// Directories that were searched for the driver, in order.
        searched: Vec<PathBuf>,
    },
    /// Error: a native library that the driver needs is not installed.
    #[error(
        "driver {}: the native library {library} is not installed; install {} (the other drivers are not affected)",
        path.display(),
        debian_package(library).map_or("the package that brings it".to_owned(), |p| format!("the package that brings it, on Debian {p}"))
    )]
    LibraryMissing {
        /// Path of the driver's file.
        path: PathBuf,
        /// Name of the missing library, as the dynamic linker prints it.
        library: String,
    },
    /// Error: the dynamic linker cannot load the driver's file.
    #[error("driver {}: not a loadable shared object: {text}", path.display())]
    NotLoadable {
        /// Path of the driver's file.
        path: PathBuf,
        /// Error text of the dynamic linker about the driver's file.
        text: String,
    },
    /// Error: the file is a shared object, but not a driver.
    #[error(
        "driver {place}: no symbol tailbound_driver_v1: this is not a Tailbound driver, or a driver for another ABI"
    )]
    SymbolMissing {
        /// Path of the driver's file.
        place: String,
    },
    /// Error: the driver was built for another major version of the ABI.
    #[error(
        "driver {place}: built for driver ABI {found}, this tailbound uses driver ABI {}; use a driver of the same release as this tailbound",
        abi::TB_ABI_MAJOR
    )]
    WrongAbi {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Major version of the ABI for which the driver was built.
        found: u32,
    },
    /// Error: the driver's table of functions ends before the end of its mandatory part.
    #[error(
        "driver {place}: its table has {found} bytes, but ABI {}.0 needs {needed}; the driver was built with a damaged header",
        abi::TB_ABI_MAJOR
    )]
    TableTooShort {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Number of bytes of the table of functions that the driver filled in.
        found: u32,
        /// Number of bytes that the driver's table of functions must have at least.
        needed: u32,
    },
    /// Error: a mandatory function of the driver's table is a null pointer.
    #[error("driver {place}: the mandatory function `{function}` is missing from its table")]
    FunctionMissing {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Name of the function that is missing from the driver's table of functions.
        function: &'static str,
    },
    /// Error: the driver's entry point `tailbound_driver_v1` returned no table of functions.
    #[error("driver {place}: tailbound_driver_v1 returned no table")]
    NoTable {
        /// Path of the driver's file, or name of the driver.
        place: String,
    },
    /// Error: the driver's description is not valid JSON of the expected form.
    #[error("driver {place}: its description cannot be read: {text}")]
    Description {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Reason why the driver's description of itself cannot be read.
        text: String,
    },
}

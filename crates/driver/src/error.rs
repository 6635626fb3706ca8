//! Errors of drivers: a driver that cannot be used, and a call that a driver refused.

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;

use tailbound_abi as abi;
use tailbound_model::Problem;

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

/// The reason why a driver cannot be used at all. `Display` writes [`LoadError::problem`] on one line.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Error: the file of the driver does not exist.
    FileMissing {
        /// Path at which the driver's file was expected.
        path: PathBuf,
    },
    /// Error: no searched directory contains a file for a driver of this name.
    NotFound {
        /// Name of the driver that was not found.
        name: String,
        /// Directories that were searched for the driver, in order.
        searched: Vec<PathBuf>,
    },
    /// Error: something that the driver needs is not on this machine: the reason from its description, with what to do.
    Lacks(String),
    /// Error: a native library that the driver needs is not installed.
    LibraryMissing {
        /// Path of the driver's file.
        path: PathBuf,
        /// Name of the missing library, as the dynamic linker prints it.
        library: String,
    },
    /// Error: the dynamic linker cannot load the driver's file.
    NotLoadable {
        /// Path of the driver's file.
        path: PathBuf,
        /// Error text of the dynamic linker about the driver's file.
        text: String,
    },
    /// Error: the file is a shared object, but not a driver.
    SymbolMissing {
        /// Path of the driver's file.
        place: String,
    },
    /// Error: the driver was built for another major version of the ABI.
    WrongAbi {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Major version of the ABI for which the driver was built.
        found: u32,
    },
    /// Error: the driver's table of functions ends before the end of its mandatory part.
    TableTooShort {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Number of bytes of the table of functions that the driver filled in.
        found: u32,
        /// Number of bytes that the driver's table of functions must have at least.
        needed: u32,
    },
    /// Error: a mandatory function of the driver's table is a null pointer.
    FunctionMissing {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Name of the function that is missing from the driver's table of functions.
        function: &'static str,
    },
    /// Error: the driver's entry point `tailbound_driver_v1` returned no table of functions.
    NoTable {
        /// Path of the driver's file, or name of the driver.
        place: String,
    },
    /// Error: the driver's description is not valid JSON of the expected form.
    Description {
        /// Path of the driver's file, or name of the driver.
        place: String,
        /// Reason why the driver's description of itself cannot be read.
        text: String,
    },
}

impl LoadError {
    /// Returns what is wrong with the driver, and what the user can do.
    pub fn problem(&self) -> Problem {
        let of = |code, place: &dyn fmt::Display, what: String, remedy: &str| {
            Problem::new(code, format!("driver {place}: {what}"), remedy)
        };
        match self {
            LoadError::FileMissing { path } => of("driver_missing", &path.display(), "no such file".into(), ""),
            LoadError::NotFound { name, searched } => {
                let files = crate::file_name::file_names(name).join(" or ");
                let searched: Vec<String> = searched.iter().map(|d| d.display().to_string()).collect();
                let what = format!("no {files} in {}", searched.join(", "));
                let remedy = "install the driver's package, or set TAILBOUND_DRIVER_PATH to the directory that \
                              contains the file";
                of("driver_missing", &format_args!("`{name}`"), what, remedy)
            }
            LoadError::Lacks(why) => Problem::new("driver_lacks", why.clone(), ""),
            LoadError::LibraryMissing { path, library } => {
                let debian = debian_package(library).map_or_else(String::new, |name| format!(", on Debian {name}"));
                let what = format!("the native library {library} is not installed");
                let remedy = format!(
                    "install the package that contains this library{debian} (the other drivers are not affected)"
                );
                of("library_missing", &path.display(), what, &remedy)
            }
            LoadError::NotLoadable { path, text } => {
                of("driver_not_loadable", &path.display(), format!("not a loadable shared object: {text}"), "")
            }
            LoadError::SymbolMissing { place } => {
                let what = "no symbol tailbound_driver_v1: this is not a Tailbound driver, or a driver for another ABI";
                of("not_a_driver", place, what.into(), "")
            }
            LoadError::WrongAbi { place, found } => {
                let ours = abi::TB_ABI_MAJOR;
                let what =
                    format!("the driver was built for driver ABI {found}, but this tailbound uses driver ABI {ours}");
                of("driver_abi", place, what, "use a driver of the same release as this tailbound")
            }
            LoadError::TableTooShort { place, found, needed } => {
                let ours = abi::TB_ABI_MAJOR;
                let what = format!(
                    "the driver's table of functions has {found} bytes, but ABI {ours}.0 needs {needed}: the driver \
                     was built with a damaged header"
                );
                of("driver_table", place, what, "")
            }
            LoadError::FunctionMissing { place, function } => {
                let what =
                    format!("the mandatory function `{function}` is missing from the driver's table of functions");
                of("driver_table", place, what, "")
            }
            LoadError::NoTable { place } => {
                of("driver_table", place, "tailbound_driver_v1 returned no table".into(), "")
            }
            LoadError::Description { place, text } => {
                of("driver_description", place, format!("the driver's description cannot be read: {text}"), "")
            }
        }
    }
}

tailbound_model::display_as_problem!(LoadError);

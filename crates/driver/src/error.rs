//! What goes wrong: a driver that cannot be used, and a call that a driver refused.

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;

use tailbound_abi as abi;

/// Result code of a hot call, `TB_E*`. Copy, so that a failing call allocates nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub c_int);

impl Code {
    /// An argument or option is not valid.
    pub const EINVAL: Code = Code(abi::TB_EINVAL);
    /// Memory or another resource ran out.
    pub const ENOMEM: Code = Code(abi::TB_ENOMEM);
    /// The deadline passed.
    pub const ETIMEDOUT: Code = Code(abi::TB_ETIMEDOUT);
    /// The call would have had to block.
    pub const EWOULDBLOCK: Code = Code(abi::TB_EWOULDBLOCK);
    /// The driver does not have this.
    pub const EUNSUPPORTED: Code = Code(abi::TB_EUNSUPPORTED);
    /// The payload is too long.
    pub const ETOOBIG: Code = Code(abi::TB_ETOOBIG);
    /// The end point or session does not exist any more.
    pub const ECLOSED: Code = Code(abi::TB_ECLOSED);
    /// The middleware or the operating system refused.
    pub const EIO: Code = Code(abi::TB_EIO);
    /// A QoS policy is not supported or contradictory.
    pub const EQOS: Code = Code(abi::TB_EQOS);

    /// The constant's name in the C header.
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

/// A call of the table that failed, with the driver's own words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("driver {driver}: {call}: {text} ({code})")]
pub struct DriverError {
    /// Name of the driver.
    pub driver: String,
    /// Function of the table.
    pub call: &'static str,
    /// What it returned.
    pub code: Code,
    /// `last_error` of the calling thread, or a general text when the driver left none.
    pub text: String,
}

/// The package of a shared library, by the rule for names in the Debian policy manual (8.1): the library's name and the
/// version of its interface, with a hyphen between two digits.
fn debian_package(library: &str) -> Option<String> {
    let (name, version) = library.split_once(".so.")?;
    let hyphen = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    Some(format!("{name}{hyphen}{version}").to_lowercase().replace('_', "-"))
}

/// A driver that cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No such file.
    #[error("driver {}: no such file", path.display())]
    FileMissing {
        /// Path that was tried.
        path: PathBuf,
    },
    /// No file of that name in any of the directories.
    #[error(
        "driver `{name}`: no {} in {}; install the driver's package, or set TAILBOUND_DRIVER_PATH to the directory that holds it",
        crate::file_names(name).join(" or "),
        searched.iter().map(|d| d.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NotFound {
        /// Name of the driver.
        name: String,
        /// Directories that were searched, in order.
        searched: Vec<PathBuf>,
    },
    /// A library that the driver needs is not installed.
    #[error(
        "driver {}: the native library {library} is not installed; install {} (the other drivers are not affected)",
        path.display(),
        debian_package(library).map_or("the package that brings it".to_owned(), |p| format!("the package that brings it, on Debian {p}"))
    )]
    LibraryMissing {
        /// The driver's file.
        path: PathBuf,
        /// The library as the dynamic linker names it.
        library: String,
    },
    /// The dynamic linker refused the file.
    #[error("driver {}: not a loadable shared object: {text}", path.display())]
    NotLoadable {
        /// The driver's file.
        path: PathBuf,
        /// Text of the dynamic linker.
        text: String,
    },
    /// The file is a shared object, but no driver.
    #[error("driver {place}: no symbol tailbound_driver_v1: this is not a Tailbound driver, or one for another ABI")]
    SymbolMissing {
        /// The driver's file.
        place: String,
    },
    /// Built for another major version of the ABI.
    #[error(
        "driver {place}: built for driver ABI {found}, this tailbound speaks {}; use a driver of the same release as this tailbound",
        abi::TB_ABI_MAJOR
    )]
    WrongAbi {
        /// The driver's file or name.
        place: String,
        /// Its major version.
        found: u32,
    },
    /// The table ends before its mandatory part does.
    #[error(
        "driver {place}: its table has {found} bytes, ABI {}.0 needs {needed}; it was built against a damaged header",
        abi::TB_ABI_MAJOR
    )]
    TableTooShort {
        /// The driver's file or name.
        place: String,
        /// Bytes that the driver fills.
        found: u32,
        /// Bytes that are needed.
        needed: u32,
    },
    /// A mandatory function is a null pointer.
    #[error("driver {place}: the mandatory function `{function}` is missing from its table")]
    FunctionMissing {
        /// The driver's file or name.
        place: String,
        /// Name of the member.
        function: &'static str,
    },
    /// `tailbound_driver_v1` returned no table.
    #[error("driver {place}: tailbound_driver_v1 returned no table")]
    NoTable {
        /// The driver's file or name.
        place: String,
    },
    /// The description is not the JSON that it should be.
    #[error("driver {place}: its description cannot be read: {text}")]
    Description {
        /// The driver's file or name.
        place: String,
        /// What is wrong with it.
        text: String,
    },
}

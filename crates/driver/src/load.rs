//! Loads and checks drivers: makes a [`Driver`] from a name, a path or a linked table.

use std::ffi::{CStr, CString};
use std::path::Path;

use tailbound_abi::{search_directories, tb_driver};

use crate::description::Description;
use crate::elf;
use crate::error::LoadError;
use crate::file_name::file_names;
use crate::table;

/// A driver whose table was checked. Its code stays loaded until the process ends, because threads of a middleware may
/// continue to run after `close`.
#[derive(Clone, Debug)]
pub struct Driver {
    table: &'static TableBox,
    name: &'static str,
    description: &'static Description,
    path: Option<&'static Path>,
}

/// The table of functions of a driver; its `Debug` output shows only the ABI version.
struct TableBox(&'static tb_driver);

impl std::fmt::Debug for TableBox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ABI {}.{}", self.0.abi_major, self.0.abi_minor)
    }
}

impl Driver {
    /// Makes a driver from a table that is linked into this binary: `Driver::linked("null",
    /// tailbound_driver_null::table())`. `table` must come from `table()` of a driver crate, which returns constant
    /// data.
    ///
    /// # Errors
    /// The table does not follow the ABI, or belongs to a driver with another name.
    #[expect(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "only tables of driver crates are passed here, so callers need no unsafe code"
    )]
    pub fn linked(name: &str, table: *const tb_driver) -> Result<Driver, LoadError> {
        // SAFETY: null is refused; any other pointer comes from `table()` of a driver and lives as long as the process.
        let table = unsafe { table::check(name, table)? };
        let driver = Self::from_table(name, table, None)?;
        if driver.name != name {
            let text = format!("the driver calls itself `{}`", driver.name);
            return Err(LoadError::Description { place: name.to_owned(), text });
        }
        Ok(driver)
    }

    /// Finds `libtailbound_driver_NAME.so` in [`search_directories`] and loads it.
    ///
    /// # Errors
    /// [`LoadError::NotFound`], or the error of [`load`] for the file.
    pub fn find(name: &str) -> Result<Driver, LoadError> {
        let searched = search_directories();
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let found = searched.iter().flat_map(|d| file_names(name).map(|f| d.join(f))).find(|p| plain && p.is_file());
        match found {
            Some(path) => load(&path),
            None => Err(LoadError::NotFound { name: name.to_owned(), searched }),
        }
    }

    fn from_table(place: &str, table: &'static tb_driver, path: Option<&Path>) -> Result<Driver, LoadError> {
        let bad = |text: String| LoadError::Description { place: place.to_owned(), text };
        // SAFETY: `describe` is mandatory and was checked; it returns null or a string that ends with a NUL byte.
        let json =
            table.describe.map(|f| unsafe { f() }).filter(|p| !p.is_null()).ok_or_else(|| bad("it is empty".into()))?;
        // SAFETY: the pointer is not null, so it points to such a string.
        let json = unsafe { CStr::from_ptr(json) }.to_str().map_err(|e| bad(e.to_string()))?;
        let description: Description = serde_json::from_str(json).map_err(|e| bad(e.to_string()))?;
        let description: &'static Description = Box::leak(Box::new(description));
        let path = path.map(|p| &*Box::leak(p.to_owned().into_boxed_path()));
        Ok(Driver { table: Box::leak(Box::new(TableBox(table))), name: &description.name, description, path })
    }

    /// Name of the driver, as the driver's description of itself gives it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The description (name, versions, options, limits) that the driver gives of itself.
    pub fn description(&self) -> &'static Description {
        self.description
    }

    /// Path of the driver's file; `None` if the driver is linked into this binary.
    pub fn path(&self) -> Option<&'static Path> {
        self.path
    }

    /// Version (major, minor) of the ABI for which the driver was built.
    pub fn abi(&self) -> (u32, u32) {
        (self.table.0.abi_major, self.table.0.abi_minor)
    }

    /// The driver's table of functions, checked when the driver was loaded.
    pub fn table(&self) -> &'static tb_driver {
        self.table.0
    }
}

/// Name of the only symbol that a driver's shared object exports.
pub fn entry_symbol() -> &'static str {
    "tailbound_driver_v1"
}

/// Loads a driver from a shared object, which is never unloaded again.
///
/// # Errors
/// The file is missing, is not a shared object, needs a missing native library, is not a driver, or has another ABI
/// version.
pub fn load(path: &Path) -> Result<Driver, LoadError> {
    // For a name without a slash, the dynamic linker would search its own directories.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if !path.exists() {
        return Err(LoadError::FileMissing { path: path.clone() });
    }
    if let Some(text) = elf::damage(path) {
        return Err(LoadError::NotLoadable { path: path.clone(), text });
    }
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: initialisers of the object run; a driver must be trusted.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| dlopen_error(path, &e))?;
    let library: &'static Library = Box::leak(Box::new(library));
    let place = path.display().to_string();
    let symbol = CString::new(entry_symbol()).unwrap_or_default();
    // SAFETY: by the ABI the symbol has this type.
    let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const tb_driver>(symbol.as_bytes_with_nul()) }
        .map_err(|_| LoadError::SymbolMissing { place: place.clone() })?;
    // SAFETY: the entry point takes no arguments and returns the table, which lives as long as the object: until the
    // process ends.
    let table = unsafe { table::check(&place, entry())? };
    Driver::from_table(&place, table, Some(path))
}

/// Makes the error of a failed dlopen: a missing native library, or a file that cannot be loaded at all.
fn dlopen_error(path: &Path, error: &libloading::Error) -> LoadError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(e) = source {
        text = e.to_string();
        source = e.source();
    }
    let missing = text
        .split_once(": cannot open shared object file")
        .map(|(library, _)| library.rsplit(' ').next().unwrap_or(library));
    match missing {
        Some(library) if !path.ends_with(library) => {
            LoadError::LibraryMissing { path: path.to_owned(), library: library.to_owned() }
        }
        _ => LoadError::NotLoadable { path: path.to_owned(), text },
    }
}

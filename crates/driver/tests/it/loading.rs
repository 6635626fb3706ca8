//! Tests of the error messages of drivers that cannot be loaded.

use std::path::{Path, PathBuf};
use std::process::Command;

use tailbound_driver::{Code, Driver, Kv, Session, Silent, load};

/// Compiles `source` to `name` in `dir`; without a compiler, prints a line and returns `None`.
fn compile(dir: &Path, name: &str, source: &str, more: &[&str]) -> Option<PathBuf> {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let (c, so) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&c, source).unwrap();
    let compiled = Command::new(&cc).args(["-shared", "-fPIC", "-o"]).arg(&so).arg(&c).args(more).status();
    match compiled {
        Ok(status) => assert!(status.success(), "{cc} failed"),
        Err(e) => {
            println!("skipped: no C compiler ({cc}): {e}");
            return None;
        }
    }
    Some(so)
}

fn error(path: &Path, dir: &Path) -> String {
    load(path).unwrap_err().to_string().replace(&dir.display().to_string(), "DIR")
}

#[test]
fn no_such_file() {
    assert_eq!(load(Path::new("/nonexistent/x.so")).unwrap_err().to_string(), "driver /nonexistent/x.so: no such file");
}

#[test]
fn no_shared_object() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text.so");
    std::fs::write(&path, "this is no shared object, whatever its name says").unwrap();
    let text = error(&path, dir.path());
    assert!(text.starts_with("driver DIR/text.so: not a loadable shared object: "), "{text}");
}

#[test]
fn no_driver() {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = compile(dir.path(), "other.so", "int other(void) { return 1; }", &[]) else { return };
    assert_eq!(
        error(&path, dir.path()),
        "driver DIR/other.so: no symbol tailbound_driver_v1: this is not a Tailbound driver, or a driver for another ABI"
    );
}

#[test]
fn no_table() {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = compile(dir.path(), "empty.so", "void *tailbound_driver_v1(void) { return 0; }", &[]) else {
        return;
    };
    assert_eq!(error(&path, dir.path()), "driver DIR/empty.so: tailbound_driver_v1 returned no table");
}

#[test]
fn native_library_missing() {
    let dir = tempfile::tempdir().unwrap();
    let Some(library) = compile(dir.path(), "libmiddleware.so", "int middleware(void) { return 1; }", &[]) else {
        return;
    };
    let search = format!("-L{}", dir.path().display());
    let source = "int middleware(void); void *tailbound_driver_v1(void) { return (void *)(long)middleware(); }";
    let path = compile(dir.path(), "driver.so", source, &["-Wl,--no-as-needed", &search, "-lmiddleware"]).unwrap();
    std::fs::remove_file(library).unwrap();
    assert_eq!(
        error(&path, dir.path()),
        "driver DIR/driver.so: the native library libmiddleware.so is not installed; install the package that \
         contains this library (the other drivers are not affected)"
    );
}

/// Tests a missing library whose file name contains the version of its interface, as distributions name libraries.
#[test]
fn native_library_of_a_package_missing() {
    let dir = tempfile::tempdir().unwrap();
    let name = "-Wl,-soname,libmiddleware.so.2.9";
    let Some(library) = compile(dir.path(), "libmiddleware.so", "int middleware(void) { return 1; }", &[name]) else {
        return;
    };
    let search = format!("-L{}", dir.path().display());
    let source = "int middleware(void); void *tailbound_driver_v1(void) { return (void *)(long)middleware(); }";
    let path = compile(dir.path(), "driver.so", source, &["-Wl,--no-as-needed", &search, "-lmiddleware"]).unwrap();
    std::fs::remove_file(library).unwrap();
    assert_eq!(
        error(&path, dir.path()),
        "driver DIR/driver.so: the native library libmiddleware.so.2.9 is not installed; install the package that \
         contains this library, on Debian libmiddleware2.9 (the other drivers are not affected)"
    );
}

#[test]
fn no_file_of_that_name() {
    let text = Driver::find("nothing_of_the_kind").unwrap_err().to_string();
    let start = "driver `nothing_of_the_kind`: no libtailbound_driver_nothing_of_the_kind.so or \
                 libtailbound_driver_nothing_of_the_kind_so.so in ";
    assert!(text.starts_with(start), "{text}");
    assert!(text.contains("TAILBOUND_DRIVER_PATH"), "{text}");
    assert!(Driver::find("../null").is_err(), "a name is not a path");
}

#[test]
fn a_linked_table_has_the_name_it_is_asked_for_by() {
    let error = Driver::linked("udp", tailbound_driver_null::table()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "driver udp: the driver's description cannot be read: the driver calls itself `null`"
    );
    assert!(Driver::linked("null", std::ptr::null()).is_err());
}

#[test]
fn a_refusal_carries_the_drivers_words() {
    let udp = Driver::linked("udp", tailbound_driver_udp::table()).unwrap();
    let open = |kv: &Kv| Session::open(&udp, kv, std::sync::Arc::new(Silent)).unwrap_err();
    let error = open(&Kv::new().with("interface", "nowhere0"));
    assert_eq!(
        error.to_string(),
        "driver udp: open: interface: there is no interface `nowhere0` in this network namespace (TB_EIO)"
    );
    assert_eq!(open(&Kv::new().with("config", "x.xml")).code, Code::EUNSUPPORTED);
    assert_eq!(open(&Kv::new().with("a\0b", "1")).text, "`a\\u{0}b` contains a NUL character");
}

//! The conformance suite over every driver of the tree, linked and loaded; and over broken drivers, each of which must
//! fail the check that is meant for it and no other.
#![allow(missing_docs)]

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tailbound_driver::{Driver, LoadError, conformance, load};

/// Runs one driver in this process; the parent reads the report.
fn child(source: &str) -> ExitCode {
    let driver = match source {
        "linked:null" => Driver::linked("null", tailbound_driver_null::table()),
        "linked:udp" => Driver::linked("udp", tailbound_driver_udp::table()),
        path => load(Path::new(path)),
    };
    let report = conformance::run(&driver.expect(source), &mut |_| {});
    for c in &report.checks {
        println!("{}\t{:?}\t{}\t{} ms", c.name, c.outcome, c.detail, c.took_ms);
    }
    // A check that hangs has left a thread behind.
    std::process::exit(0)
}

/// Name, outcome, detail of every check.
type Lines = Vec<(String, String, String)>;

fn suite(source: &str) -> Result<Lines, String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let out = Command::new(me).args(["--one", source]).output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    if !out.status.success() {
        return Err(format!("{}: {text}{}", out.status, String::from_utf8_lossy(&out.stderr)));
    }
    let field = |l: &str, i: usize| l.split('\t').nth(i).unwrap_or_default().to_owned();
    Ok(text.lines().map(|l| (field(l, 0), field(l, 1), format!("{} ({})", field(l, 2), field(l, 3)))).collect())
}

/// Everything passes, or does not apply.
fn conforms(source: &str, show: bool) -> Result<(), String> {
    let lines = suite(source)?;
    if show {
        for (name, outcome, detail) in &lines {
            println!("    {name:20} {outcome:14} {detail}");
        }
    }
    let bad: Vec<_> = lines.iter().filter(|(_, o, _)| o == "Failed").map(|(n, _, d)| format!("{n}: {d}")).collect();
    let expected = conformance::catalogue().count();
    match (bad.is_empty(), lines.len() == expected) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{} of {expected} checks reported", lines.len())),
        (false, _) => Err(bad.join("; ")),
    }
}

fn fails_only(path: &Path, check: &str) -> Result<(), String> {
    let lines = suite(&path.display().to_string())?;
    let bad: Vec<_> = lines.iter().filter(|(_, o, _)| o == "Failed").map(|(n, _, d)| format!("{n}: {d}")).collect();
    match bad.as_slice() {
        [one] if one.starts_with(&format!("{check}: ")) => {
            println!("    {one}");
            Ok(())
        }
        _ => Err(format!("only {check} should fail; failed: {bad:?}")),
    }
}

/// A driver that hangs fails one check, and the rest is not run.
fn hangs(path: &Path) -> Result<(), String> {
    let lines = suite(&path.display().to_string())?;
    let at = lines.iter().position(|(_, outcome, _)| outcome == "Failed").ok_or("nothing failed")?;
    let (before, after) = lines.split_at(at);
    let ran = |l: &(String, String, String)| !l.2.starts_with("not run");
    let rest_not_run = after.iter().skip(1).filter(|l| l.0 != "silent").all(|l| !ran(l));
    match after.first() {
        Some((name, _, why)) if name == "queries" && why.contains("did not end within") => {}
        other => return Err(format!("{other:?}")),
    }
    if before.iter().all(ran) && rest_not_run { Ok(()) } else { Err(format!("{lines:?}")) }
}

/// Whether it is the error that was expected.
type Expected = fn(&LoadError) -> bool;

fn refused(path: &Path, expected: Expected) -> Result<(), String> {
    match load(path) {
        Err(e) if expected(&e) => {
            println!("    {e}");
            Ok(())
        }
        Err(e) => Err(format!("another error was expected: {e}")),
        Ok(_) => Err("it was loaded".into()),
    }
}

struct Tally {
    filter: Option<String>,
    failed: usize,
    skipped: usize,
}

impl Tally {
    fn test(&mut self, name: &str, run: impl FnOnce() -> Result<(), String>) {
        if self.filter.as_ref().is_some_and(|f| !name.contains(f.as_str())) {
            return;
        }
        println!("test {name}");
        self.told(name, run());
    }

    /// The result of a test that may have run beside others.
    fn told(&mut self, name: &str, result: Result<(), String>) {
        match result {
            Ok(()) => println!("test {name} ... ok"),
            Err(e) => {
                println!("test {name} ... FAILED: {e}");
                self.failed += 1;
            }
        }
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, source] = args.as_slice()
        && flag == "--one"
    {
        return child(source);
    }
    if args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally { filter: args.into_iter().find(|a| !a.starts_with('-')), failed: 0, skipped: 0 };
    let dir = tempfile::tempdir().expect("temporary directory");
    let so = |name: &str| build::cdylib(name).map(|p| p.display().to_string());
    tally.test("linked_null", || conforms("linked:null", true));
    tally.test("linked_udp", || conforms("linked:udp", true));
    tally.test("loaded_null", || conforms(&so("null")?, false));
    tally.test("loaded_udp", || conforms(&so("udp")?, false));
    tally.test("found_in_path", || {
        let directory = build::cdylib("null")?.parent().map(Path::to_owned).ok_or("no directory")?;
        // SAFETY: no other thread runs.
        unsafe { std::env::set_var("TAILBOUND_DRIVER_PATH", format!("/nonexistent:{}", directory.display())) };
        let driver = Driver::find("null").map_err(|e| e.to_string())?;
        match driver.path() {
            Some(path) if path.ends_with("libtailbound_driver_null_so.so") => Ok(()),
            other => Err(format!("found {other:?}")),
        }
    });
    match build::compiler() {
        Some(cc) => c_drivers(&mut tally, &cc, dir.path()),
        None => {
            println!("skipped: drivers in C: no C compiler (cc, or $CC)");
            tally.skipped += 1;
        }
    }
    println!("conformance: {} failed, {} skipped", tally.failed, tally.skipped);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn c_drivers(tally: &mut Tally, cc: &str, dir: &Path) {
    let broken = |fault: &str| -> Result<PathBuf, String> {
        let define = format!("-DBREAK_{}", fault.to_uppercase().replace('-', "_"));
        build::c_driver(cc, "drivers/broken/broken.c", &[&define], &dir.join(format!("broken-{fault}.so")))
    };
    tally.test("skeleton", || {
        let path = build::c_driver(cc, "drivers/skeleton/skeleton.c", &[], &dir.join("skeleton.so"))?;
        conforms(&path.display().to_string(), true)
    });
    tally.test("skeleton_cxx", || {
        let path = build::cxx_driver("drivers/skeleton/skeleton.cpp", &dir.join("skeleton_cxx.so"))?;
        conforms(&path.display().to_string(), true)
    });
    // These two sleep through half a minute each: they do so beside the others.
    const SLEEPER: &str = "destroy-ends-wait";
    std::thread::scope(|scope| {
        let wanted = |name: &str| tally.filter.as_ref().is_none_or(|f| name.contains(f.as_str()));
        let sleeper =
            wanted("broken_destroy-ends-wait").then(|| scope.spawn(|| fails_only(&broken(SLEEPER)?, SLEEPER)));
        let hang = wanted("hangs").then(|| scope.spawn(|| hangs(&broken("hang")?)));
        for (check, _) in conformance::catalogue().filter(|(check, _)| *check != SLEEPER) {
            tally.test(&format!("broken_{check}"), || fails_only(&broken(check)?, check));
        }
        for (name, thread) in [("broken_destroy-ends-wait", sleeper), ("hangs", hang)] {
            if let Some(thread) = thread {
                tally.told(name, thread.join().unwrap_or_else(|_| Err("the test panicked".into())));
            }
        }
    });
    let loader: [(&str, Expected); 4] = [
        ("abi-major", |e| matches!(e, LoadError::WrongAbi { found: 2, .. })),
        ("size", |e| matches!(e, LoadError::TableTooShort { .. })),
        ("pointer", |e| matches!(e, LoadError::FunctionMissing { function: "wake", .. })),
        ("describe", |e| matches!(e, LoadError::Description { .. })),
    ];
    for (fault, expected) in loader {
        tally.test(&format!("refused_{fault}"), || refused(&broken(fault)?, expected));
    }
}

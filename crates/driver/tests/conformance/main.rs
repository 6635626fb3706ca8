//! Runs the conformance suite for every driver in the tree, linked and loaded; and for broken drivers, each of which
//! must fail the conformance check that is meant for it and no other check.
#![allow(missing_docs)]

mod build;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use tailbound_driver::{Driver, LoadError, conformance, load};

/// Runs the conformance suite for one driver in this process, and prints the results for the parent process.
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
    // A check that hangs leaves a thread running, so the process ends here.
    std::process::exit(0)
}

/// Name, outcome and detail of every conformance check.
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

/// Tests that each conformance check of a driver passes or does not apply.
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

/// Tests that a driver that hangs fails one conformance check, and that the remaining checks are not run.
fn hangs(path: &Path) -> Result<(), String> {
    let lines = suite(&path.display().to_string())?;
    let at = lines.iter().position(|(_, outcome, _)| outcome == "Failed").ok_or("nothing failed")?;
    let (before, after) = lines.split_at(at);
    let ran = |l: &(String, String, String)| !l.2.starts_with("the check was not run");
    let rest_not_run = after.iter().skip(1).filter(|l| l.0 != "silent").all(|l| !ran(l));
    match after.first() {
        Some((name, _, why)) if name == "queries" && why.contains("did not end within") => {}
        other => return Err(format!("{other:?}")),
    }
    if before.iter().all(ran) && rest_not_run { Ok(()) } else { Err(format!("{lines:?}")) }
}

/// Decides whether an error of loading a driver is the error that the test expects.
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

/// A test of this test program: the name of the test, and the function that runs it.
struct Test {
    name: String,
    run: Box<dyn FnOnce() -> Result<(), String>>,
}

fn test(name: impl Into<String>, run: impl FnOnce() -> Result<(), String> + 'static) -> Test {
    Test { name: name.into(), run: Box::new(run) }
}

/// Compiles a C driver for one test, calls `judge` with its path, and removes the file.
fn compiled(
    build: impl FnOnce(&str, &Path) -> Result<PathBuf, String>,
    judge: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), String> {
    let Some(cc) = build::compiler() else {
        println!("skipped: drivers in C: no C compiler (cc, or $CC)");
        return Ok(());
    };
    let directory = tempfile::tempdir().map_err(|e| e.to_string())?;
    judge(&build(&cc, &directory.path().join("driver.so"))?)
}

/// Compiles the driver drivers/broken/broken.c with one fault, and calls `judge` with its path.
fn broken(fault: &str, judge: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let define = format!("-DBREAK_{}", fault.to_uppercase().replace('-', "_"));
    compiled(|cc, to| build::c_driver(cc, "drivers/broken/broken.c", &[&define], to), judge)
}

fn found_in_path() -> Result<(), String> {
    let directory = build::cdylib("null")?.parent().map(Path::to_owned).ok_or("no directory")?;
    // SAFETY: no other thread runs.
    unsafe { std::env::set_var("TAILBOUND_DRIVER_PATH", format!("/nonexistent:{}", directory.display())) };
    let driver = Driver::find("null").map_err(|e| e.to_string())?;
    match driver.path() {
        Some(path) if path.ends_with("libtailbound_driver_null_so.so") => Ok(()),
        other => Err(format!("found {other:?}")),
    }
}

fn tests() -> Vec<Test> {
    let so = |name: &str| build::cdylib(name).map(|p| p.display().to_string());
    let text = |path: &Path| path.display().to_string();
    let mut all = vec![
        test("linked_null", || conforms("linked:null", true)),
        test("linked_udp", || conforms("linked:udp", true)),
        test("loaded_null", move || conforms(&so("null")?, false)),
        test("loaded_udp", move || conforms(&so("udp")?, false)),
        test("found_in_path", found_in_path),
        test("skeleton", move || {
            let build = |cc: &str, to: &Path| build::c_driver(cc, "drivers/skeleton/skeleton.c", &[], to);
            compiled(build, |path| conforms(&text(path), true))
        }),
        test("skeleton_cxx", move || {
            let build = |_: &str, to: &Path| build::cxx_driver("drivers/skeleton/skeleton.cpp", to);
            compiled(build, |path| conforms(&text(path), true))
        }),
        test("hangs", || broken("hang", hangs)),
    ];
    for (check, _) in conformance::catalogue() {
        all.push(test(format!("broken_{check}"), move || broken(check, |path| fails_only(path, check))));
    }
    let loader: [(&str, Expected); 4] = [
        ("abi-major", |e| matches!(e, LoadError::WrongAbi { found: 2, .. })),
        ("size", |e| matches!(e, LoadError::TableTooShort { .. })),
        ("pointer", |e| matches!(e, LoadError::FunctionMissing { function: "wake", .. })),
        ("describe", |e| matches!(e, LoadError::Description { .. })),
    ];
    for (fault, expected) in loader {
        all.push(test(format!("refused_{fault}"), move || broken(fault, |path| refused(path, expected))));
    }
    all
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, source] = args.as_slice()
        && flag == "--one"
    {
        return child(source);
    }
    let flag = |name: &str| args.iter().any(|a| a == name);
    if flag("--list") {
        // cargo-nextest asks a second time, with `--ignored`, for the ignored tests: no test is ignored.
        tests().iter().filter(|_| !flag("--ignored")).for_each(|test| println!("{}: test", test.name));
        return ExitCode::SUCCESS;
    }
    let filter = args.iter().find(|a| !a.starts_with('-'));
    let chosen =
        |name: &str| filter.is_none_or(|f| if flag("--exact") { name == f } else { name.contains(f.as_str()) });
    let mut failed = 0;
    for Test { name, run } in tests().into_iter().filter(|test| chosen(&test.name)) {
        println!("test {name}");
        match run() {
            Ok(()) => println!("test {name} ... ok"),
            Err(e) => {
                println!("test {name} ... FAILED: {e}");
                failed += 1;
            }
        }
    }
    println!("conformance: {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Runs `tailbound driver build`: compiles the part of the driver `rclcpp` that needs the headers of ROS 2.

use crate::failure::{CommandResult, Failure};
use crate::output::{errln, outln};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use tailbound_driver_rcl::sourced;
use tailbound_model::ExitCode;

/// Files to compile.
const SOURCES: [(&str, &str); 5] = [
    ("CMakeLists.txt", include_str!("../../embedded/rclcpp/CMakeLists.txt")),
    ("package.xml", include_str!("../../embedded/rclcpp/package.xml")),
    ("msg/Sample.msg", include_str!("../../embedded/rclcpp/msg/Sample.msg")),
    ("shim.h", include_str!("../../embedded/rclcpp/shim.h")),
    ("shim.cpp", include_str!("../../embedded/rclcpp/shim.cpp")),
];
/// Number of lines of a failed build that are shown.
const SHOWN: usize = 20;

/// Builds the libraries and puts them into the directory of the sourced distribution below `into`.
pub fn rclcpp(into: Option<&Path>) -> CommandResult {
    let distribution = sourced::lacks().map_or_else(|| Ok(sourced::distribution().unwrap_or_default()), Err);
    let distribution = distribution.map_err(Failure::bad_input)?;
    let into = into.map(Path::to_owned).or_else(tailbound_driver::own_directory);
    let into = into.ok_or_else(|| {
        Failure::bad_input("HOME is not set, so that there is no directory for own drivers")
            .help("name one by `--into`")
    })?;
    let place = into.join(sourced::rclcpp_directory(&distribution));
    let version = sourced::version("rclcpp").unwrap_or_else(|| "(version not known)".into());
    errln!("compiling against {distribution} with rclcpp {version}; this takes about a minute");
    let build = Build { work: place.with_extension("build"), log: place.with_extension("log") };
    let built = build.compile().and_then(|libraries| install(&libraries, &place));
    // What is left over is only in the way of the next build, which removes it.
    let _ = fs::remove_dir_all(&build.work);
    built?;
    let _ = fs::remove_file(&build.log);
    outln!("{}", place.join(tailbound_driver_rcl::RCLCPP_LIBRARY).display());
    outln!("\nNext:\n  tailbound driver check rclcpp\n  tailbound ping rclcpp");
    Ok(ExitCode::Done)
}

/// Where the sources are compiled.
struct Build {
    /// Directory for sources and results.
    work: PathBuf,
    /// File with the output of the programs, which stays if the build fails.
    log: PathBuf,
}

impl Build {
    /// Compiles the sources. Returns the libraries.
    fn compile(&self) -> Result<Vec<PathBuf>, Failure> {
        let (source, results) = (self.work.join("source"), self.work.join("results"));
        for leftover in [fs::remove_dir_all(&self.work), fs::remove_file(&self.log)] {
            leftover.or_else(|e| {
                if e.kind() == ErrorKind::NotFound { Ok(()) } else { Err(cannot_write(&self.work, &e)) }
            })?;
        }
        for (name, text) in SOURCES {
            let path = source.join(name);
            let parent = path.parent().unwrap_or(&source);
            let written = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
            written.map_err(|e| cannot_write(&path, &e))?;
        }
        if !self.run(Command::new("cmake").arg("-S").arg(&source).arg("-B").arg(&results))? {
            return Err(self.not_configured());
        }
        if !self.run(Command::new("cmake").arg("--build").arg(&results).arg("--parallel"))? {
            return Err(self.failed("the compiler"));
        }
        let entries = fs::read_dir(&results).map_err(|e| cannot_write(&results, &e))?;
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths.filter(|path| path.extension().is_some_and(|end| end == "so")).collect())
    }

    /// Runs a program, with its output in the log. Returns whether it succeeded.
    fn run(&self, command: &mut Command) -> Result<bool, Failure> {
        let output = command.output().map_err(|e| match e.kind() {
            ErrorKind::NotFound => Failure::not_fit("the program `cmake` is missing")
                .help("install it, with a compiler: `apt install cmake g++`"),
            _ => Failure::run_failed(format!("`cmake` cannot be started: {e}")),
        })?;
        let log = fs::OpenOptions::new().create(true).append(true).open(&self.log);
        log.and_then(|mut log| log.write_all(&[output.stdout, output.stderr].concat()))
            .map_err(|e| cannot_write(&self.log, &e))?;
        Ok(output.status.success())
    }

    /// The failure of the configuration: a package of ROS 2 is missing, or there is no compiler.
    fn not_configured(&self) -> Failure {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let missing = text.split_once("provided by \"").and_then(|(_, rest)| rest.split_once('"'));
        let Some((package, _)) = missing else { return self.failed("cmake") };
        let distribution = sourced::distribution().unwrap_or_else(|| "jazzy".into());
        let apt = format!("apt install ros-{distribution}-{}", package.replace('_', "-"));
        Failure::not_fit(format!("the package `{package}` of ROS 2 is missing"))
            .help(format!("install it, for example `{apt}`; {}", self.whole_output()))
    }

    fn failed(&self, program: &str) -> Failure {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(SHOWN)..].join("\n");
        Failure::run_failed(format!("{program} failed; its last lines:\n{last}")).help(self.whole_output())
    }

    fn whole_output(&self) -> String {
        format!("the whole output is in {}", self.log.display())
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::bad_input(format!("cannot write {}: {error}", path.display()))
        .help("name a directory that can be written to: `--into DIRECTORY`")
}

/// Puts the libraries into a directory, and removes the libraries of an earlier build.
fn install(libraries: &[PathBuf], place: &Path) -> Result<(), Failure> {
    let failed = |e: std::io::Error| cannot_write(place, &e);
    let new = place.with_extension("new");
    fs::create_dir_all(&new).map_err(failed)?;
    for library in libraries {
        let Some(name) = library.file_name() else { continue };
        fs::copy(library, new.join(name)).map_err(failed)?;
    }
    match fs::remove_dir_all(place) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(failed(e)),
        _ => fs::rename(&new, place).map_err(failed),
    }
}

//! Runs the commands of a page of the documentation, word by word.

use std::path::Path;
use std::process::Command;

use super::Bench;

/// A block of commands in a page, with the output that the page shows for these commands.
pub struct Step {
    /// Line of the page at which the block begins.
    pub line: usize,
    pub commands: String,
    pub shown: Option<String>,
}

/// The blocks `sh` of a page. A block `text` is the output of the block `sh` before it.
pub fn steps(chapter: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut block: Option<(usize, &str, String)> = None;
    for (number, line) in (1..).zip(chapter.lines()) {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((number, language, String::new())),
            (Some((_, _, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some(_), Some(_)) => match block.take() {
                Some((line, "sh", commands)) => steps.push(Step { line, commands, shown: None }),
                Some((line, "text", text)) => {
                    let step = steps.last_mut().expect("a block `text` stands below a block `sh`");
                    assert!(step.shown.replace(text).is_none(), "line {line}: a second `text` for one `sh`");
                }
                _ => {}
            },
            (None, None) => {}
        }
    }
    assert!(block.is_none(), "a block without an end");
    steps
}

/// Runs the command blocks as [`run_with`] does, with a binary that has neither drivers nor the tracer of this build.
pub fn run_in(directory: &Path, steps: &[Step]) -> (Vec<String>, bool) {
    let tools = Bench::new();
    // The binary is copied to a directory of its own, so that it finds no drivers of this build next to it.
    let binary = tools.path("tailbound");
    let built = env!("CARGO_BIN_EXE_tailbound");
    std::fs::hard_link(built, &binary).or_else(|_| std::fs::copy(built, &binary).map(drop)).expect("a copy");
    run_with(tools.dir.path(), directory, steps)
}

/// Directory of the binary of this build, which finds the drivers and the tracer of this build.
pub fn of_this_build() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tailbound")).parent().expect("the binary is in a directory")
}

/// Runs the command blocks in one bash in this directory, with the binary in `tools`. Returns the output of each block up to the
/// first block that failed, and whether all blocks succeeded.
pub fn run_with(tools: &Path, directory: &Path, steps: &[Step]) -> (Vec<String>, bool) {
    let scripts = Bench::new();
    let name = |kind: &str, i: usize| scripts.path(&format!("{kind}-{i}"));
    let mut session = String::from("set -eo pipefail\n");
    for (i, step) in steps.iter().enumerate() {
        std::fs::write(name("sh", i), &step.commands).unwrap();
        let (sh, out, done) = (name("sh", i), name("out", i), name("done", i));
        session.push_str(&format!("source '{}' >'{}' 2>&1\ntouch '{}'\n", sh.display(), out.display(), done.display()));
    }
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    let status = Command::new("bash")
        .args(["--noprofile", "--norc", "-c", &session])
        .current_dir(directory)
        .env_clear()
        .envs([("PATH", path.as_str()), ("LC_ALL", "C"), ("NO_COLOR", "1")])
        .env("HOME", scripts.dir.path())
        .env("TAILBOUND_STATE_DIR", scripts.path("state"))
        .status()
        .expect("bash");
    let ran = (0..steps.len()).take_while(|i| name("out", *i).exists());
    let printed = ran.map(|i| std::fs::read_to_string(name("out", i)).unwrap_or_default()).collect();
    (printed, status.success() && name("done", steps.len() - 1).exists())
}

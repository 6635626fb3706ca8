//! The help of `tailbound`: its commands in groups, and examples.

use super::Cli;
use clap::{Command, CommandFactory};

/// Groups of commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["ping", "quick", "run", "tune", "watch", "studies", "validate", "import"]),
    ("Read", &["report", "compare", "budget", "ls", "serve", "gates", "schema"]),
    ("Deploy", &["bundle", "image", "k8s", "guest", "driver"]),
    ("Maintain", &["doctor", "lab", "clock", "advice", "completions", "man"]),
];

const EXAMPLES: &str = "\
Examples:
  tailbound ping cyclonedds --for 30s          how late are messages here?
  tailbound run ping-pong                      run a study; then: report latest
  tailbound compare BEFORE AFTER               did a change help, for certain?
";

/// The table of commands and flags, with the commands of the help in groups.
pub fn command() -> Command {
    let command = Cli::command();
    let mut help = String::new();
    for (group, names) in groups(&command) {
        help.push_str(&format!("{group}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            help.push_str(&wrapped(name, &about.unwrap_or_default()));
        }
        help.push('\n');
    }
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";
    command.before_help(help.trim_end().to_owned()).after_help(EXAMPLES).help_template(template)
}

/// The groups with the commands that this program has. Commands that no group names come last.
fn groups(command: &Command) -> Vec<(&'static str, Vec<&str>)> {
    let visible = || command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(Command::get_name);
    let mut all: Vec<(&'static str, Vec<&str>)> = GROUPS
        .iter()
        .map(|(group, names)| (*group, names.iter().copied().filter(|name| visible().any(|v| v == *name)).collect()))
        .collect();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others: Vec<&str> = visible().filter(|name| !is_grouped(name)).collect();
    if !others.is_empty() {
        all.push(("Other", others));
    }
    all
}

/// A command with what it does, in lines of at most 100 characters.
fn wrapped(name: &str, about: &str) -> String {
    const BEGIN: usize = 15;
    const WIDTH: usize = 100;
    let (mut text, mut column) = (format!("  {name:<width$}", width = BEGIN - 2), BEGIN);
    for (nth, word) in about.split(' ').enumerate() {
        if nth > 0 && column + 1 + word.chars().count() > WIDTH {
            text.push_str(&format!("\n{:BEGIN$}", ""));
            column = BEGIN;
        } else if nth > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let names: Vec<&str> = groups(&command).into_iter().flat_map(|(_, names)| names).collect();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set()).count();
        assert_eq!(names.len(), visible, "{names:?}");
        assert!(groups(&command).iter().all(|(group, _)| *group != "Other"), "{names:?}");
    }

    #[test]
    fn the_help_has_groups_and_three_examples() {
        let help = command().render_long_help().to_string();
        assert_eq!(help.matches("  tailbound ").count(), 3, "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
        for part in ["Measure:\n  ping ", "\nRead:\n", "\nDeploy:\n", "\nMaintain:\n", "\nOptions:\n", "--color"] {
            assert!(help.contains(part), "{part}: {help}");
        }
    }
}

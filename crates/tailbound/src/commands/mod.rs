//! The commands of the command line, one module per command.

mod advice;
mod agent;
mod agent_holder;
mod budget;
mod budget_file;
mod bundle;
mod capture_dir;
mod captured;
mod clock;
mod compare;
mod discovery_server;
mod doctor;
mod driver;
mod driver_build;
mod driver_template;
mod export;
mod gates;
mod generated_files;
mod guest;
mod image;
mod import;
mod import_bag;
mod import_trace;
mod k8s;
mod lab;
mod ls;
mod ping;
mod ping_target;
mod pod;
mod quick;
mod record_dir;
mod report;
mod run;
mod serve;
mod studies;
mod study_needs;
mod tune;
mod validate;
mod watch;
mod watch_along;
mod watch_also;
mod watch_calls;
mod watch_capture;
mod watch_cost;
mod watch_file;
mod watch_files;
mod watch_host;
mod watch_limit;
mod watch_live;

use crate::cli::{Cli, Command};
use crate::failure::CommandResult;

/// Runs the command that the user gave on the command line.
pub fn dispatch(cli: Cli) -> CommandResult {
    match cli.command {
        Command::Ping(args) => ping::ping(&args),
        Command::Quick(args) => quick::quick(&args),
        Command::Run(args) => run::run(&args),
        Command::Report(args) if capture_dir::is_capture(&args.record) => captured::report(&args),
        Command::Report(args) => report::report(&args),
        Command::Import(args) => import::import(&args),
        Command::Bundle(args) => bundle::bundle(&args),
        Command::Image(args) => image::image(&args),
        Command::Pod { command } => pod::pod(&command),
        Command::K8s { command } => k8s::k8s(&command),
        Command::Budget(args) => budget::budget(&args),
        Command::Compare(args) if captured::is_of_captures(&args) => captured::compare(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::Ls(args) => ls::ls(&args),
        Command::Validate(args) => validate::validate(&args),
        Command::Schema { of } => validate::schema(of),
        Command::Studies(args) => studies::studies(args.command.as_ref()),
        Command::Driver(args) => driver::driver(args.command.as_ref()),
        Command::Gates { command } => gates::gates(&command),
        Command::Guest { command } => guest::guest(&command),
        Command::Lab(args) => lab::lab(args.command.as_ref()),
        Command::Advice(args) => advice::advice(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Clock(args) => clock::clock(&args),
        Command::Completions { shell } => generated_files::completions(shell),
        Command::Man { directory } => generated_files::man(&directory),
        Command::Agent(args) => agent::agent(&args),
    }
}

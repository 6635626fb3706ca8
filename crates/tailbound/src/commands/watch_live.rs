//! The live screen of `tailbound watch`, if this build has one.

use crate::failure::Failure;
use tailbound_report::WatchReport;

/// The terminal while it shows what is on the wire. If it is dropped, the terminal is as before.
#[cfg(feature = "screen")]
pub struct Live(tailbound_screen::Screen);

#[cfg(feature = "screen")]
impl Live {
    /// Whether there can be a screen, before anything is made.
    pub fn check() -> Result<(), Failure> {
        use std::io::IsTerminal;
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            return Err(Failure::bad_input("--live needs a terminal, and the input or output of this command is none")
                .help("leave out --live: the same figures are printed at the end; --metrics writes them meanwhile"));
        }
        Ok(())
    }

    pub fn open() -> Result<Live, Failure> {
        tailbound_screen::Screen::open(crate::output::colour()).map(Live).map_err(failed)
    }

    /// Shows this moment, and returns whether the user wants to end.
    pub fn turn(&mut self, report: impl FnOnce() -> WatchReport) -> Result<bool, Failure> {
        self.0.turn(report).map_err(failed)
    }
}

#[cfg(feature = "screen")]
fn failed(error: std::io::Error) -> Failure {
    Failure::not_fit(format!("the terminal cannot be used for --live: {error}")).help("leave out --live")
}

/// This build has no screen.
#[cfg(not(feature = "screen"))]
pub enum Live {}

#[cfg(not(feature = "screen"))]
impl Live {
    pub fn check() -> Result<(), Failure> {
        Live::open().map(drop)
    }

    pub fn open() -> Result<Live, Failure> {
        Err(Failure::not_fit("this build has no live screen").help("use a package, or build with `--features screen`"))
    }

    pub fn turn(&mut self, _: impl FnOnce() -> WatchReport) -> Result<bool, Failure> {
        match *self {}
    }
}

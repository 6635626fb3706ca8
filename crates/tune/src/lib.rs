//! The closed loop of `tailbound tune`: tries changes that answer a cause, keeps what is proved to help, and writes a receipt.
//!
//! Input: a [`Bench`], which measures pairs of trials and names candidates, and [`Options`]. Output: a [`Receipt`]. The crate
//! does not know how a trial is measured, so that the same loop runs over a script in the tests.
//!
//! ```text
//! baseline: six pairs without a change ─► too noisy: refused
//!   └─► candidates that answer a seen or counted cause, the most promising first
//!         └─► screening of each one, on top of those that are kept so far
//!               └─► each kept one is left out in turn, and stays only if it is needed
//!                     └─► the kept set against the original, on fresh pairs: only this gain is reported
//! ```
//!
//! One figure is declared before the first trial. A pair of trials is one observation; the natural logarithm of the ratio of
//! its figures is what the rules of `tailbound_stats::sequential` see.

mod bench;
mod candidate;
mod log;
mod pair;
mod reboot;
mod receipt;
mod search;
mod text;

pub use bench::{Arms, Bench, PairError, Stage};
pub use candidate::{Candidate, Prediction};
pub use log::{LogError, Logged};
pub use pair::{Figures, Guard, Pair, guard};
pub use reboot::{AfterReboot, Reboot};
pub use receipt::{
    Baseline, CauseLine, DeclaredLimit, Gain, LeftOut, Met, OfLimit, Outcome, Receipt, Replayed, RuleName, Side, Tried,
    Verdict,
};
pub use search::{Options, TuneError, confirm, tune};
pub use text::{render, render_replay, result_line};

#[cfg(test)]
mod simulation;

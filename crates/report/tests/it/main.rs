//! Integration tests of the crate report: one program, one module per subject.

mod against;
mod analyse;
mod brief;
mod causes;
mod causes_two_clocks;
mod delivery;
mod flaws;
mod gates;
mod held;
mod launches;
mod metrics;
mod next_steps;
mod page;
mod patterns;
mod perfetto;
mod published;
mod remaining;
mod render;
mod schema;
mod side_by_side;
mod since;
mod stalls;
mod starved;
mod support;
mod waterfall;

//! Integration tests of the crate stats: one program, one module per subject.

mod compare;
mod coverage;
mod dependence;
mod distribution;
mod exceedance;
mod histogram;
mod interval;
mod moments;
mod quantile;
mod random;
mod rank_picker;
mod steady_parts;
mod tail;
mod two_clocks;
mod warm_up;

//! Tests of the table, of each rule, and of the situations that users have.

mod rules;
mod situations;
mod table;
mod world;

//! Integration tests of the crate driver: one program, one module per subject.

mod loading;
mod schema;
mod scripted;
mod udp;
mod udp_fan_out;

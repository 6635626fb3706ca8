//! Integration tests of the crate tailbound-host: one program, with one module for each subject.

mod busy;
mod flood;
mod interrupts;
mod killed;
mod occupied;
mod packets;
mod page_faults;
mod rooms;
mod switches;

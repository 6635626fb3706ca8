//! The live screen of `tailbound watch`: what is on the wire while packets are captured.
//!
//! Input: the document [`WatchReport`](tailbound_document::WatchReport), again and again, and keys. Output: a terminal. This crate
//! captures nothing and computes no figure but the number of samples between two documents.

mod detail;
mod history;
mod list;
mod rows;
mod terminal;
mod view;

pub use terminal::Screen;
pub use view::{Key, View};

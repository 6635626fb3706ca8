//! Containers of this host, made by the user's client program: podman, or ctr of containerd.
//!
//! Input: the specification of a container. Output: commands that start the container and run programs in it, its
//! state, and its removal. Only this module knows the command lines and the output of the clients. The requested CPUs
//! and memory are read back from the control group, not from the client.

mod client;
mod commands;
mod group;
mod order;

pub use client::{Client, remove};
pub use group::{Group, group_of};
pub use order::{Image, Order, own_architecture};

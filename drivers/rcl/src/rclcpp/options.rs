//! The options that only the driver `rclcpp` has.

use serde_json::Value;
use tailbound_abi::TB_EINVAL;
use tailbound_abi::side::{Fail, Outcome, Pair};

use crate::describe::option;

/// Words of the options, by their numbers in shim.h.
pub const EXECUTORS: [&str; 3] = ["single", "multi", "events"];
pub const CALLBACK_GROUPS: [&str; 3] = ["shared", "own", "reentrant"];
pub const MESSAGES: [&str; 2] = ["typed", "serialized"];
pub const SEND_BY: [&str; 2] = ["call", "timer"];
/// Largest number of threads of an executor.
const MOST_THREADS: u32 = 256;

/// How nodes are made, as numbers of the words above.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own {
    pub executor: usize,
    pub threads: u32,
    pub callback_groups: usize,
    pub message: usize,
    pub send_by: usize,
    pub intra_process: bool,
    pub loan: bool,
}

impl Own {
    /// Reads an option; `false` if the driver does not have it.
    pub fn set(&mut self, pair: &Pair) -> Outcome<bool> {
        let word = |words: &[&str]| pair.word(TB_EINVAL, words);
        let is_on = || word(&["off", "on"]).map(|at| at == 1);
        match pair.key {
            "executor" => self.executor = word(&EXECUTORS)?,
            "threads" => self.threads = pair.number(TB_EINVAL, 1..=MOST_THREADS)?,
            "callback_groups" => self.callback_groups = word(&CALLBACK_GROUPS)?,
            "message" => self.message = word(&MESSAGES)?,
            "send_by" => self.send_by = word(&SEND_BY)?,
            "intra_process" => self.intra_process = is_on()?,
            "loan" => self.loan = is_on()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether messages are published and taken as bytes.
    pub fn is_serialized(&self) -> bool {
        MESSAGES[self.message] == "serialized"
    }

    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// The text names both options.
    pub fn verify(&self) -> Outcome {
        let wrong = [
            (
                self.threads > 0 && EXECUTORS[self.executor] != "multi",
                "threads: only `executor: multi` has more than one thread",
            ),
            (
                self.is_serialized() && self.intra_process,
                "intra_process=on: contradicts message=serialized, because rclcpp passes only typed messages inside a process",
            ),
            (self.is_serialized() && self.loan, "loan=on: contradicts message=serialized; lent memory has a type"),
            (
                self.loan && self.intra_process,
                "loan=on: contradicts intra_process=on, which needs no memory of the middleware",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, text)) => Err(Fail::invalid(text)),
            None => Ok(()),
        }
    }
}

/// The options for the description of the driver.
pub fn described() -> Vec<Value> {
    let words = |key, words: &[&str], help: &str| {
        let mut option = option(key, "enum", Some(words[0]), help);
        option["values"] = words.into();
        option
    };
    vec![
        words(
            "executor",
            &EXECUTORS,
            "Executor that runs the callbacks: SingleThreadedExecutor, MultiThreadedExecutor, or the experimental EventsExecutor (from \
             Iron on).",
        ),
        option(
            "threads",
            "integer",
            None,
            "Number of threads of the executor `multi`; the default is one for each CPU.",
        ),
        words(
            "callback_groups",
            &CALLBACK_GROUPS,
            "Callback groups of subscriptions and timers: the group of the node, which is mutually exclusive; one such group for each; or \
             one reentrant group for each.",
        ),
        words(
            "message",
            &MESSAGES,
            "Whether messages are published and taken as tailbound_msgs/msg/Sample, or as bytes that are serialized already.",
        ),
        words(
            "send_by",
            &SEND_BY,
            "Where messages are published: in the call of the sending thread, or in the callback of a timer, on a thread of the executor, \
             as nodes do that publish periodically. The sending thread then only starts the timer.",
        ),
        option(
            "intra_process",
            "bool",
            Some("off"),
            "Whether messages between nodes of one process stay inside the process, as unique pointers (needs keep-last and volatile).",
        ),
        option(
            "loan",
            "bool",
            Some("off"),
            "Whether messages are written into memory that the middleware lends; refused where it lends none for this type.",
        ),
    ]
}

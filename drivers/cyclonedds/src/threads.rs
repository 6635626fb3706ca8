//! Roles of Cyclone's threads by their names, and scheduling of the threads, set by Cyclone's own configuration
//! (Threads/Thread).

use std::fmt::Write as _;

use tailbound_abi::side::{Outcome, Pair};
use tailbound_abi::{TB_EINVAL, name_matches};

/// Roles of Cyclone's threads by name patterns. The first pattern that matches applies.
pub const ROLES: [(&str, &str); 9] = [
    ("receive", "recv*"),
    ("event", "tev"),
    ("discovery", "dq.builtins"),
    ("receive", "dq.*"),
    ("send", "xmit*"),
    ("discovery", "lease"),
    ("other", "gc"),
    ("other", "debmon"),
    ("other", "fsm"),
];

/// Returns the role of the thread with this name; `None` if the thread is not one of Cyclone's threads.
pub fn role(thread: &str) -> Option<&'static str> {
    ROLES.iter().find(|(_, pattern)| name_matches(pattern, thread)).map(|(role, _)| *role)
}

/// The thread names that Cyclone accepts in `Thread/@Name`; Cyclone refuses other names.
const NAMES: [&str; 11] =
    ["recv", "recvUC", "recvMC", "tev", "gc", "lease", "dq.builtins", "xmit.user", "dq.user", "debmon", "fsm"];

/// Scheduling that is requested for Cyclone's threads of one role.
#[derive(Debug)]
pub struct Threads {
    role: String,
    /// Priority of SCHED_FIFO; `None` means that the threads are time-sharing.
    realtime: Option<u32>,
    cpus: Vec<u32>,
}

/// Reads items `ROLE:realtime:PRIORITY:CPUS` and `ROLE:timeshare::CPUS`; the CPUs are separated by `+`, or absent.
pub fn parse(pair: &Pair) -> Outcome<Vec<Threads>> {
    let wrong = |item: &str| {
        let why = format!(
            "`{item}` is neither ROLE:realtime:PRIORITY:CPUS nor ROLE:timeshare::CPUS (PRIORITY 1 to 99; CPUS as 0+1, \
             or empty; ROLE as in the thread roles of the driver)"
        );
        pair.bad(TB_EINVAL, &why)
    };
    let one = |item: &str| {
        let mut parts = item.split(':');
        let [Some(of), Some(class), Some(priority), Some(cpus), None] = std::array::from_fn(|_| parts.next()) else {
            return Err(wrong(item));
        };
        let realtime = match (class, priority, priority.parse()) {
            ("realtime", _, Ok(priority)) if (1..=99).contains(&priority) => Some(priority),
            ("timeshare", "", _) => None,
            _ => return Err(wrong(item)),
        };
        let cpus = cpus.split('+').filter(|c| !c.is_empty()).map(str::parse).collect::<Result<_, _>>();
        if !NAMES.iter().any(|name| role(name) == Some(of)) {
            return Err(wrong(item));
        }
        Ok(Threads { role: of.to_owned(), realtime, cpus: cpus.map_err(|_| wrong(item))? })
    };
    pair.list().map(one).collect()
}

/// Writes the element `Threads` of Cyclone's configuration, with every thread of the given roles; writes nothing if
/// there are no roles.
pub fn write(x: &mut String, threads: &[Threads]) {
    if threads.is_empty() {
        return;
    }
    x.push_str("<Threads>");
    for (name, asked) in
        NAMES.iter().filter_map(|name| Some((name, threads.iter().find(|t| role(name) == Some(t.role.as_str()))?)))
    {
        let _ = write!(x, "<Thread Name=\"{name}\"><Scheduling>");
        if !asked.cpus.is_empty() {
            let cpus: Vec<String> = asked.cpus.iter().map(u32::to_string).collect();
            let _ = write!(x, "<Affinity>{}</Affinity>", cpus.join(","));
        }
        let class = if asked.realtime.is_some() { "realtime" } else { "timeshare" };
        let _ = write!(x, "<Class>{class}</Class><Priority>{}</Priority>", asked.realtime.unwrap_or(0));
        x.push_str("</Scheduling></Thread>");
    }
    x.push_str("</Threads>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_cyclones_threads() {
        for (thread, expected) in [
            ("recv", Some("receive")),
            ("recvMC", Some("receive")),
            ("tev", Some("event")),
            ("dq.builtins", Some("discovery")),
            ("dq.user", Some("receive")),
            ("xmit.user", Some("send")),
            ("gc", Some("other")),
            ("tailbound", None),
        ] {
            assert_eq!(role(thread), expected, "{thread}");
        }
    }

    fn xml(value: &str) -> String {
        let mut x = String::new();
        write(&mut x, &parse(&Pair { key: "threads", value }).unwrap());
        x
    }

    #[test]
    fn a_role_is_all_threads_of_its_name() {
        let x = xml("receive:realtime:42:0+1, event:timeshare::");
        let receive = "<Scheduling><Affinity>0,1</Affinity><Class>realtime</Class><Priority>42</Priority></Scheduling>";
        for name in ["recv", "recvUC", "recvMC", "dq.user"] {
            assert!(x.contains(&format!("<Thread Name=\"{name}\">{receive}")), "{name} in {x}");
        }
        assert!(x.contains("<Thread Name=\"tev\"><Scheduling><Class>timeshare</Class>"), "{x}");
        assert!(!x.contains("dq.builtins") && !x.contains("\"gc\""), "{x}");
        assert_eq!(xml(""), "");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for value in ["receive", "receive:realtime::", "nobody:timeshare::", "event:rr:1:", "event:timeshare::x"] {
            let fail = parse(&Pair { key: "threads", value }).unwrap_err();
            assert!(fail.text.starts_with(&format!("threads={value}: `{value}`")), "{}", fail.text);
        }
    }
}

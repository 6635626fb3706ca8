//! Short names of the factors of a study for tables and sentences.

/// Short name of a factor: the last word of the factor's path, e.g. `cpus`; if the factor belongs to one end, with the
/// name of the end, e.g. `pong driver`.
pub fn short_factor(factor: &str) -> String {
    if let Some(of_end) = factor.strip_prefix("ends.") {
        return of_end.replace('.', " ");
    }
    // A host setting whose key includes a name, e.g. `host.irq_affinity.24`, keeps both parts.
    let of_host = factor.strip_prefix("host.").filter(|below| below.contains('.') && !below.starts_with("sysctl."));
    of_host.or(factor.rsplit('.').next()).unwrap_or(factor).to_owned()
}

#[cfg(test)]
mod tests {
    use super::short_factor;

    #[test]
    fn a_short_name_still_says_what_it_is() {
        for (factor, name) in [
            ("measure.slots", "slots"),
            ("ends.pong.driver", "pong driver"),
            ("host.sysctl.net.core.busy_poll", "busy_poll"),
            ("host.governor", "governor"),
            ("host.irq_affinity.24", "irq_affinity.24"),
            ("host.nic.eth0.channels", "nic.eth0.channels"),
        ] {
            assert_eq!(short_factor(factor), name);
        }
    }
}

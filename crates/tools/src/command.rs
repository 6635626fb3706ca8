//! Fills the values of a trial into the command of a benchmark tool.

use tailbound_model::Nanos;

/// The values of a trial that the command of a tool can contain.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// Size of a message's payload in bytes.
    pub payload: u64,
    /// Time for which the benchmark program is asked to measure, in seconds.
    pub seconds: u64,
    /// Number of messages per second; `None` means as fast as possible.
    pub rate_hz: Option<f64>,
    /// Network address of the end that runs the command.
    pub address: String,
    /// Network address of the other end.
    pub peer: String,
    /// Network interface of the end that runs the command.
    pub interface: String,
    /// Number of a free port for the benchmark program.
    pub port: u16,
    /// Number of the DDS domain of the trial.
    pub domain: u32,
    /// Priority of the messages (SO_PRIORITY), 0 to 15.
    pub priority: u8,
    /// Time of CLOCK_TAI at which the stream of the study begins, in seconds, or 0; see [`seconds`].
    pub base_s: String,
    /// Time after the begin of the stream, and after each multiple of the period, at which a message is due, in seconds.
    pub offset_s: String,
}

/// A time in seconds, with nine digits behind the point.
pub fn seconds(time: Nanos) -> String {
    let sign = if time.0 < 0 { "-" } else { "" };
    let ns = time.0.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// Error: a name in braces in the command of a tool is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{{{0}}}` is not a known placeholder; the known placeholders are payload, payload+N, seconds, messages, rate_hz, period_us, period_s, bit_rate, address, peer, interface, port, domain, priority, base_s and offset_s"
)]
pub struct WhatIsMissing(pub String);

impl Values {
    /// The value for a name in braces. The result is `None` if the trial has no such value; the argument is then left
    /// out.
    fn value(&self, name: &str) -> Result<Option<String>, WhatIsMissing> {
        let beside = name.strip_prefix("payload+").and_then(|more| more.parse::<u64>().ok());
        if let Some(more) = beside {
            return Ok(Some(self.payload.saturating_add(more).to_string()));
        }
        let bits = |hz: f64| (hz * self.payload as f64 * 8.0).round();
        Ok(Some(match name {
            "payload" => self.payload.to_string(),
            "seconds" => self.seconds.to_string(),
            "rate_hz" => return Ok(self.rate_hz.map(|hz| hz.to_string())),
            "period_us" => return Ok(self.rate_hz.map(|hz| (1e6 / hz).round().to_string())),
            "period_s" => return Ok(self.rate_hz.map(|hz| format!("{:.9}", 1.0 / hz))),
            "messages" => return Ok(self.rate_hz.map(|hz| (hz * self.seconds as f64).round().to_string())),
            "bit_rate" => self.rate_hz.map_or(0.0, bits).to_string(),
            "address" => self.address.clone(),
            "peer" => self.peer.clone(),
            "interface" => self.interface.clone(),
            "port" => self.port.to_string(),
            "domain" => self.domain.to_string(),
            "priority" => self.priority.to_string(),
            "base_s" => self.base_s.clone(),
            "offset_s" => self.offset_s.clone(),
            other => return Err(WhatIsMissing(other.into())),
        }))
    }

    pub(crate) fn fill(&self, text: &str) -> Result<Option<String>, WhatIsMissing> {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or_else(|| WhatIsMissing(after.into()))?;
            let Some(value) = self.value(name)? else { return Ok(None) };
            filled.push_str(before);
            filled.push_str(&value);
            rest = after;
        }
        Ok(Some(filled + rest))
    }
}

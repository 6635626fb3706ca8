//! A trial's values in a tool's command.

use crate::{Tool, ToolEnd};
use std::collections::BTreeMap;

/// What a command is filled in with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Values {
    /// Octets of the payload.
    pub payload: u64,
    /// Length of the measurement.
    pub seconds: u64,
    /// Messages in a second; `None` = as fast as it can.
    pub rate_hz: Option<f64>,
    /// Address of this end.
    pub address: String,
    /// Address of the other end.
    pub peer: String,
    /// Interface of this end.
    pub interface: String,
    /// A port that is free.
    pub port: u16,
    /// Domain id.
    pub domain: u32,
}

/// A name in braces that stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{{{0}}}` stands for nothing; there are payload, payload+N, seconds, rate_hz, period_us, bit_rate, address, peer, interface, port and domain"
)]
pub struct WhatIsMissing(pub String);

impl Values {
    /// `None` = there is no such value in this trial, and what needs it is left out.
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
            "bit_rate" => self.rate_hz.map_or(0.0, bits).to_string(),
            "address" => self.address.clone(),
            "peer" => self.peer.clone(),
            "interface" => self.interface.clone(),
            "port" => self.port.to_string(),
            "domain" => self.domain.to_string(),
            other => return Err(WhatIsMissing(other.into())),
        }))
    }

    fn fill(&self, text: &str) -> Result<Option<String>, WhatIsMissing> {
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

impl Tool {
    /// Some command of it has `{name}`, or `{name+N}`.
    pub fn takes(&self, name: &str) -> bool {
        let (alone, with_more) = (format!("{{{name}}}"), format!("{{{name}+"));
        let ends = [Some(&self.ping), self.pong.as_ref()].into_iter().flatten();
        let mut words = ends.flat_map(|e| e.command.iter().chain(e.environment.values()));
        words.any(|word| word.contains(&alone) || word.contains(&with_more))
    }

    /// Program, arguments and environment of an end.
    ///
    /// # Errors
    /// A name in braces that stands for nothing.
    pub fn command(end: &ToolEnd, values: &Values) -> Result<(Vec<String>, BTreeMap<String, String>), WhatIsMissing> {
        let filled: Result<Vec<_>, _> = end.command.iter().map(|word| values.fill(word)).collect();
        let environment = end.environment.iter().map(|(k, v)| Ok((k.clone(), values.fill(v)?.unwrap_or_default())));
        Ok((filled?.into_iter().flatten().collect(), environment.collect::<Result<_, _>>()?))
    }
}

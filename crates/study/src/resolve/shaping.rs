//! Resolves the keys of the shaping of an interface.

use super::gates::{classes, not_preemptible};
use crate::error::{Fault, advice};
use crate::format::{CreditKeys, ReplaceChoice, ShapingKeys};
use crate::read::At;
use tailbound_model::{CreditSpec, GateClass, MADE_KBIT_S, ShapingSpec};

/// Resolves the keys of the shaping of an interface.
pub(crate) fn shaping(keys: &At<ShapingKeys>) -> Result<ShapingSpec, Fault> {
    let classes = classes(&keys.value.classes)?;
    not_preemptible(&keys.value.classes, "`shaping` cannot interrupt a frame, because only a network card can")?;
    let one = |(name, keys): (&String, &At<CreditKeys>)| Ok((number(name, keys, &classes)?, credit(&keys.value)?));
    let credits = keys.value.credits.iter().map(one).collect::<Result<_, Fault>>()?;
    let replace = keys.value.replace.as_ref().is_some_and(|replace| replace.value == ReplaceChoice::Yes);
    Ok(ShapingSpec { classes, credits, replace })
}

/// The number of the class with this name, which has one queue.
fn number(name: &str, keys: &At<CreditKeys>, classes: &[GateClass]) -> Result<u8, Fault> {
    let Some(number) = classes.iter().position(|class| class.name == name.trim()) else {
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        return Err(Fault::new(keys.at, format!("there is no class `{name}`")).help(advice(name.trim(), &names)));
    };
    match classes[number].queues {
        1 => Ok(number as u8),
        queues => {
            let reason =
                format!("the class `{name}` has {queues} transmit queues, and each would have credits of its own");
            Err(Fault::new(keys.at, reason).help("give a class with credits one queue"))
        }
    }
}

fn credit(keys: &CreditKeys) -> Result<CreditSpec, Fault> {
    let idle = &keys.idle_slope_kbit_s;
    if !(1..MADE_KBIT_S).contains(&idle.value) {
        let reason = format!("an idle slope of {} kbit/s is not possible", idle.value);
        let help = format!("write 1 to {}", MADE_KBIT_S - 1);
        return Err(Fault::new(idle.at, reason).help(help));
    }
    for (key, value) in [("send_slope_kbit_s", &keys.send_slope_kbit_s), ("low_credit_bytes", &keys.low_credit_bytes)] {
        if let Some(value) = value.as_ref().filter(|value| value.value >= 0) {
            let reason = format!("`{key}` cannot be {}", value.value);
            return Err(Fault::new(value.at, reason).help("write a number below 0, or remove the key"));
        }
    }
    if let Some(value) = keys.high_credit_bytes.as_ref().filter(|value| value.value < 0) {
        let reason = format!("`high_credit_bytes` cannot be {}", value.value);
        return Err(Fault::new(value.at, reason).help("write 0 or more, or remove the key"));
    }
    let value = |given: &Option<At<i32>>| given.as_ref().map(|given| given.value);
    Ok(CreditSpec {
        idle_slope_kbit_s: idle.value,
        send_slope_kbit_s: value(&keys.send_slope_kbit_s),
        high_credit_bytes: value(&keys.high_credit_bytes),
        low_credit_bytes: value(&keys.low_credit_bytes),
    })
}

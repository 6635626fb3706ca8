//! Resolves lists of CPUs.

use super::Context;
use crate::error::Fault;
use crate::format::Cpus;
use crate::read::At;
use tailbound_model::CpuList;

/// Returns the requested list of CPUs, or an error if the process may not use some CPU of the list.
pub(super) fn allowed(cpus: &At<Cpus>, context: &Context<'_>) -> Result<Option<CpuList>, Fault> {
    let allowed = context.options.allowed_cpus;
    let Some(list) = &cpus.value.0 else { return Ok(None) };
    if let Some(cpu) = list.0.iter().find(|cpu| !allowed.is_empty() && !allowed.contains(cpu)) {
        let all = CpuList(allowed.iter().copied().collect());
        let reason = format!("CPU {cpu} does not exist, or Tailbound may not use it");
        return Err(Fault::new(cpus.at, reason).help(format!("allowed: {all}")));
    }
    Ok(Some(list.clone()))
}

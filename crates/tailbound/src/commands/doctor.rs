//! `tailbound doctor`.

use super::report::width;
use crate::cli::Doctor;
use crate::exit::{Failure, Outcome};
use crate::say::{out, outln};
use tailbound_model::ExitCode;

pub fn doctor(args: &Doctor) -> Outcome {
    let facts = tailbound_host::facts::collect();
    let findings = tailbound_doctor::diagnose(&facts);
    if args.json {
        let text = serde_json::to_string_pretty(&serde_json::json!({ "facts": facts, "findings": findings }))
            .map_err(|e| Failure::new(ExitCode::Unexpected, e))?;
        outln!("{text}");
    } else {
        out!("{}", tailbound_doctor::render(&findings, width()));
    }
    Ok(ExitCode::Done)
}

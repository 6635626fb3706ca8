//! Runs `tailbound quick`: the built-in study `quick` with the privileges that this user has.

use super::ping::loopback_instead;
use super::record_dir::RecordDir;
use super::run::{self, Shown};
use crate::cli::Quick;
use crate::failure::{CommandResult, Failure};
use std::path::Path;
use tailbound_lab::userns::{self, Privilege};

pub fn quick(args: &Quick) -> CommandResult {
    let mut settings = args.settings.clone();
    let mut warnings = Vec::new();
    let places_given = settings.iter().any(|s| s.starts_with("path=") || s.starts_with("place="));
    if !places_given {
        let privilege = userns::enter_if_needed(true).map_err(Failure::not_fit)?;
        if let Privilege::None { reason } = privilege {
            settings.extend(["path=loopback".to_owned(), "place=process".to_owned()]);
            warnings.push(loopback_instead(&reason));
        }
    }
    let plan = run::load(Path::new("quick"), &settings, false)?;
    let mut dir = RecordDir::choose(args.record.out.as_deref(), "quick", args.record.force)?;
    let options = run::options(&dir, &args.record, warnings);
    run::execute(plan, &mut dir, options, if args.verbose { Shown::All } else { Shown::Short })
}

//! `git devlyn check`.

use std::path::Path;

use super::args::Package;
use super::reply::Reply;
use super::{faults, here, text};
use crate::add::{self, AddError, Place};
use crate::json::Value;
use crate::package::{FileState, Source};
use crate::view::CheckoutSource;

pub(super) fn run(package: &Package) -> Reply {
    let target = Path::new(&package.package);
    match add::check(target, &here(), package.repository.repo.as_deref()) {
        Ok(checked) => {
            let text = format!(
                "{} is valid: {}.\nNext: git devlyn add {}\n",
                checked.loop_id,
                text::counted(checked.tasks.len(), "task"),
                crate::shell::line([target])
            );
            Reply::new(&checked, text).with([("status", "VALID".into())])
        }
        Err(error) => refused(error, target, package.repository.repo.as_deref()),
    }
}

/// The refusal of a package, with all its faults.
pub(super) fn refused(error: AddError, target: &Path, repo: Option<&Path>) -> Reply {
    let place = Place::find(target, &here(), repo).ok();
    let reply = Reply::blocked(&error);
    match error {
        AddError::Faults(faults) => {
            let sources = |path: &str| match CheckoutSource::new(&place.as_ref()?.repo).file(path) {
                FileState::Bytes(bytes) => String::from_utf8(bytes).ok(),
                FileState::Missing | FileState::Unreadable(_) => None,
            };
            let text = faults::render(&faults, &sources, text::colours());
            let counted = text::counted(faults.len(), "fault");
            Reply::blocked(format!("the package has {counted}")).saying(text).with([
                ("reason", error_reason(&faults)),
                ("faults", serde_json::to_value(&faults).unwrap_or_default()),
            ])
        }
        AddError::Refused(_) | AddError::View(_) | AddError::Store(_) | AddError::Git(_) => reply,
    }
}

fn error_reason(faults: &[crate::package::Fault]) -> Value {
    faults.first().map(ToString::to_string).unwrap_or_default().into()
}

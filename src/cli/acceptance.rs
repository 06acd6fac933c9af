//! `git devlyn acceptance run`.

use std::fmt::Write;

use super::args::Acceptance;
use super::reply::Reply;
use super::{here, text};
use crate::acceptance;
use crate::json::json;

pub(super) fn run(asked: &Acceptance) -> Reply {
    let Acceptance::Run(asked) = asked;
    match acceptance::run(&here().join(&asked.packet)) {
        Ok(ran) => {
            let mut text = if ran.passed { "All checks passed.\n".to_owned() } else { String::new() };
            for reason in &ran.reasons {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{}", text::visible(reason));
            }
            let _ = writeln!(text, "result: {}", ran.result.display());
            let object = json!({
                "status": "CHECKED", "result": ran.result, "passed": ran.passed, "reasons": ran.reasons,
            });
            Reply::new(&object, text)
        }
        Err(error) => Reply::blocked(error),
    }
}

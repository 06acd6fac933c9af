//! What a command answers: one object for programs, text for people, an exit status.

use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;

use crate::json::{self, Map, Value};

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    object: Value,
    text: String,
    /// What is said on standard error, where a person reads.
    complaint: String,
    code: u8,
}

impl Reply {
    /// An answer with its object and its text.
    pub(super) fn new(object: &impl Serialize, text: impl Into<String>) -> Self {
        let object = serde_json::to_value(object).unwrap_or_default();
        Self { object, text: text.into(), complaint: String::new(), code: 0 }
    }

    /// An answer that says nothing.
    pub(super) fn silent() -> Self {
        Self { object: Value::Null, text: String::new(), complaint: String::new(), code: 0 }
    }

    /// A refusal.
    pub(super) fn blocked(reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        let object = json::json!({"status": "BLOCKED", "reason": reason});
        Self { object, text: String::new(), complaint: reason, code: 1 }
    }

    /// The same with more keys in its object.
    pub(super) fn with(mut self, more: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        if !self.object.is_object() {
            self.object = Value::Object(Map::new());
        }
        if let Value::Object(map) = &mut self.object {
            map.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
        }
        self
    }

    /// The same with another text for a person, on standard output.
    pub(super) fn saying(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    /// The same with another exit status.
    pub(super) fn exiting(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Whether it is a refusal.
    pub(super) fn is_blocked(&self) -> bool {
        self.object.get("status").and_then(Value::as_str) == Some("BLOCKED")
    }

    /// Prints it; a reader that went away is no error.
    pub(super) fn print(self, json: bool) -> ExitCode {
        let mut stdout = std::io::stdout().lock();
        if json {
            if !self.object.is_null() {
                let line = json::to_line(&self.object).unwrap_or_default();
                let _ = writeln!(stdout, "{line}");
            }
        } else {
            let _ = stdout.write_all(self.text.as_bytes());
            if !self.complaint.is_empty() {
                let _ = writeln!(std::io::stderr().lock(), "git devlyn: {}", super::text::visible(&self.complaint));
            }
        }
        let _ = stdout.flush();
        ExitCode::from(self.code)
    }
}

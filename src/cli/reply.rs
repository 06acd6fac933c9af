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

    /// Prints it; a reader that went away is no error, and output that cannot be written is one.
    pub(super) fn print(self, json: bool) -> ExitCode {
        let mut stdout = std::io::stdout().lock();
        let text = match (json, self.object.is_null()) {
            (true, true) => String::new(),
            (true, false) => json::to_line(&self.object).unwrap_or_default() + "\n",
            (false, _) => self.text,
        };
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        if !json && !self.complaint.is_empty() {
            let _ = writeln!(std::io::stderr().lock(), "git devlyn: {}", super::text::visible(&self.complaint));
        }
        match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                let _ = writeln!(std::io::stderr().lock(), "git devlyn: the answer cannot be written: {error}");
                ExitCode::from(self.code.max(1))
            }
            _ => ExitCode::from(self.code),
        }
    }
}

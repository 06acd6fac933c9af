//! `meta.md`: the intent, what holds for every task, and the manifest.

use super::Manifest;

/// A `meta.md` that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The manifest in it.
    pub manifest: Manifest,
    intent: String,
    constraints: String,
    decisions: String,
}

impl Meta {
    /// The body of `## Intent`, trimmed.
    #[must_use]
    pub fn intent(&self) -> &str {
        &self.intent
    }

    /// The body of `## Constraints and exclusions`, trimmed.
    #[must_use]
    pub fn constraints(&self) -> &str {
        &self.constraints
    }

    /// The body of `## Decisions and assumptions` without the manifest, trimmed; may be empty.
    #[must_use]
    pub fn decisions(&self) -> &str {
        &self.decisions
    }
}

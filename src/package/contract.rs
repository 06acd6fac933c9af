//! `spec.md`: what one task must do.

use super::TaskId;
use super::diagnostics::Place;

/// A `spec.md` that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The task.
    pub id: TaskId,
    /// The title, one line.
    pub title: String,
    /// `feature`, `spike` or `prototype`.
    pub kind: String,
    /// The requirement ids in the order of the list: `R1`, `R2`, …
    pub requirements: Vec<String>,
    /// The requirements that need a review, as the frontmatter lists them.
    pub review_requirements: Vec<String>,
    /// Where each of `requirements` stands.
    places: Vec<Place>,
}

//! What an executor answers. Its claims name a candidate and evidence; none of them is evidence itself.

use super::shape::{Shape, quoted, shown};
use crate::json;
use crate::package::Identity;

/// Why an executor gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockerKind {
    /// The work cannot be done as it was asked.
    Failed,
    /// A person must decide first.
    NeedsReview,
    /// What the work needs was not to be had.
    BlockedInfrastructure,
}

impl BlockerKind {
    /// The word that begins the reason.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NeedsReview => "needs-review",
            Self::BlockedInfrastructure => "blocked-infrastructure",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Failed, Self::NeedsReview, Self::BlockedInfrastructure].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// What stopped an executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Of which kind.
    pub kind: BlockerKind,
    /// The concrete question or cause, as it was written.
    pub detail: String,
}

impl Blocker {
    /// The reason that it gives the task.
    #[must_use]
    pub fn reason(&self) -> String {
        format!("{}: {}", self.kind.as_str(), self.detail)
    }
}

/// A submission without a fault. What only informs (`findings`, `cleanup`, `handoff`, `summary`) is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submission {
    /// The task.
    pub task: Identity,
    /// The candidate, as the executor names it; it may be no commit at all.
    pub source_sha: String,
    /// Paths of runner results that may serve.
    pub runner_results: Vec<String>,
    /// Paths of review records.
    pub reviews: Vec<String>,
    /// What was assumed.
    pub assumptions: Vec<String>,
    /// What stopped it.
    pub blockers: Vec<Blocker>,
}

const KEYS: [&str; 11] = [
    "schema_version",
    "task",
    "source_sha",
    "runner_results",
    "reviews",
    "findings",
    "cleanup",
    "handoff",
    "assumptions",
    "blockers",
    "summary",
];

impl Submission {
    /// The submission for `task` in `bytes`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each a reason of the task.
    pub fn parse(task: &Identity, bytes: &[u8]) -> Result<Self, Vec<String>> {
        let map = json::parse_object(bytes)
            .map_err(|error| vec![format!("failed: submission is no strict JSON object: {error}")])?;
        let mut shape = Shape::new(&map, "");
        shape.only(&KEYS);
        shape.version();
        let named = shape.text("task");
        if let Some(named) = named.filter(|named| *named != task.to_string()) {
            shape.fault(format_args!("is for the task {}, not for {task}", quoted(named)));
        }
        let source_sha = shape.text("source_sha").unwrap_or_default().to_owned();
        let submission = Self {
            task: task.clone(),
            source_sha,
            runner_results: shape.texts("runner_results", false),
            reviews: shape.texts("reviews", false),
            assumptions: shape.texts("assumptions", false),
            blockers: blockers(&mut shape),
        };
        let faults = shape.faults();
        if faults.is_empty() {
            return Ok(submission);
        }
        Err(faults.into_iter().map(|fault| format!("failed: submission {fault}")).collect())
    }

    /// The questions that only a person can answer.
    #[must_use]
    pub fn questions(&self) -> Vec<String> {
        let asked = self.blockers.iter().filter(|blocker| blocker.kind == BlockerKind::NeedsReview);
        asked.map(|blocker| blocker.detail.clone()).collect()
    }
}

fn blockers(shape: &mut Shape<'_>) -> Vec<Blocker> {
    let mut found = Vec::new();
    for (at, item) in shape.items("blockers", false).iter().enumerate() {
        let Some(mut part) = shape.object("blockers", at, item) else { continue };
        part.only(&["kind", "detail"]);
        let word = part.get("kind");
        let kind = word.and_then(json::Value::as_str).and_then(BlockerKind::parse);
        if kind.is_none() {
            part.fault(format_args!(
                "kind is {}, not \"failed\", \"needs-review\" or \"blocked-infrastructure\"",
                shown(word)
            ));
        }
        let detail = part.text("detail").map(str::to_owned);
        shape.absorb(part);
        found.extend(kind.zip(detail).map(|(kind, detail)| Blocker { kind, detail }));
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Value, json};

    fn task() -> Identity {
        Identity::parse("inv.t1").unwrap()
    }

    fn sound() -> Value {
        json!({"schema_version": 1, "task": "inv.t1", "source_sha": "f".repeat(40)})
    }

    fn with(key: &str, value: Value) -> Result<Submission, Vec<String>> {
        let mut whole = sound();
        whole[key] = value;
        Submission::parse(&task(), whole.to_string().as_bytes())
    }

    fn only_reason(key: &str, value: Value) -> String {
        let mut reasons = with(key, value).unwrap_err();
        assert_eq!(reasons.len(), 1, "{reasons:?}");
        reasons.remove(0)
    }

    #[test]
    fn what_is_required_is_enough_and_what_informs_decides_nothing() {
        let submission = Submission::parse(&task(), sound().to_string().as_bytes()).unwrap();
        assert_eq!((submission.source_sha.len(), submission.reviews.len()), (40, 0));
        for key in ["findings", "cleanup", "handoff", "summary"] {
            assert_eq!(with(key, json!({"any": ["thing"]})).unwrap(), submission);
        }
    }

    #[test]
    fn every_fault_is_a_reason_that_names_it() {
        assert_eq!(only_reason("verdict", json!("ok")), "failed: submission has the unknown key \"verdict\"");
        assert_eq!(only_reason("schema_version", json!("1")), "failed: submission schema_version is \"1\", not 1");
        assert_eq!(
            only_reason("task", json!("inv.t2")),
            "failed: submission is for the task \"inv.t2\", not for inv.t1"
        );
        assert_eq!(only_reason("task", json!(["inv.t1"])), "failed: submission task is a list, not a text");
        assert_eq!(only_reason("source_sha", Value::Null), "failed: submission source_sha is null, not a text");
        assert_eq!(only_reason("reviews", json!("x")), "failed: submission reviews is \"x\", not a list");
        assert_eq!(only_reason("assumptions", json!([1])), "failed: submission assumptions[0] is 1, not a text");
        assert_eq!(
            only_reason("runner_results", json!({})),
            "failed: submission runner_results is an object, not a list"
        );
        let reasons = Submission::parse(&task(), b"{}").unwrap_err();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        for bytes in [&b"[]"[..], b"null", b"{", b"{\"summary\": NaN}", b"{\"a\": \"\xff\"}", b"{\"a\":1,\"a\":1}"] {
            let reasons = Submission::parse(&task(), bytes).unwrap_err();
            assert!(reasons[0].starts_with("failed: submission is no strict JSON object: "), "{reasons:?}");
        }
    }

    #[test]
    fn blockers_are_reasons_as_they_stand() {
        let submission = with(
            "blockers",
            json!([{"kind": "needs-review", "detail": "EUR or 원?"}, {"kind": "failed", "detail": "two"}]),
        );
        let submission = submission.unwrap();
        let reasons: Vec<String> = submission.blockers.iter().map(Blocker::reason).collect();
        assert_eq!(reasons, ["needs-review: EUR or 원?", "failed: two"]);
        assert_eq!(submission.questions(), ["EUR or 원?"]);
        let good = json!({"kind": "failed", "detail": "x"});
        for bad in [
            good.clone(),
            json!(["failed"]),
            json!([{"kind": "waiting", "detail": "x"}]),
            json!([{"kind": ["failed"], "detail": "x"}]),
            json!([{"kind": "failed"}]),
            json!([{"kind": "failed", "detail": " "}]),
            json!([{"kind": "failed", "detail": 5}]),
            json!([good, {"kind": "failed", "detail": "x", "more": 1}]),
        ] {
            assert!(only_reason("blockers", bad).starts_with("failed: submission blockers"));
        }
    }

    #[test]
    fn a_stranger_s_flood_stays_short() {
        let mut whole = sound();
        for number in 0..1000 {
            whole[format!("{number}{}", "x".repeat(1000))] = json!(1);
        }
        let reasons = Submission::parse(&task(), whole.to_string().as_bytes()).unwrap_err();
        assert_eq!(reasons.len(), MOST_AND_ONE);
        assert!(reasons.iter().all(|reason| reason.len() < 200), "{reasons:?}");
        assert_eq!(reasons[MOST_AND_ONE - 1], "failed: submission has 980 faults more");
    }

    const MOST_AND_ONE: usize = 21;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
            prop::sample::select(vec!["failed", "inv.t1", "needs-review"]).prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(prop::sample::select(vec!["kind", "detail", "x"]), inner, 0..3)
                    .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Submission::parse(&task(), &bytes);
        }

        #[test]
        fn whatever_is_refused_says_so(key in prop::sample::select(KEYS.to_vec()), value in any_json()) {
            if let Err(reasons) = with(key, value) {
                prop_assert!(!reasons.is_empty());
                prop_assert!(reasons.iter().all(|reason| reason.starts_with("failed: submission ")));
            }
        }
    }
}

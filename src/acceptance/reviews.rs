//! The listed review records: which count, what they cover, which findings in them are open.

use std::collections::BTreeSet;
use std::path::Path;

use super::evidence::{Unusable, read_listed};
use super::{Result, listed};
use crate::exchange::{Binding, EVIDENCE, IgnoredReview, Review, ReviewRecord, Standing};
use crate::package::sha256_hex;

/// What the reviews say.
#[derive(Debug, Default)]
pub(super) struct Reviews {
    /// Those that count.
    pub(super) counted: Vec<ReviewRecord>,
    /// Those that do not.
    pub(super) ignored: Vec<IgnoredReview>,
    /// What is missing in them, open, or wrong with them.
    pub(super) reasons: Vec<String>,
}

/// Reads the records at `paths` below `worktree` for the candidate of `binding`; `required` must be covered.
///
/// # Errors
/// Where the machine cannot read one that is there.
pub(super) fn judge(worktree: &Path, paths: &[String], binding: &Binding<'_>, required: &[String]) -> Result<Reviews> {
    let mut reviews = Reviews::default();
    let mut seen = BTreeSet::new();
    for path in paths {
        let read = read_listed(worktree, path, EVIDENCE);
        if read.as_ref().is_ok_and(|(relative, _)| !seen.insert(relative.clone())) {
            continue;
        }
        match read.and_then(|(relative, bytes)| Ok(reviews.take(relative, &bytes, binding)?)) {
            Ok(()) => {}
            Err(Unusable::Unknown(error)) => return Err(error),
            Err(Unusable::Wrong(why)) => reviews.reasons.push(format!("failed: review {path:?} {why}")),
        }
    }
    let covered: BTreeSet<&String> = reviews.counted.iter().flat_map(|review| &review.requirements).collect();
    let missing: Vec<&String> = required.iter().filter(|id| !covered.contains(id)).collect();
    if !missing.is_empty() {
        reviews.reasons.push(format!("failed: no review of this candidate covers {}", listed(&missing)));
    }
    for review in &reviews.counted {
        if !review.open_binding_findings.is_empty() {
            let ids = listed(&review.open_binding_findings);
            reviews.reasons.push(format!("failed: open binding findings in {:?}: {ids}", review.path));
        }
    }
    Ok(reviews)
}

impl Reviews {
    fn take(&mut self, path: String, bytes: &[u8], binding: &Binding<'_>) -> Result<(), String> {
        let review = Review::parse(bytes)?;
        match review.standing(binding)? {
            Standing::Elsewhere(reason) => self.ignored.push(IgnoredReview { path, reason }),
            Standing::Counts => self.counted.push(ReviewRecord {
                path,
                sha256: sha256_hex(bytes),
                open_binding_findings: review.open_binding_findings(),
                engine: review.engine,
                model: review.model,
                requirements: review.requirements,
            }),
        }
        Ok(())
    }

    /// The files that they stand in.
    pub(super) fn paths(&self) -> impl Iterator<Item = &String> {
        self.counted.iter().map(|review| &review.path).chain(self.ignored.iter().map(|review| &review.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Value, json};
    use crate::package::Identity;
    use crate::store::{make_dir, write_bytes};

    fn judged(records: &[(&str, Value)], listed: &[&str]) -> Reviews {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        make_dir(&root.join(".devlyn/reviews")).unwrap();
        for (name, more) in records {
            let mut whole = json!({
                "schema_version": 1, "kind": "devlyn-review", "task": "inv.t1", "engine": "e", "model": "m",
                "source_sha": "s", "contract_sha256": "c", "expected_sha256": "x", "requirements": ["R2"], "findings": []
            });
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            write_bytes(&root.join(format!(".devlyn/reviews/{name}.json")), whole.to_string().as_bytes()).unwrap();
        }
        let paths: Vec<String> = listed.iter().map(|name| format!(".devlyn/reviews/{name}.json")).collect();
        let ids = ["R1", "R2", "R3"].map(str::to_owned);
        let task = Identity::parse("inv.t1").unwrap();
        let binding =
            Binding { task: &task, source_sha: "s", contract_sha256: "c", expected_sha256: "x", requirements: &ids };
        judge(&root, &paths, &binding, &ids[1..]).unwrap()
    }

    #[test]
    fn several_records_cover_together_and_one_listed_twice_counts_once() {
        let records = [("one", json!({})), ("two", json!({"requirements": ["R3", "R1"]})), ("three", json!({}))];
        let reviews = judged(&records, &["one", "two", "one"]);
        assert_eq!((reviews.counted.len(), reviews.reasons.len()), (2, 0));
        assert_eq!(judged(&records, &["one"]).reasons, ["failed: no review of this candidate covers R3"]);
        assert_eq!(judged(&records, &[]).reasons, ["failed: no review of this candidate covers R2, R3"]);
    }

    #[test]
    fn what_is_bound_elsewhere_neither_covers_nor_blocks() {
        let open = json!([{"id": "F1", "binding": true, "disposition": "open"}]);
        let whole = json!(["R2", "R3"]);
        let records = [
            ("old", json!({"source_sha": "o", "requirements": whole, "findings": open})),
            ("new", json!({"requirements": whole})),
            ("open", json!({"findings": open})),
        ];
        let reviews = judged(&records, &["old", "new"]);
        assert_eq!((reviews.counted.len(), reviews.ignored.len(), reviews.reasons.len()), (1, 1, 0));
        assert_eq!(reviews.ignored[0].path, ".devlyn/reviews/old.json");
        let reviews = judged(&records, &["open", "new"]);
        assert_eq!(reviews.reasons, ["failed: open binding findings in \".devlyn/reviews/open.json\": F1"]);
    }

    #[test]
    fn what_cannot_be_read_fails_by_its_path() {
        let records = [("one", json!({"requirements": ["R2", "R3"]})), ("bad", json!({"engine": ""}))];
        for (listed, fact) in [("bad", "bad.json"), ("none", "none.json"), ("../one", "../one.json")] {
            let reviews = judged(&records, &["one", listed]);
            assert!(reviews.reasons.len() == 1 && reviews.reasons[0].contains(fact), "{:?}", reviews.reasons);
            assert_eq!(reviews.counted.len(), 1);
        }
    }
}

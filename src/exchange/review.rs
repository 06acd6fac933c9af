//! A review record: what a reviewer says of one candidate under one contract. It is believed in what it says, and only
//! where it is bound to the candidate and the contract that are judged.

use super::shape::{Shape, quoted, shown};
use crate::json::{self, Value};
use crate::package::Identity;

/// What became of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Nothing yet.
    Open,
    /// It was mended.
    Resolved,
    /// It was turned down, for a reason.
    Rejected,
}

/// What a reviewer found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Its name within the record.
    pub id: String,
    /// Whether it blocks acceptance while it is open.
    pub binding: bool,
    /// What became of it.
    pub disposition: Disposition,
}

/// A record of the right shape. Keys of its own are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// The task, as it says.
    pub task: String,
    /// Who reviewed.
    pub engine: String,
    /// With which model.
    pub model: String,
    /// The commit that was reviewed, as it says.
    pub source_sha: String,
    /// The contract that it was held against.
    pub contract_sha256: String,
    /// The expected acceptance that it was held against.
    pub expected_sha256: String,
    /// The requirements that it covers.
    pub requirements: Vec<String>,
    /// What was found.
    pub findings: Vec<Finding>,
}

/// What a record must be bound to.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The task.
    pub task: &'a Identity,
    /// The candidate.
    pub source_sha: &'a str,
    /// The digest of its contract.
    pub contract_sha256: &'a str,
    /// The digest of its expected acceptance.
    pub expected_sha256: &'a str,
    /// The requirements of that contract.
    pub requirements: &'a [String],
}

/// Whether a record counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    Counts,
    /// It does not, because of this.
    Elsewhere(String),
}

impl Review {
    /// The record in `bytes`.
    ///
    /// # Errors
    /// What is wrong with its shape, in one line.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let map = json::parse_object(bytes).map_err(|error| format!("is no strict JSON object: {error}"))?;
        let mut shape = Shape::new(&map, "");
        shape.version();
        if shape.get("kind").and_then(Value::as_str) != Some("devlyn-review") {
            let found = shown(shape.get("kind"));
            shape.fault(format_args!("kind is {found}, not \"devlyn-review\""));
        }
        let mut text = |key: &str| shape.text(key).unwrap_or_default().to_owned();
        let mut review = Self {
            task: text("task"),
            engine: text("engine"),
            model: text("model"),
            source_sha: text("source_sha"),
            contract_sha256: text("contract_sha256"),
            expected_sha256: text("expected_sha256"),
            requirements: Vec::new(),
            findings: Vec::new(),
        };
        review.requirements = shape.texts("requirements", true);
        review.findings = findings(&mut shape);
        let faults = shape.faults();
        if faults.is_empty() { Ok(review) } else { Err(faults.join("; ")) }
    }

    /// Whether it counts for what `binding` says.
    ///
    /// # Errors
    /// Where it names a requirement that its own contract does not have: then it is misshapen. A record of another
    /// contract is not asked, for its requirements are not known.
    pub fn standing(&self, binding: &Binding<'_>) -> Result<Standing, String> {
        let elsewhere = |what: &str, found: &str, wanted: &str| {
            Ok(Standing::Elsewhere(format!("is bound to the {what} {}, not to {wanted}", quoted(found))))
        };
        let task = binding.task.to_string();
        if self.task != task {
            return elsewhere("task", &self.task, &task);
        }
        if self.contract_sha256 != binding.contract_sha256 {
            return elsewhere("contract", &self.contract_sha256, binding.contract_sha256);
        }
        if let Some(id) = self.requirements.iter().find(|id| !binding.requirements.contains(id)) {
            return Err(format!("names {}, which is no requirement of the task", quoted(id)));
        }
        if self.expected_sha256 != binding.expected_sha256 {
            return elsewhere("expected acceptance", &self.expected_sha256, binding.expected_sha256);
        }
        if self.source_sha != binding.source_sha {
            return elsewhere("source", &self.source_sha, binding.source_sha);
        }
        Ok(Standing::Counts)
    }

    /// The ids of the findings that block acceptance.
    #[must_use]
    pub fn open_binding_findings(&self) -> Vec<String> {
        let open = self.findings.iter().filter(|found| found.binding && found.disposition == Disposition::Open);
        open.map(|found| found.id.clone()).collect()
    }
}

fn findings(shape: &mut Shape<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, item) in shape.items("findings", true).iter().enumerate() {
        let Some(mut part) = shape.object("findings", at, item) else { continue };
        let id = part.text("id").map(str::to_owned);
        let binding = part.get("binding").and_then(Value::as_bool);
        if binding.is_none() {
            let is = shown(part.get("binding"));
            part.fault(format_args!("binding is {is}, neither true nor false"));
        }
        let disposition = match part.get("disposition").and_then(Value::as_str) {
            Some("open") => Some(Disposition::Open),
            Some("resolved") => Some(Disposition::Resolved),
            Some("rejected") => Some(Disposition::Rejected),
            _ => None,
        };
        match disposition {
            Some(Disposition::Rejected) => {
                part.text("reason");
            }
            Some(Disposition::Open | Disposition::Resolved) => {}
            None => {
                let is = shown(part.get("disposition"));
                part.fault(format_args!("disposition is {is}, not \"open\", \"resolved\" or \"rejected\""));
            }
        }
        part.maybe_text("requirement");
        part.maybe_text("summary");
        shape.absorb(part);
        if let (Some(id), Some(binding), Some(disposition)) = (id, binding, disposition) {
            found.push(Finding { id, binding, disposition });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::json;

    fn sound() -> Value {
        json!({
            "schema_version": 1, "kind": "devlyn-review", "task": "inv.t1", "engine": "suite", "model": "suite-1",
            "source_sha": "s", "contract_sha256": "c", "expected_sha256": "e", "requirements": ["R2"], "findings": []
        })
    }

    fn with(key: &str, value: Value) -> Result<Review, String> {
        let mut whole = sound();
        whole[key] = value;
        Review::parse(whole.to_string().as_bytes())
    }

    fn standing(review: &Review) -> Result<Standing, String> {
        review.standing(&Binding {
            task: &Identity::parse("inv.t1").unwrap(),
            source_sha: "s",
            contract_sha256: "c",
            expected_sha256: "e",
            requirements: &["R1".to_owned(), "R2".to_owned()],
        })
    }

    #[test]
    fn keys_of_its_own_are_ignored_and_all_others_are_held_to_their_shape() {
        let open = json!({"id": "F1", "binding": true, "disposition": "open", "status": "resolved", "line": 3});
        let review = with("findings", json!([open])).unwrap();
        assert_eq!(review.open_binding_findings(), ["F1"]);
        assert!(with("notes", json!({"x": 1})).is_ok());
        let whole = sound();
        for key in whole.as_object().unwrap().keys() {
            let mut without = whole.as_object().unwrap().clone();
            without.remove(key);
            let error = Review::parse(Value::from(without).to_string().as_bytes()).unwrap_err();
            assert!(error.contains(key), "{error}");
        }
        for (key, value) in [
            ("kind", json!("review")),
            ("schema_version", json!(2)),
            ("schema_version", json!("1")),
            ("engine", json!("")),
            ("engine", json!(5)),
            ("model", json!(" ")),
            ("model", Value::Null),
            ("requirements", json!("R2")),
            ("requirements", json!([{"id": "R2"}])),
            ("requirements", Value::Null),
            ("findings", json!({"F1": {}})),
            ("findings", json!(["F1"])),
        ] {
            assert!(with(key, value.clone()).unwrap_err().contains(key), "{key} {value}");
        }
    }

    #[test]
    fn a_finding_is_settled_only_as_it_says_in_words() {
        let finding = |more: Value| {
            let mut whole = json!({"id": "F1", "binding": true, "disposition": "resolved", "requirement": "R2"});
            whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            with("findings", json!([whole]))
        };
        assert!(finding(json!({})).unwrap().open_binding_findings().is_empty());
        assert!(finding(json!({"disposition": "open", "binding": false})).unwrap().open_binding_findings().is_empty());
        assert!(finding(json!({"disposition": "rejected", "reason": "by design"})).is_ok());
        for bad in [
            json!({"disposition": "done"}),
            json!({"binding": "no"}),
            json!({"id": 1}),
            json!({"disposition": "rejected"}),
            json!({"disposition": "rejected", "reason": " "}),
            json!({"disposition": "rejected", "reason": 1}),
        ] {
            assert!(finding(bad.clone()).unwrap_err().starts_with("findings[0] "), "{bad}");
        }
    }

    #[test]
    fn it_counts_only_for_what_it_is_bound_to() {
        assert_eq!(standing(&with("x", Value::Null).unwrap()), Ok(Standing::Counts));
        for key in ["task", "source_sha", "contract_sha256", "expected_sha256"] {
            let elsewhere = standing(&with(key, json!("other")).unwrap()).unwrap();
            assert!(matches!(elsewhere, Standing::Elsewhere(why) if why.contains("\"other\"")), "{key}");
        }
        assert!(standing(&with("requirements", json!(["R9"])).unwrap()).unwrap_err().contains("\"R9\""));
        let mut foreign = sound();
        foreign["task"] = json!("inv.t2");
        foreign["requirements"] = json!(["R9"]);
        let foreign = Review::parse(foreign.to_string().as_bytes()).unwrap();
        assert!(matches!(standing(&foreign), Ok(Standing::Elsewhere(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Review::parse(&bytes);
        }

        #[test]
        fn no_text_in_any_place_panics(key in prop::sample::select(vec!["task", "requirements", "findings", "kind"]),
                                       text in ".{0,200}", listed in any::<bool>()) {
            let value = if listed { json!([{"id": text, "disposition": text}, text]) } else { json!(text) };
            if let Ok(review) = with(key, value) {
                let _ = standing(&review);
            }
        }
    }
}

//! The guards: what the task's own change must hold and must not. Judged from commits alone, never from a checkout.

use std::collections::BTreeSet;

use super::{Result, listed};
use crate::exchange::GuardRecord;
use crate::git::{EntryKind, Oid, Patch, Repo};
use crate::json::{self, Value};
use crate::package::{Expected, ForbiddenPattern, Severity};

/// The most of a diff that is searched, in bytes.
const SEARCHED: usize = 64 << 20;
/// The largest `package.json` that is read, in bytes.
const LARGEST: u64 = 16 << 20;
const PACKAGE_JSON: &str = "package.json";

/// What the guards say.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// One record a guard and subject.
    pub(super) records: Vec<GuardRecord>,
    /// Why they do not hold.
    pub(super) reasons: Vec<String>,
}

/// Judges what `source` changes of `inputs`.
///
/// # Errors
/// Where Git cannot tell.
pub(super) fn judge(repo: &Repo, expected: &Expected, inputs: Oid, source: Oid) -> Result<Guards> {
    judge_searching(repo, expected, (inputs, source), SEARCHED)
}

fn judge_searching(repo: &Repo, expected: &Expected, (inputs, source): (Oid, Oid), at_most: usize) -> Result<Guards> {
    let mut guards = Guards::default();
    if !expected.forbidden_patterns.is_empty() {
        guards.patterns(&expected.forbidden_patterns, repo.patch(inputs, source, at_most)?);
    }
    for path in &expected.required_files {
        let problem = match repo.entry(source, &plain(path))?.map(|entry| entry.kind) {
            Some(EntryKind::File | EntryKind::Executable | EntryKind::Link) => None,
            Some(EntryKind::Tree | EntryKind::Submodule) => Some("is no file in the candidate"),
            None => Some("is not in the candidate"),
        };
        guards.note("required_files", path, problem.map(str::to_owned));
    }
    for path in &expected.forbidden_files {
        let place = plain(path);
        let touched = repo.entry(inputs, &place)? != repo.entry(source, &place)?;
        guards.note("forbidden_files", path, touched.then(|| "is changed by the candidate".to_owned()));
    }
    let problem = too_many_added(repo, expected.max_deps_added, inputs, source)?;
    guards.note("max_deps_added", PACKAGE_JSON, problem);
    Ok(guards)
}

/// The path as Git has it: `./a`, `/a` and `a/` mean the `a` at the root, where a guard that took them to the letter could
/// never fail.
fn plain(path: &str) -> String {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect::<Vec<_>>().join("/")
}

impl Guards {
    /// Notes a blocking guard and what speaks against it.
    fn note(&mut self, rule: &str, subject: &str, problem: Option<String>) {
        let blocking = true;
        let passed = problem.is_none();
        self.records.push(GuardRecord { rule: rule.to_owned(), subject: subject.to_owned(), passed, blocking });
        self.reasons.extend(problem.map(|problem| format!("failed: guard {rule} {subject:?} {problem}")));
    }

    fn patterns(&mut self, patterns: &[ForbiddenPattern], patch: Patch) {
        let searched = patch.text.len();
        let text = String::from_utf8(patch.text)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        for (index, forbidden) in patterns.iter().enumerate() {
            let rule = format!("forbidden_patterns/{index}");
            let subject = forbidden.pattern.as_str();
            let problem = match search(forbidden, &text) {
                Ok(true) => Some(format!("is in the change: {}", forbidden.description)),
                Ok(false) if patch.cut => Some(format!(
                    "is not proven absent: the change goes on behind the {searched} bytes that are searched"
                )),
                Ok(false) => None,
                Err(error) => Some(format!("gave no answer: {error}")),
            };
            match forbidden.severity {
                Severity::Disqualifier => self.note(&rule, subject, problem),
                Severity::Warning => self.records.push(GuardRecord {
                    rule,
                    subject: subject.to_owned(),
                    passed: problem.is_none(),
                    blocking: false,
                }),
            }
        }
    }
}

fn search(forbidden: &ForbiddenPattern, text: &str) -> Result<bool, crate::package::PatternError> {
    match &forbidden.files {
        None => forbidden.pattern.search(text),
        Some(names) => {
            let kept: String = file_parts(text)
                .filter(|part| {
                    let line = part.lines().next().unwrap_or_default();
                    names.iter().any(|name| line.contains(name.as_str()))
                })
                .collect();
            forbidden.pattern.search(&kept)
        }
    }
}

/// The parts of a diff, one a file. Every line of a file's text is behind a mark, so that only a header begins like one.
fn file_parts(text: &str) -> impl Iterator<Item = &str> {
    const HEADER: &str = "\ndiff --git ";
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(HEADER).map_or(rest.len(), |at| at + 1);
        let (part, after) = rest.split_at(end);
        rest = after;
        Some(part)
    })
}

/// What speaks against the names that the root `package.json` adds.
fn too_many_added(repo: &Repo, limit: u64, inputs: Oid, source: Oid) -> Result<Option<String>> {
    // What did not change adds nothing, whatever it holds.
    if repo.entry(inputs, PACKAGE_JSON)? == repo.entry(source, PACKAGE_JSON)? {
        return Ok(None);
    }
    let unreadable = |which: &str, why: &str| Ok(Some(format!("cannot be read in the {which}: {why}")));
    let before = match names(repo, inputs)? {
        Ok(names) => names,
        Err(why) => return unreadable("inputs", &why),
    };
    let after = match names(repo, source)? {
        Ok(names) => names,
        Err(why) => return unreadable("candidate", &why),
    };
    let added: Vec<&String> = after.difference(&before).collect();
    let count = added.len();
    Ok((count as u64 > limit).then(|| format!("adds {count} dependencies ({}), allowed are {limit}", listed(&added))))
}

/// The names that the root `package.json` of `commit` depends on, or why they are not known.
fn names(repo: &Repo, commit: Oid) -> Result<std::result::Result<BTreeSet<String>, String>> {
    let Some(entry) = repo.entry(commit, PACKAGE_JSON)? else { return Ok(Ok(BTreeSet::new())) };
    if !matches!(entry.kind, EntryKind::File | EntryKind::Executable) {
        return Ok(Err("is no regular file".to_owned()));
    }
    Ok(match repo.blob_at_most(entry.id, LARGEST)? {
        Some(bytes) => names_in(&bytes),
        None => Err(format!("has more than {LARGEST} bytes")),
    })
}

fn names_in(bytes: &[u8]) -> std::result::Result<BTreeSet<String>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let package = json::parse_object(bytes).map_err(|error| error.to_string())?;
    let mut names = BTreeSet::new();
    for section in ["dependencies", "devDependencies"] {
        match package.get(section) {
            None => {}
            Some(Value::Object(listed)) => names.extend(listed.keys().cloned()),
            Some(_) => return Err(format!("{section} is no object")),
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::json::json;
    use crate::package::Pattern;

    fn forbidden(pattern: &str, severity: Severity, files: Option<&[&str]>) -> ForbiddenPattern {
        ForbiddenPattern {
            pattern: Pattern::compile(pattern).unwrap(),
            description: "Not this".to_owned(),
            severity,
            files: files.map(|files| files.iter().map(|&file| file.to_owned()).collect()),
        }
    }

    fn patterns(patterns: Vec<ForbiddenPattern>) -> Expected {
        Expected { forbidden_patterns: patterns, ..Expected::default() }
    }

    /// Whether each guard of `rule` passed.
    fn passed(guards: &Guards, rule: &str) -> Vec<bool> {
        guards.records.iter().filter(|guard| guard.rule.starts_with(rule)).map(|guard| guard.passed).collect()
    }

    fn judged(bench: &Bench, expected: &Expected) -> Guards {
        judge(&bench.repo(), expected, bench.inputs(), bench.head()).unwrap()
    }

    #[test]
    fn patterns_are_searched_in_the_change_alone() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "later\nTODO\n"), ("한글/a.txt", "+secret\nunsafe\n")]);
        let find = |pattern: &str, files: Option<&[&str]>| {
            let guards = judged(&bench, &patterns(vec![forbidden(pattern, Severity::Disqualifier, files)]));
            assert_eq!(guards.reasons.len(), passed(&guards, "").iter().filter(|passed| !**passed).count());
            !passed(&guards, "forbidden_patterns/0")[0]
        };
        assert!(find("TODO", None) && find(r"(?m)^\+\+secret$", None) && find(r"secret\n.unsafe", None));
        assert!(!find("in the inputs", None), "a file that did not change is no change");
        assert!(
            find("TODO", Some(&["t1"])) && !find("TODO", Some(&["한글/"])) && find("unsafe", Some(&["x", "한글/"]))
        );
        assert!(!find("[0-9a-f]{32}", None), "ids of objects are no keys");
    }

    #[test]
    fn each_pattern_is_judged_for_itself_and_a_warning_blocks_nothing() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "one two\n")]);
        let guards = judged(
            &bench,
            &patterns(vec![
                forbidden("one", Severity::Warning, None),
                forbidden("two", Severity::Disqualifier, None),
                forbidden("six", Severity::Disqualifier, None),
            ]),
        );
        assert_eq!(passed(&guards, "forbidden_patterns"), [false, false, true]);
        assert_eq!(guards.reasons, ["failed: guard forbidden_patterns/1 \"two\" is in the change: Not this"]);
        assert!(!guards.records[0].blocking && guards.records[1].blocking);
    }

    #[test]
    fn neither_a_rename_nor_an_attribute_hides_a_text() {
        let bench = Bench::new(&json!({}));
        bench.git(&["mv", "old.txt", "new.txt"]);
        bench.commit(&[(".gitattributes", "* -diff\n")]);
        bench.git(&["config", "diff.noprefix", "true"]);
        bench.git(&["config", "color.ui", "always"]);
        let find = forbidden(r"(?m)^\+in the inputs$", Severity::Disqualifier, Some(&["b/new.txt"]));
        assert!(!judged(&bench, &patterns(vec![find])).reasons.is_empty());
        let expected = Expected { forbidden_files: vec!["old.txt".into()], ..Expected::default() };
        let guards = judged(&bench, &expected);
        assert_eq!(guards.reasons, ["failed: guard forbidden_files \"old.txt\" is changed by the candidate"]);
    }

    #[test]
    fn an_unchanged_candidate_holds_nothing_and_a_mode_is_a_change() {
        let bench = Bench::new(&json!({}));
        let expected = Expected {
            forbidden_files: ["old.txt", "docs", "none"].map(str::to_owned).to_vec(),
            ..patterns(vec![forbidden(".", Severity::Disqualifier, None)])
        };
        assert!(judged(&bench, &expected).reasons.is_empty());
        bench.git(&["update-index", "--chmod=+x", "old.txt"]);
        bench.git(&["commit", "-q", "-m", "mode"]);
        let guards = judged(&bench, &expected);
        assert_eq!(passed(&guards, "forbidden_files"), [false, true, true]);
        assert_eq!(passed(&guards, "forbidden_patterns"), [false]);
    }

    #[test]
    fn files_are_literal_paths_of_the_candidate() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("src/a b.txt", ""), ("한글.txt", "x")]);
        let names = ["src/a b.txt", "한글.txt", "src", "s*", "/etc/passwd", "../x", ""].map(str::to_owned).to_vec();
        let expected = Expected { required_files: names.clone(), forbidden_files: names, ..Expected::default() };
        let guards = judged(&bench, &expected);
        assert_eq!(passed(&guards, "required_files"), [true, true, false, false, false, false, false]);
        assert_eq!(passed(&guards, "forbidden_files"), [false, false, false, true, true, true, true]);
        assert!(guards.reasons[0].contains("\"src\" is no file"), "{:?}", guards.reasons);
        let names = ["./src/a b.txt", "/src/a b.txt", "src//a b.txt"].map(str::to_owned).to_vec();
        let expected = Expected { required_files: names.clone(), forbidden_files: names, ..Expected::default() };
        let guards = judged(&bench, &expected);
        assert_eq!(passed(&guards, "required_files"), [true; 3]);
        assert_eq!(passed(&guards, "forbidden_files"), [false; 3]);
    }

    #[test]
    fn names_count_once_and_only_when_they_are_new() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("package.json", r#"{"dependencies": {"a": "1"}, "devDependencies": {"d": "1"}}"#)]);
        let base = bench.head();
        let added = |text: &str, limit: u64| {
            bench.commit(&[("package.json", text)]);
            let expected = Expected { max_deps_added: limit, ..Expected::default() };
            let guards = judge(&bench.repo(), &expected, base, bench.head()).unwrap();
            assert_eq!(guards.records.len(), 1);
            guards.reasons
        };
        let more =
            r#"{"dependencies": {"a": "1", "b": "1", "c": "1"}, "devDependencies": {"b": "2"}, "peers": {"p": 1}}"#;
        assert_eq!(
            added(more, 1),
            ["failed: guard max_deps_added \"package.json\" adds 2 dependencies (b, c), allowed are 1"]
        );
        assert!(added(more, 2).is_empty());
        assert!(added("\u{feff}{\"dependencies\": {\"d\": \"2\"}, \"devDependencies\": {\"a\": \"3\"}}", 0).is_empty());
        for bad in [
            "[]",
            r#"{"dependencies": {"a": "1",}}"#,
            r#"{"dependencies": ["a"]}"#,
            r#"{"a": 1, "a": 1}"#,
            r#"{"devDependencies": null}"#,
            "{\"dependencies\": {\"a\": NaN}}",
        ] {
            assert!(added(bad, 9)[0].contains("cannot be read in the candidate"), "{bad}");
        }
        let broken = bench.head();
        bench.commit(&[("other.txt", "x")]);
        assert!(judge(&bench.repo(), &Expected::default(), broken, bench.head()).unwrap().reasons.is_empty());
    }

    #[test]
    fn what_was_not_searched_is_not_proven_absent() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "one\n"), ("t2.txt", "two\n".repeat(99).as_str())]);
        let (repo, ends) = (bench.repo(), (bench.inputs(), bench.head()));
        let whole = repo.patch(ends.0, ends.1, 1 << 20).unwrap();
        assert!(!whole.cut && whole == repo.patch(ends.0, ends.1, whole.text.len()).unwrap());
        let less = repo.patch(ends.0, ends.1, 200).unwrap();
        assert!(less.cut && less.text == whole.text[..200]);
        let reasons = |pattern: &str, files: Option<&[&str]>| {
            let expected = patterns(vec![forbidden(pattern, Severity::Disqualifier, files)]);
            judge_searching(&repo, &expected, ends, 200).unwrap().reasons
        };
        assert!(reasons("one", None)[0].contains("is in the change"));
        for files in [None, Some(&["t1.txt"][..])] {
            assert!(reasons("three", files)[0].contains("is not proven absent"), "{files:?}");
        }
        let blob = repo.entry(ends.1, "t1.txt").unwrap().unwrap().id;
        assert_eq!(repo.blob_at_most(blob, 4).unwrap().unwrap(), b"one\n");
        assert!(repo.blob_at_most(blob, 3).unwrap().is_none());
        assert!(repo.patch(ends.0, blob, 9).is_err() && repo.blob_at_most(blob.null_like(), 9).is_err());
    }

    #[test]
    fn a_pattern_that_runs_away_fails_by_its_name() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "x".repeat(5000).as_str())]);
        let guards = judged(&bench, &patterns(vec![forbidden(r"(x+x+)+\1y", Severity::Disqualifier, None)]));
        assert_eq!(passed(&guards, "forbidden_patterns"), [guards.reasons.is_empty()]);
        assert!(guards.reasons.iter().all(|reason| reason.contains("forbidden_patterns/0")), "{:?}", guards.reasons);
    }

    #[test]
    fn a_diff_falls_apart_at_its_headers_only() {
        let text = "diff --git a/x b/x\n+diff --git a/y b/y\n diff --git\ndiff --git a/z b/z\n+1\n";
        let parts: Vec<&str> = file_parts(text).collect();
        assert_eq!(parts, ["diff --git a/x b/x\n+diff --git a/y b/y\n diff --git\n", "diff --git a/z b/z\n+1\n"]);
        assert_eq!(parts.concat(), text);
        assert_eq!(file_parts("").count(), 0);
    }
}

//! Whole packages: the valid ones, however odd, and every fault with its file.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const META: &str = "docs/specs/inv/meta.md";
const SPEC: &str = "docs/specs/inv/t1/spec.md";
const EXPECTED: &str = "docs/specs/inv/t1/spec.expected.json";
const SENTINEL: &str = "<!-- devlyn:verification -->";

/// A valid package of two tasks, in memory; each test changes one thing in it.
#[derive(Clone)]
struct Files(BTreeMap<String, FileState>);

impl Source for Files {
    fn file(&self, path: &str) -> FileState {
        self.0.get(path).cloned().unwrap_or(FileState::Missing)
    }
    fn is_commit(&self, id: &str) -> bool {
        id == "1".repeat(40)
    }
}

fn manifest() -> Value {
    json!({
        "schema_version": 1, "loop_id": "inv", "base_ref": "main", "base_sha": "1".repeat(40), "delivery": "local-only",
        "tasks": [
            {"id": "t1", "spec": "t1/spec.md", "depends_on": []},
            {"id": "t2", "spec": "t2/spec.md", "depends_on": ["t1"]},
        ],
        "integration_task_id": "t2",
    })
}

fn fenced(manifest: &Value) -> String {
    format!("```json\n{}\n```", serde_json::to_string_pretty(manifest).unwrap())
}

fn meta(manifest: &Value) -> String {
    format!(
        "# inv\n\n## Intent\n\nShip it.\n\n## Constraints and exclusions\n\nStandard library only.\n\n## Tasks\n\nIn \
         order.\n\n{}\n\n## Overall acceptance\n\nThe last task.\n\n## Execution policy\n\nAs installed.\n\n## Decisions \
         and assumptions\n\nNone.\n",
        fenced(manifest)
    )
}

fn spec(id: &str, review: &str, requirements: &str) -> String {
    format!(
        "---\nid: {id}\nloop_id: inv\ntitle: Task {id}\nkind: feature\nreview_requirements: [{review}]\n---\n# {id}\n\n\
         ## Context and goal\n\nA task.\n\n## Requirements\n\n{requirements}\n\n## Scope and constraints\n\nThe files.\n\n\
         ## Out of scope\n\nThe rest.\n\n## Prerequisite inputs\n\nNone.\n\n{SENTINEL}\n## Verification\n\nThe commands.\
         \n\n## Deliverable and cleanup\n\nNo residue.\n"
    )
}

fn command() -> Value {
    json!({"argv": ["true"], "contract_refs": ["R1"]})
}

fn with(base: &Value, key: &str, value: &Value) -> Value {
    let mut map = base.as_object().unwrap().clone();
    map.insert(key.to_owned(), value.clone());
    map.into()
}

fn without(base: &Value, key: &str) -> Value {
    let mut map = base.as_object().unwrap().clone();
    map.remove(key);
    map.into()
}

impl Files {
    fn new() -> Self {
        let expected = json!({"verification_commands": [command()]}).to_string();
        let mut files = Self(BTreeMap::new());
        files.put(META, meta(&manifest()));
        files.put(SPEC, spec("t1", "R2", "- R1: One.\n- R2: Two."));
        files.put(EXPECTED, expected.clone());
        files.put("docs/specs/inv/t2/spec.md", spec("t2", "", "- R1: Task t2 does."));
        files.put("docs/specs/inv/t2/spec.expected.json", expected);
        files
    }

    fn put(&mut self, file: &str, text: impl Into<Vec<u8>>) {
        self.0.insert(file.to_owned(), FileState::Bytes(text.into()));
    }

    fn text(&self, file: &str) -> String {
        let FileState::Bytes(bytes) = self.file(file) else { panic!("{file} is no file") };
        String::from_utf8(bytes).unwrap()
    }

    fn edited(mut self, file: &str, old: &str, new: &str) -> Self {
        let text = self.text(file);
        assert!(text.contains(old), "{old:?} is not in {text}");
        self.put(file, text.replacen(old, new, 1));
        self
    }

    fn manifest(mut self, value: &Value) -> Self {
        self.put(META, meta(value));
        self
    }

    fn expected(mut self, value: &Value) -> Self {
        self.put(EXPECTED, value.to_string());
        self
    }

    fn command(self, value: &Value) -> Self {
        self.expected(&json!({"verification_commands": [value]}))
    }

    fn parse(&self) -> Result<Package, Vec<Fault>> {
        Package::parse(&LoopId::new("inv").unwrap(), self)
    }

    fn faults(&self) -> Vec<Fault> {
        self.parse().expect_err("the package is refused")
    }

    /// The first fault is in `file` and says each of `words`; every fault has help and a place in its file.
    fn refused(&self, file: &str, words: &[&str]) {
        let faults = self.faults();
        let reason = faults[0].to_string();
        assert!(reason.contains(file), "{file} is not in {reason:?}");
        for word in words {
            assert!(reason.contains(word), "{word} is not in {reason:?}");
        }
        for fault in &faults {
            assert!(!fault.message.contains('\n') && !fault.help.is_empty() && !fault.help.contains('\n'), "{fault:?}");
            if let FileState::Bytes(bytes) = self.file(&fault.file) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let line = text.split('\n').nth(fault.line - 1);
                assert!(line.is_some_and(|line| fault.column <= line.chars().count() + 1), "{fault}");
            }
        }
    }

    fn valid(&self) -> Package {
        self.parse().unwrap_or_else(|faults| panic!("refused: {}", faults[0]))
    }
}

#[test]
fn a_valid_package_is_what_its_files_say() {
    let package = Files::new().valid();
    assert_eq!(package.meta.manifest.delivery, Delivery::LocalOnly);
    assert_eq!((package.meta.intent(), package.meta.constraints()), ("Ship it.", "Standard library only."));
    assert_eq!(package.meta.decisions(), "None.");
    let task = &package.tasks[0];
    assert_eq!((task.contract.title.as_str(), task.contract.kind.as_str()), ("Task t1", "feature"));
    assert_eq!(
        (&task.contract.requirements[..], &task.contract.review_requirements[..]),
        (&["R1".to_owned(), "R2".to_owned()][..], &["R2".to_owned()][..])
    );
    let run = &task.expected.commands[0];
    assert_eq!((&run.words, run.exit_code, run.timeout_sec), (&CommandWords::Argv(vec!["true".into()]), 0, 60));
    assert_eq!(
        package.files,
        [META, SPEC, EXPECTED, "docs/specs/inv/t2/spec.md", "docs/specs/inv/t2/spec.expected.json"]
    );
    let bytes = meta(&manifest()).into_bytes();
    assert_eq!(Manifest::parse_meta(&package.loop_id, &bytes), Ok(package.meta.manifest.clone()));
    assert_eq!(Meta::parse(&package.loop_id, &bytes), Ok(package.meta));
}

#[test]
fn the_decisions_are_told_without_the_manifest() {
    let block = fenced(&manifest());
    let files =
        Files::new().edited(META, &block, "Below.").edited(META, "None.", &format!("D1: small.\n\n{block}\n\nD2."));
    assert_eq!(files.valid().meta.decisions(), "D1: small.\n\n\nD2.");
    let bare = Files::new().edited(META, &block, "Below.").edited(META, "None.", &block);
    assert_eq!(bare.valid().meta.decisions(), "");
}

#[test]
fn a_file_that_is_not_there_or_not_read_is_named() {
    for file in [META, SPEC, EXPECTED] {
        let mut files = Files::new();
        files.0.remove(file);
        files.refused(file, &["1:1: the file is missing"]);
        files.0.insert(file.to_owned(), FileState::Unreadable("is a directory".into()));
        files.refused(file, &["1:1: this is a directory"]);
        files
            .put(file, Files::new().text(file).replacen("t", "\u{e9}", 1).chars().map(|c| c as u8).collect::<Vec<_>>());
        files.refused(file, &["not UTF-8"]);
    }
}

#[test]
fn every_section_is_there_once_with_something_in_it() {
    for file in [META, SPEC] {
        let text = Files::new().text(file);
        for heading in text.lines().filter(|line| line.starts_with("## ")) {
            let line = format!("\n{heading}\n");
            Files::new().edited(file, &line, "\n## Something else\n").refused(file, &[heading]);
            Files::new().edited(file, &line, &format!("\n#{heading}\n")).refused(file, &[heading]);
            Files::new().edited(file, &line, &format!("\n```\n{heading}\n```\n")).refused(file, &[heading]);
            let mut twice = Files::new();
            twice.put(file, format!("{text}\n{heading}\n\nAgain.\n"));
            twice.refused(file, &[heading]);
            let body = text.split_once(&line).unwrap().1;
            let body = &body
                [..["\n<!--", "\n## "].iter().filter_map(|end| body.find(end)).min().map_or(body.len(), |end| end + 1)];
            if !body.contains("```") && heading != "## Prerequisite inputs" {
                Files::new()
                    .edited(file, &format!("{line}{body}"), &format!("{line}\n  \t\n\n"))
                    .refused(file, &[heading]);
            }
        }
    }
}

#[test]
fn the_manifest_is_one_strict_json_object() {
    let block = fenced(&manifest());
    Files::new().edited(META, &block, "See above.").refused(META, &["no manifest"]);
    Files::new().edited(META, "## Execution", "```json\n{}\n```\n## Execution").refused(META, &["second json block"]);
    Files::new().edited(META, "\"inv\",", "\"inv\"").refused(META, &["not JSON"]);
    Files::new().edited(META, "\"loop_id\"", "\"schema_version\": 1, \"loop_id\"").refused(META, &["schema_version"]);
    Files::new().edited(META, &block, "```json\n[]\n```").refused(META, &["not an object"]);
}

#[test]
fn every_value_of_the_manifest_is_judged() {
    for key in manifest().as_object().unwrap().keys() {
        Files::new().manifest(&without(&manifest(), key)).refused(META, &[key]);
        Files::new().manifest(&with(&manifest(), key, &Value::Null)).refused(META, &[key]);
    }
    let (f40, one) = ("f".repeat(40), "1".repeat(40));
    for (key, values) in [
        ("status", json!(["active"])),
        ("schema_version", json!([2, 0, "1", true, 1.0])),
        ("loop_id", json!(["stock", "", 1])),
        ("base_ref", json!(["", "a..b", "my branch", "main.lock", "x/", 7])),
        ("base_sha", json!([f40, "1".repeat(12), "main", "F".repeat(40), format!("{one}0"), "", 5])),
        ("delivery", json!(["push", "", "AUTO", 7])),
        ("tasks", json!([[], {}, "t1"])),
        ("integration_task_id", json!(["t1", "t9", "", []])),
    ] {
        for value in values.as_array().unwrap() {
            Files::new().manifest(&with(&manifest(), key, value)).refused(META, &[key]);
        }
    }
    Files::new().manifest(&with(&manifest(), "tasks", &json!(["t1", "t2"]))).refused(META, &["tasks[0]"]);
}

fn entry(index: usize, change: impl Fn(&Value) -> Value) -> Files {
    let mut value = manifest();
    value["tasks"][index] = change(&value["tasks"][index]);
    Files::new().manifest(&value)
}

#[test]
fn every_value_of_a_task_is_judged() {
    for key in ["id", "spec", "depends_on"] {
        entry(0, |task| without(task, key)).refused(META, &[key]);
    }
    entry(0, |task| with(task, "status", &json!("done"))).refused(META, &["status"]);
    for id in [json!("T1"), json!("-t"), json!("t.1"), json!(""), json!("a".repeat(64)), json!(1), Value::Null] {
        entry(0, |task| with(task, "id", &id)).refused(META, &[]);
    }
    for path in [json!("t1/spec.md"), json!("spec.md"), json!("./t2/spec.md"), json!(""), Value::Null] {
        entry(1, |task| with(task, "spec", &path)).refused(META, &["t2"]);
    }
    for names in [json!("t1"), json!({"t1": 1}), Value::Null, json!([1]), json!([["t1"]])] {
        entry(1, |task| with(task, "depends_on", &names)).refused(META, &["depends_on"]);
    }
    entry(1, |task| with(task, "depends_on", &json!(["t1", "t9"]))).refused(META, &["t2", "t9"]);
    entry(1, |task| with(task, "depends_on", &json!(["t1", "inv.t1"]))).refused(META, &["inv.t1"]);
    entry(1, |task| with(task, "depends_on", &json!(["t1", "t1"]))).refused(META, &["twice"]);
    entry(0, |task| with(task, "depends_on", &json!(["t1"]))).refused(META, &["t1"]);
    entry(0, |task| with(task, "depends_on", &json!(["t2"]))).refused(META, &["t1", "t2"]);
    entry(1, |task| with(task, "depends_on", &json!([]))).refused(META, &["integration_task_id"]);
    let mut twice = with(&manifest(), "integration_task_id", &json!("t1"));
    twice["tasks"][1] = json!({"id": "t1", "spec": "t1/spec.md", "depends_on": []});
    Files::new().manifest(&twice).refused(META, &["t1", "twice"]);
}

#[test]
fn a_contract_keeps_its_rules() {
    let text = Files::new().text(SPEC);
    let mut files = Files::new();
    for bad in [text.split_once("---\n").unwrap().1.to_owned(), format!("\n{text}"), text.replace("\n---\n", "\n")] {
        files.put(SPEC, bad);
        files.refused(SPEC, &["frontmatter"]);
    }
    for key in ["id", "loop_id", "title", "kind", "review_requirements"] {
        let line = text.lines().find(|line| line.starts_with(&format!("{key}: "))).unwrap();
        Files::new().edited(SPEC, &format!("{line}\n"), "").refused(SPEC, &[key]);
    }
    for (old, new, word) in [
        ("kind: feature", "kind: feature\nkind: spike", "kind"),
        ("kind: feature", "kind: feature\njust words", "frontmatter"),
        ("kind: feature", "kind: feature\nOwner: someone", "frontmatter"),
        ("kind: feature", "kind: feature\nstatus: planned", "status"),
        ("kind: feature", "kind: feature\npriority: high", "priority"),
        ("kind: feature", "kind: chore", "kind"),
        ("kind: feature", "kind: [feature]", "kind"),
        ("kind: feature", "kind: ", "kind"),
        ("id: t1", "id: t2", "id"),
        ("loop_id: inv", "loop_id: stock", "loop_id"),
        ("title: Task t1", "title: ", "title"),
        ("title: Task t1", "title: \"\"", "title"),
        ("title: Task t1", "title: [core]", "title"),
        ("title: Task t1", "title: a\u{1b}[31m", "title"),
        ("- R1: One.\n- R2: Two.", "It works.\n\n- R0: nothing.\n- X1: nothing.", "no requirement"),
        ("- R2:", "- R1:", "R1"),
        ("- R2: Two.", "- R2:\n- R3: Three.", "R2 says nothing"),
        ("- R2: Two.", "```\n- R2: Two.\n```", "R2"),
        ("[R2]", "[R2, R7]", "R7"),
        ("[R2]", "[R2,]", "\"\""),
        ("[R2]", "R2", "review_requirements"),
        ("<!-- devlyn:verification -->\n", "", SENTINEL),
        (SENTINEL, "<!-- devlyn:verification -->\n", SENTINEL),
        (SENTINEL, "See <!-- devlyn:verification -->", SENTINEL),
        (SENTINEL, "<!-- devlyn:verification --> below", SENTINEL),
        (SENTINEL, "<!-- Devlyn:Verification -->", SENTINEL),
    ] {
        Files::new().edited(SPEC, old, new).refused(SPEC, &[word]);
    }
}

#[test]
fn expected_acceptance_is_a_strict_object_of_known_keys() {
    let mut files = Files::new();
    let good = files.text(EXPECTED);
    for bad in ["", "{", "[]", "null", &format!("{good}{{}}"), "{\"max_deps_added\": NaN}", "{\"a\":1,\"a\":1}"] {
        files.put(EXPECTED, bad);
        files.refused(EXPECTED, &[]);
    }
    for key in ["process_evidence", "required_risk_probe_requirements", "tier_a_waivers", "spec_output_files"] {
        let files = Files::new().expected(&json!({"verification_commands": [command()], key: []}));
        files.refused(EXPECTED, &[key]);
        assert!(files.faults()[0].help.contains("verification_commands"));
    }
    let files = Files::new().expected(&json!({"verification_commands": [command()], "verification_comands": []}));
    files.refused(EXPECTED, &["verification_comands"]);
    assert_eq!(files.faults()[0].help, "write \"verification_commands\"");
}

#[test]
fn commands_keep_their_rules() {
    for value in [json!({}), json!("true"), Value::Null, json!(["true"]), json!([["true"]])] {
        Files::new().expected(&json!({"verification_commands": value})).refused(EXPECTED, &["verification_commands"]);
    }
    Files::new().command(&without(&command(), "argv")).refused(EXPECTED, &["argv", "cmd"]);
    Files::new().command(&with(&command(), "cmd", &json!("true"))).refused(EXPECTED, &["argv", "cmd"]);
    for (key, values) in [
        ("stdout_contain", json!([["ok"]])),
        ("argv", json!([[], "true", ["true", 1], [["true"]], [""], null, ["a", "\u{0}"]])),
        ("exit_code", json!(["0", 1.5, true, null, [0], 1e300])),
        ("timeout_sec", json!([0, -1, 601, 2.5, "60", true, null])),
        ("stdout_contains", json!(["ok", [1], [""], null, {"ok": 1}])),
        ("stdout_not_contains", json!(["ok", [1], [""], null])),
        ("contract_refs", json!([[], null, "R1", ["R9"], ["R1", "R9"], ["inv.R1"], [1]])),
    ] {
        for value in values.as_array().unwrap() {
            Files::new().command(&with(&command(), key, value)).refused(EXPECTED, &[key]);
        }
    }
    for value in [json!(""), json!("  "), json!(["true"]), json!(1), Value::Null, json!("a\u{0}")] {
        Files::new().command(&json!({"cmd": value, "contract_refs": ["R1"]})).refused(EXPECTED, &["cmd"]);
    }
    Files::new().command(&without(&command(), "contract_refs")).refused(EXPECTED, &["contract_refs"]);
}

#[test]
fn every_requirement_has_evidence() {
    let files = Files::new().edited(SPEC, "[R2]", "[]");
    files.refused("t1/spec.expected.json", &["R2"]);
    let fault = &files.faults()[0];
    assert_eq!((fault.file.as_str(), fault.column), (SPEC, 1));
    assert_eq!(files.text(SPEC).lines().nth(fault.line - 1), Some("- R2: Two."));

    let reviewed = || Files::new().edited(SPEC, "[R2]", "[R1, R2]");
    for value in [json!({}), json!({"verification_commands": []}), json!({"pure_design": false})] {
        reviewed().expected(&value).refused(EXPECTED, &["verification_commands"]);
    }
    reviewed()
        .expected(&json!({"pure_design": true, "verification_commands": [command()]}))
        .refused(EXPECTED, &["pure_design"]);
    reviewed().expected(&json!({"pure_design": true})).valid();
    reviewed().expected(&json!({"pure_design": true, "verification_commands": []})).valid();
    Files::new().expected(&json!({"pure_design": true})).refused("t1/spec.expected.json", &["R1", "pure_design"]);
}

#[test]
fn guards_keep_their_rules() {
    for (key, values) in [
        ("pure_design", json!(["true", 1, null])),
        ("required_files", json!(["a.txt", [1], [""], null])),
        ("forbidden_files", json!(["a.txt", [1], [""], null])),
        ("max_deps_added", json!([-1, 1.5, "1", true, null])),
        ("forbidden_patterns", json!(["TODO", {"pattern": "TODO"}, ["TODO"], null])),
    ] {
        for value in values.as_array().unwrap() {
            Files::new().expected(&json!({"verification_commands": [command()], key: value})).refused(EXPECTED, &[key]);
        }
    }
    let pattern = json!({"pattern": "TODO", "description": "No TODO", "severity": "warning"});
    let guarded = |pattern: &Value| {
        Files::new().expected(&json!({"verification_commands": [command()], "forbidden_patterns": [pattern]}))
    };
    for key in ["pattern", "description", "severity"] {
        guarded(&without(&pattern, key)).refused(EXPECTED, &[key]);
        for value in [json!(""), json!(1), Value::Null] {
            guarded(&with(&pattern, key, &value)).refused(EXPECTED, &[key]);
        }
    }
    for (key, value) in [
        ("flags", json!("i")),
        ("severity", json!("error")),
        ("files", json!("src")),
        ("files", json!([1])),
        ("files", json!([""])),
        ("files", Value::Null),
    ] {
        guarded(&with(&pattern, key, &value)).refused(EXPECTED, &[key]);
    }
    for source in ["(", "[a", "a{2,1}", r"\1(a)", "(?P<n>a)(?P<n>b)"] {
        guarded(&with(&pattern, "pattern", &json!(source))).refused(EXPECTED, &["forbidden_patterns"]);
    }
    for source in [r"(?<!un)safe", r"(\w+) \1", r"(?P<w>\w+) (?P=w)", r"(?m)^\+.*$", "(?s:a.b)"] {
        guarded(&with(&pattern, "pattern", &json!(source))).valid();
    }
}

#[test]
fn what_only_looks_odd_is_valid() {
    let block = "```\n## Intent\n## Tasks\n```";
    Files::new().edited(META, "Ship it.", block).valid();
    Files::new().edited(SPEC, "A task.", "```markdown\n## Requirements\n- R9: x\n## Verification\n```").valid();
    for title in ["A: b", "Parser [core] 분석기", r"C:\temp [x]", "- [ ] a row", "\"[core] Parser\""] {
        Files::new().edited(SPEC, "Task t1", title).valid();
    }
    Files::new().edited(SPEC, "[R2]", "[\"R2\", 'R1' ]").valid();
    Files::new().edited(SPEC, "kind: feature", "kind: spike\ncomplexity: high").valid();
    Files::new().edited(SPEC, "- R2: Two.", "* R2:\n  two\n- R40: Forty.").edited(SPEC, "[R2]", "[R2, R40]").valid();
    for value in ["release/1.0", "주요", "feature.x"] {
        Files::new().manifest(&with(&manifest(), "base_ref", &json!(value))).valid();
    }
    let commands = json!([
        {"argv": ["true", ""], "exit_code": 3, "timeout_sec": 1, "stdout_contains": ["안녕"], "contract_refs": ["R1", "R2"]},
        {"cmd": "exit 0", "timeout_sec": 600, "stdout_not_contains": [], "contract_refs": ["R1"]},
    ]);
    let pattern = json!({"pattern": ".", "description": "No change", "severity": "disqualifier", "files": ["src/"]});
    let package = Files::new()
        .expected(&json!({
            "verification_commands": commands, "forbidden_patterns": [pattern], "required_files": ["a b.txt"],
            "forbidden_files": ["package.json"], "max_deps_added": 3, "pure_design": false,
        }))
        .valid();
    let expected = &package.tasks[0].expected;
    assert_eq!(expected.commands[1].words, CommandWords::Shell("exit 0".into()));
    assert_eq!((expected.max_deps_added, expected.required_files.len()), (3, 1));
    assert_eq!(expected.forbidden_patterns[0].files.as_deref(), Some(&["src/".to_owned()][..]));
}

#[test]
fn line_endings_change_neither_values_nor_places() {
    let crlf = |mut files: Files| {
        for file in files.0.clone().into_keys() {
            let text = files.text(&file).replace('\n', "\r\n");
            files.put(&file, text);
        }
        files
    };
    let (plain, windows) = (Files::new().valid(), crlf(Files::new()).valid());
    assert_eq!((plain.meta, &plain.tasks[0].contract), (windows.meta, &windows.tasks[0].contract));
    let broken =
        Files::new().edited(SPEC, "kind: feature", "kind: chore\nstatus: planned").edited(META, "local-only", "push");
    assert_eq!(broken.faults(), crlf(broken.clone()).faults());
}

#[test]
fn all_faults_come_at_once_in_the_order_of_the_files() {
    let files = Files::new()
        .manifest(&with(&manifest(), "delivery", &json!("push")))
        .edited(META, "None.", "None.\n\n## Intent\n\nAgain.")
        .edited(SPEC, "kind: feature", "kind: chore")
        .command(&with(&command(), "timeout_sec", &json!(601)))
        .edited("docs/specs/inv/t2/spec.md", "- R1:", "- R1: One.\n- R1:");
    let found: Vec<String> = files.faults().iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        [
            "docs/specs/inv/meta.md:19:15: unknown delivery \"push\"",
            "docs/specs/inv/meta.md:52:1: the section \"## Intent\" is there twice",
            "docs/specs/inv/t1/spec.md:5:7: unknown kind \"chore\"",
            "docs/specs/inv/t1/spec.expected.json:1:81: timeout_sec is 601, not a whole number from 1 to 600",
            "docs/specs/inv/t2/spec.md:17:1: the requirement R1 is there twice",
        ]
    );
    let mut manifest = with(&with(&manifest(), "base_ref", &json!("a..b")), "delivery", &json!("push"));
    manifest["tasks"][1]["spec"] = json!("two/spec.md");
    manifest["schema_version"] = json!(2);
    assert_eq!(Files::new().manifest(&manifest).faults().len(), 4);
    let commands = json!([with(&command(), "timeout_sec", &json!(0)), with(&command(), "exit_code", &json!("zero"))]);
    let pattern = json!({"pattern": "(", "description": "Broken", "severity": "warning"});
    let many = json!({"verification_commands": commands, "forbidden_patterns": [pattern], "max_deps_added": -1, "process_evidence": []});
    assert_eq!(Files::new().expected(&many).faults().len(), 5);
    let contract = Files::new()
        .edited(SPEC, "kind: feature", "kind: chore\nstatus: planned")
        .edited(SPEC, "[R2]", "[R2, R7]")
        .edited(SPEC, "No residue.", "No residue.\n\n## Out of scope\n\nMore.");
    assert_eq!(contract.faults().len(), 4);
}

#[test]
fn a_broken_manifest_does_not_hide_its_tasks() {
    let mut broken = manifest();
    broken["tasks"][0] = json!("t1");
    let files = Files::new().manifest(&broken).edited("docs/specs/inv/t2/spec.md", "kind: feature", "kind: chore");
    let found: Vec<String> = files.faults().iter().map(|fault| fault.file.clone()).collect();
    assert_eq!(found, [META, "docs/specs/inv/t2/spec.md"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Any one file cut, doubled or scrambled: faults or none, with places in the text, and no panic.
    #[test]
    fn nothing_that_is_read_panics(
        index in 0usize..5, cut in 0usize..900, length in 0usize..60, piece in "(## Intent|```json|---|\\[|\\{|\"|\r|\u{e9}|\\PC|\n){0,6}",
    ) {
        let mut files = Files::new();
        let file = files.0.keys().nth(index).unwrap().clone();
        let mut bytes = files.text(&file).into_bytes();
        let start = cut.min(bytes.len());
        bytes.splice(start..(start + length).min(bytes.len()), piece.bytes());
        files.put(&file, bytes);
        if files.parse().is_err() {
            files.refused("docs/specs/inv/", &[]);
        }
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let identity = Identity::parse("inv.t1").unwrap();
        prop_assert!(Meta::parse(&identity.loop_id, &bytes).is_err());
        prop_assert!(Manifest::parse_meta(&identity.loop_id, &bytes).is_err());
        prop_assert!(Contract::parse(&identity, &bytes).is_err());
        let contract = Files::new().valid().tasks[0].contract.clone();
        let _ = Expected::parse(&identity, &bytes, &contract);
    }

    /// A package of any size, with any dependencies that point backwards and an end that reaches all.
    #[test]
    fn what_keeps_the_rules_is_valid(
        edges in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..8),
        title in "[^\\p{Cc}\\[\\]\"' ][^\\p{Cc}\\[\\]\"']{0,30}x", text in "[^\\p{Cc}#`]{0,40}",
    ) {
        let mut files = Files(BTreeMap::new());
        let last = edges.len() - 1;
        let tasks: Vec<Value> = edges.iter().enumerate().map(|(i, edges)| {
            let mut names: Vec<usize> = if i == last { (0..i).collect() } else {
                edges.iter().filter(|_| i > 0).map(|index| index.index(i)).collect()
            };
            names.sort_unstable();
            names.dedup();
            let names: Vec<String> = names.into_iter().map(|name| format!("t{name}")).collect();
            json!({"id": format!("t{i}"), "spec": format!("t{i}/spec.md"), "depends_on": names})
        }).collect();
        let manifest = with(&manifest(), "integration_task_id", &json!(format!("t{last}")));
        files.put(META, meta(&with(&manifest, "tasks", &json!(tasks))).replace("Ship it.", &format!("Ship {text} it.")));
        for i in 0..edges.len() {
            let contract = spec(&format!("t{i}"), "R3", "- R1: One.\n- R3: Three.").replace(&format!("Task t{i}"), &title);
            files.put(&format!("docs/specs/inv/t{i}/spec.md"), contract);
            files.put(&format!("docs/specs/inv/t{i}/spec.expected.json"), json!({"verification_commands": [command()]}).to_string());
        }
        let package = files.valid();
        prop_assert_eq!(package.tasks.len(), edges.len());
        prop_assert_eq!(package.tasks[0].contract.title.as_str(), title.trim());
    }
}

#[test]
fn a_large_file_is_read_in_time() {
    let many = 30_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..many).map(line).collect::<String>();
    let key = |mut i: usize| {
        let mut key = String::from("k");
        while i > 0 {
            key.push(char::from(b'a' + u8::try_from(i % 26).unwrap()));
            i /= 26;
        }
        key
    };
    let front = lines(&|i| format!("{}: x\n", key(i)));
    let requirements = lines(&|i| format!("- R{}: x\n", i + 1));
    let review = lines(&|i| format!("R{}, ", i + 2));
    let files = Files::new()
        .edited(SPEC, "kind: feature\n", &format!("kind: feature\n{front}"))
        .edited(SPEC, "- R1: One.\n- R2: Two.", &requirements)
        .edited(SPEC, "[R2]", &format!("[{review}R1]"));
    let refs: Vec<String> = (0..many).map(|i| format!("R{}", i + 1)).collect();
    let files = files.command(&with(&command(), "contract_refs", &json!(refs)));
    let ids: Vec<String> = (0..many).map(|i| format!("t{i}")).collect();
    let tasks: Vec<Value> =
        (0..many).map(|i| json!({"id": ids[i], "spec": "x", "depends_on": [ids[(i + 1) % many]]})).collect();
    let manifest = with(&manifest(), "tasks", &json!(tasks));
    assert_eq!(files.manifest(&manifest).faults().iter().filter(|fault| fault.file == META).count(), 1001);
}

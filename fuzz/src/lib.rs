//! What holds of every parser of bytes that a stranger writes, whatever the bytes are. Each function takes any bytes and
//! panics where something does not hold. The fuzz targets look for such bytes; the tests of the program hold the corpus
//! to it, so that it needs no fuzzer to be checked.

use std::collections::HashSet;
use std::fmt::Debug;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use git_devlyn::exchange::{AcceptanceDocument, Attempt, Binding, Checked, Packet, Review, Submission, last_attempt};
use git_devlyn::forge::{Slug, read_repository, read_request, read_requests};
use git_devlyn::git::{Worktree, parse_worktrees, status_path};
use git_devlyn::json::{self, Value};
use git_devlyn::package::{CommandWords, Contract, Expected, Fault, Identity, Manifest, Meta, Pattern, PatternError};
use git_devlyn::queue::{
    Failure, Line, Mark, QueueFile, Row, parse_legacy, parse_line, squeezed, transition, with_mark,
};
use git_devlyn::store::{Receipt, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Asserts what holds of any bytes.
pub type Holds = fn(&[u8]);

/// Every target: its name, which is that of its corpus, and what holds.
pub const ALL: [(&str, Holds); 13] = [
    ("meta", meta),
    ("contract", contract),
    ("expected", expected),
    ("pattern", pattern),
    ("queue", queue),
    ("receipt", receipt),
    ("packet", packet),
    ("submission", submission),
    ("review", review),
    ("executions", executions),
    ("worktrees", worktrees),
    ("host", host),
    ("json", json),
];

/// The task whose files the bytes are.
static TASK: LazyLock<Identity> = LazyLock::new(|| Identity::parse("greet.t01").expect("an identity"));

/// More characters than a reason or a complaint of a single thing has.
const LONGEST: usize = 1000;

/// Faults are placed in their file, say what to do, and stand in the order of their places.
fn hold_faults(faults: &[Fault], file: &str, bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for fault in faults {
        assert_eq!(fault.file, file);
        let line = fault.line.checked_sub(1).and_then(|line| lines.get(line)).expect("a line of the file");
        let characters = line.iter().filter(|byte| !matches!(byte, 0x80..0xc0)).count();
        assert!((1..=characters + 1).contains(&fault.column), "{fault}: column {}", fault.column);
        assert!(!fault.message.is_empty() && !fault.help.is_empty(), "{fault}");
        assert!(!fault.message.contains('\n') && !fault.help.contains('\n'), "{fault}");
    }
    assert!(faults.is_sorted_by_key(|fault| (fault.line, fault.column)));
}

/// A complaint is there, on one line, and not as long as what it complains of may be.
fn hold_complaint(why: &str, longest: usize) {
    assert!(!why.trim().is_empty());
    assert!(!why.contains('\n'), "{why:?}");
    assert!(why.chars().count() <= longest, "{} characters: {why}", why.chars().count());
}

/// What is written of a value is read as the same value.
fn hold_state<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) {
    let read = |bytes: &[u8]| -> Option<T> { serde_json::from_value(json::parse_object(bytes).ok()?.into()).ok() };
    let Some(value) = read(bytes) else { return };
    let written = json::to_state(&value).expect("every state can be written");
    assert_eq!(read(&written).as_ref(), Some(&value));
}

/// `meta.md`: its manifest is the same for both readers, and in an order in which it can be worked.
pub fn meta(bytes: &[u8]) {
    let loop_id = &TASK.loop_id;
    let manifest = Manifest::parse_meta(loop_id, bytes);
    if let Err(fault) = &manifest {
        hold_faults(std::slice::from_ref(fault), &loop_id.meta_file(), bytes);
    }
    match Meta::parse(loop_id, bytes) {
        Ok(meta) => {
            let tasks = &meta.manifest.tasks;
            for (at, task) in tasks.iter().enumerate() {
                let before = &tasks[..at];
                assert!(before.iter().all(|other| other.id != task.id));
                assert!(task.depends_on.iter().all(|id| before.iter().any(|other| other.id == *id)));
            }
            assert_eq!(tasks.last().map(|task| &task.id), Some(&meta.manifest.integration_task_id));
            assert_eq!(manifest, Ok(meta.manifest));
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            hold_faults(&faults, &loop_id.meta_file(), bytes);
        }
    }
}

/// `spec.md`: what is reviewed is required, and the title fits on a row.
pub fn contract(bytes: &[u8]) {
    match Contract::parse(&TASK, bytes) {
        Ok(contract) => {
            assert!(!contract.requirements.is_empty());
            assert!(contract.review_requirements.iter().all(|id| contract.requirements.contains(id)));
            let row = Row::pending(TASK.clone(), contract.title);
            assert_eq!(parse_line(&row.to_string()), Some(Line::Loop(row)));
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            hold_faults(&faults, &TASK.spec_file(), bytes);
        }
    }
}

/// The contract that an expected acceptance is held against.
const CONTRACT: &str = include_str!("../../examples/quickstart/docs/specs/greet/t01/spec.md");

/// `spec.expected.json`: every requirement has evidence, and it is read as strictly as any other JSON.
pub fn expected(bytes: &[u8]) {
    static JUDGED: LazyLock<Contract> =
        LazyLock::new(|| Contract::parse(&TASK, CONTRACT.as_bytes()).expect("a contract without a fault"));
    let strict = json::parse(bytes).is_ok();
    match Expected::parse(&TASK, bytes, &JUDGED) {
        Ok(expected) => {
            assert!(strict);
            assert_eq!(expected.commands.is_empty(), expected.pure_design);
            for command in &expected.commands {
                assert!((1..=600).contains(&command.timeout_sec));
                assert!(match &command.words {
                    CommandWords::Argv(words) => {
                        words.first().is_some_and(|program| !program.is_empty())
                            && words.iter().all(|word| !word.contains('\0'))
                    }
                    CommandWords::Shell(line) => !line.trim().is_empty() && !line.contains('\0'),
                });
            }
            let evidence: HashSet<&String> =
                expected.commands.iter().flat_map(|command| &command.contract_refs).collect();
            for id in &JUDGED.requirements {
                assert!(evidence.contains(id) || JUDGED.review_requirements.contains(id));
            }
            for forbidden in &expected.forbidden_patterns {
                hold_search(&forbidden.pattern, CONTRACT);
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            assert!(!strict || faults.iter().all(|fault| !fault.message.starts_with("not JSON")));
            let own = faults.iter().position(|fault| fault.file == TASK.expected_file()).unwrap_or(faults.len());
            hold_faults(&faults[..own], &TASK.spec_file(), CONTRACT.as_bytes());
            hold_faults(&faults[own..], &TASK.expected_file(), bytes);
        }
    }
}

/// A forbidden pattern, and behind an empty line the text that is searched.
pub fn pattern(bytes: &[u8]) {
    let Ok(whole) = std::str::from_utf8(bytes) else { return };
    let (source, text) = whole.split_once("\n\n").unwrap_or((whole, whole));
    match Pattern::compile(source) {
        Ok(pattern) => hold_search(&pattern, text),
        Err(PatternError::Invalid { offset, message }) => {
            assert!(offset <= source.chars().count(), "{offset}: {message}");
            hold_complaint(&message, LONGEST);
        }
        Err(ran_away @ PatternError::RanAway(_)) => panic!("{ran_away}, and nothing was searched"),
    }
}

/// Whichever engine searches, it finds the same: nothing stands behind the pattern, so to match it whole and for good
/// changes nothing but that the engine for what is not regular takes it.
fn hold_search(pattern: &Pattern, text: &str) {
    let Ok(found) = pattern.search(text) else { return };
    // Flags for the whole pattern may stand at its beginning only.
    let Ok(other) = Pattern::compile(&format!("(?>{})", pattern.as_str())) else { return };
    if let Ok(other) = other.search(text) {
        assert_eq!(found, other, "{pattern:?} in {text:?}");
    }
}

/// A queue file, or two with a NUL between them: what is written is read, and a mark is the one legal transition.
pub fn queue(bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    match QueueFile::parse(&TASK.loop_id, bytes) {
        Ok(Some(file)) => {
            let written = file.to_bytes();
            let again = QueueFile::parse(&TASK.loop_id, &written).ok().flatten().expect("what was written");
            assert_eq!(again.claim, file.claim);
            let plain = |row: &Row| (row.identity.clone(), row.title.clone(), row.mark);
            assert!(again.rows.iter().map(plain).eq(file.rows.iter().map(plain)));
            assert_eq!(again.to_bytes(), written);
            for row in file.rows.iter().filter(|row| row.mark == Mark::Pending).take(3) {
                hold_mark(bytes, row, None);
                let reason = format!("failed: {}", row.title);
                hold_mark(bytes, row, Some(&Failure { reason, receipt: Some("0123456789abcdef01234567".to_owned()) }));
            }
        }
        Ok(None) => {}
        Err(fault) => assert!((1..=lines).contains(&fault.line), "{fault}"),
    }
    match parse_legacy(bytes) {
        Ok(rows) => {
            let mut seen = HashSet::new();
            for row in &rows {
                assert!((1..=lines).contains(&row.line) && row.claim.occurrence > 0);
                assert!(seen.insert(&row.claim), "{:?} names two rows", row.claim);
            }
        }
        Err(fault) => assert!((1..=lines).contains(&fault.line), "{fault}"),
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let (old, new) = (&bytes[..at], &bytes[at + 1..]);
        if let (Ok(change), Ok(Some(_))) = (transition(old, new), QueueFile::parse(&TASK.loop_id, old)) {
            assert_eq!(with_mark(old, &change.identity, change.failure.as_ref()).as_deref(), Some(new));
        }
    }
}

/// A pending row is settled as asked, once, and nothing but the mark is seen to have changed.
fn hold_mark(bytes: &[u8], row: &Row, failure: Option<&Failure>) {
    let after = with_mark(bytes, &row.identity, failure).expect("a pending row");
    let change = transition(bytes, &after).expect("the legal transition");
    assert_eq!(change.identity, row.identity);
    assert_eq!(change.failure.map(|found| found.reason), failure.map(|wanted| squeezed(&wanted.reason)));
    let file = QueueFile::parse(&TASK.loop_id, &after).ok().flatten().expect("still the loop's queue file");
    let mark = file.row(&row.identity).expect("the row").mark;
    assert_eq!(mark, if failure.is_some() { Mark::Failed } else { Mark::Accepted });
    assert_eq!(with_mark(&after, &row.identity, failure), None);
    assert!(transition(&after, bytes).is_err());
}

/// A receipt, or the record of a loop.
pub fn receipt(bytes: &[u8]) {
    hold_state::<Receipt>(bytes);
    hold_state::<Record>(bytes);
}

/// A packet.
pub fn packet(bytes: &[u8]) {
    hold_state::<Packet>(bytes);
}

/// A submission: whatever is wrong with it becomes short reasons, and whatever it gives up for fits on a row.
pub fn submission(bytes: &[u8]) {
    match Submission::parse(&TASK, bytes) {
        Ok(submission) => {
            assert!(!submission.source_sha.trim().is_empty());
            for blocker in submission.blockers.iter().take(20) {
                let failure = Failure { reason: squeezed(&blocker.reason()), receipt: None };
                let row = Row { mark: Mark::Failed, failure: Some(failure), ..Row::pending(TASK.clone(), "Title") };
                assert_eq!(parse_line(&row.to_string()), Some(Line::Loop(row)));
            }
        }
        Err(reasons) => {
            assert!((1..=21).contains(&reasons.len()));
            for reason in reasons {
                assert!(reason.starts_with("failed: submission "), "{reason}");
                hold_complaint(&reason, LONGEST);
            }
        }
    }
}

/// A review record, or the result of a runner.
pub fn review(bytes: &[u8]) {
    match Review::parse(bytes) {
        Ok(review) => {
            let binding = Binding {
                task: &TASK,
                source_sha: "a",
                contract_sha256: "b",
                expected_sha256: "c",
                requirements: &["R1".to_owned()],
            };
            if let Err(why) = review.standing(&binding) {
                hold_complaint(&why, LONGEST);
            }
            assert!(review.open_binding_findings().len() <= review.findings.len());
        }
        Err(why) => hold_complaint(&why, 21 * LONGEST),
    }
    match Checked::parse_result(bytes) {
        Ok(result) => {
            let written = json::to_state(&result).expect("every result can be written");
            assert_eq!(Checked::parse_result(&written).as_ref(), Ok(&result));
            let document = AcceptanceDocument::new(result.clone(), (Vec::new(), Vec::new()), Vec::new(), Vec::new());
            let document = json::parse_object(&json::to_state(&document).expect("so can its acceptance"));
            let verdict = if result.reasons.is_empty() { "ACCEPTED" } else { "FAILED" };
            assert_eq!(document.expect("an object")["verdict"], verdict);
        }
        Err(why) => hold_complaint(&why, LONGEST),
    }
}

/// A log of executions: whatever stands in it, what is added to it counts, and half of an end is none.
pub fn executions(bytes: &[u8]) {
    let log = String::from_utf8_lossy(bytes);
    let _ = last_attempt(&log);
    let line = if log.is_empty() || log.ends_with('\n') { "" } else { "\n" };
    let started = format!("{log}{line}2026-01-02T03:04:05.000000+00:00 start\n");
    assert_eq!(last_attempt(&started), Attempt::Open);
    let ended = format!("{started}2026-01-02T03:04:06.000000+00:00 exit 0 (pid 7)\n");
    assert_eq!(last_attempt(&ended), Attempt::Ended("exit 0 (pid 7)".to_owned()));
    for end in started.len()..ended.len() {
        assert_eq!(last_attempt(&ended[..end]), Attempt::Open);
    }
}

/// What `git` says of worktrees: what is understood of it is understood again, and a path is the end of its field.
pub fn worktrees(bytes: &[u8]) {
    let found = parse_worktrees(bytes);
    assert_eq!(parse_worktrees(&found.iter().flat_map(listed).collect::<Vec<u8>>()), found);
    for field in bytes.split(|byte| *byte == 0) {
        if let Some(path) = status_path(field) {
            assert!(field.ends_with(&path));
        }
    }
}

/// The worktree as `git worktree list --porcelain -z` has it.
fn listed(worktree: &Worktree) -> Vec<u8> {
    let mut fields = vec![[b"worktree ", worktree.path.as_os_str().as_bytes()].concat()];
    fields.extend(worktree.bare.then(|| b"bare".to_vec()));
    fields.extend(worktree.branch.as_ref().map(|branch| format!("branch {branch}").into_bytes()));
    fields.extend(worktree.locked.as_ref().map(|why| format!("locked {why}").into_bytes()));
    fields.push(Vec::new());
    fields.into_iter().flat_map(|field| [field, vec![0]].concat()).collect()
}

/// What a host answers: a request is one of the repository that was asked, whichever way it was asked for.
pub fn host(bytes: &[u8]) {
    static SLUG: LazyLock<Slug> = LazyLock::new(|| Slug::parse("test/project").expect("a slug"));
    if let Err(why) = read_repository(&SLUG, bytes) {
        assert!(!why.is_empty());
    }
    match read_request(&SLUG, bytes) {
        Ok(request) => {
            let address = request.url.to_ascii_lowercase();
            assert_eq!(address, format!("https://github.com/test/project/pull/{}", request.number));
            let raw = json::to_line(&request.raw).expect("what was read can be written");
            assert_eq!(read_request(&SLUG, raw.as_bytes()).ok().as_ref(), Some(&request));
            // A list is one level deeper, which may be one too many.
            if let Ok(requests) = read_requests(&SLUG, &[b"[", bytes, b"]"].concat()) {
                assert_eq!(requests, [request]);
            }
        }
        Err(why) => assert!(!why.is_empty()),
    }
    if let Ok(requests) = read_requests(&SLUG, bytes) {
        assert!(requests.iter().all(|request| request.number > 0));
    }
}

/// Strict JSON: what is read is what everybody else reads, and what is refused is refused for its place.
pub fn json(bytes: &[u8]) {
    let other = serde_json::from_slice::<Value>(bytes);
    match json::parse(bytes) {
        Ok(value) => {
            assert_eq!(other.ok().as_ref(), Some(&value));
            let state = json::to_state(&value).expect("a value can be written");
            assert_eq!(json::parse(&state).as_ref(), Ok(&value));
            let line = json::to_line(&value).expect("a value can be written");
            assert!(!line.contains('\n'));
            assert_eq!(json::parse(line.as_bytes()).as_ref(), Ok(&value));
        }
        Err(error) => {
            hold_complaint(&error.message, LONGEST);
            let line = bytes.split(|byte| *byte == b'\n').nth(error.line - 1).expect("a line of the text");
            assert!((1..=line.len() + 1).contains(&error.column), "{error}");
            assert!(other.is_err() || error.message.ends_with("is given twice"), "{error}");
        }
    }
}

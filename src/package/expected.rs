//! `spec.expected.json`: how a machine tells that a task is done.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use super::contract::Obligations;
use super::diagnostics::{Fault, Faults, one_of, quoted};
use super::fields::{flag, texts, whole};
use super::markdown::utf8;
use super::places::{self, Node, Object};
use super::{Contract, Identity, Pattern};

/// A `spec.expected.json` that keeps every rule.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// What to run, in order.
    pub commands: Vec<CommandSpec>,
    /// Literal paths that the candidate must hold.
    pub required_files: Vec<String>,
    /// Literal paths that the task must not touch.
    pub forbidden_files: Vec<String>,
    /// What the task's own diff must not hold.
    pub forbidden_patterns: Vec<ForbiddenPattern>,
    /// How many new names the root `package.json` may list.
    pub max_deps_added: u64,
    /// Whether there is nothing to run and every requirement is reviewed.
    pub pure_design: bool,
}

/// One verification command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// What is run.
    pub words: CommandWords,
    /// The exit status that passes.
    pub exit_code: i64,
    /// The limit, 1 to 600 seconds.
    pub timeout_sec: u64,
    /// Texts that the output must hold.
    pub stdout_contains: Vec<String>,
    /// Texts that the output must not hold.
    pub stdout_not_contains: Vec<String>,
    /// The requirements that the command is evidence for.
    pub contract_refs: Vec<String>,
}

/// How a command is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandWords {
    /// `argv`: a program and its arguments, no shell.
    Argv(Vec<String>),
    /// `cmd`: a line for the shell.
    Shell(String),
}

/// One forbidden pattern.
#[derive(Debug, Clone)]
pub struct ForbiddenPattern {
    /// What is searched for.
    pub pattern: Pattern,
    /// What it means, for a person.
    pub description: String,
    /// What a match does.
    pub severity: Severity,
    /// Where given, only the parts of the diff whose `diff --git` line holds one of these are searched.
    pub files: Option<Vec<String>>,
}

/// What a match of a forbidden pattern does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It blocks acceptance.
    Disqualifier,
    /// It is recorded.
    Warning,
}

const COMMANDS: &str = "verification_commands";
const PATTERNS: &str = "forbidden_patterns";
const KEYS: [&str; 6] = [COMMANDS, "required_files", "forbidden_files", PATTERNS, "max_deps_added", "pure_design"];
const COMMAND_KEYS: [&str; 7] =
    ["argv", "cmd", "exit_code", "timeout_sec", "stdout_contains", "stdout_not_contains", "contract_refs"];
const PATTERN_KEYS: [&str; 4] = ["pattern", "description", "severity", "files"];
/// Keys of an older format, whose meaning must not be lost silently.
const RETIRED: [&str; 4] =
    ["process_evidence", "required_risk_probe_requirements", "tier_a_waivers", "spec_output_files"];

/// The requirements that there are; nothing where they could not be read.
type Known<'a> = Option<&'a BTreeSet<&'a str>>;

impl Expected {
    /// The expected acceptance of `identity` in `bytes`, judged against its contract.
    ///
    /// # Errors
    /// Every fault: first the requirements of the contract that nothing covers, then those of this file, topmost first.
    pub fn parse(identity: &Identity, bytes: &[u8], contract: &Contract) -> Result<Self, Vec<Fault>> {
        let (expected, mut faults, own) = read(identity, bytes, &contract.obligations());
        faults.extend(own);
        expected.ok_or(faults)
    }
}

/// The expected acceptance where it keeps every rule; the faults to report in the contract; the faults of this file.
pub(crate) fn read(
    identity: &Identity,
    bytes: &[u8],
    obligations: &Obligations,
) -> (Option<Expected>, Vec<Fault>, Vec<Fault>) {
    let mut faults = Faults::new(identity.expected_file());
    let root = utf8(bytes, &mut faults).and_then(|text| places::parse(text, 0..text.len(), &mut faults));
    let Some(root) = root else { return (None, Vec::new(), faults.into_sorted(bytes)) };
    let Some(object) = root.object() else {
        faults.push(root.at, format!("this is {}, not an object", root.shown()), "write { … } with its keys");
        return (None, Vec::new(), faults.into_sorted(bytes));
    };
    object.refuse_others(&KEYS, "the expected acceptance", retired, &mut faults);
    let requirements = obligations.requirements.as_ref();
    let known = requirements.map(|all| all.iter().map(|(id, _)| id.as_str()).collect());
    let commands = read_commands(object, known.as_ref(), &mut faults);
    let pure_design = flag(object, "pure_design", &mut faults);
    check_kind(object, commands.as_deref(), pure_design, &mut faults);
    let uncovered = match (&commands, pure_design) {
        (Some(commands), Some(pure)) => uncovered(identity, commands, pure, obligations),
        // Coverage cannot be told from what could not be read.
        _ => Vec::new(),
    };
    let paths = "list literal paths from the repository's root, such as [\"src/a.txt\"]";
    let required_files = texts(object, "required_files", paths, &mut faults);
    let forbidden_files = texts(object, "forbidden_files", paths, &mut faults);
    let forbidden_patterns = read_patterns(object, &mut faults);
    let max_deps_added = whole(object, "max_deps_added", 0, 0..=u64::MAX.into(), "0 up", &mut faults);

    let expected = || {
        Some(Expected {
            commands: commands?,
            required_files: required_files?.unwrap_or_default(),
            forbidden_files: forbidden_files?.unwrap_or_default(),
            forbidden_patterns: forbidden_patterns?,
            max_deps_added: u64::try_from(max_deps_added?).ok()?,
            pure_design: pure_design?,
        })
    };
    let expected = if faults.len() == 0 && uncovered.is_empty() { expected() } else { None };
    (expected, uncovered, faults.into_sorted(bytes))
}

fn retired(key: &str) -> Option<String> {
    RETIRED.contains(&key).then(|| {
        format!(
            "nothing here obeys it: say the same, not less, in {COMMANDS} or in review_requirements of the contract"
        )
    })
}

/// A task has commands or is pure design, never both, never neither.
fn check_kind(object: &Object, commands: Option<&[CommandSpec]>, pure: Option<bool>, faults: &mut Faults) {
    let listed = object.get(COMMANDS);
    let any = listed.is_some_and(|value| value.list().is_none_or(|items| !items.is_empty()));
    if pure == Some(true) && any {
        let at = object.get("pure_design").map_or(object.at, |value| value.at);
        let message = format!("pure_design is true, but there are {COMMANDS}");
        faults.push(at, message, "take the commands out, or pure_design where there is something to run");
    } else if pure == Some(false) && !any && (listed.is_none() || commands.is_some()) {
        let at = listed.map_or(object.at, |value| value.at);
        let message = format!("there is no command in {COMMANDS}");
        let help = "add one that fails on the wrong behaviour, or \"pure_design\": true where there is nothing to run";
        faults.push(at, message, help);
    }
}

/// A fault in the contract for each requirement that has no evidence.
fn uncovered(identity: &Identity, commands: &[CommandSpec], pure: bool, obligations: &Obligations) -> Vec<Fault> {
    let (Some(requirements), Some(review)) = (&obligations.requirements, &obligations.review) else {
        return Vec::new();
    };
    let covered: HashSet<&String> = commands.iter().flat_map(|command| &command.contract_refs).chain(review).collect();
    let file = identity.expected_file();
    requirements
        .iter()
        .filter(|(id, _)| !covered.contains(id))
        .map(|(id, line)| {
            let (message, help) = if pure {
                let message =
                    format!("{id} is not in review_requirements, and pure_design of {file} leaves all to review");
                (message, format!("add {id} to review_requirements"))
            } else {
                let message = format!(
                    "nothing is evidence for {id}: no contract_refs of {file} name it, nor do review_requirements"
                );
                (
                    message,
                    format!("name {id} in the contract_refs of a command that proves it, or in review_requirements"),
                )
            };
            Fault { file: identity.spec_file(), line: *line, column: 1, message, help }
        })
        .collect()
}

/// The commands; nothing where any of them has a fault.
fn read_commands(object: &Object, known: Known<'_>, faults: &mut Faults) -> Option<Vec<CommandSpec>> {
    let Some(value) = object.get(COMMANDS) else { return Some(Vec::new()) };
    let Some(items) = value.list() else {
        let help = "write a list of { \"argv\": […], \"contract_refs\": […] }";
        faults.push(value.at, format!("{COMMANDS} is {}, not a list of commands", value.shown()), help);
        return None;
    };
    let commands: Vec<_> = items
        .iter()
        .enumerate()
        .map(|(i, item)| read_command(&format!("{COMMANDS}[{i}]"), item, known, faults))
        .collect();
    commands.into_iter().collect()
}

fn read_command(name: &str, item: &Node, known: Known<'_>, faults: &mut Faults) -> Option<CommandSpec> {
    let Some(object) = item.object() else {
        let help = "write { \"argv\": […], \"contract_refs\": […] }";
        faults.push(item.at, format!("{name} is {}, not an object", item.shown()), help);
        return None;
    };
    object.refuse_others(&COMMAND_KEYS, name, |_| None, faults);
    let words = read_words(name, object, faults);
    let exit_code =
        whole(object, "exit_code", 0, i64::MIN.into()..=i64::MAX.into(), "the range of an exit status", faults);
    let timeout_sec = whole(object, "timeout_sec", 60, 1..=600, "1 to 600", faults);
    let help = "list texts that are not empty, such as [\"ok\"]";
    let stdout_contains = texts(object, "stdout_contains", help, faults);
    let stdout_not_contains = texts(object, "stdout_not_contains", help, faults);
    let contract_refs = read_refs(name, object, known, faults);
    Some(CommandSpec {
        words: words?,
        exit_code: i64::try_from(exit_code?).ok()?,
        timeout_sec: u64::try_from(timeout_sec?).ok()?,
        stdout_contains: stdout_contains?.unwrap_or_default(),
        stdout_not_contains: stdout_not_contains?.unwrap_or_default(),
        contract_refs: contract_refs?,
    })
}

fn read_words(name: &str, object: &Object, faults: &mut Faults) -> Option<CommandWords> {
    let nul = |at: usize, key: &str, faults: &mut Faults| {
        faults.push(at, format!("{key} holds a NUL character"), "take it out: no program can be given one");
        None
    };
    match (object.get("argv"), object.get("cmd")) {
        (Some(argv), None) => {
            let help = "list the program and each argument as a text, such as [\"make\", \"check\"]";
            let words = argv.list().and_then(|items| items.iter().map(|item| item.text().map(str::to_owned)).collect());
            match words.filter(|words: &Vec<String>| words.first().is_some_and(|program| !program.is_empty())) {
                Some(words) if words.iter().any(|word| word.contains('\0')) => nul(argv.at, "argv", faults),
                Some(words) => Some(CommandWords::Argv(words)),
                None => {
                    let message = format!("argv is {}, not a program with its arguments", argv.shown());
                    faults.push(argv.at, message, help);
                    None
                }
            }
        }
        (None, Some(cmd)) => match cmd.text().filter(|line| !line.trim().is_empty()) {
            Some(line) if line.contains('\0') => nul(cmd.at, "cmd", faults),
            Some(line) => Some(CommandWords::Shell(line.to_owned())),
            None => {
                faults.push(
                    cmd.at,
                    format!("cmd is {}, not a line for the shell", cmd.shown()),
                    "write it as one text",
                );
                None
            }
        },
        (Some(_), Some(cmd)) => {
            faults.push(cmd.at, format!("{name} has both \"argv\" and \"cmd\""), "keep \"argv\": it needs no shell");
            None
        }
        (None, None) => {
            let help = "add \"argv\": [\"program\", \"argument\"]";
            faults.push(object.at, format!("{name} has neither \"argv\" nor \"cmd\""), help);
            None
        }
    }
}

fn read_refs(name: &str, object: &Object, known: Known<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let help = "list the requirements that it is evidence for, such as [\"R1\"]";
    let value = object.required("contract_refs", name, help, faults)?;
    let items = value.list().filter(|items| !items.is_empty());
    let Some(items) = items.filter(|items| items.iter().all(|item| item.text().is_some())) else {
        let message = format!("contract_refs is {}, not a list of requirement ids", value.shown());
        faults.push(value.at, message, help);
        return None;
    };
    let before = faults.len();
    if let Some(known) = known {
        for item in items.iter().filter(|item| item.text().is_none_or(|id| !known.contains(id))) {
            let message = format!("contract_refs names {}, which is no requirement of the contract", item.shown());
            let help = match known.len() {
                0..=9 => format!("write {}", one_of(&known.iter().copied().collect::<Vec<_>>())),
                _ => help.to_owned(),
            };
            faults.push(item.at, message, help);
        }
    }
    let refs = items.iter().filter_map(Node::text).map(str::to_owned).collect();
    (faults.len() == before).then_some(refs)
}

fn read_patterns(object: &Object, faults: &mut Faults) -> Option<Vec<ForbiddenPattern>> {
    let Some(value) = object.get(PATTERNS) else { return Some(Vec::new()) };
    let help = "write a list of { \"pattern\": …, \"description\": …, \"severity\": … }";
    let Some(items) = value.list() else {
        faults.push(value.at, format!("{PATTERNS} is {}, not a list of patterns", value.shown()), help);
        return None;
    };
    let patterns: Vec<_> =
        items.iter().enumerate().map(|(i, item)| read_pattern(&format!("{PATTERNS}[{i}]"), item, faults)).collect();
    patterns.into_iter().collect()
}

fn read_pattern(name: &str, item: &Node, faults: &mut Faults) -> Option<ForbiddenPattern> {
    let Some(object) = item.object() else {
        let help = "write { \"pattern\": …, \"description\": …, \"severity\": … }";
        faults.push(item.at, format!("{name} is {}, not an object", item.shown()), help);
        return None;
    };
    object.refuse_others(&PATTERN_KEYS, name, |_| None, faults);
    let text = |key: &str, help: &str, faults: &mut Faults| {
        let value = object.required(key, name, help, faults)?;
        let text = value.text().filter(|text| !text.is_empty());
        if text.is_none() {
            faults.push(value.at, format!("{key} of {name} is {}, not a text", value.shown()), help);
        }
        text.map(|text| (value.at, text))
    };
    let pattern = text("pattern", "write a regular expression of Python", faults).and_then(|(at, source)| {
        Pattern::compile(source)
            .map_err(|error| {
                let message = format!("{name} does not compile: {error} in {}", quoted(source));
                faults.push(at, message, "mend it: it is a regular expression of Python, searched with re.search");
            })
            .ok()
    });
    let description = text("description", "say what a match means", faults).map(|(_, text)| text.to_owned());
    let severities = one_of(&["disqualifier", "warning"]);
    let severity = text("severity", &format!("write {severities}"), faults).and_then(|(at, word)| match word {
        "disqualifier" => Some(Severity::Disqualifier),
        "warning" => Some(Severity::Warning),
        _ => {
            faults.push(at, format!("unknown severity {}", quoted(word)), format!("write {severities}"));
            None
        }
    });
    let files = texts(object, "files", "list parts of paths, such as [\"src/\"]", faults);
    Some(ForbiddenPattern { pattern: pattern?, description: description?, severity: severity?, files: files? })
}

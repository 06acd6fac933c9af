//! `spec.expected.json`: how a machine tells that a task is done.

use serde::{Deserialize, Serialize};

use super::Pattern;

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

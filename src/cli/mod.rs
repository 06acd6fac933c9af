//! The face: what a person types and sees. It says what the work returned and never how anything is done.

pub mod args;
pub mod faults;
pub mod generate;

mod acceptance;
mod add;
mod check;
mod drain;
mod fsck;
mod hook;
mod init;
mod recover;
mod reply;
mod report;
mod status;
mod task;
mod text;
mod verify;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use self::args::{Cli, Command};
use self::reply::Reply;
use crate::git::{GitError, Repo};

/// Runs the command line and prints what came of it.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Where nobody reads any more there is nobody to tell.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let json = cli.json;
    run(cli).print(json)
}

fn run(cli: Cli) -> Reply {
    match cli.command {
        Command::Check(package) => check::run(&package),
        Command::Add(add) => add::run(&add),
        Command::Status(status) => status::run(&status, cli.json),
        Command::Drain(drain) => drain::run(drain, cli.json),
        Command::Report(report) => report::run(&report),
        Command::Acceptance(acceptance) => acceptance::run(&acceptance),
        Command::Task(task) => task::run(task),
        Command::Fsck(fsck) => fsck::run(&fsck),
        Command::Recover(recover) => recover::run(&recover),
        Command::Init(init) => init::run(&init),
        Command::Hook(hook) => hook::run(&hook),
        Command::Verify(verify) => verify::run(&verify),
        Command::Generate(generate) => match generate::write(generate.what, &generate.dir) {
            Ok(()) => Reply::silent(),
            Err(error) => Reply::blocked(format!("{}: {error}", generate.dir.display())),
        },
    }
}

/// The directory that relative paths are taken from.
fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."))
}

/// The repository at `repo`, else the one around the current directory.
fn repository(repo: Option<&Path>) -> Result<Repo, GitError> {
    match repo {
        Some(repo) => Repo::at(&here().join(repo)),
        None => Repo::from_current_dir(&here()),
    }
}

/// As [`repository`], and it may be bare.
fn any_repository(repo: Option<&Path>) -> Result<Repo, GitError> {
    match repo {
        Some(repo) => Repo::at_any(&here().join(repo)),
        None => Repo::for_hook(&here()),
    }
}

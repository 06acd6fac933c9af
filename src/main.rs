//! The program: parse, run, print, exit status; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    git_devlyn::cli::main(std::env::args_os())
}

//! The program: parse, run, print, exit status; nothing else.

fn main() {}

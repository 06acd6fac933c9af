//! Fuzzes `spec.md`, by what the library asserts of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| git_devlyn_fuzz::contract(bytes));

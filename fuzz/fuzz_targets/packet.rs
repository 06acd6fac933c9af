//! Fuzzes packets, by what the library asserts of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| git_devlyn_fuzz::packet(bytes));

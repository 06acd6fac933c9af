//! One whole loop, from package to brought-in work, in every odd kind of repository that Git makes; and what is refused,
//! with nothing changed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a suite that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a suite starts programs and spoils files as a person would")]

#[path = "../common/mod.rs"]
mod common;

mod odd;
mod refused;

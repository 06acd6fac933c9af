//! The face: what a person types and sees. Never how anything is done.

pub mod args;
pub mod faults;
pub mod generate;

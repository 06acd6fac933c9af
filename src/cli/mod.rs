//! The face: what a person types and sees.

pub mod args;
pub mod generate;

//! The table of patterns.

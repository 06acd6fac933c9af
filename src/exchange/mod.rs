//! What drain and executor say to each other: the packet that goes out, the log of who ran when.
//!
//! Pure: it never opens a file; the clock comes in as text.

mod log;
mod packet;

pub use log::{Attempt, last_attempt};
pub use packet::{Dependency, Named, Packet};

//! Where the work stands: rows, claims, the one legal transition, and the order in which everything is seen.
//!
//! Pure: bytes in, values out; it never reads a file, a reference or a receipt.

mod file;
mod legacy;
mod order;
mod row;

pub use file::{Illegal, QueueFault, QueueFile, Transition, transition, with_mark};
pub use legacy::{Claim, LEGACY_QUEUE, LegacyRow, parse_legacy};
pub use order::{Claimant, Slot, order};
pub use row::{Failure, Line, Mark, Row, parse_line, squeezed};

//! What drain and executor say to each other: the packet that goes out, the log of who ran when, the submission that
//! comes back, the reviews that it lists, and what checking a candidate leaves in writing.
//!
//! Pure: it never opens a file; the clock comes in as text.

mod log;
mod packet;
mod result;
mod review;
mod shape;
mod submission;

pub use log::{Attempt, last_attempt};
pub use packet::{Dependency, EVIDENCE, LOOP_EVIDENCE, Named, Packet};
pub use result::{
    AcceptanceDocument, Checked, Command, CommandRecord, Digests, GuardRecord, IgnoredReview, Kind, Outcome,
    ReviewRecord, Stream,
};
pub use review::{Binding, Disposition, Finding, Review, Standing};
pub use submission::{Blocker, BlockerKind, Submission};

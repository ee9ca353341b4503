//! Members that trade over FIX: an engine, small and of our own.
//!
//! What is measured or killed must be met as members meet it: bytes on a socket, a session with numbers of both ends, gaps that are asked
//! for. The engine keeps no store. What it sent it fills as a gap when asked, and what is unanswered it asks again
//! under the same names with 97=Y.
//!
//! | module | what |
//! |---|---|
//! | `numbers` | the numbers of both ends, and what comes too early |
//! | `messages` | requests as messages |
//! | `engine` | a session on a connection |
//! | `session` | one member, and how it goes on at another gateway |
//! | `told` | the executions that members were told |

mod engine;
mod messages;
mod numbers;
mod session;
mod told;

use std::sync::Arc;

pub(crate) use session::FixSession;
pub use told::FixTold;

/// How members speak FIX.
#[derive(Clone, Debug)]
pub struct FixPlan {
    /// Whom they call: TargetCompID.
    pub target: String,
    /// Keeps what they are told; nobody does without.
    pub told: Option<Arc<FixTold>>,
}

impl Default for FixPlan {
    fn default() -> Self {
        Self { target: "PARES".into(), told: None }
    }
}

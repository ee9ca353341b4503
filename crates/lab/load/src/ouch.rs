//! Members that trade over OUCH: a client, small and of our own.
//!
//! It counts the packets of its stream, and logs in anywhere with the next number. What is unanswered it asks again under the same
//! UserRefNums, which are the load's names of requests. Cancels have none: their answers come in the order in which they were sent.
//!
//! | module | what |
//! |---|---|
//! | `messages` | requests as messages, and what is read of the answers |
//! | `engine` | a session on a connection |

mod engine;
mod messages;

use std::sync::Arc;

use pares_types::MemberId;

use crate::LoadPlan;
use crate::front::FrontTold;

pub(crate) use engine::OuchEngine;

/// How members speak OUCH: each over one session, of one shard.
#[derive(Clone, Debug, Default)]
pub struct OuchPlan {
    /// Keeps what they receive; without it nothing is kept.
    pub told: Option<Arc<FrontTold>>,
}

/// A login to a member's session 1, which receives what comes from now on.
#[must_use]
pub fn ouch_login(member: MemberId, password: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    messages::log_in(&mut bytes, member, password, 0);
    bytes
}

/// A member that calls, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct OuchCaller {
    member: MemberId,
    name: String,
    told: Option<Arc<FrontTold>>,
}

impl OuchCaller {
    /// The member of a plan at that place.
    pub(crate) fn of(plan: &LoadPlan, ouch: &OuchPlan, place: usize) -> Self {
        let member = plan.member(place);
        Self { member, name: format!("member {member}"), told: ouch.told.clone() }
    }
}

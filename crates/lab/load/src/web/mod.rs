//! Members that trade over HTTP, and hear over WebSocket what happens: a client, small and of our own.
//!
//! It signs on at one of the exchange's servers; a token is of that server alone, so at the next one it signs on anew. What is unanswered it asks again there under the same names.
//! Over WebSocket it follows its stream of each shard, and says at the next server which number comes next for it.
//!
//! | module | what |
//! |---|---|
//! | `http` | HTTP, as much of it as is needed |
//! | `words` | requests as they are asked for |
//! | `follower` | the member's streams over WebSocket |
//! | `engine` | a session at a server |
//! | `server` | `pares web` as processes |

mod engine;
mod follower;
mod http;
mod server;
mod words;

use std::sync::Arc;

use pares_types::MemberId;

use crate::LoadPlan;
use crate::front::FrontTold;

pub(crate) use engine::WebEngine;
pub use http::{HttpAnswer, HttpConnection, first_frame, text_frame, text_of};
pub use server::WebProcess;

/// How members speak HTTP; the plan's addresses are servers. They prove nothing.
#[derive(Clone, Debug, Default)]
pub struct WebPlan {
    /// Keeps what they are told; nobody does without.
    pub told: Option<Arc<FrontTold>>,
    /// The shards whose streams they follow over WebSocket; without any they hear answers alone.
    pub follows: Vec<u16>,
}

/// A member that calls, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct WebCaller {
    member: MemberId,
    name: String,
    told: Option<Arc<FrontTold>>,
    follows: Vec<u16>,
}

impl WebCaller {
    /// The member of a plan at that place.
    pub(crate) fn of(plan: &LoadPlan, web: &WebPlan, place: usize) -> Self {
        let member = plan.member(place);
        let (told, follows) = (web.told.clone(), web.follows.clone());
        Self { member, name: format!("member {member}"), told, follows }
    }
}

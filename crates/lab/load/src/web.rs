//! Members that trade over HTTP, and hear over WebSocket what happens: a client, small and of our own.
//!
//! It signs on at one of the exchange's servers; a token is of that server alone, so at the next one it signs on again. What is unanswered it asks
//! again there under the same names. Over WebSocket it follows its stream of each shard, and says at the next server which number comes next for it.
//!
//! | module | what |
//! |---|---|
//! | `http` | HTTP, as much of it as is needed |
//! | `request_bodies` | requests as they are asked for |
//! | `follower` | the member's streams over WebSocket |
//! | `engine` | a session at a server |
//! | `server` | `pares web` as processes |

mod engine;
mod follower;
mod http;
mod request_bodies;
mod server;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pares_types::MemberId;

use crate::LoadPlan;
use crate::front::FrontTold;

pub(crate) use engine::WebEngine;
pub use http::{HttpAnswer, HttpConnection, first_frame, text_frame, text_of};
pub use server::WebProcess;

/// How members speak HTTP; the plan's addresses are servers. They prove nothing.
#[derive(Clone, Debug, Default)]
pub struct WebPlan {
    /// Keeps what they receive; without it nothing is kept.
    pub told: Option<Arc<FrontTold>>,
    /// The shards whose streams they follow over WebSocket; without any they hear answers alone.
    pub follows: Vec<u16>,
    /// Fewer sessions than connections; otherwise each has its own.
    pub sharing: Option<WebSharing>,
}

/// So many members, each of one session, and the tokens of those that have signed on: other connections of theirs need no sign-on.
#[derive(Clone, Debug)]
pub struct WebSharing {
    sessions: u32,
    tokens: Arc<Mutex<BTreeMap<MemberId, String>>>,
}

impl WebSharing {
    /// So many sessions share the connections of a load that meets one server, and loses none of them.
    #[must_use]
    pub fn of(sessions: u32) -> Self {
        Self { sessions, tokens: Arc::default() }
    }
}

/// A member that calls, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct WebCaller {
    member: MemberId,
    name: String,
    told: Option<Arc<FrontTold>>,
    follows: Vec<u16>,
    tokens: Option<Arc<Mutex<BTreeMap<MemberId, String>>>>,
}

impl WebCaller {
    /// The member of a plan at that place.
    pub(crate) fn of(plan: &LoadPlan, web: &WebPlan, place: usize) -> Self {
        let member =
            plan.member(web.sharing.as_ref().map_or(place, |sharing| place % sharing.sessions as usize));
        let tokens = web.sharing.as_ref().map(|sharing| Arc::clone(&sharing.tokens));
        let (told, follows) = (web.told.clone(), web.follows.clone());
        Self { member, name: format!("member {member}"), told, follows, tokens }
    }

    /// The token of its session, if another connection has signed it on.
    fn token(&self) -> Option<String> {
        let tokens = self.tokens.as_ref()?.lock().expect("nobody panics while holding this");
        tokens.get(&self.member).cloned()
    }

    /// Its session is signed on.
    fn share(&self, token: &str) {
        if let Some(tokens) = &self.tokens {
            let mut tokens = tokens.lock().expect("nobody panics while holding this");
            tokens.insert(self.member, token.to_owned());
        }
    }
}

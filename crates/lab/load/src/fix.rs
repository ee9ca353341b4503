//! Members that trade over FIX: an engine, small and of our own.
//!
//! It keeps no store. What it sent it fills as a gap when asked, and what is unanswered it asks again under the same names with 97=Y.
//!
//! | module | what |
//! |---|---|
//! | `numbers` | the numbers of both ends, and what comes too early |
//! | `messages` | requests as messages |
//! | `engine` | a session on a connection |

mod engine;
mod messages;
mod numbers;

use std::net::SocketAddr;
use std::sync::Arc;

use pares_client::{Credential, Secret};
use pares_os::clock::now_ns;
use pares_types::MemberId;

use crate::LoadPlan;
use crate::front::FrontTold;

pub(crate) use engine::FixEngine;
use messages::Ends;

/// How members speak FIX.
#[derive(Clone, Debug)]
pub struct FixPlan {
    /// Whom they call: TargetCompID.
    pub target: String,
    /// Keeps what they receive; without it nothing is kept.
    pub told: Option<Arc<FrontTold>>,
}

impl Default for FixPlan {
    fn default() -> Self {
        Self { target: "PARES".into(), told: None }
    }
}

/// The first Logon of a member's session 1 at the first gateway, by a client that has that secret.
#[must_use]
pub fn fix_logon(member: MemberId, secret: &Secret) -> Vec<u8> {
    let mut bytes = Vec::new();
    let ends = Ends { sender: format!("M{member}-1"), target: FixPlan::default().target };
    ends.log_on(&mut bytes, (1, now_ns()), Some((secret, 0)));
    bytes
}

/// A member that calls, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct FixCaller {
    member: MemberId,
    ends: Ends,
    credential: Option<Credential>,
    /// The gateways' ports, in the order of their numbers.
    addresses: Vec<SocketAddr>,
    told: Option<Arc<FrontTold>>,
}

impl FixCaller {
    /// The member of a plan at that place.
    pub(crate) fn of(plan: &LoadPlan, fix: &FixPlan, place: usize) -> Self {
        let member = plan.member(place);
        let credential = plan.credentials.get(place).cloned();
        let session = credential.as_ref().map_or(1, |credential| credential.session);
        let ends = Ends { sender: format!("M{member}-{session}"), target: fix.target.clone() };
        Self { member, ends, credential, addresses: plan.addresses.clone(), told: fix.told.clone() }
    }

    /// What proves who calls the gateway at that address, and its number.
    fn proof(&self, address: SocketAddr) -> Option<(&Secret, usize)> {
        let gateway = self.addresses.iter().position(|one| *one == address)?;
        Some((&self.credential.as_ref()?.secret, gateway))
    }
}

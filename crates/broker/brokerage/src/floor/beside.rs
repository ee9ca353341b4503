//! Requests that no user's order binds.

use pares_broker::{Asked, BrokerReply};
use pares_wice::codec::Coded as _;

use super::{Floor, now_ms};
use crate::unnumbered;

impl Floor {
    /// Asks the sites something that no user's order binds: about people, or what a supervisor says of a customer. Its number, for [`Self::sites_said`]; none until the front has its own.
    pub(crate) fn ask_sites(&mut self, asked: Asked) -> Option<u64> {
        let request = match asked {
            Asked::Order { .. } => self.front.beside(asked, now_ms())?,
            _ => unnumbered(asked),
        };
        let (id, number) = self.direct.begin();
        self.submit(id, request.to_bytes());
        Some(number)
    }

    /// What sites have said to that since it was asked last.
    pub(crate) fn sites_said(&mut self) -> Vec<(u64, Result<BrokerReply, String>)> {
        std::mem::take(&mut self.said)
    }
}

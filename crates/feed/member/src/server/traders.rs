//! What traders and peers that connected say, and what comes of it.

use std::collections::BTreeMap;

use pares_desk::blocks::StreamCursor;
use pares_desk::frame::{
    self, CutOff, DeskRequest, DeskSignOn, DeskSignedOn, FROM_NOW, PeerHello, PlacedBytes, RefusedBytes,
    WANTS_LOCAL, kind,
};
use pares_desk::item::{ItemName, TraderId};
use pares_desk::transfer::TransferPace;
use pares_roles::World;
use zerocopy::IntoBytes;

use super::MemberServer;
use super::connections::{Transfer, Who};
use crate::world::Dial;

/// Traders whose last end is remembered.
const REMEMBERED_MAX: usize = 4_096;

/// Why traders' last sessions were ended by this server.
#[derive(Debug, Default)]
pub(super) struct CutOffs(BTreeMap<TraderId, CutOff>);

impl CutOffs {
    pub(super) fn note(&mut self, trader: TraderId, cut_off: CutOff) {
        if cut_off == CutOff::None {
            return;
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_first();
        }
        self.0.insert(trader, cut_off);
    }

    fn take(&mut self, trader: TraderId) -> CutOff {
        self.0.remove(&trader).unwrap_or_default()
    }
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// A frame of somebody who connected.
    pub(super) fn on_request(&mut self, slot: usize, kind: u8, payload: &[u8], now_ns: u64) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let who = connection.who.clone();
        match (frame::read_request(kind, payload), who) {
            (Ok(DeskRequest::SignOn(sign_on)), Who::Stranger { .. }) => self.on_sign_on(slot, &sign_on),
            (Ok(DeskRequest::PeerHello(hello)), Who::Stranger { .. }) => self.on_hello(slot, &hello),
            (Ok(DeskRequest::Submit { number, kind, body }), Who::Trader { trader, .. }) => {
                self.on_submit(slot, ItemName { trader, number }, kind, body);
            }
            (Ok(DeskRequest::Ask(next)), Who::Peer { .. }) => {
                let transfer = Some(Transfer { next, pace: TransferPace::new(now_ns) });
                connection.who = Who::Peer { transfer };
            }
            (Ok(DeskRequest::Took(next)), Who::Peer { .. }) => {
                if let Who::Peer { transfer } = &mut connection.who {
                    // One that takes nothing of a chunk has the rest from elsewhere.
                    *transfer = transfer.take().filter(|transfer| transfer.next < next).map(|transfer| {
                        let mut pace = transfer.pace;
                        pace.on_took(now_ns);
                        Transfer { next, pace }
                    });
                }
            }
            _ => connection.end(CutOff::Malformed),
        }
    }

    fn on_sign_on(&mut self, slot: usize, sign_on: &DeskSignOn) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (trader, number) = (TraderId(sign_on.trader.get()), self.keeper.number);
        if trader.0 != 0 && !trader.is_trader() {
            return connection.end(CutOff::Malformed);
        }
        if sign_on.stream.get() != 0 && sign_on.stream.get() != number {
            return connection.end(CutOff::OtherStream);
        }
        let told = self.keeper.told();
        let next = if sign_on.next.get() == FROM_NOW { told.0 } else { sign_on.next.get() };
        let signed_on = DeskSignedOn {
            server: self.server.into(),
            cut_off: self.cut_offs.take(trader) as u8,
            reserved: 0,
            trader: trader.0.into(),
            through: self.keeper.through(trader).into(),
            next: next.into(),
            told: told.0.into(),
            stream: number.into(),
        };
        connection.who = Who::Trader { trader };
        connection.answer(|out| frame::write(out, kind::SIGNED_ON, &[signed_on.as_bytes()]));
        if sign_on.wants.get() & WANTS_LOCAL != 0 {
            connection.buffers.cursor = Some(StreamCursor::new(next));
        }
        self.unsent = true;
    }

    fn on_hello(&mut self, slot: usize, hello: &PeerHello) {
        let (epoch, next) = (self.keeper.epoch(), self.keeper.stream.next());
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if hello.epoch.get() != epoch.0 || hello.stream.get() != self.keeper.number {
            return connection.end(CutOff::OtherEpoch);
        }
        connection.who = Who::Peer { transfer: None };
        connection.answer(|out| frame::write_through(out, kind::HAVE, next));
        self.unsent = true;
    }

    fn on_submit(&mut self, slot: usize, name: ItemName, kind: u8, body: &[u8]) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let submitted = match name.trader.is_trader() {
            true => self.keeper.submit(name, kind, body),
            false => Err(frame::Refusal::Watcher),
        };
        match submitted {
            Ok(None) => {
                self.submitted = true;
                return;
            }
            Ok(Some(stands)) => {
                let (number, position) = (name.number.into(), stands.position().0.into());
                let placed = PlacedBytes { number, position };
                connection.answer(|out| frame::write(out, kind::PLACED, &[placed.as_bytes()]));
            }
            Err(refusal) => {
                let (number, refusal) = (name.number.into(), refusal as u8);
                let refused = RefusedBytes { number, refusal, reserved: [0; 7] };
                connection.answer(|out| frame::write(out, kind::REFUSED, &[refused.as_bytes()]));
            }
        }
        self.unsent = true;
    }
}

//! What traders and peers that connected say, and what comes of it.

use std::collections::VecDeque;

use pares_desk::blocks::StreamCursor;
use pares_desk::frame::{
    self, CutOff, DeskRequest, DeskSignOn, DeskSignedOn, FROM_NOW, PeerHello, PlacedBytes, Refusal,
    RefusedBytes, WANTS_BOOKS, WANTS_LOCAL, kind,
};
use pares_desk::item::{ItemName, TraderId};
use pares_desk::names::SubmissionState;
use pares_desk::transfer::TransferPace;
use pares_roles::World;
use pares_types::Position;
use serde_json::{Value, json};
use zerocopy::IntoBytes;

use super::MemberServer;
use super::connections::{ShownBy, Transfer, Who};
use super::keeper::Taken;
use super::web::write_text;
use crate::world::Dial;

/// How a trader signs on, in whichever form.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignsOn {
    pub(super) trader: TraderId,
    pub(super) wants: u16,
    pub(super) stream: u64,
    pub(super) next: u64,
}

impl From<&DeskSignOn> for SignsOn {
    fn from(sign_on: &DeskSignOn) -> Self {
        let (wants, stream, next) = (sign_on.wants.get(), sign_on.stream.get(), sign_on.next.get());
        Self { trader: TraderId(sign_on.trader.get()), wants, stream, next }
    }
}

/// Traders whose last end is remembered.
const REMEMBERED_MAX: usize = 4_096;

/// Why traders' last sessions were ended by this server.
#[derive(Debug, Default)]
pub(super) struct CutOffs(VecDeque<(TraderId, CutOff)>);

impl CutOffs {
    pub(super) fn note(&mut self, trader: TraderId, cut_off: CutOff) {
        if cut_off == CutOff::None {
            return;
        }
        if self.0.len() >= REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back((trader, cut_off));
    }

    /// The latest of a trader; it is sent once.
    fn take(&mut self, trader: TraderId) -> CutOff {
        let latest = self.0.iter().rev().find(|(of, _)| *of == trader).map(|&(_, cut_off)| cut_off);
        if latest.is_some() {
            self.0.retain(|(of, _)| *of != trader);
        }
        latest.unwrap_or_default()
    }
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// A frame from a new connection.
    pub(super) fn on_request(&mut self, slot: usize, kind: u8, payload: &[u8], now_ns: u64) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let who = connection.who.clone();
        match (frame::read_request(kind, payload), who) {
            (Ok(DeskRequest::SignOn(sign_on)), Who::Stranger { .. }) => {
                self.on_sign_on(slot, SignsOn::from(&sign_on));
            }
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

    /// A trader is there, and receives the stream from where it wants.
    pub(super) fn on_sign_on(&mut self, slot: usize, signs_on: SignsOn) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let SignsOn { trader, wants, stream, next } = signs_on;
        if trader.0 != 0 && !trader.is_trader() {
            return connection.end(CutOff::Malformed);
        }
        // A trader that is beyond the end of the stream received what is lost: older logs were put back.
        let is_beyond = next != FROM_NOW && Position(next) > self.keeper.recorded();
        if is_beyond || (stream != 0 && stream != self.keeper.number) {
            return connection.end(CutOff::OtherStream);
        }
        if self.connections.is_full() {
            return self.end(slot, CutOff::TooMany);
        }
        let signed_on = self.signed_on(trader, next);
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.who = Who::Trader { trader };
        let next = signed_on.next.get();
        connection.buffers.cursor = (wants & WANTS_LOCAL != 0).then(|| StreamCursor::new(next));
        connection.shown = (wants & WANTS_BOOKS != 0).then(ShownBy::default);
        self.keeper.serve_web(connection.is_web());
        self.say_either(slot, kind::SIGNED_ON, signed_on.as_bytes(), || signed_on_text(&signed_on));
    }

    /// Ends a connection, if it is there.
    pub(super) fn end(&mut self, slot: usize, cut_off: CutOff) {
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.end(cut_off);
        }
    }

    /// Says something on a connection, if it is there.
    pub(super) fn say(&mut self, slot: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.answer(write);
            self.unsent = true;
        }
    }

    /// Says something to a trader, in the form that it speaks.
    fn say_either(&mut self, slot: usize, kind: u8, payload: &[u8], text: impl FnOnce() -> Value) {
        let is_web = self.connections.get_mut(slot).is_some_and(|connection| connection.is_web());
        self.say(slot, |out| match is_web {
            true => write_text(out, &text().to_string()),
            false => frame::write(out, kind, &[payload]),
        });
    }

    fn signed_on(&mut self, trader: TraderId, next: u64) -> DeskSignedOn {
        let told = self.keeper.told();
        let next = if next == FROM_NOW { told.0 } else { next };
        DeskSignedOn {
            server: self.server.into(),
            cut_off: self.cut_offs.take(trader) as u8,
            reserved: 0,
            trader: trader.0.into(),
            through: self.keeper.through(trader).into(),
            next: next.into(),
            told: told.0.into(),
            stream: self.keeper.number.into(),
        }
    }

    fn on_hello(&mut self, slot: usize, hello: &PeerHello) {
        let (epoch, next) = (self.keeper.epoch(), self.keeper.stream.next());
        let Some(connection) = self.connections.get_mut(slot) else { return };
        if hello.epoch.get() != epoch.0 || hello.stream.get() != self.keeper.number {
            return connection.end(CutOff::OtherEpoch);
        }
        connection.who = Who::Peer { transfer: None };
        self.say(slot, |out| frame::write_through(out, kind::HAVE, next));
    }

    /// A trader submits something.
    pub(super) fn on_submit(&mut self, slot: usize, name: ItemName, kind: u8, body: &[u8]) {
        let submitted = match name.trader.is_trader() {
            true => self.keeper.submit(name, kind, body),
            false => Err(Refusal::Watcher),
        };
        match submitted {
            Ok(Taken::New) => self.submitted = true,
            Ok(Taken::Untold) => {}
            Ok(Taken::Stands(stands)) => self.place(slot, name.number, stands),
            // A later one must not be taken in while the trader may not know that this one was not: its number would count as used.
            Err(Refusal::Busy | Refusal::NoRoom) => self.end(slot, CutOff::NoRoom),
            Err(refusal) => self.refuse(slot, name.number, refusal),
        }
    }

    fn place(&mut self, slot: usize, number: u64, stands: SubmissionState) {
        let placed = PlacedBytes { number: number.into(), position: stands.position().0.into() };
        self.say_either(slot, kind::PLACED, placed.as_bytes(), || {
            let position = if let SubmissionState::At(position) = stands { Some(position.0) } else { None };
            json!({ "type": "placed", "number": number, "position": position })
        });
    }

    /// What a trader submitted is not taken in.
    pub(super) fn refuse(&mut self, slot: usize, number: u64, refusal: Refusal) {
        let refused = RefusedBytes { number: number.into(), refusal: refusal as u8, reserved: [0; 7] };
        self.say_either(
            slot,
            kind::REFUSED,
            refused.as_bytes(),
            || json!({ "type": "refused", "number": number, "why": refusal.word() }),
        );
    }
}

fn signed_on_text(signed_on: &DeskSignedOn) -> Value {
    json!({
        "type": "signed_on",
        "server": signed_on.server.get(),
        "trader": signed_on.trader.get(),
        "through": signed_on.through.get(),
        "next": signed_on.next.get(),
        "told": signed_on.told.get(),
        "stream": format!("{:010}", signed_on.stream.get()),
        "cut_off": CutOff::of(signed_on.cut_off).unwrap_or_default().word(),
    })
}

//! A connection at the port of another protocol, FIX or OUCH: its door, which stands between the client's messages and the gateway's frames.
//!
//! ```text
//!  socket --input--> door --Incoming--> rules
//!  socket <--output- door <--frames---- rules     before each flush
//! ```
//! Everything else is as for everybody: a door asks for nothing that a client of the gateway's own protocol could not ask for,
//! and is told what that client would be told.

use std::io::{Read, Write};
use std::sync::Arc;

use pares_door::{DoorAction, DoorConfig, DoorTime, FixDoor, MarketView, MarketWish};
use pares_gateway::SessionId;
use pares_ouch::OuchDoor;
use pares_tap::TapDoor;
use pares_types::InstrumentId;
use pares_wire::frame::{self, GatewayFrame};
use pares_wire::record::SessionMark;

use super::connection::{Close, Connection, Incoming};
use crate::world::DoorPort;

/// Where doors write what they want done.
type Sink<'a> = &'a mut dyn FnMut(DoorAction<'_>);

/// A door of either protocol.
pub(super) enum Door {
    Fix(Box<FixDoor>),
    Ouch(OuchDoor),
}

impl Door {
    fn new(protocol: DoorPort, config: &Arc<DoorConfig>) -> Self {
        match protocol {
            DoorPort::Fix => Self::Fix(Box::new(FixDoor::new(Arc::clone(config)))),
            DoorPort::Ouch => Self::Ouch(OuchDoor::new(Arc::clone(config))),
        }
    }

    fn on_bytes(&mut self, at: DoorTime, bytes: &[u8], mut sink: Sink<'_>) -> usize {
        match self {
            Self::Fix(door) => door.on_bytes(at, bytes, &mut sink),
            Self::Ouch(door) => door.on_bytes(at, bytes, &mut sink),
        }
    }

    fn on_frame(&mut self, at: DoorTime, frame: &GatewayFrame, mut sink: Sink<'_>) {
        match self {
            Self::Fix(door) => door.on_frame(at, frame, &mut sink),
            Self::Ouch(door) => door.on_frame(at, frame, &mut sink),
        }
    }

    pub(super) fn on_time(&mut self, at: DoorTime, mut sink: Sink<'_>) {
        match self {
            Self::Fix(door) => door.on_time(at, &mut sink),
            Self::Ouch(door) => door.on_time(at, &mut sink),
        }
    }

    /// Only FIX has numbers that are claimed.
    pub(super) fn on_claimed(&mut self, at: DoorTime, mark: Option<&SessionMark>, mut sink: Sink<'_>) {
        if let Self::Fix(door) = self {
            door.on_claimed(at, mark, &mut sink);
        }
    }

    /// Only FIX tells of the market.
    pub(super) fn on_market(&mut self, at: DoorTime, market: &dyn MarketView, mut sink: Sink<'_>) {
        if let Self::Fix(door) = self {
            door.on_market(at, market, &mut sink);
        }
    }

    /// Only FIX has symbols found.
    pub(super) fn on_found(&mut self, at: DoorTime, instrument: Option<InstrumentId>, mut sink: Sink<'_>) {
        if let Self::Fix(door) = self {
            door.on_found(at, instrument, &mut sink);
        }
    }

    fn on_disconnected(&mut self) -> Option<SessionMark> {
        match self {
            Self::Fix(door) => door.on_disconnected(),
            Self::Ouch(_) => None,
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        match self {
            Self::Fix(door) => door.next_deadline_ns(),
            Self::Ouch(door) => door.next_deadline_ns(),
        }
    }
}

/// What such a connection has besides.
pub(super) struct DoorEnd {
    door: Door,
    /// What the gateway said, before it is translated.
    frames: Vec<u8>,
    /// When the door is told the time.
    pub(super) due_ns: Option<u64>,
    /// What it was heard to want of the market.
    pub(super) wish: MarketWish,
    /// It has no say any more.
    is_silent: bool,
}

impl DoorEnd {
    pub(super) fn new(protocol: DoorPort, config: &Arc<DoorConfig>) -> Box<Self> {
        Box::new(Self {
            door: Door::new(protocol, config),
            frames: Vec::new(),
            due_ns: None,
            wish: MarketWish::Nothing,
            is_silent: false,
        })
    }

    /// Which door it is, for the tap.
    pub(super) fn as_taped(&self) -> TapDoor {
        match self.door {
            Door::Fix(_) => TapDoor::Fix,
            Door::Ouch(_) => TapDoor::Ouch,
        }
    }

    pub(super) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.frames
    }

    /// Bytes that are not translated.
    pub(super) fn untold(&self) -> usize {
        self.frames.len()
    }

    /// What it wants of the market by now.
    pub(super) fn market_wish(&self) -> MarketWish {
        match &self.door {
            Door::Fix(door) if !self.is_silent => door.market_wish(),
            _ => MarketWish::Nothing,
        }
    }

    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.door.next_deadline_ns().filter(|_| !self.is_silent)
    }
}

/// What doors ask of the gateway.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) incoming: Vec<(SessionId, Incoming)>,
    pub(super) marks: Vec<(SessionId, SessionMark)>,
}

impl<T: Read + Write> Connection<T> {
    pub(super) fn has_door(&self) -> bool {
        self.end.is_some()
    }

    /// Takes a step with the connection's door, if it has one.
    pub(super) fn with_door(
        &mut self,
        session: SessionId,
        heard: &mut Heard,
        step: impl FnOnce(&mut Door, Sink<'_>),
    ) {
        let Self { end, output, broken, .. } = self;
        let Some(end) = end.as_mut().filter(|end| !end.is_silent) else { return };
        step(&mut end.door, &mut |action| match action {
            DoorAction::Send(bytes) => output.extend_from_slice(bytes),
            DoorAction::Ask(frame) => heard.incoming.push((session, Incoming::Frame(frame))),
            DoorAction::LogOn { sign_on, proof } => {
                let proof = proof.map(|proof| Box::new(proof.clone()));
                heard.incoming.push((session, Incoming::LogOn(sign_on, proof)));
            }
            DoorAction::Claim { member, session: number } => {
                heard.incoming.push((session, Incoming::Claim((member, number))));
            }
            DoorAction::Find(symbol) => heard.incoming.push((session, Incoming::Find(symbol))),
            DoorAction::Mark(mark) => heard.marks.push((session, mark.clone())),
            DoorAction::Close => _ = broken.get_or_insert(Close::Gone),
        });
    }

    /// Hands its input to its door. Says whether that made room where there was none.
    pub(super) fn take_messages(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
        let (input, was_full) = (std::mem::take(&mut self.input), self.is_full());
        let (bytes, mut taken) = (&input[..self.input_len], 0);
        self.with_door(session, heard, |door, sink| taken = door.on_bytes(at, bytes, sink));
        self.input = input;
        self.keep_rest(self.input_len - taken, at.mono_ns);
        was_full && taken > 0
    }

    /// Hands what the gateway said to its door, and then what the door has left of the input. Says whether that made room
    /// where there was none.
    pub(super) fn translate(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
        let Some(end) = &mut self.end else { return false };
        let mut frames = std::mem::take(&mut end.frames);
        let mut rest = &frames[..];
        while let Ok(Some((kind, body, after))) = frame::split(rest) {
            let said = frame::decode_gateway(kind, body).expect("a gateway understands itself");
            self.with_door(session, heard, |door, sink| door.on_frame(at, &said, sink));
            rest = after;
        }
        assert!(rest.is_empty(), "a gateway says whole frames");
        frames.clear();
        if let Some(end) = &mut self.end {
            end.frames = frames;
        }
        if self.broken.is_some() {
            self.disconnected(session, heard);
            return false;
        }
        self.input_len > 0 && self.take_messages(session, at, heard)
    }

    /// It ends, and not because of what its door said: where its numbers were.
    fn disconnected(&mut self, session: SessionId, heard: &mut Heard) {
        let door = self.end.as_mut().filter(|end| !end.is_silent).map(|end| &mut end.door);
        let mark = door.and_then(Door::on_disconnected);
        heard.marks.extend(mark.map(|mark| (session, mark)));
    }

    /// Forgets what it was not sent, and ends.
    pub(super) fn unsay(&mut self, why: Close) {
        self.output.truncate(self.sent);
        if let Some(end) = &mut self.end {
            end.is_silent = true;
        }
        self.refused = true;
        self.broken.get_or_insert(why);
    }
}

//! A connection at the port for FIX: its door, which stands between the client's messages and the gateway's frames.
//!
//! ```text
//!  socket --input--> door --Incoming--> rules
//!  socket <--output- door <--frames---- rules     before each flush
//! ```
//! Everything else is as for everybody: a door asks for nothing that a client of the gateway's own protocol could not ask for,
//! and is told what that client would be told.

use std::io::{Read, Write};
use std::sync::Arc;

use pares_door::{DoorAction, DoorConfig, DoorTime, FixDoor};
use pares_gateway::SessionId;
use pares_wire::frame;
use pares_wire::record::SessionMark;

use super::connection::{Close, Connection, Incoming};

/// What a FIX connection has besides.
pub(super) struct FixEnd {
    door: FixDoor,
    /// What the gateway said, before it is translated.
    frames: Vec<u8>,
    /// When the door is told the time.
    pub(super) due_ns: Option<u64>,
    /// It has no say any more.
    is_silent: bool,
}

impl FixEnd {
    pub(super) fn new(config: &Arc<DoorConfig>) -> Box<Self> {
        Box::new(Self {
            door: FixDoor::new(Arc::clone(config)),
            frames: Vec::new(),
            due_ns: None,
            is_silent: false,
        })
    }

    pub(super) fn frames(&mut self) -> &mut Vec<u8> {
        &mut self.frames
    }

    /// Bytes that are not translated.
    pub(super) fn untold(&self) -> usize {
        self.frames.len()
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
    pub(super) fn is_fix(&self) -> bool {
        self.fix.is_some()
    }

    /// Takes a step with the connection's door, if it has one.
    pub(super) fn with_door(
        &mut self,
        session: SessionId,
        heard: &mut Heard,
        step: impl FnOnce(&mut FixDoor, &mut dyn FnMut(DoorAction<'_>)),
    ) {
        let Self { fix, output, broken, .. } = self;
        let Some(fix) = fix.as_mut().filter(|fix| !fix.is_silent) else { return };
        step(&mut fix.door, &mut |action| match action {
            DoorAction::Send(bytes) => output.extend_from_slice(bytes),
            DoorAction::Ask(frame) => heard.incoming.push((session, Incoming::Frame(frame))),
            DoorAction::LogOn { sign_on, proof } => {
                let proof = proof.map(|proof| Box::new(proof.clone()));
                heard.incoming.push((session, Incoming::LogOn(sign_on, proof)));
            }
            DoorAction::Claim { member, session: number } => {
                heard.incoming.push((session, Incoming::Claim((member, number))));
            }
            DoorAction::Mark(mark) => heard.marks.push((session, mark.clone())),
            DoorAction::Close => _ = broken.get_or_insert(Close::Gone),
        });
    }

    /// Hands its input to its door. Says whether that made room where there was none.
    pub(super) fn take_messages(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
        let (input, was_full) = (std::mem::take(&mut self.input), self.is_full());
        let (bytes, mut taken) = (&input[..self.input_len], 0);
        self.with_door(session, heard, |door, mut sink| taken = door.on_bytes(at, bytes, &mut sink));
        self.input = input;
        self.keep_rest(self.input_len - taken, at.mono_ns);
        was_full && taken > 0
    }

    /// Hands what the gateway said to its door, and then what the door has left of the input. Says whether that made room
    /// where there was none.
    pub(super) fn translate(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
        let Some(fix) = &mut self.fix else { return false };
        let mut frames = std::mem::take(&mut fix.frames);
        let mut rest = &frames[..];
        while let Ok(Some((kind, body, after))) = frame::split(rest) {
            let said = frame::decode_gateway(kind, body).expect("a gateway understands itself");
            self.with_door(session, heard, |door, mut sink| door.on_frame(at, &said, &mut sink));
            rest = after;
        }
        assert!(rest.is_empty(), "a gateway says whole frames");
        frames.clear();
        if let Some(fix) = &mut self.fix {
            fix.frames = frames;
        }
        if self.broken.is_some() {
            self.disconnected(session, heard);
            return false;
        }
        self.input_len > 0 && self.take_messages(session, at, heard)
    }

    /// It ends, and not because of what its door said: where its numbers were.
    fn disconnected(&mut self, session: SessionId, heard: &mut Heard) {
        let door = self.fix.as_mut().filter(|fix| !fix.is_silent).map(|fix| &mut fix.door);
        let mark = door.and_then(FixDoor::on_disconnected);
        heard.marks.extend(mark.map(|mark| (session, mark)));
    }

    /// Forgets what it was not sent, and ends.
    pub(super) fn unsay(&mut self, why: Close) {
        self.output.truncate(self.sent);
        if let Some(fix) = &mut self.fix {
            fix.is_silent = true;
        }
        self.refused = true;
        self.broken.get_or_insert(why);
    }
}

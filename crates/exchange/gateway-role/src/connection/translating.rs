//! Between a connection's bytes and the gateway's frames, where a door stands.

use std::io::{Read, Write};

use pares_gateway::SessionId;
use pares_port::{DoorAction, DoorTime, ProtocolDoor, Sink};
use pares_wire::frame;

use super::Connection;
use crate::door_end::Heard;
use crate::types::{Close, Incoming};

impl<T: Read + Write> Connection<T> {
    pub(crate) fn has_door(&self) -> bool {
        self.end.is_some()
    }

    /// Takes a step with the connection's door, if it has one.
    pub(crate) fn with_door(
        &mut self,
        session: SessionId,
        heard: &mut Heard,
        step: impl FnOnce(&mut dyn ProtocolDoor, Sink<'_>),
    ) {
        let Self { end, output, broken, .. } = self;
        let Some(end) = end.as_mut().filter(|end| !end.is_silent) else { return };
        step(&mut *end.door, &mut |action| match action {
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
    pub(crate) fn take_messages(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
        let (input, was_full) = (std::mem::take(&mut self.input), self.is_full());
        let (bytes, mut taken) = (&input[..self.input_len], 0);
        self.with_door(session, heard, |door, sink| taken = door.on_bytes(at, bytes, sink));
        assert!(taken <= self.input_len, "a door takes no more than there is");
        self.input = input;
        self.keep_rest(self.input_len - taken, at.mono_ns);
        was_full && taken > 0
    }

    /// Hands what the gateway said to its door, and then what the door has left of the input. Says whether that made room
    /// where there was none.
    pub(crate) fn translate(&mut self, session: SessionId, at: DoorTime, heard: &mut Heard) -> bool {
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
            assert!(end.frames.is_empty(), "nothing is said to a door while it translates");
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
        assert!(self.broken.is_some(), "a door is disconnected as its connection ends");
        let end = self.end.as_mut().filter(|end| !end.is_silent);
        let mark = end.and_then(|end| end.door.on_disconnected());
        heard.marks.extend(mark.map(|mark| (session, mark)));
    }

    /// Forgets what it was not sent, and ends.
    pub(crate) fn unsay(&mut self, why: Close) {
        self.output.truncate(self.sent);
        if let Some(end) = &mut self.end {
            end.is_silent = true;
        }
        self.refused = true;
        self.broken.get_or_insert(why);
    }
}

//! Signing on: who it is, and where that is required, the proof.
//!
//! ```text
//!  stranger --SignOn--> challenged --Proof--> signed on           sign-on required
//!  stranger --SignOn------------------------> signed on           sign-on open
//! ```
//! A client that comes by FIX, which has no challenge, proves with the Logon itself who it is: the proof is of all that the Logon says, this gateway's
//! number and its time included. Each is good for one use, accepted or not, also if it is sent within a session; and once one is accepted no gateway takes
//! one that is not later. A client that comes by OUCH, whose passwords are short, sends a token, from which the key was made: who has heard that has the key.
//!
//! Every other client is challenged, also who names a session that does not exist, and a wrong proof is answered like that. A challenge is made
//! up for one connection and used once, so a proof that was written down fits no other sign-on.

use pares_gateway::SessionId;
use pares_keys::{PROOF_BYTES, Secret, Verifier};
use pares_log::LogWriter;
use pares_port::{DoorTime, LOGON_CLOCK_NS, LogonProof};
use pares_roles::world::{Counters, Sockets, World};
use pares_types::{Key, MemberId, Reason, Timestamp};
use pares_wire::frame::{self, Challenge, Proof, SignOn, SignedOn};
use pares_wire::password_salt;
use zerocopy::IntoBytes;

use crate::GatewayNode;
use crate::counters::Counter;
use crate::types::{Asked, Close, Who};

/// For sessions that are not there: the base point, whose secret nobody has.
const NOBODYS: Key = Key::Ed25519({
    let mut point = [0x66; 32];
    point[0] = 0x58;
    point
});

impl<W: World, S: Sockets> GatewayNode<W, S> {
    pub(crate) fn on_sign_on(&mut self, session: SessionId, sign_on: &SignOn) {
        if !self.rules.is_sign_on_required() {
            return self.admit(session, &Asked::new(self.id, [0; 32], sign_on));
        }
        let asked = Asked::new(self.id, self.edge.world.random(), sign_on);
        if self.rules.is_signed_on(session) || !self.edge.connections.ask_for_proof(session, asked) {
            return self.edge.connections.refuse(session, Reason::MalformedRequest, Close::Malformed);
        }
        let challenge =
            Challenge { nonce: asked.transcript.nonce, gateway: self.id.0.into(), reserved: [0; 6] };
        self.edge.connections.write(session, |output| frame::write(output, &challenge));
    }

    pub(crate) fn on_proof(&mut self, now: Timestamp, session: SessionId, proof: &Proof) {
        let mut bytes = [0; PROOF_BYTES];
        bytes[..32].copy_from_slice(&proof.first);
        bytes[32..].copy_from_slice(&proof.second);
        let asked = self.edge.connections.take_asked(session);
        let checked = asked.ok_or(Reason::WrongKey).and_then(|asked| {
            self.check(now, session, asked, |key| verifier(key).accepts(&asked.transcript.bytes(), &bytes))
        });
        self.admit_if(session, checked);
    }

    /// A Logon by another protocol: the first message of a connection, or one within its session, where its door waits to say what becomes of it.
    pub(crate) fn on_log_on(
        &mut self,
        at: DoorTime,
        session: SessionId,
        sign_on: &SignOn,
        proof: Option<&LogonProof>,
    ) {
        let asked = Asked::new(self.id, [0; 32], sign_on);
        match self.check_logon(Timestamp(at.utc_ns), session, asked, proof) {
            Ok(_) if self.rules.is_signed_on(session) => self.edge.connections.proven(session, at),
            checked => self.admit_if(session, checked),
        }
    }

    fn check_logon(
        &mut self,
        now: Timestamp,
        session: SessionId,
        asked: Asked,
        proof: Option<&LogonProof>,
    ) -> Result<Asked, Reason> {
        let signed_ns = match proof {
            Some(LogonProof::Signed { time_ns, .. }) => Some(*time_ns),
            Some(LogonProof::Token(_)) | None => None,
        };
        if !self.rules.is_sign_on_required() {
            let is_in_time = signed_ns.is_none_or(|time_ns| is_in_time(time_ns, now));
            let may = is_in_time || self.rules.is_signed_on(session);
            return if may { Ok(asked) } else { Err(Reason::WrongClock) };
        }
        let is_proven = |key| proof.is_some_and(|proof| proves(proof, key, asked.who()));
        match (self.check(now, session, asked, is_proven), signed_ns) {
            (Ok(asked), Some(time_ns)) => self.use_up(now, session, asked, time_ns),
            (Err(Reason::TooManyAttempts), Some(time_ns)) => {
                Err(self.refuse_for_address(now, asked.who(), time_ns, is_proven))
            }
            (checked, _) => checked,
        }
    }

    /// Uses up a Logon that is refused for its address, if its proof is right: who shares that address and has heard the Logon could send it from another
    /// one. Only one in a turn is looked at, so that a turn takes no longer for many.
    fn refuse_for_address(
        &mut self,
        now: Timestamp,
        who: Who,
        time_ns: u64,
        proves: impl FnOnce(Key) -> bool,
    ) -> Reason {
        let key = self.rules.register().key(who.0, who.1);
        let is_right = self.spent_logons.may_look(now.0) && proves(key.unwrap_or(NOBODYS)) && key.is_some();
        let spent = if is_right { self.spend(now, who, time_ns) } else { Ok(false) };
        spent.err().unwrap_or(Reason::TooManyAttempts)
    }

    /// Whether a Logon whose proof is right may be used: if no other of that time was, in its time, and behind the session's last accepted one; within a
    /// session the door judges its time. It is used up by that, whatever comes of it.
    fn use_up(
        &mut self,
        now: Timestamp,
        session: SessionId,
        asked: Asked,
        time_ns: u64,
    ) -> Result<Asked, Reason> {
        let (is_new, is_later) = (self.spend(now, asked.who(), time_ns)?, self.rules.is_signed_on(session));
        let may = is_new && (is_later || is_in_time(time_ns, now));
        if may && (is_later || self.marks.note_logon(session, asked.who(), time_ns)) {
            return Ok(asked);
        }
        // Verifying it costs as much as a wrong proof, and an eavesdropper can send it as often: it counts as one.
        self.rules.on_wrong_key(self.edge.connections.origin(session), now);
        Err(Reason::WrongClock)
    }

    /// Uses up the session's Logons of that time. Whether none was. The log knows of it before anything is answered; while it takes nothing, this process alone.
    pub(crate) fn spend(&mut self, now: Timestamp, who: Who, time_ns: u64) -> Result<bool, Reason> {
        let Some(record) = self.spent_logons.spend(who, time_ns, now.0) else { return Ok(false) };
        let offset = self.edge.write_note(record.as_bytes()).ok_or(Reason::StorageUnavailable)?;
        self.edge.writer.publish();
        self.spent_logons.on_written(who, offset);
        Ok(true)
    }

    /// Whether who asks knows the secret of the session's key.
    fn check(
        &mut self,
        now: Timestamp,
        session: SessionId,
        asked: Asked,
        proves: impl FnOnce(Key) -> bool,
    ) -> Result<Asked, Reason> {
        let from = self.edge.connections.origin(session);
        let key = self.rules.key_to_prove(asked.who(), from, now)?;
        // Looked at whether or not there is such a session: that takes time, and time tells.
        if proves(key.unwrap_or(NOBODYS)) && key.is_some() {
            return Ok(asked);
        }
        self.rules.on_wrong_key(from, now);
        Err(Reason::WrongKey)
    }

    pub(crate) fn admit_if(&mut self, session: SessionId, checked: Result<Asked, Reason>) {
        match checked {
            Ok(asked) => self.admit(session, &asked),
            Err(reason) => {
                self.edge.counters.add(Counter::WrongKeys, u64::from(reason != Reason::StorageUnavailable));
                self.edge.connections.refuse(session, reason, Close::Refused);
            }
        }
    }

    fn admit(&mut self, session: SessionId, asked: &Asked) {
        let signed_on = self.rules.on_sign_on(session, asked.who(), asked.journalled, &mut self.edge);
        if let Err(reason) = signed_on {
            let why = if reason == Reason::MalformedRequest { Close::Malformed } else { Close::Refused };
            return self.edge.connections.refuse(session, reason, why);
        }
        if asked.resumes {
            self.rules.withhold(session);
        }
        assert!(self.rules.is_signed_on(session), "who is admitted is signed on with the rules");
        self.edge.connections.sign_on(session, asked, self.edge.world.mono_ns());
        let reply = SignedOn {
            token: asked.transcript.token.into(),
            gateway: self.id.0.into(),
            in_flight_max: self.in_flight_max.into(),
            member: asked.transcript.member.0.into(),
            heartbeat_ms: asked.heartbeat_ms.into(),
            copied: self.rules.copied(session).map_or(0, |member| member.0).into(),
        };
        self.edge.connections.write(session, |output| frame::write(output, &reply));
    }
}

/// Whether who sent it knows the secret of the session's key.
fn proves(proof: &LogonProof, key: Key, (member, session): (MemberId, u16)) -> bool {
    match proof {
        LogonProof::Signed { message, proof, .. } => verifier(key).accepts(message, proof),
        LogonProof::Token(token) => {
            Secret::from_token(token, &password_salt(member, session)).verifier().is_same(&verifier(key))
        }
    }
}

/// Whether a Logon of that time may be used now.
fn is_in_time(time_ns: u64, now: Timestamp) -> bool {
    time_ns.abs_diff(now.0) <= LOGON_CLOCK_NS
}

fn verifier(key: Key) -> Verifier {
    match key {
        Key::Ed25519(key) => Verifier::Ed25519(key),
        Key::Shared(key) => Verifier::Shared(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_proves_its_session_and_no_other() {
        let (who, token) = ((MemberId(7), 1), pares_keys::random_token());
        let Verifier::Shared(digest) = Secret::from_token(&token, &password_salt(who.0, who.1)).verifier()
        else {
            panic!("a token stands for a shared secret")
        };
        let proof = LogonProof::Token(token);
        assert!(proves(&proof, Key::Shared(digest), who));
        assert!(!proves(&proof, Key::Ed25519(digest), who));
        assert!(!proves(&proof, Key::Shared(digest), (MemberId(7), 2)));
        assert!(!proves(&LogonProof::Token(*b"0123456789"), Key::Shared(digest), who));
        assert!(!proves(&proof, NOBODYS, who));
    }
}

//! Keys that are given, changed and revoked while their members trade.
//!
//! R4 of decision 19, from outside: a gateway that has answered at a position of the lowest shard has followed the record so far. From
//! then on it takes in nothing of a member whose key is not the right one there, unless a later position gives it back.

use std::collections::BTreeMap;

use pares_config::{SignOnSetting, SystemConfig};
use pares_gateway::Answer;
use pares_keys::{Secret, Verifier};
use pares_types::{
    Command, Entry, GatewayId, Key, MemberId, Position, Reason, Registration, Request, Status,
};
use pares_wire::Transcript;
use pares_wire::frame::{self, Challenge, Proof};

use crate::client::{Client, EXCHANGE};
use crate::record::Record;
use crate::scenario::Scenario;
use crate::{Verdict, must};

use super::World;

/// Every client's session.
pub(crate) const SESSION: u16 = 1;

/// What is known of keys from outside.
#[derive(Default)]
pub(super) struct Keys {
    /// By member and position: whether its client can sign on from there on.
    changes: BTreeMap<(MemberId, Position), bool>,
    /// By gateway: the first position of the lowest shard that it may not have followed.
    followed: BTreeMap<usize, Position>,
}

/// What a member's client signs on with.
pub(crate) fn secret(member: MemberId) -> Secret {
    let seed = [member.0 as u8 + 1; 32];
    if member == EXCHANGE { Secret::Ed25519(seed) } else { Secret::Shared(seed) }
}

/// The same for the register.
pub(crate) fn key(member: MemberId) -> Key {
    match secret(member).verifier() {
        Verifier::Ed25519(key) => Key::Ed25519(key),
        Verifier::Shared(key) => Key::Shared(key),
    }
}

/// A client of the scenario: the exchange's knows whose keys it changes, the others guard orders or do not.
pub(super) fn prepared(client: Client, scenario: &Scenario) -> Client {
    let client = client.guarding(scenario.guards);
    if !scenario.revocations || client.member != EXCHANGE {
        return client;
    }
    client.with_keys_of(u32::try_from(scenario.clients).expect("few clients"))
}

/// Whether sign-on is required, and by whose key the register begins.
pub(super) fn settings(scenario: &Scenario) -> SystemConfig {
    let Verifier::Ed25519(key) = secret(EXCHANGE).verifier() else {
        unreachable!("the operator's is an Ed25519 key")
    };
    SystemConfig {
        sign_on: if scenario.revocations { SignOnSetting::Required } else { SignOnSetting::Open },
        operator_key: scenario.revocations.then(|| pares_keys::to_hex(&key)),
        ..SystemConfig::default()
    }
}

impl World<'_> {
    /// A client proves who it is.
    pub(super) fn on_challenge(&mut self, connection: usize, client: usize, challenge: &Challenge) {
        let member = self.clients[client].member;
        let gateway = GatewayId(challenge.gateway.get());
        let transcript = Transcript { nonce: challenge.nonce, gateway, member, session: SESSION, token: 0 };
        let proof = secret(member).prove(&transcript.bytes());
        let (first, second) = proof.split_first_chunk().expect("64 bytes");
        let mut bytes = Vec::new();
        let second = second.try_into().expect("64 bytes");
        frame::write(&mut bytes, &Proof { first: *first, second });
        self.write_resumes(connection, &mut bytes);
        self.send_to_gateway(connection, &bytes);
    }

    /// A record may say that a member's key changed.
    pub(super) fn note_key(&mut self, record: &Record) {
        self.summary.ills.overtaken += u64::from(record.outcome.reason == Reason::Overtaken);
        let Command::Register(Registration { member, entry, .. }) = record.request.command else { return };
        let is_right = match entry {
            _ if record.outcome.status != Status::Accepted => return,
            Entry::SetKey(set) => set == key(member),
            Entry::RevokeKey | Entry::RemoveMember => false,
            _ => return,
        };
        self.keys.changes.insert((member, record.position), is_right);
    }

    /// A gateway has answered, and so followed the record until there.
    pub(super) fn note_followed(&mut self, gateway: usize, answer: &Answer) {
        if answer.shard.0 == 0 {
            let followed = self.keys.followed.entry(gateway).or_default();
            *followed = answer.position.next().max(*followed);
        }
    }

    /// R4: whether the gateway may have taken the request in.
    pub(super) fn check_signed_on(&self, gateway: usize, request: &Request) -> Verdict {
        let member = request.member;
        if !self.scenario.revocations || member == EXCHANGE {
            return Ok(());
        }
        let followed = self.keys.followed.get(&gateway).copied().unwrap_or_default();
        let of_member = |from, to| self.keys.changes.range((member, from)..(member, to));
        let known = of_member(Position(0), followed).next_back().is_some_and(|(_, is_right)| *is_right);
        let later = of_member(followed, Position(u64::MAX)).any(|(_, is_right)| *is_right);
        must(known || later, "R4 revoked is out", || {
            format!("gateway {gateway} has read that member {member} has no key, and takes in {}", request.id)
        })
    }

    /// Once the exchange has nothing else to ask, it lets in who is not done.
    pub(super) fn let_in(&mut self, exchange: usize) {
        let is_letting_in = self.scenario.revocations && self.clients[exchange].member == EXCHANGE;
        if !is_letting_in || !self.clients[exchange].is_done() {
            return;
        }
        let shut_out = self.clients.iter().find(|client| client.member != EXCHANGE && !client.is_done());
        if let Some(member) = shut_out.map(|client| client.member) {
            let name = self.clients[exchange].ask_for_key(member, self.now_ns);
            self.ask_gateway(exchange, name);
        }
    }

    /// Whether the client has nothing to do any more.
    pub(super) fn is_through(&self, client: usize) -> bool {
        let is_letting_in = self.scenario.revocations && self.clients[client].member == EXCHANGE;
        let is_entering = self.clients[client].member == EXCHANGE && !self.copies_are_entered();
        let is_needed = is_entering || is_letting_in && !self.clients.iter().all(Client::is_done);
        self.clients[client].is_done() && !is_needed
    }
}

/// What the exchange asks of the register: keys right and wrong, and none.
pub(crate) fn change(dice: u64, member: MemberId) -> Command {
    let entry = match dice % 10 {
        0 | 1 => Entry::RevokeKey,
        2 => Entry::SetKey(Key::Shared([0xff; 32])),
        3 => return let_in(true, member),
        _ => return let_in(false, member),
    };
    Command::Register(Registration { member, session: SESSION, entry })
}

/// That the member participates, or that it has its key.
pub(crate) fn let_in(as_member: bool, member: MemberId) -> Command {
    let key = Entry::SetKey(key(member));
    let (session, entry) = if as_member { (0, Entry::AddMember) } else { (SESSION, key) };
    Command::Register(Registration { member, session, entry })
}

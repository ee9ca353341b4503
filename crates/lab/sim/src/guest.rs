//! Members that come by another protocol, through a gateway's door.
//!
//! What is the same for all of them is the network's: they call a gateway, speak in pieces cut anywhere, are hung up on, and call again, there or
//! elsewhere. What a protocol promises is the guest's own to check, against what it received over its whole life and against the record.

use std::collections::BTreeMap;

use pares_flow::Random;
use pares_port::DoorPort;
use pares_stream::{StreamNumbers, Told};
use pares_types::{Command, MemberId, NewOrder, Position, Reason, Reply, Request, ShardId};

use crate::ledger::Ledger;
use crate::record::Record;
use crate::scenario::MS;
use crate::{Broken, Summary, Verdict};

/// Before a guest gives up a sign-on that is not answered, or what it lacks.
pub(crate) const PATIENCE_NS: u64 = 8 * MS;

/// A guest at a gateway, or between two: whose program it is, and where.
pub(crate) struct Seat {
    pub(crate) member: MemberId,
    /// At which port it calls; none is that of the exchange's own protocol.
    pub(crate) port: Option<DoorPort>,
    pub(crate) connection: Option<usize>,
    /// The gateway that it calls, if it is one of so many.
    pub(crate) home: usize,
    pub(crate) program: Box<dyn Guest>,
}

impl Seat {
    /// Nowhere yet.
    pub(crate) fn new(
        member: MemberId,
        port: Option<DoorPort>,
        home: usize,
        program: impl Guest + 'static,
    ) -> Self {
        Self { member, port, connection: None, home, program: Box::new(program) }
    }
}

/// What is recorded so far.
#[derive(Clone, Copy)]
pub(crate) struct Recorded<'a> {
    pub(crate) ledger: &'a Ledger,
    pub(crate) shards: usize,
}

impl<'a> Recorded<'a> {
    /// A shard's record.
    pub(crate) fn of(self, shard: ShardId) -> impl Iterator<Item = &'a Record> {
        (0..).map_while(move |at| self.ledger.record(shard, Position(at)).map(AsRef::as_ref))
    }

    pub(crate) fn shards(self) -> impl Iterator<Item = ShardId> {
        (0..self.shards).map(|shard| ShardId(u16::try_from(shard).expect("few shards")))
    }

    /// All that a shard's record tells members, each with its number in the member's stream there.
    pub(crate) fn read(self, shard: ShardId, mut on: impl FnMut(&Record, MemberId, Reply, u64)) {
        let mut numbers = StreamNumbers::default();
        for record in self.of(shard) {
            let Record { position, request, outcome, events, .. } = record;
            let told = Told { position: *position, request, outcome, events };
            told.read(|of, reply| on(record, of, reply, numbers.next(of)));
        }
    }

    /// A member's stream in a shard: its messages from number 1 on.
    pub(crate) fn stream(self, shard: ShardId, member: MemberId) -> Vec<Reply> {
        let mut all = Vec::new();
        self.read(shard, |_, of, reply, number| {
            if of == member {
                all.push(reply.numbered(number));
            }
        });
        all
    }

    /// Each order that was entered for the member is one that it asked for, by what `differs` says of it, and is there once.
    pub(crate) fn check_entered(
        self,
        invariant: &'static str,
        member: MemberId,
        differs: impl Fn(&Request, &NewOrder) -> Option<String>,
    ) -> Verdict {
        let mut entered = BTreeMap::new();
        for record in self.shards().flat_map(|shard| self.of(shard)) {
            let (request, reason) = (&record.request, record.outcome.reason);
            let Command::Enter(order) = &request.command else { continue };
            if request.member != member || matches!(reason, Reason::DuplicateRequest | Reason::TooOld) {
                continue;
            }
            let place = (record.shard(), record.position);
            let what = match (differs(request, order), entered.insert(request.client_order_id, place)) {
                (Some(asked), _) => format!("recorded {request:?}; asked {asked}"),
                (None, Some(first)) => format!("{request:?} at {first:?} and {place:?}"),
                (None, None) => continue,
            };
            return Err(Broken { invariant, what });
        }
        Ok(())
    }
}

/// A first message spoilt as any may be: garbage in its place, half of it, or nothing at all.
pub(crate) fn spoil(mut message: Vec<u8>, random: &mut Random) -> Vec<u8> {
    match random.below(3) {
        0 => message = (0..random.between(1, 200)).map(|_| random.next_u64() as u8).collect(),
        1 => message.truncate(random.index(message.len())),
        _ => message.clear(),
    }
    message
}

/// A member's program that speaks another protocol. What it wants sent goes to `out`.
pub(crate) trait Guest {
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Does what is due: asks again, and if it is not calm, asks something new.
    fn wake(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>);

    fn log_out(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Does what no such program should do on its own connection.
    fn misbehave(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// The first bytes of a stranger, perhaps in its name.
    fn forge(&self, now_ns: u64, random: &mut Random) -> Vec<u8>;

    /// Bytes of the exchange. Says whether the connection is to be closed.
    fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken>;

    fn on_disconnected(&mut self);

    /// Whether it has waited too long for an answer.
    fn is_stuck(&self, now_ns: u64) -> bool;

    /// Whether it is logged on and waits for nothing.
    fn is_quiet(&self) -> bool;

    /// It asks nothing new from now on.
    fn calm_down(&mut self);

    /// What gateways knew of it may be lost: a host's disk or power was.
    fn excuse(&mut self) {}

    /// How it is, for who looks for a failure.
    fn state(&self) -> String;

    /// What it should have been told and was not.
    fn untold(&self, recorded: Recorded<'_>) -> Option<String>;

    /// What was recorded of it is what it asked for, and nothing twice.
    fn check_asked(&self, recorded: Recorded<'_>) -> Verdict;

    /// All that it received is in the record, as it is there.
    fn check_told(&self, recorded: Recorded<'_>) -> Verdict;

    /// Adds what it met.
    fn count(&self, summary: &mut Summary);
}

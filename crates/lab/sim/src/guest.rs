//! Members that come by another protocol, through a gateway's door.
//!
//! What is the same for all of them is the network's: they call a gateway, speak in pieces cut anywhere, are hung up on, and call again, there or
//! elsewhere. What a protocol promises is the guest's own to check, against what it was told over its whole life and against the record.

use pares_roles::world::DoorPort;
use pares_types::{MemberId, Position, ShardId};

use crate::ledger::Ledger;
use crate::random::Random;
use crate::record::Record;
use crate::{Broken, Summary};

/// Where a guest is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seat {
    pub(crate) connection: Option<usize>,
    /// The gateway that it calls, if it is one of so many.
    pub(crate) home: usize,
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
}

/// A member's program that speaks another protocol. What it wants sent goes to `out`.
pub(crate) trait Guest {
    /// At which port it calls.
    fn port(&self) -> DoorPort;

    fn member(&self) -> MemberId;

    fn seat(&self) -> Seat;

    fn seat_mut(&mut self) -> &mut Seat;

    /// Calls a gateway.
    fn call(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Does what is due: asks again, and if it is not calm, asks something new.
    fn wake(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>);

    /// Says goodbye.
    fn log_out(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// Does what no such program should do on its own connection.
    fn misbehave(&mut self, now_ns: u64, out: &mut Vec<u8>);

    /// The first bytes of somebody else, perhaps in its name.
    fn forge(&self, now_ns: u64, random: &mut Random) -> Vec<u8>;

    /// Bytes of the exchange. Says whether the connection is to be closed.
    fn on_bytes(&mut self, now_ns: u64, bytes: &[u8], out: &mut Vec<u8>) -> Result<bool, Broken>;

    /// The connection is gone.
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
    fn check_asked(&self, recorded: Recorded<'_>) -> Result<(), Broken>;

    /// All that it was told is in the record, as it is there.
    fn check_told(&self, recorded: Recorded<'_>) -> Result<(), Broken>;

    /// Adds what it met.
    fn count(&self, summary: &mut Summary);
}

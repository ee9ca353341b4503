//! What the recorders' logs say, and whether it can be true.

use std::collections::{BTreeMap, BTreeSet};

use pares_book::{Market, NaiveBook};
use pares_log::{ReadError, Reader};
use pares_node::SystemConfig;
use pares_types::{
    ClientOrderId, Command, Epoch, Event, MemberId, Outcome, Position, Quantity, Reason, RecorderId, Request,
    ShardId,
};
use pares_wire::record::{self, ResultRecord};

use super::eventually;
use super::exchange::Exchange;
use super::trader::Trader;

/// One record, but for the venue that happened to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) epoch: Epoch,
    pub(crate) request: Request,
    pub(crate) outcome: Outcome,
    pub(crate) events: Vec<Event>,
    pub(crate) state_hash: Option<u64>,
}

/// The record of each shard; the place in the vector is the position.
pub(crate) type Records = BTreeMap<ShardId, Vec<Recorded>>;

/// What one recorder's log holds.
///
/// # Panics
/// If a shard's positions are not 0, 1, 2 and so on.
pub(crate) fn of_recorder(exchange: &Exchange, id: RecorderId) -> Records {
    let mut records: Records =
        exchange.config().shards().unwrap().into_keys().map(|id| (id, Vec::new())).collect();
    let mut log = match Reader::at_start(&exchange.layout().recorder_log(id)) {
        Ok(log) => log,
        Err(ReadError::NotYet { .. }) => return records,
        Err(error) => panic!("recorder {id}: {error}"),
    };
    while let Some(entry) = log.next().unwrap() {
        if record::schema(entry.payload) != Some(record::RESULT) {
            continue;
        }
        let read = ResultRecord::read(entry.payload).unwrap();
        let shard = records.get_mut(&read.shard()).unwrap();
        assert_eq!(read.position().0, shard.len() as u64, "recorder {id}, shard {}: a gap", read.shard());
        shard.push(Recorded {
            epoch: read.epoch(),
            request: read.request().unwrap(),
            outcome: read.outcome().unwrap(),
            events: read.events().collect::<Result<_, _>>().unwrap(),
            state_hash: read.state_hash(),
        });
    }
    records
}

/// What all recorders say, once they all have everything.
///
/// # Panics
/// If they disagree.
pub(crate) fn agreed(exchange: &mut Exchange) -> Records {
    let ids: Vec<RecorderId> = exchange.config().recorder_ids().collect();
    let mut records = Vec::new();
    eventually("all recorders have the same records", || {
        exchange.tick();
        records = ids.iter().map(|&id| of_recorder(exchange, id)).collect();
        let lengths = |records: &Records| records.values().map(Vec::len).collect::<Vec<_>>();
        records.iter().all(|other| lengths(other) == lengths(&records[0]))
    });
    for (id, other) in ids.iter().zip(&records) {
        for (shard, ours) in &records[0] {
            let differs = ours.iter().zip(&other[shard]).position(|(ours, theirs)| ours != theirs);
            assert_eq!(differs, None, "recorders 0 and {id} differ in shard {shard}");
        }
    }
    records.swap_remove(0)
}

/// Reasons that stand in the record although no book ever saw the request.
const NEVER_EXECUTED: [Reason; 2] = [Reason::Void, Reason::Quarantined];

/// Applies every recorded request to the obviously right book, and compares what becomes of it.
///
/// # Panics
/// If a request is recorded at two positions, executed under a name used before, or came out otherwise.
pub(crate) fn check_matching(config: &SystemConfig, records: &Records) {
    let mut ids = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (shard, instruments) in config.shards().unwrap() {
        let mut market = Market::<NaiveBook>::new(&instruments);
        for (position, recorded) in records[&shard].iter().enumerate() {
            let request = &recorded.request;
            assert!(ids.insert(request.id), "{} stands at two positions", request.id);
            let new = request.command.is_repeatable()
                || names.insert((shard, request.member, request.client_order_id));
            let mut events = Vec::new();
            let outcome = match new {
                // What the engine failed at is executed by nobody.
                true if NEVER_EXECUTED.contains(&recorded.outcome.reason) => {
                    market.refuse(request, recorded.outcome.reason)
                }
                true => market.apply(request, &mut events),
                false => market.refuse(request, Reason::DuplicateRequest),
            };
            assert_eq!(recorded.outcome, outcome, "shard {shard} position {position}: {request:?}");
            assert_eq!(recorded.events, events, "shard {shard} position {position}: {request:?}");
        }
    }
}

/// The first record of a name in each shard: the one that counts.
fn firsts(records: &Records, member: MemberId) -> BTreeMap<ClientOrderId, Vec<(u64, &Recorded)>> {
    let mut firsts: BTreeMap<_, Vec<(u64, &Recorded)>> = BTreeMap::new();
    for shard in records.values() {
        for (position, recorded) in (0..).zip(shard).filter(|(_, one)| one.request.member == member) {
            let of_name = firsts.entry(recorded.request.client_order_id).or_default();
            if of_name.iter().all(|(_, other)| other.request.shard != recorded.request.shard) {
                of_name.push((position, recorded));
            }
        }
    }
    firsts
}

/// Compares what a trader received with the record.
///
/// # Panics
/// If an answer is not what is recorded, or anything is recorded that the trader was not told.
pub(crate) fn check_trader(records: &Records, trader: &Trader) {
    let firsts = firsts(records, trader.member);
    let asked = trader.submitted() - trader.rejected.len() as u64;
    assert_eq!(trader.answers.len() as u64, asked, "member {}: one answer each", trader.member);
    let recorded: Vec<_> = firsts.keys().collect();
    assert_eq!(recorded, trader.answers.keys().collect::<Vec<_>>(), "member {}", trader.member);
    for (name, answer) in &trader.answers {
        let parts = &firsts[name];
        let found = parts.iter().find(|(_, one)| one.request.shard == answer.shard);
        let (position, recorded) = found.unwrap_or_else(|| panic!("no record for {answer:?}"));
        assert_eq!(answer.position.0, *position, "{answer:?}");
        assert_eq!(answer.request, recorded.request.id, "{answer:?}");
        let told = (answer.status, answer.reason, answer.remaining);
        let true_one = (recorded.outcome.status, recorded.outcome.reason, recorded.outcome.remaining);
        assert_eq!(told, true_one, "{answer:?}");
        let cancelled: u64 = parts.iter().map(|(_, one)| one.outcome.executed.0).sum();
        let mass = matches!(recorded.request.command, Command::MassCancel { .. });
        let executed = if mass { Quantity(cancelled) } else { recorded.outcome.executed };
        assert_eq!(answer.executed, executed, "{answer:?}");
    }
}

/// Compares the trades that a trader received with the record; for one that never lost its connection.
///
/// # Panics
/// If any is missing, or was made up.
pub(crate) fn check_trades(records: &Records, trader: &mut Trader) {
    let mut recorded = Vec::new();
    for (&shard, entries) in records {
        for (position, entry) in (0..).map(Position).zip(entries) {
            for event in &entry.events {
                let Event::Fill { resting_member, quantity, .. } = *event else { continue };
                let sides = [entry.request.member, resting_member].into_iter();
                let ours = sides.filter(|&member| member == trader.member);
                recorded.extend(ours.map(|_| (shard, position, quantity)));
            }
        }
    }
    // The last may be another's, answered there already and still on its way here.
    eventually("all trades are reported", || {
        trader.pump(0);
        trader.trades.len() >= recorded.len()
    });
    let told = trader.trades.iter().map(|trade| (trade.shard, trade.position, trade.quantity));
    let mut told: Vec<_> = told.collect();
    told.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(told, recorded, "member {}", trader.member);
}

//! A request that brings the matching engine down at every venue. The promise: its shard stalls until the request is void,
//! the others do not notice, and no venue dies of it twice.

use std::time::Instant;

use pares_client::{Client, Update};
use pares_faults::poison::VARIABLE;
use pares_load::{LabError, Stretch};
use pares_node::NodeId;
use pares_os::CountersReader;
use pares_types::{
    ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, Price, Quantity, Reason, Side,
};

use super::round::{Drill, WINDOW};

/// Whose orders are poison: nobody else's name.
const POISONER: MemberId = MemberId(4_000_000_666);
/// Ways to fail, by quantity: panic, loop, memory.
const WAYS: u64 = 3;

/// What the nodes' environment needs.
pub(super) fn arms() -> Vec<(&'static str, String)> {
    vec![(VARIABLE, POISONER.to_string())]
}

/// Sends one, waits until it is void, releases its instrument, and waits until all venues are whole.
pub(super) fn poison(drill: &mut Drill, round: u64) -> Result<u64, LabError> {
    let address = drill.system.addresses()?[0];
    let instruments = &drill.system.supervisor.config().instruments;
    let instrument = InstrumentId(instruments[round as usize % instruments.len()].id);
    let way = 1 + round % WAYS;
    let order = NewOrder::limit(Side::Buy, Price(1), Quantity(way));
    let mut poisoner = Client::connect(address, POISONER)?;
    drill.observed().take_gap_max_ns();
    let begun = Instant::now();
    poisoner.send(&ClientRequest::Enter { client_order_id: ClientOrderId(round + 1), instrument, order })?;
    poisoner.flush()?;
    let mut gap = drill.wait_until("the poisonous request", |_| is_void(&mut poisoner))?;
    drill.samples.voids.push(begun.elapsed().as_nanos() as u64);
    gap = gap.max(drill.longest_gap(WINDOW)?);
    drill.observed().enter(Stretch::Resync);
    gap = gap.max(release(drill, instrument)?);
    let whole = |drill: &mut Drill| Ok(all_whole(drill) && drill.venues.all_back(&drill.system.supervisor));
    let after = drill.wait_until("a shard", whole)?;
    drill.samples.resyncs.push(begun.elapsed().as_micros() as u64);
    Ok(gap.max(after))
}

/// Whether the answer has come. Anything but "void" breaks the promise.
fn is_void(poisoner: &mut Client) -> Result<bool, LabError> {
    let mut told = None;
    poisoner.poll(|update| {
        if let Update::Answer(answer) = update {
            told = Some(answer.reason);
        }
    })?;
    match told {
        None => Ok(false),
        Some(Reason::Void) => Ok(true),
        Some(other) => Err(LabError::Failed(format!("a poisonous request was answered with {other:?}"))),
    }
}

/// As `pares admin release`. Gives the longest gap meanwhile.
fn release(drill: &mut Drill, instrument: InstrumentId) -> Result<u64, LabError> {
    let mut exchange = Client::connect(drill.system.addresses()?[0], MemberId(0))?;
    let client_order_id = ClientOrderId(pares_os::clock::now_ns());
    exchange.send(&ClientRequest::Exchange { client_order_id, instrument, command: Command::TIME })?;
    exchange.flush()?;
    let mut released = false;
    drill.wait_until("the release of an instrument", |_| {
        exchange.poll(|update| released |= matches!(update, Update::Answer(_)))?;
        Ok(released)
    })
}

/// Whether no venue has a shard away, or a thread that does not come back.
fn all_whole(drill: &Drill) -> bool {
    let supervisor = &drill.system.supervisor;
    supervisor.config().venue_ids().all(|id| {
        let counters = CountersReader::open(&supervisor.layout().counters(&NodeId::Venue(id).to_string()));
        let none = |counters: &CountersReader, name| counters.get(name) == Some(0);
        counters.is_ok_and(|counters| none(&counters, "shards_away") && none(&counters, "encumbered"))
    })
}

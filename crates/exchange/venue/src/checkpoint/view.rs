//! A checkpoint as a gateway reads it: who was asked what, and which orders live. Books are not built for it.

use pares_book::{Listing, RestingOrder, Stage, Trading};
use pares_register::Register;
use pares_types::{DayStage, OpenOrder, OrderKind, ShardId, ShardView, TimeInForce};

use super::book::Written;
use super::{CheckpointError, Content, read};
use crate::notes::Notes;

/// Reads a checkpoint of that shard: its state, its register and its instruments. That its state is the one that was saved only its [restoring](crate::Shard::restore) shows.
///
/// # Errors
/// If the bytes are no checkpoint of this shard.
pub fn view(shard: ShardId, bytes: &[u8]) -> Result<(ShardView, Register, Vec<Listing>), CheckpointError> {
    let (mut orders, mut listings, mut timed) = (Vec::new(), Vec::new(), false);
    let content = read(shard, bytes, |book| {
        timed |= is_timed(&book);
        listings.push(listing(&book));
        orders.extend(living(&book));
        Ok(())
    })?;
    let Content { position, through, notes, time, day, .. } = content;
    let Notes { names, numbers, positions, quarantine, register, operator_stamp_max } = notes;
    let (floors, kept) = (names.floors().collect(), names.iter().collect());
    let stage = match day.stage() {
        Stage::On => DayStage::On,
        Stage::Ending { .. } => DayStage::Ending,
        Stage::Over => DayStage::Over,
        Stage::Beginning { .. } => DayStage::Beginning,
    };
    timed |= matches!(stage, DayStage::Ending | DayStage::Beginning);
    let (day, told) = (day.number(), numbers.sorted());
    let view = ShardView {
        position,
        through,
        floors,
        kept,
        time,
        operator_stamp_max,
        day,
        stage,
        told,
        positions: positions.written(),
        quarantined: quarantine.instruments().to_vec(),
        timed,
        orders,
    };
    Ok((view, register, listings))
}

fn listing(book: &Written) -> Listing {
    let Trading { phase, last, reference, .. } = book.snapshot.trading;
    Listing { instrument: book.instrument, phase, last, reference }
}

fn living(book: &Written) -> impl Iterator<Item = OpenOrder> {
    let instrument = book.instrument.id;
    let unfinished = book.snapshot.trading.unfinished.iter().map(|unfinished| &unfinished.order);
    book.snapshot.orders.iter().chain(unfinished).map(move |order| OpenOrder {
        member: order.member,
        client_order_id: order.client_order_id,
        order: order.order,
        instrument,
        side: order.side,
        at_market: order.kind == OrderKind::Market,
        remaining: order.remaining,
        executed: order.executed,
    })
}

/// Whether an order may expire or move by itself, a row of a timetable or a volatility call may come, or a phase has something left to do.
fn is_timed(book: &Written) -> bool {
    let Written { instrument, snapshot, .. } = book;
    let moves = |order: &RestingOrder| {
        let dated = matches!(order.time_in_force, TimeInForce::Gtd { .. });
        dated || order.trigger.is_some() || order.is_pegged()
    };
    !instrument.timetable.rows().is_empty()
        || instrument.call_ns != 0
        || snapshot.trading.phase.is_call()
        || snapshot.trading.transition.is_some()
        || snapshot.trading.unfinished.is_some()
        || snapshot.orders.iter().any(moves)
}

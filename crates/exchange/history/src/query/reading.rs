//! Rows of the index as what they stand for.

use pares_types::{
    ClientOrderId, InstrumentId, MemberId, OrderId, Position, Price, Quantity, RequestId, ShardId, Timestamp,
};
use rusqlite::Row;

use super::{OrderRow, Step, TradeRow};

pub(super) fn word(row: &Row<'_>, column: &str) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

fn request_id(row: &Row<'_>, column: &str) -> rusqlite::Result<RequestId> {
    let bits = word(row, column)?;
    RequestId::from_bits(bits).ok_or(rusqlite::Error::IntegralValueOutOfRange(0, bits.cast_signed()))
}

fn optional(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<i64>> {
    row.get(column)
}

fn price(row: &Row<'_>) -> rusqlite::Result<Option<Price>> {
    Ok(optional(row, "price")?.map(Price))
}

pub(super) fn order(row: &Row<'_>) -> rusqlite::Result<OrderRow> {
    Ok(OrderRow {
        id: OrderId(request_id(row, "id")?),
        member: MemberId(row.get("member")?),
        client_order_id: ClientOrderId(word(row, "client_order_id")?),
        instrument: InstrumentId(row.get("instrument")?),
        side: row.get("side")?,
        kind: row.get("kind")?,
        time_in_force: row.get("time_in_force")?,
        post_only: row.get("post_only")?,
        price: price(row)?,
        quantity: Quantity(word(row, "quantity")?),
        executed: Quantity(word(row, "executed")?),
        remaining: Quantity(word(row, "remaining")?),
        status: row.get("status")?,
        reason: row.get("reason")?,
        shard: ShardId(row.get("shard")?),
        position: Position(word(row, "position")?),
        stamp: Timestamp(word(row, "stamp")?),
        changed_position: Position(word(row, "changed_position")?),
        changed_stamp: Timestamp(word(row, "changed_stamp")?),
        display: optional(row, "display")?.map(|shares| Quantity(shares.cast_unsigned())),
        minimum: optional(row, "minimum")?.map(|shares| Quantity(shares.cast_unsigned())),
        trigger: optional(row, "trigger")?.map(Price),
        until: optional(row, "until")?.map(|ns| Timestamp(ns.cast_unsigned())),
    })
}

pub(super) fn trade(row: &Row<'_>) -> rusqlite::Result<TradeRow> {
    let party = |order, member| -> rusqlite::Result<_> {
        Ok((OrderId(request_id(row, order)?), MemberId(row.get(member)?)))
    };
    Ok(TradeRow {
        shard: ShardId(row.get("shard")?),
        position: Position(word(row, "position")?),
        number: row.get("number")?,
        instrument: InstrumentId(row.get("instrument")?),
        price: Price(row.get("price")?),
        quantity: Quantity(word(row, "quantity")?),
        buy: party("buy_order", "buy_member")?,
        sell: party("sell_order", "sell_member")?,
        aggressor: row.get("aggressor")?,
        stamp: Timestamp(word(row, "stamp")?),
        busted: row.get("busted")?,
    })
}

pub(super) fn step(row: &Row<'_>) -> rusqlite::Result<Step> {
    Ok(Step {
        position: Position(word(row, "position")?),
        id: request_id(row, "id")?,
        stamp: Timestamp(word(row, "stamp")?),
        command: row.get("command")?,
        price: price(row)?,
        quantity: optional(row, "quantity")?.map(|shares| Quantity(shares.cast_unsigned())),
        status: row.get("status")?,
        reason: row.get("reason")?,
        executed: Quantity(word(row, "executed")?),
        remaining: Quantity(word(row, "remaining")?),
    })
}

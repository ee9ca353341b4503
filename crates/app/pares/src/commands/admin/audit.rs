//! `pares admin audit`: which operator asked for what, from the record.

use std::collections::BTreeMap;

use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError, SystemConfig};
use pares_types::{Outcome, Position, Request, ShardId, Status};
use serde_json::{Value, json};

use super::operator::EXCHANGE;
use crate::commands::journal::request::what;
use crate::error::CommandResult;
use crate::text::{self, Table};
use crate::utc;

/// Records read from each recorder at a time.
const BATCH_MAX: usize = 2_048;

/// A request of the exchange.
struct Row {
    position: Position,
    request: Request,
    outcome: Outcome,
}

/// Prints all that is recorded of operators' requests, in the order of their stamps.
///
/// # Errors
/// If the record cannot be read.
pub(super) fn run(config: &SystemConfig, layout: &Layout, as_json: bool) -> CommandResult {
    let (mut rows, begins) = read(config, layout)?;
    rows.sort_by_key(|row| (row.request.stamp, row.request.shard, row.position));
    if as_json {
        let rows: Vec<Value> = rows.iter().map(fields).collect();
        let begins: Vec<Value> = begins
            .iter()
            .map(|(shard, position)| json!({ "shard": shard.0, "position": position.0 }))
            .collect();
        text::print(&json!({ "requests": rows, "begins": begins }).to_string());
        return Ok(());
    }
    for (shard, position) in &begins {
        text::print(&format!(
            "shard {shard}: records before position {position} were dropped; the archive has them"
        ));
    }
    let mut table =
        Table::new(["time", ">operator", ">shard", ">position", ">instrument", "asked", "became"]);
    for Row { position, request, outcome } in &rows {
        let (shard, instrument) = (request.shard.to_string(), request.instrument.to_string());
        let became = became(outcome);
        let (time, operator) = (utc::format(request.stamp), operator(request).to_string());
        table.row(vec![
            time,
            operator,
            shard,
            position.to_string(),
            instrument,
            what(&request.command),
            became,
        ]);
    }
    text::print(&table.render());
    Ok(())
}

/// The requests that the recorders keep, and with which position a shard begins where days were dropped.
fn read(
    config: &SystemConfig,
    layout: &Layout,
) -> Result<(Vec<Row>, BTreeMap<ShardId, Position>), NodeError> {
    let (mut stream, begins) = CommittedStream::of_all_kept(&HostWorld::new(layout)?, config)?;
    let mut rows = Vec::new();
    let mut on = |item: Committed<'_>| {
        let Committed::Result { record, .. } = item else { return Ok(()) };
        let request = record.request()?;
        // Gateways ask for that by themselves.
        if request.member == EXCHANGE && !request.command.is_repeatable() {
            rows.push(Row { position: record.position(), request, outcome: record.outcome()? });
        }
        Ok(())
    };
    while stream.poll(BATCH_MAX, &mut on)? > 0 {}
    Ok((rows, begins))
}

/// The session that asked: the series of the name.
fn operator(request: &Request) -> u16 {
    request.client_order_id.series()
}

fn became(outcome: &Outcome) -> String {
    match outcome.status {
        Status::Refused => format!("refused: {}", outcome.reason),
        status => status.to_string(),
    }
}

fn fields(row: &Row) -> Value {
    let Row { position, request, outcome } = row;
    json!({
        "time": utc::format(request.stamp),
        "operator": operator(request),
        "request": request.id.to_string(),
        "shard": request.shard.0,
        "position": position.0,
        "instrument": request.instrument.0,
        "asked": what(&request.command),
        "status": outcome.status.word(),
        "reason": outcome.reason.word(),
    })
}

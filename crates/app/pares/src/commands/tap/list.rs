//! `pares tap list`: the connections.

use std::collections::BTreeMap;

use pares_node::Layout;
use pares_tap::{TapedConnection, TapedPiece, TapedStream};
use pares_types::{GatewayId, Timestamp};
use serde_json::json;

use super::select::{Select, name, nothing, who};
use super::taped::{Follow, Taped, Taps};
use crate::error::CommandResult;
use crate::text::{self, Table, grouped};
use crate::utc;

const TITLES: [&str; 13] = [
    "gateway",
    ">connection",
    "opened",
    "seen",
    "door",
    "member",
    ">in",
    ">out",
    ">messages in",
    ">out",
    ">missing",
    "end",
    "peer",
];

/// Prints them.
///
/// # Errors
/// If there is no tap, or it cannot be read.
pub fn run(layout: &Layout, select: &Select, json: bool) -> CommandResult {
    let taps = select.read(layout)?;
    let (mut table, mut lines) = (Table::new(TITLES), String::new());
    for taped in &taps.taped {
        let mut counts = Counts::default();
        taped.follow(&mut counts)?;
        for (place, one) in &taped.connections {
            let counted = counts.0.get(place).copied().unwrap_or_default();
            match json {
                true => lines.push_str(&format!("{}\n", as_json(taped.gateway, one, counted))),
                false => table.row(row(taped.gateway, one, counted)),
            }
        }
    }
    if table.is_empty() && lines.is_empty() {
        nothing("connections");
    }
    if !table.is_empty() {
        lines = table.render();
    }
    if !json {
        lines.push_str(&lost(&taps));
    }
    text::print(&lines);
    taps.done()
}

/// What the taps lost, if anything.
fn lost(taps: &Taps) -> String {
    let sum = |(entries, bytes), taped: &Taped| (entries + taped.lost.0, bytes + taped.lost.1);
    match taps.taped.iter().fold((0, 0), sum) {
        (0, _) => String::new(),
        (entries, bytes) => format!("lost: {} entries, {} bytes\n", grouped(entries), grouped(bytes)),
    }
}

/// Messages that came in and that went out, by connection.
#[derive(Default)]
struct Counts(BTreeMap<(u64, u32), [u64; 2]>);

impl Follow for Counts {
    type State = TapedStream;

    fn begin(&mut self, connection: &TapedConnection) -> TapedStream {
        TapedStream::new(connection.door)
    }

    fn pass(
        &mut self,
        stream: &mut TapedStream,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        let counts = self.0.entry(connection.place()).or_default();
        let way = usize::from(!piece.is_in);
        stream.take(piece, |message| counts[way] += u64::from(message.is_whole));
        Ok(())
    }

    fn end(&mut self, _: TapedStream, _: &TapedConnection) -> CommandResult {
        Ok(())
    }
}

fn row(gateway: GatewayId, one: &TapedConnection, [come, gone]: [u64; 2]) -> Vec<String> {
    vec![
        gateway.to_string(),
        name(one),
        utc::format(Timestamp(one.opened_ns)),
        utc::format(Timestamp(one.seen_ns)),
        one.door.word().to_owned(),
        who(one),
        grouped(one.totals[0]),
        grouped(one.totals[1]),
        grouped(come),
        grouped(gone),
        grouped(one.missing[0] + one.missing[1]),
        one.end.name().to_owned(),
        one.addresses.split(' ').next().unwrap_or_default().to_owned(),
    ]
}

fn as_json(gateway: GatewayId, one: &TapedConnection, [come, gone]: [u64; 2]) -> serde_json::Value {
    json!({
        "gateway": gateway.0,
        "connection": name(one),
        "opened": utc::format(Timestamp(one.opened_ns)),
        "seen": utc::format(Timestamp(one.seen_ns)),
        "door": one.door.word(),
        "member": one.who.map(|(member, _)| member),
        "session": one.who.map(|(_, session)| session),
        "bytes_in": one.totals[0],
        "bytes_out": one.totals[1],
        "messages_in": come,
        "messages_out": gone,
        "missing_in": one.missing[0],
        "missing_out": one.missing[1],
        "end": one.end.name(),
        "addresses": one.addresses,
    })
}

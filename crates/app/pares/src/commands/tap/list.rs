//! `pares tap list`: the connections.

use pares_node::Layout;
use pares_tap::{TapedConnection, messages};
use pares_types::{GatewayId, Timestamp};
use serde_json::json;

use super::select::{Select, who};
use crate::error::CommandResult;
use crate::text::{self, Table, grouped};
use crate::utc;

/// Prints them.
///
/// # Errors
/// If there is no tap, or it cannot be read.
pub fn run(layout: &Layout, select: &Select, json: bool) -> CommandResult {
    let titles = [
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
    let (mut table, mut lines) = (Table::new(titles), String::new());
    let (mut lost_entries, mut lost_bytes) = (0, 0);
    for taped in select.read(layout, true)? {
        (lost_entries, lost_bytes) = (lost_entries + taped.lost.0, lost_bytes + taped.lost.1);
        for one in &taped.connections {
            match json {
                true => lines.push_str(&format!("{}\n", as_json(taped.gateway, one))),
                false => table.row(row(taped.gateway, one)),
            }
        }
    }
    if !json {
        lines = if table.is_empty() { "no connections\n".to_owned() } else { table.render() };
        if lost_entries > 0 {
            lines.push_str(&format!(
                "lost: {} entries, {} bytes\n",
                grouped(lost_entries),
                grouped(lost_bytes)
            ));
        }
    }
    text::print(&lines);
    Ok(())
}

/// Messages that came in and that went out.
fn counts(connection: &TapedConnection) -> [usize; 2] {
    let (come, gone): (Vec<_>, Vec<_>) = messages(connection)
        .into_iter()
        .filter(|message| message.is_whole)
        .partition(|message| message.is_in);
    [come.len(), gone.len()]
}

fn row(gateway: GatewayId, one: &TapedConnection) -> Vec<String> {
    let [come, gone] = counts(one);
    vec![
        gateway.to_string(),
        one.number.to_string(),
        utc::format(Timestamp(one.opened_ns)),
        utc::format(Timestamp(one.seen_ns)),
        one.door.name().to_owned(),
        who(one),
        grouped(one.totals[0]),
        grouped(one.totals[1]),
        grouped(come as u64),
        grouped(gone as u64),
        grouped(one.missing[0] + one.missing[1]),
        one.end.name().to_owned(),
        one.addresses.split(' ').next().unwrap_or_default().to_owned(),
    ]
}

fn as_json(gateway: GatewayId, one: &TapedConnection) -> serde_json::Value {
    let [come, gone] = counts(one);
    json!({
        "gateway": gateway.0,
        "connection": one.number,
        "opened": utc::format(Timestamp(one.opened_ns)),
        "seen": utc::format(Timestamp(one.seen_ns)),
        "door": one.door.name(),
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

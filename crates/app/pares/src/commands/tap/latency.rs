//! `pares tap latency`: how long answers took at the edge.

use std::collections::BTreeMap;

use pares_node::Layout;
use pares_tap::{TapDoor, TapedMeaning, TapedRole, meanings};
use serde_json::json;

use super::select::{Select, Span};
use crate::error::CommandResult;
use crate::text::{self, Table, duration, grouped};

/// Member and session, door, message type.
type Key = (u32, u16, TapDoor, String);

/// Prints them.
///
/// # Errors
/// If there is no tap, or it cannot be read.
pub fn run(layout: &Layout, select: &Select, json: bool) -> CommandResult {
    let (mut times, span): (BTreeMap<Key, Times>, _) = (BTreeMap::new(), select.span());
    for taped in select.read(layout, true)? {
        for connection in &taped.connections {
            let (member, session) = connection.who.unwrap_or_default();
            for (kind, ns) in answered(&meanings(connection), span) {
                let times = times.entry((member, session, connection.door, kind)).or_default();
                match ns {
                    Some(ns) => times.ns.push(ns),
                    None => times.unanswered += 1,
                }
            }
        }
    }
    times.values_mut().for_each(|times| times.ns.sort_unstable());
    match json {
        true => times.iter().for_each(|(key, times)| text::print(&format!("{}\n", as_json(key, times)))),
        false => print(&times),
    }
    Ok(())
}

/// Times of one type of message, in ascending order.
#[derive(Default)]
struct Times {
    ns: Vec<u64>,
    unanswered: u64,
}

impl Times {
    /// So many thousandths of them took no longer.
    fn at(&self, permille: usize) -> Option<u64> {
        let rank = (self.ns.len() * permille).div_ceil(1_000).max(1);
        self.ns.get(rank - 1).copied()
    }
}

/// Each request of a connection: its type, and how long its first answer took, if there is one.
fn answered(meanings: &[TapedMeaning], span: Span) -> Vec<(String, Option<u64>)> {
    let (mut asked, mut found): (BTreeMap<u64, (String, u64)>, Vec<_>) = (BTreeMap::new(), Vec::new());
    for one in meanings.iter().filter(|one| span.has(one.message.wall_ns)) {
        let Some(name) = one.name else { continue };
        match one.role {
            TapedRole::Request => _ = asked.entry(name).or_insert((one.kind.clone(), one.message.mono_ns)),
            TapedRole::Answer(..) | TapedRole::AnswerOnly | TapedRole::Refusal => {
                if let Some((kind, since_ns)) = asked.remove(&name) {
                    found.push((kind, Some(one.message.mono_ns.saturating_sub(since_ns))));
                }
            }
            TapedRole::Told(..) | TapedRole::Other => {}
        }
    }
    found.extend(asked.into_values().map(|(kind, _)| (kind, None)));
    found
}

fn print(times: &BTreeMap<Key, Times>) {
    let mut table =
        Table::new(["member", "door", "message", ">answered", ">unanswered", ">p50", ">p90", ">p99", ">max"]);
    for ((member, session, door, kind), times) in times {
        let mut row = vec![
            format!("{member}/{session}"),
            door.name().to_owned(),
            kind.clone(),
            grouped(times.ns.len() as u64),
            grouped(times.unanswered),
        ];
        row.extend([500, 900, 990, 1_000].map(|permille| times.at(permille).map_or("-".into(), duration)));
        table.row(row);
    }
    text::print(&if table.is_empty() { "no requests\n".to_owned() } else { table.render() });
}

fn as_json((member, session, door, kind): &Key, times: &Times) -> serde_json::Value {
    json!({
        "member": member,
        "session": session,
        "door": door.name(),
        "message": kind,
        "answered": times.ns.len(),
        "unanswered": times.unanswered,
        "p50_ns": times.at(500),
        "p90_ns": times.at(900),
        "p99_ns": times.at(990),
        "max_ns": times.at(1_000),
    })
}

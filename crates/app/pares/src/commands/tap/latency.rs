//! `pares tap latency`: how long answers took at the edge.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use pares_node::Layout;
use pares_port::TapDoor;
use pares_tap::{TapedConnection, TapedPiece, TapedRole, TapedTalk};
use serde_json::json;

use super::select::{Select, Span, nothing};
use super::taped::Follow;
use crate::error::CommandResult;
use crate::text::{self, Table, duration, grouped};

/// Member and session, door, message type.
type Key = (u32, u16, TapDoor, String);

/// Requests of a connection that are kept while they wait for an answer; of more, that with the lowest name counts as unanswered.
const ASKED_MAX: usize = 65_536;
/// Digits that times are kept to: a tap has more requests than fit into memory.
const DIGITS: u8 = 2;
/// What took longer counts as this: a day.
const TIME_MAX_NS: u64 = 86_400_000_000_000;

/// Prints them.
///
/// # Errors
/// If there is no tap, or one cannot be read.
pub fn run(layout: &Layout, select: &Select, json: bool) -> CommandResult {
    let mut timed = Timed { span: select.span(), times: BTreeMap::new() };
    let taps = select.read(layout)?;
    for taped in &taps.taped {
        taped.follow(&mut timed)?;
    }
    match json {
        _ if timed.times.is_empty() => nothing("requests"),
        true => {
            timed.times.iter().for_each(|(key, times)| text::print(&format!("{}\n", as_json(key, times))))
        }
        false => print(&timed.times),
    }
    taps.done()
}

/// Times of one type of message.
struct Times {
    ns: Histogram<u32>,
    unanswered: u64,
}

impl Default for Times {
    fn default() -> Self {
        let ns = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS).expect("legal bounds");
        Self { ns, unanswered: 0 }
    }
}

impl Times {
    /// So many thousandths of them took no longer.
    fn at(&self, permille: u32) -> Option<u64> {
        (!self.ns.is_empty()).then(|| self.ns.value_at_quantile(f64::from(permille) / 1_000.0))
    }
}

struct Timed {
    span: Span,
    times: BTreeMap<Key, Times>,
}

/// An open connection, and its requests that wait for an answer: type and time, by name.
struct Waiting {
    talk: TapedTalk,
    asked: BTreeMap<u64, (String, u64)>,
}

impl Timed {
    fn times(&mut self, connection: &TapedConnection, kind: String) -> &mut Times {
        let (member, session) = connection.who.unwrap_or_default();
        self.times.entry((member, session, connection.door, kind)).or_default()
    }
}

impl Follow for Timed {
    type State = Waiting;

    fn begin(&mut self, connection: &TapedConnection) -> Waiting {
        Waiting { talk: TapedTalk::new(connection.door), asked: BTreeMap::new() }
    }

    fn pass(
        &mut self,
        waiting: &mut Waiting,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        let (Waiting { talk, asked }, span) = (waiting, self.span);
        talk.take(piece, |one| match (one.name.filter(|_| span.has(one.message.wall_ns)), one.role) {
            (Some(name), TapedRole::Request | TapedRole::Unsure) => {
                asked.entry(name).or_insert((one.kind, one.message.mono_ns));
                if asked.len() > ASKED_MAX
                    && let Some((_, (kind, _))) = asked.pop_first()
                {
                    self.times(connection, kind).unanswered += 1;
                }
            }
            (Some(name), TapedRole::Answer(..) | TapedRole::Refusal) => {
                if let Some((kind, since_ns)) = asked.remove(&name) {
                    self.times(connection, kind).ns.saturating_record(piece.mono_ns.saturating_sub(since_ns));
                }
            }
            _ => {}
        });
        Ok(())
    }

    fn end(&mut self, waiting: Waiting, connection: &TapedConnection) -> CommandResult {
        for (kind, _) in waiting.asked.into_values() {
            self.times(connection, kind).unanswered += 1;
        }
        Ok(())
    }
}

fn print(times: &BTreeMap<Key, Times>) {
    let mut table =
        Table::new(["member", "door", "message", ">answered", ">unanswered", ">p50", ">p90", ">p99", ">max"]);
    for ((member, session, door, kind), times) in times {
        let mut row = vec![
            format!("{member}/{session}"),
            door.word().to_owned(),
            kind.clone(),
            grouped(times.ns.len()),
            grouped(times.unanswered),
        ];
        row.extend([500, 900, 990, 1_000].map(|permille| times.at(permille).map_or("-".into(), duration)));
        table.row(row);
    }
    text::print(&table.render());
}

fn as_json((member, session, door, kind): &Key, times: &Times) -> serde_json::Value {
    json!({
        "member": member,
        "session": session,
        "door": door.word(),
        "message": kind,
        "answered": times.ns.len(),
        "unanswered": times.unanswered,
        "p50_ns": times.at(500),
        "p90_ns": times.at(900),
        "p99_ns": times.at(990),
        "max_ns": times.at(1_000),
    })
}

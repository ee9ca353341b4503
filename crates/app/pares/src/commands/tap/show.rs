//! `pares tap show`: messages as text.

use std::collections::BTreeMap;

use pares_node::Layout;
use pares_tap::{TapedConnection, TapedMeaning, TapedPiece, TapedTalk};
use pares_types::{ClientOrderId, GatewayId, Timestamp};

use super::select::{Select, Span, name, nothing, who};
use super::taped::Follow;
use crate::error::CommandResult;
use crate::text;
use crate::utc;

/// Prints them.
///
/// # Errors
/// If there is no tap, or one cannot be read.
pub fn run(layout: &Layout, select: &Select, order: Option<ClientOrderId>, limit: usize) -> CommandResult {
    let (span, gateway) = (select.span(), GatewayId(0));
    let mut last = Last { span, order, limit, gateway, found: 0, lines: BTreeMap::new() };
    let taps = select.read(layout)?;
    for taped in &taps.taped {
        last.gateway = taped.gateway;
        taped.follow(&mut last)?;
    }
    let skipped = last.found - last.lines.len();
    if skipped > 0 {
        text::print(&format!("{skipped} earlier ones not shown: raise --limit to {}\n", last.found));
    }
    if last.lines.is_empty() {
        nothing("messages");
    }
    last.lines.values().for_each(|line| text::print(line));
    taps.done()
}

/// The last lines by time; of older ones their number is enough.
struct Last {
    span: Span,
    order: Option<ClientOrderId>,
    limit: usize,
    gateway: GatewayId,
    found: usize,
    lines: BTreeMap<(u64, usize), String>,
}

impl Follow for Last {
    type State = TapedTalk;

    fn begin(&mut self, connection: &TapedConnection) -> TapedTalk {
        TapedTalk::new(connection.door)
    }

    fn pass(
        &mut self,
        talk: &mut TapedTalk,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        talk.take(piece, |one| self.add(connection, &one));
        Ok(())
    }

    fn end(&mut self, mut talk: TapedTalk, connection: &TapedConnection) -> CommandResult {
        talk.finish(|one| self.add(connection, &one));
        Ok(())
    }
}

impl Last {
    fn add(&mut self, connection: &TapedConnection, one: &TapedMeaning) {
        let (order, wall_ns) = (self.order, one.message.wall_ns);
        let is_wanted = order.is_none_or(|order| [one.name, one.about].contains(&Some(order.0)));
        if !self.span.has(wall_ns) || !is_wanted {
            return;
        }
        let way = if one.message.is_in { "in " } else { "out" };
        let (time, who) = (utc::format(Timestamp(wall_ns)), who(connection));
        let place = format!("gateway-{} {} {who}", self.gateway, name(connection));
        self.found += 1;
        self.lines.insert((wall_ns, self.found), format!("{time} {place} {way} {}\n", one.text));
        if self.lines.len() > self.limit {
            self.lines.pop_first();
        }
    }
}

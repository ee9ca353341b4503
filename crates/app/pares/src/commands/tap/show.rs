//! `pares tap show`: messages as text.

use pares_node::Layout;
use pares_tap::{TapedMeaning, meanings};
use pares_types::{ClientOrderId, Timestamp};

use super::select::{Select, who};
use crate::error::CommandResult;
use crate::text;
use crate::utc;

/// Prints them.
///
/// # Errors
/// If there is no tap, or it cannot be read.
pub fn run(layout: &Layout, select: &Select, order: Option<ClientOrderId>, limit: usize) -> CommandResult {
    let span = select.span();
    let wanted = |one: &TapedMeaning| {
        span.has(one.message.wall_ns)
            && order.is_none_or(|order| [one.name, one.about].contains(&Some(order.0)))
    };
    let mut lines = Vec::new();
    for taped in select.read(layout, true)? {
        for connection in &taped.connections {
            let place = format!("gateway-{} {} {}", taped.gateway, connection.number, who(connection));
            for one in meanings(connection).into_iter().filter(wanted) {
                let way = if one.message.is_in { "in " } else { "out" };
                let time = utc::format(Timestamp(one.message.wall_ns));
                lines.push((one.message.wall_ns, format!("{time} {place} {way} {}\n", one.text)));
            }
        }
    }
    lines.sort_by_key(|(ns, _)| *ns);
    let skipped = lines.len().saturating_sub(limit);
    if skipped > 0 {
        text::print(&format!("{skipped} before these: --limit {}\n", lines.len()));
    }
    lines.iter().skip(skipped).for_each(|(_, line)| text::print(line));
    Ok(())
}

//! The top of every book.
//!
//! ```text
//!                  shares     bid   offer  shares        last  shares
//!   ALFA              400  182.49  182.51  300        ^ 182.51     100
//! ```

use pares_book::Level;
use pares_text::{cents, grouped, name};
use pares_types::{Phase, Side};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Row, Table};

use super::{CARE, FAINT, GOOD, KILLED, panel};
use crate::demo::market::Top;
use crate::demo::picture::Picture;

const BID: Style = Style::new().fg(Color::Cyan);
const ASK: Style = Style::new().fg(Color::Magenta);

/// With [`SPACING`] and a border, as wide as the panel.
const WIDTHS: [Constraint; 7] = [
    Constraint::Length(8),
    Constraint::Length(7),
    Constraint::Length(9),
    Constraint::Length(9),
    Constraint::Length(7),
    Constraint::Length(11),
    Constraint::Length(6),
];

/// Between two columns; without it a large figure runs into the next.
const SPACING: u16 = 1;
/// Columns of the panel.
pub(super) const PANEL: u16 = 65;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let titles = [
        ("", false),
        ("shares", true),
        ("bid", true),
        ("offer", true),
        ("shares", false),
        ("last", true),
        ("", true),
    ];
    let head = titles.map(|(title, is_right)| if is_right { right(title.into()) } else { Cell::new(title) });
    let rows = picture.tops.iter().map(row);
    let title = match &picture.day {
        Some(day) => day.clone(),
        None => format!("top of book, from the record; {} trades", grouped(picture.trades)),
    };
    let mut block = panel(title);
    if picture.day.is_some() {
        block = block.title_bottom(Line::styled(format!(" {} trades ", grouped(picture.trades)), FAINT));
    }
    if picture.differing > 0 {
        block = block.title_bottom(Line::styled(
            format!(" {} results not reproduced ", picture.differing),
            Style::new().fg(CARE),
        ));
    }
    let table =
        Table::new(rows, WIDTHS).header(Row::new(head).style(FAINT)).column_spacing(SPACING).block(block);
    frame.render_widget(table, area);
}

fn row(top: &Top) -> Row<'static> {
    let shares = |level: &Level| grouped(level.quantity.0);
    let price = |level: &Level| cents(level.price);
    let side =
        |level: Option<Level>, show: &dyn Fn(&Level) -> String| level.as_ref().map(show).unwrap_or_default();
    let (last, last_shares) = last(top);
    Row::new([
        Cell::new(format!(" {}", top.symbol)),
        right(side(top.bid, &shares)).style(FAINT),
        right(side(top.bid, &price)).style(BID),
        right(side(top.ask, &price)).style(ASK),
        Cell::new(side(top.ask, &shares)).style(FAINT),
        last,
        last_shares,
    ])
}

/// The last trade; in a call what its auction would do, and where nothing is possible the phase.
fn last(top: &Top) -> (Cell<'static>, Cell<'static>) {
    if let Some((price, quantity)) = top.indicative {
        let price = right(format!("◇ {}", cents(price))).style(Style::new().fg(CARE));
        return (price, right(grouped(quantity.0)).style(FAINT));
    }
    if matches!(top.phase, Phase::Closed | Phase::Halted) {
        return (right(name(&top.phase)).style(FAINT), Cell::new(""));
    }
    let Some(trade) = top.last else { return (Cell::new(""), Cell::new("")) };
    let (arrow, colour) = match trade.aggressor {
        Side::Buy => ('▲', GOOD),
        Side::Sell => ('▼', KILLED),
    };
    let price = right(format!("{arrow} {}", cents(trade.price))).style(Style::new().fg(colour));
    (price, right(grouped(trade.quantity.0)).style(FAINT))
}

pub(super) fn right(text: String) -> Cell<'static> {
    Cell::new(Line::from(text).alignment(Alignment::Right))
}

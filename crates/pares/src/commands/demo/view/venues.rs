//! The venues: who leads, how far each is.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::{CARE, FAINT, GOOD, KILLED, panel};
use crate::commands::demo::picture::{Condition, Picture, VenueLine};
use crate::text::{duration, grouped};

const WIDTHS: [Constraint; 7] = [
    Constraint::Length(9),
    Constraint::Length(18),
    Constraint::Length(12),
    Constraint::Length(9),
    Constraint::Length(12),
    Constraint::Length(13),
    Constraint::Length(9),
];

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let titles = ["", "", "position", "behind", "on record", "last resync", "killed"];
    let head = Row::new(titles.map(|title| right(title.to_owned()))).style(FAINT);
    let rows = picture.venues.iter().map(row);
    let table = Table::new(rows, WIDTHS).header(head).column_spacing(2).block(panel("venues"));
    frame.render_widget(table, area);
}

fn row(venue: &VenueLine) -> Row<'static> {
    let (words, style) = state(venue);
    let resync = match venue.resync.as_nanos() as u64 {
        0 => "-".to_owned(),
        ns => duration(ns),
    };
    let name = Style::new().add_modifier(if venue.leads { Modifier::BOLD } else { Modifier::empty() });
    Row::new([
        Cell::new(format!(" {}", venue.name())).style(name),
        Cell::new(words).style(style),
        right(grouped(venue.position)),
        right(if venue.behind == 0 { "-".to_owned() } else { grouped(venue.behind) }),
        right(format!("{} %", venue.share_percent)),
        right(resync),
        right(format!("{} x", venue.killed)),
    ])
}

fn state(venue: &VenueLine) -> (&'static str, Style) {
    match venue.condition {
        Condition::Down => ("x down", Style::new().fg(KILLED)),
        Condition::Resynchronising => ("o resynchronising", Style::new().fg(CARE)),
        Condition::Up if venue.just_killed => ("x killed, back", Style::new().fg(KILLED)),
        Condition::Up if venue.leads => ("● leads", Style::new().fg(GOOD)),
        Condition::Up => ("● follows", Style::new()),
    }
}

fn right(text: String) -> Cell<'static> {
    Cell::new(Text::from(Line::from(text).alignment(Alignment::Right)))
}

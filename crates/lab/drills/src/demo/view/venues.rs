//! The venues: who leads, how far each is.

use pares_text::{duration, grouped};
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::widgets::{Cell, Row, Table};

use super::book::right;
use super::{CARE, FAINT, GOOD, KILLED, panel};
use crate::demo::picture::{Condition, Picture, VenueLine};

const WIDTHS: [Constraint; 7] = [
    Constraint::Length(9),
    Constraint::Length(18),
    Constraint::Length(12),
    Constraint::Length(9),
    Constraint::Length(12),
    Constraint::Length(13),
    Constraint::Length(9),
];

/// The columns there is room for on a narrow terminal.
const NARROW: [usize; 5] = [0, 1, 2, 3, 6];
/// Columns that all of them take, with two between each and a border.
const WIDE: u16 = 82 + 12 + 2;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let kept: Vec<usize> = if area.width < WIDE { NARROW.to_vec() } else { (0..WIDTHS.len()).collect() };
    let titles = ["", "", "position", "behind", "on record", "last resync", "killed"];
    let head = Row::new(kept.iter().map(|&at| right(titles[at].to_owned()))).style(FAINT);
    let rows = picture.venues.iter().map(|venue| {
        let cells = cells(venue);
        Row::new(kept.iter().map(|&at| cells[at].clone()).collect::<Vec<_>>())
    });
    let widths = kept.iter().map(|&at| WIDTHS[at]);
    let table = Table::new(rows, widths).header(head).column_spacing(2).block(panel("venues"));
    frame.render_widget(table, area);
}

fn cells(venue: &VenueLine) -> [Cell<'static>; 7] {
    let (words, style) = state(venue);
    let resync = match venue.resync.as_nanos() as u64 {
        0 => "-".to_owned(),
        ns => duration(ns),
    };
    let name = Style::new().add_modifier(if venue.leads { Modifier::BOLD } else { Modifier::empty() });
    [
        Cell::new(format!(" {}", venue.name())).style(name),
        Cell::new(words).style(style),
        right(grouped(venue.position)),
        right(if venue.behind == 0 { "-".to_owned() } else { grouped(venue.behind) }),
        right(format!("{} %", venue.share_percent)),
        right(resync),
        right(format!("{} x", venue.killed)),
    ]
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

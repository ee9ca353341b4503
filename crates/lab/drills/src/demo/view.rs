//! The dashboard.
//!
//! ```text
//!   Pares  ...                                             00:42   header
//!   +- venues --------------------------------------------------+
//!   +---------------------------------------------+-------------+
//!   | completions per second, kills marked        | so far      |
//!   | longest gap in each second                  | last second |
//!   +---------------------------------------------+-------------+
//!   +- top of book ----------------------+- kills --------------+
//!   |                                    |                      |
//!   +------------------------------------+----------------------+
//!   keys                                                  footer
//! ```
//! Made for 100 x 30 and up; with 80 columns the venues' table is shorter, and the kills stand below the books. One colour per meaning, and little of it: green races, red is killed, cyan bids,
//! magenta offers; everything else is the terminal's own.

mod book;
mod pace;
mod venues;

use std::time::Duration;

use pares_text::{duration, grouped};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Paragraph};

use super::director::Happening;
use super::lines::clock;
use super::picture::Picture;

const GOOD: Color = Color::Green;
const KILLED: Color = Color::Red;
const CARE: Color = Color::Yellow;

/// What is there but not to be looked at.
const FAINT: Style = Style::new().fg(Color::DarkGray);

/// Columns of the shortest log worth reading.
const LOG: u16 = 34;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, picture: &Picture) {
    let venues = u16::try_from(picture.venues.len()).unwrap_or(u16::MAX).saturating_add(3);
    let rows = [
        Constraint::Length(1),
        Constraint::Length(venues),
        Constraint::Length(10),
        Constraint::Min(5),
        Constraint::Length(1),
    ];
    let [header, venues, pace, market, footer] = Layout::vertical(rows).areas(frame.area());
    let [charts, figures] = Layout::horizontal([Constraint::Min(40), Constraint::Length(33)]).areas(pace);
    // Beside the books a line of the log needs room; where there is none it goes below them.
    let [books, log] = match market.width < book::PANEL + LOG {
        true => Layout::vertical([Constraint::Min(5), Constraint::Length(6)]).areas(market),
        false => Layout::horizontal([Constraint::Length(book::PANEL), Constraint::Min(LOG)]).areas(market),
    };
    draw_header(frame, header, picture);
    venues::draw(frame, venues, picture);
    pace::draw_charts(frame, charts, picture);
    pace::draw_figures(frame, figures, picture);
    book::draw(frame, books, picture);
    draw_log(frame, log, picture);
    draw_footer(frame, footer, picture);
}

/// A panel with its title.
fn panel(title: impl Into<String>) -> Block<'static> {
    let title = Span::styled(format!(" {} ", title.into()), Style::new().add_modifier(Modifier::BOLD));
    Block::bordered().border_type(BorderType::Rounded).border_style(FAINT).title(title)
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let name = Span::styled(" Pares ", Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED));
    let what = format!(
        "  {} instruments, {} racing venues; {} requests per second offered",
        picture.tops.len(),
        picture.venues.len(),
        grouped(picture.rate)
    );
    let left = picture.until.map(|until| until.saturating_sub(picture.elapsed));
    let time = match left {
        Some(left) => format!("{}, {} left ", clock(picture.elapsed), whole(left)),
        None => format!("{} ", clock(picture.elapsed)),
    };
    let width = u16::try_from(time.len()).unwrap_or(u16::MAX).saturating_add(1);
    let [words, clock] = Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]).areas(area);
    frame.render_widget(Line::from(vec![name, Span::raw(what)]), words);
    frame.render_widget(Paragraph::new(time).alignment(Alignment::Right), clock);
}

fn whole(left: Duration) -> String {
    format!("{} s", left.as_secs_f64().ceil())
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let pause = if picture.paused { " go on killing" } else { " pause the killing" };
    let key = |key: &'static str| Span::styled(key, Style::new().add_modifier(Modifier::BOLD));
    let keys = [" q", " end   ", "k", " kill the leading venue now   ", "p", pause];
    let spans = keys.chunks(2).flat_map(|pair| [key(pair[0]), Span::styled(pair[1], FAINT)]);
    frame.render_widget(Line::from(spans.collect::<Vec<_>>()), area);
}

fn draw_log(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let block = panel(match picture.day {
        Some(_) => format!("{} kills, and the day", picture.kills()),
        None => format!("{} kills", picture.kills()),
    });
    let rows = usize::from(block.inner(area).height);
    let mut lines = Vec::new();
    for (when, happening) in picture.told.iter().take(rows) {
        let stamp = Span::styled(format!("{} ", clock(*when)), FAINT);
        lines.push(Line::from(vec![stamp, brief(happening)]));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// A happening in a few words.
fn brief(happening: &Happening) -> Span<'static> {
    match happening {
        Happening::Killed(venue) => {
            Span::styled(format!("venue-{venue} killed, leading"), Style::new().fg(KILLED))
        }
        Happening::Back(kill) => {
            let absent = duration(kill.absent.as_nanos() as u64);
            Span::raw(format!("venue-{} back, {absent}", kill.venue))
        }
        Happening::Died(death) => {
            Span::styled(format!("{} {}", death.node, death.how), Style::new().fg(CARE))
        }
        Happening::Day(news) => Span::styled(news.brief.clone(), Style::new().fg(GOOD)),
    }
}

#[cfg(test)]
mod tests;

//! A trader's terminal, drawn.

use std::collections::VecDeque;

use pares_desk::holdings::Holding;
use pares_desk::view::{ToldView, ViewLevel};
use pares_member::sources::MarketState;
use pares_types::ShardId;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Wrap};

use super::command::Ticket;
use super::state::TerminalState;

/// What is said below the line that is typed has at most so many rows.
const WORD_ROWS_MAX: usize = 5;

/// Draws all of it.
pub(super) fn draw(frame: &mut Frame<'_>, state: &TerminalState) {
    let word = Paragraph::new(state.word.as_str()).wrap(Wrap { trim: true });
    // Words that do not fit at the end of a row begin the next.
    let row = usize::from(frame.area().width.saturating_sub(12)).max(1);
    let word_rows = state.word.chars().count().div_ceil(row).clamp(1, WORD_ROWS_MAX);
    let rows = [Constraint::Min(6), Constraint::Length(1), Constraint::Length(word_rows as u16)];
    let [top, input, word_area] = Layout::vertical(rows).areas(frame.area());
    let [left, right] = Layout::horizontal([Constraint::Length(46), Constraint::Min(20)]).areas(top);
    let [orders, trades, messages] =
        Layout::vertical([Constraint::Length(6), Constraint::Fill(1), Constraint::Fill(1)]).areas(right);
    ladder(frame, left, state);
    let own = state.orders.iter().map(|(name, own)| {
        let (left, symbol) = (own.left, state.symbol(own.instrument));
        own.ticket.map_or_else(
            || format!("{name}: {left} of {symbol} left"),
            |Ticket { side, price, .. }| {
                format!("{name}: {} {left} of {symbol} at {price}", crate::text::name(&side))
            },
        )
    });
    list(frame, orders, " own orders ", &own.collect());
    list(frame, trades, " reports of the exchange ", &state.trades);
    list(frame, messages, " messages ", &state.messages);
    frame.render_widget(Paragraph::new(format!("> {}", state.input)), input);
    frame.render_widget(word.style(Style::new().fg(Color::DarkGray)), word_area);
}

/// What the data of the book shown are worth.
fn worth(state: &TerminalState, shard: u16) -> MarketState {
    state.market.get(&ShardId(shard)).copied().unwrap_or_default()
}

fn ladder(frame: &mut Frame<'_>, area: Rect, state: &TerminalState) {
    let who = match state.server {
        Some(server) => format!(" trader {} at server {server} ", state.trader),
        None => format!(" trader {}: no server ", state.trader),
    };
    let block = Block::bordered().title(who);
    let Some(book) = state.book() else {
        return frame.render_widget(Paragraph::new("no book yet").block(block), area);
    };
    let worth = worth(state, book.key.0);
    let view = &book.view;
    let mut lines = heading(book, worth);
    lines.push(Line::from(held(state)));
    lines.extend(view.offers.iter().rev().map(|level| rung(level, false)));
    lines.push(Line::from(Span::styled("-".repeat(42), Style::new().fg(Color::DarkGray))));
    lines.extend(view.bids.iter().map(|level| rung(level, true)));
    let shown = Paragraph::new(lines).block(block);
    // What may be wrong does not look like what is right.
    let style = if worth == MarketState::Current { Style::new() } else { Style::new().fg(Color::DarkGray) };
    frame.render_widget(shown.style(style), area);
}

/// Which book it is, and what that is worth.
fn heading(book: &ToldView, worth: MarketState) -> Vec<Line<'static>> {
    let view = &book.view;
    let last = view.last.map_or("-".to_owned(), |(at, quantity)| format!("{quantity} at {at}"));
    let state_word = match view.state {
        b'T' => "trading",
        b'Q' => "call",
        _ => "closed",
    };
    let name = format!("{} ({})  {state_word}", view.symbol, book.key.1);
    vec![
        Line::from(Span::styled(name, Style::new().add_modifier(Modifier::BOLD))),
        Line::from(format!("last {last}")),
        Line::from(Span::styled(format!("data: {}", worth.word()), colour(worth))),
    ]
}

/// What the member's trades of the instrument that is shown come to.
fn held(state: &TerminalState) -> String {
    match state.instrument().and_then(|instrument| state.holdings.get(instrument)) {
        None => String::new(),
        Some(Holding { shares, paid }) => {
            let (sign, units) = (if paid < 0 { "-" } else { "" }, paid.unsigned_abs());
            format!("held {shares}, paid {sign}{}.{:04}", units / 10_000, units % 10_000)
        }
    }
}

fn colour(state: MarketState) -> Style {
    match state {
        MarketState::Current => Style::new().fg(Color::Green),
        MarketState::Over => Style::new(),
        _ => Style::new().fg(Color::Red),
    }
}

fn rung(level: &ViewLevel, is_bid: bool) -> Line<'static> {
    let at = level.price.to_string();
    match is_bid {
        true => Line::from(format!("{:>10} {:>4} {at:>12}", level.quantity.0, level.orders)),
        false => Line::from(format!("{:>15} {at:>12} {:>10} {:>4}", "", level.quantity.0, level.orders)),
    }
}

/// The last lines that have room.
fn list(frame: &mut Frame<'_>, area: Rect, title: &'static str, lines: &VecDeque<String>) {
    let room = usize::from(area.height.saturating_sub(2));
    let shown = lines.iter().skip(lines.len().saturating_sub(room)).map(|line| Line::from(line.as_str()));
    let shown: Vec<_> = shown.collect();
    frame.render_widget(Paragraph::new(shown).block(Block::bordered().title(title)), area);
}

//! How fast the exchange answers, second by second, with the kills marked.

use pares_text::{duration, grouped};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline, SparklineBar};

use super::{CARE, FAINT, GOOD, KILLED, panel};
use crate::demo::minute::Second;
use crate::demo::picture::Picture;

/// The scale of the gaps' chart reaches at least so far: ordinary jitter should look ordinary.
const GAP_SCALE_NS: u64 = 5_000_000;

pub(super) fn draw_charts(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let last = picture.minute.last();
    let block = panel(format!("completions per second: {}", grouped(last.completed)));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = [Constraint::Min(2), Constraint::Length(1), Constraint::Length(1), Constraint::Length(2)]
        .map(Into::into);
    let [pace, kills, label, gaps] = Layout::vertical::<[Constraint; 4]>(rows).areas(inner);
    let seconds: Vec<Second> = picture.minute.lately(usize::from(inner.width)).copied().collect();
    let pace_scale = seconds.iter().map(|second| second.completed).max().unwrap_or(1).max(picture.rate);
    let gap_scale = seconds.iter().map(|second| second.gap_ns).max().unwrap_or(0).max(GAP_SCALE_NS);
    draw_bars(frame, pace, &seconds, pace_scale, Color::Blue, |second| second.completed);
    draw_kills(frame, kills, &seconds);
    let words = format!("longest gap: {} (scale to {})", duration(last.gap_ns), duration(gap_scale));
    frame.render_widget(Line::styled(words, FAINT), label);
    draw_bars(frame, gaps, &seconds, gap_scale, Color::Gray, |second| second.gap_ns);
}

/// A bar per second, the newest at the right; red where a node was killed.
fn draw_bars(
    frame: &mut Frame<'_>,
    area: Rect,
    seconds: &[Second],
    scale: u64,
    colour: Color,
    value: impl Fn(&Second) -> u64,
) {
    let missing = usize::from(area.width).saturating_sub(seconds.len());
    let bars = seconds.iter().map(|second| {
        let colour = if second.kills > 0 { KILLED } else { colour };
        SparklineBar::from(value(second)).style(Some(Style::new().fg(colour)))
    });
    let data = std::iter::repeat_n(SparklineBar::from(0), missing).chain(bars);
    frame.render_widget(Sparkline::default().data(data).max(scale), area);
}

fn draw_kills(frame: &mut Frame<'_>, area: Rect, seconds: &[Second]) {
    let missing = usize::from(area.width).saturating_sub(seconds.len());
    let marks: String = std::iter::repeat_n(' ', missing)
        .chain(seconds.iter().map(|second| if second.kills > 0 { 'x' } else { ' ' }))
        .collect();
    frame.render_widget(Line::styled(marks, Style::new().fg(KILLED)), area);
    if !seconds.iter().any(|second| second.kills > 0) {
        frame.render_widget(Line::styled("x marks a kill", FAINT), area);
    }
}

pub(super) fn draw_figures(frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
    let last = picture.minute.last();
    let (lost, lost_style) = match picture.lost_max {
        0 => ("0".to_owned(), GOOD),
        most => (format!("at most {most}"), CARE),
    };
    let duplicated_style = if picture.duplicated == 0 { GOOD } else { KILLED };
    let rows = [
        ("answered", grouped(picture.completed), Color::Reset),
        ("lost", lost, lost_style),
        ("duplicated", grouped(picture.duplicated), duplicated_style),
        ("latency p50", duration(last.p50_ns), Color::Reset),
        ("  p99", duration(last.p99_ns), Color::Reset),
        ("  p99.9", duration(last.p999_ns), Color::Reset),
        ("longest gap, kill", duration(picture.kill_gap_ns), Color::Reset),
        ("  otherwise", duration(picture.quiet_gap_ns), Color::Reset),
    ];
    let block = panel("so far, and the last second");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let words: Vec<Line<'_>> =
        rows.iter().map(|(what, ..)| Line::styled(format!(" {what}"), FAINT)).collect();
    let figures: Vec<Line<'_>> = rows
        .iter()
        .map(|(_, figure, colour)| Line::from(Span::styled(format!("{figure} "), Style::new().fg(*colour))))
        .collect();
    frame.render_widget(Paragraph::new(words), inner);
    frame.render_widget(Paragraph::new(figures).alignment(Alignment::Right), inner);
}

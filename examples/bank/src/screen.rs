//! The terminal: a few lines at the bottom that are always up to date, with what happened above them; or, where there is no terminal,
//! lines one after the other.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, poll, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};

use crate::board::Board;
use crate::clusters::{CLUSTERS, Clusters};

/// Without a terminal, the state is printed so often.
const TOLD_EVERY: Duration = Duration::from_secs(2);

/// Where everything is said.
pub enum Screen {
    /// Redrawn in place. How many lines were drawn, and what has been typed since the last order.
    Terminal {
        /// Lines of the view, to be drawn over.
        drawn: usize,
        /// Not yet ended by Enter.
        typed: String,
    },
    /// Lines. When the state was printed last.
    Plain {
        /// When.
        told: Instant,
    },
}

impl Screen {
    /// A terminal if there is one at both ends.
    pub fn open() -> std::io::Result<Self> {
        if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            enable_raw_mode()?;
            return Ok(Self::Terminal { drawn: 0, typed: String::new() });
        }
        Ok(Self::Plain { told: Instant::now() })
    }

    /// Something happened.
    pub fn say(&mut self, text: &str) {
        match self {
            Self::Plain { .. } => print(&format!("{text}\n")),
            Self::Terminal { drawn, .. } => {
                let text = text.replace('\n', "\r\n");
                print(&format!("{}{text}\r\n", back(*drawn)));
                *drawn = 0; // drawn again below what was said
            }
        }
    }

    /// This is how things are.
    pub fn show(&mut self, lines: &[String]) {
        match self {
            Self::Plain { told } if told.elapsed() < TOLD_EVERY => {}
            Self::Plain { told } => {
                *told = Instant::now();
                print(&format!("{}\n", lines.join("\n")));
            }
            Self::Terminal { drawn, typed } => {
                let width = size().map_or(80, |(columns, _)| usize::from(columns).max(20) - 1);
                let mut text = back(*drawn);
                for line in lines {
                    text.extend(line.chars().take(width));
                    text.push_str("\r\n");
                }
                text.push_str(&format!("(? for help) > {typed}"));
                *drawn = lines.len();
                print(&text);
            }
        }
    }

    /// Waits for `time`, or until something was typed: a whole line, or `q` for Ctrl-C.
    pub fn wait(&mut self, time: Duration) -> Option<String> {
        let Self::Terminal { typed, .. } = self else {
            std::thread::sleep(time);
            return None;
        };
        if !poll(time).unwrap_or(false) {
            return None;
        }
        let Ok(Event::Key(key)) = read() else { return None };
        if key.kind == KeyEventKind::Release {
            return None;
        }
        match key.code {
            KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some("q".into());
            }
            KeyCode::Char(c) => typed.push(c),
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Enter if !typed.trim().is_empty() => return Some(std::mem::take(typed)),
            _ => {}
        }
        None
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Self::Terminal { .. } = self {
            let _ = disable_raw_mode();
            print("\n");
        }
    }
}

/// To the beginning of what was drawn, and all that away.
fn back(drawn: usize) -> String {
    let up = if drawn > 0 { format!("\x1b[{drawn}A") } else { String::new() };
    format!("\r{up}\x1b[J")
}

fn print(text: &str) {
    // If nobody reads it any more, the bank is closed by the signal that comes with it, or continues to its end.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// How things are: a line for the whole, and one for each cluster.
pub fn lines(board: &Board, clusters: &Clusters, at: &str, capital: i64) -> Vec<String> {
    let link = if clusters.is_cut() { "link CUT" } else { "link up" };
    let verdict = if board.wrong.is_empty() { "OK" } else { "WRONG" };
    let era = board.latest().map_or_else(String::new, |sight| {
        let live: Vec<String> = sight.live.iter().map(u8::to_string).collect();
        format!("era {} ({} lost a cluster)   alive: {}", sight.era.1, sight.era.0, live.join(" "))
    });
    let mut lines = vec![format!(
        "{at}  {link}   {era}   total {} at {} looks: {verdict}",
        grouped(capital.unsigned_abs()),
        grouped(board.looks)
    )];
    lines.extend((0..CLUSTERS).map(|cluster| line_of(cluster, board, clusters)));
    lines
}

fn line_of(cluster: u8, board: &Board, clusters: &Clusters) -> String {
    let tally = board.tallies.get(&cluster).cloned().unwrap_or_default();
    let (rate, p50, p99) = tally.recent();
    let sites: Vec<String> = clusters
        .sites_of(cluster)
        .into_iter()
        .map(|site| {
            let name = format!("{}.{}", site.cluster.0, site.number);
            match board.sights.get(&site) {
                _ if !clusters.is_up(site) => format!("{name} down"),
                None => format!("{name} starting"),
                Some(sight) if sight.certifies => format!("{name} certifies"),
                Some(sight) if sight.delegate => format!("{name} delegate"),
                Some(_) => format!("{name} up"),
            }
        })
        .collect();
    let state = if board.lives(cluster) { "" } else { " (lost)" };
    format!(
        "  cluster {cluster}{state}: {rate}/s  p50 {:.0} p99 {:.0} ms   done {}, refused {}, turned away {}, repeated {}   {}",
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3,
        grouped(tally.done),
        grouped(tally.refused),
        grouped(tally.turned_away),
        grouped(tally.repeated),
        sites.join(", ")
    )
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_readable() {
        assert_eq!([0, 12, 123, 1_234, 1_234_567].map(grouped), ["0", "12", "123", "1,234", "1,234,567"]);
    }
}

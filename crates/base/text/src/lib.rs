//! Figures for people: aligned tables, grouped digits, times in a fitting unit, names of codes.
//!
//! Widths are counted in characters; everything printed here is ASCII.

pub mod moment;
pub mod output;
pub mod progress;

pub use output::print;

use std::fmt::{Debug, Display, Write};

/// A plain table: left-aligned words, right-aligned figures, two spaces between columns, no lines.
pub struct Table {
    rows: Vec<Vec<String>>,
    columns: Vec<Column>,
}

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Words.
    Left,
    /// Figures.
    Right,
}

impl Table {
    /// A table with a head; a title that starts with `>` heads a column of figures.
    pub fn new<'a>(titles: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut columns, mut head) = (Vec::new(), Vec::new());
        for title in titles {
            columns.push(if title.starts_with('>') { Column::Right } else { Column::Left });
            head.push(title.trim_start_matches('>').to_owned());
        }
        Self { rows: vec![head], columns }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one cell per column");
        self.rows.push(cells);
    }

    /// Whether there is nothing but the head.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The table, a line per row.
    pub fn render(&self) -> String {
        let width = |index: usize| self.rows.iter().map(|row| row[index].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &column), &width) in row.iter().zip(&self.columns).zip(&widths) {
                let written = match column {
                    Column::Left => write!(line, "{cell:<width$}  "),
                    Column::Right => write!(line, "{cell:>width$}  "),
                };
                written.expect("writing to a string never fails");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

/// `1234567` as `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Nanoseconds in a unit that leaves one to three digits before the point.
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{}.{} us", ns / 1_000, ns % 1_000 / 100),
        1_000_000..1_000_000_000 => format!("{}.{} ms", ns / 1_000_000, ns % 1_000_000 / 100_000),
        _ => format!("{}.{} s", ns / 1_000_000_000, ns % 1_000_000_000 / 100_000_000),
    }
}

/// So many of something that takes an `s`: `1 halt`, `1,204 trades`.
pub fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// A price with as many decimals as it needs, at least two.
pub fn cents(price: impl Display) -> String {
    let text = price.to_string();
    text.strip_suffix("00").map_or(text.clone(), str::to_owned)
}

/// An error's whole message has so many characters at most: a file or another program may have written a part of it.
pub const ERROR_MAX: usize = 4_000;

/// A text of others, of which a terminal takes no command: so many characters of it at most.
pub fn shown(text: &str, chars_max: usize) -> String {
    let is_shown = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let plain = |letter| if is_shown(letter) { letter } else { char::REPLACEMENT_CHARACTER };
    let rest = text.chars().nth(chars_max).map_or("", |_| "...");
    text.chars().take(chars_max).map(plain).collect::<String>() + rest
}

/// Bytes in a binary unit.
pub fn bytes(count: u64) -> String {
    let tenths = |unit: u32| format!("{}.{}", count >> unit, ((count & ((1 << unit) - 1)) * 10) >> unit);
    match count {
        0..0x400 => format!("{count} B"),
        0x400..0x10_0000 => format!("{} KiB", tenths(10)),
        0x10_0000..0x4000_0000 => format!("{} MiB", tenths(20)),
        _ => format!("{} GiB", tenths(30)),
    }
}

/// A fieldless variant without a table of words of its own, written as those are: `OpeningCall` is `opening_call`. Fields are left
/// out.
pub fn name(code: &impl Debug) -> String {
    let mut out = String::new();
    for letter in format!("{code:?}").chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

/// A time of day, nanoseconds since midnight, as text; without a fraction if there is none.
pub fn time_of_day(ns: u64) -> String {
    let (seconds, fraction) = (ns / 1_000_000_000, ns % 1_000_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let whole = format!("{hour:02}:{minute:02}:{second:02}");
    if fraction == 0 { whole } else { format!("{whole}.{fraction:09}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_align_left_and_figures_right() {
        let mut table = Table::new(["node", ">records"]);
        table.row(vec!["venue-0".into(), "7".into()]);
        table.row(vec!["x".into(), "1,234,567".into()]);
        assert_eq!(table.render(), "node       records\nvenue-0          7\nx        1,234,567\n");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn durations_and_sizes_take_a_fitting_unit() {
        assert_eq!(
            [999, 1_250, 12_345_678, 3_000_000_000].map(duration),
            ["999 ns", "1.2 us", "12.3 ms", "3.0 s"]
        );
        assert_eq!(
            [1_023, 1_536, 16 << 20, 5 << 30].map(bytes),
            ["1023 B", "1.5 KiB", "16.0 MiB", "5.0 GiB"]
        );
    }

    #[test]
    fn of_foreign_text_a_part_is_shown_without_control_characters() {
        assert_eq!(shown("a\tb\n\u{1b}[2Jc\r", 20), "a\tb\n\u{fffd}[2Jc\u{fffd}");
        assert_eq!(
            [shown("\u{e9}\u{e9}", 2), shown("\u{e9}\u{e9}\u{e9}", 2)],
            ["\u{e9}\u{e9}", "\u{e9}\u{e9}..."]
        );
    }

    #[test]
    fn things_are_counted_as_people_do() {
        assert_eq!(
            [0, 1, 1_204].map(|number| count(number, "trade")),
            ["0 trades", "1 trade", "1,204 trades"]
        );
    }

    #[test]
    fn codes_are_named_as_in_the_protocol() {
        #[derive(Debug)]
        #[allow(dead_code)] // only its names are looked at
        enum Code {
            UnknownOrder,
            Gtd { until: u64 },
        }
        assert_eq!(name(&Code::UnknownOrder), "unknown_order");
        assert_eq!(name(&Code::Gtd { until: 7 }), "gtd");
    }
}

//! What a command found, told: to programs as one JSON object, to people as the same names and figures in lines and tables.
//!
//! Sentences of each command's own say the same figures under other names, and lack the newest of them. So what a command found is
//! written once, as the fields of a struct, and both forms are made of it: a name is that of the JSON key, and no figure can be left
//! out of either.
//!
//! ```text
//!   kills            100
//!   resync ms        12.3          fields; those of a struct inside stand behind its name
//!
//!   faults  max gap ms  back ms
//!   cut            410    1,208    a list of structs is a table, and where it is wide it is turned: a line per field
//! ```

use std::fmt::Formatter;

use pares_text::{Table, grouped};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{LabError, LabResult};

/// A table of more columns is turned.
const COLUMNS_MAX: usize = 10;

/// Prints what a command found, as JSON or for people.
///
/// # Panics
/// If it cannot be written as JSON.
pub fn print_figures(json: bool, figures: &impl Serialize) {
    pares_text::print(&figures_text(json, figures));
}

/// What a command found, as JSON or for people.
///
/// # Panics
/// If it cannot be written as JSON.
#[must_use]
pub fn figures_text(json: bool, figures: &impl Serialize) -> String {
    let written = serde_json::to_string(figures).expect("figures are plain numbers");
    if json {
        return written;
    }
    serde_json::from_str::<Figure>(&written).expect("written above").text()
}

/// Whether nothing of this was found.
///
/// # Errors
/// What was, and how often.
pub fn none_of<'a>(counts: impl IntoIterator<Item = (u64, &'a str)>) -> LabResult {
    let found = counts.into_iter().filter(|(count, _)| *count > 0);
    match found.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>() {
        none if none.is_empty() => Ok(()),
        found => Err(LabError::Failed(found.join(", "))),
    }
}

/// Some values in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: usize,
    /// The least.
    pub min: f64,
    /// The middle one; of an even number the upper.
    pub median: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of values in a unit that the figures are to be divided by; `None` of none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = u64>, unit: f64) -> Option<Self> {
        let mut sorted: Vec<u64> = values.into_iter().collect();
        sorted.sort_unstable();
        let at = |index: usize| sorted.get(index).map(|&value| value as f64 / unit);
        Some(Self {
            count: sorted.len(),
            min: at(0)?,
            median: at(sorted.len() / 2)?,
            max: at(sorted.len() - 1)?,
        })
    }
}

/// A JSON value in the order in which it was written.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Figure {
    /// There is none.
    Missing,
    Is(bool),
    Count(u64),
    Negative(i64),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Fields(#[serde(deserialize_with = "in_order")] Vec<(String, Self)>),
}

impl Figure {
    fn text(&self) -> String {
        let (mut lines, mut tables) = (Table::new(["", ""]), Vec::new());
        self.tell("", &mut lines, &mut tables);
        // Without the head, which is empty.
        let lines = lines.render().split_once('\n').map_or_else(String::new, |(_, lines)| lines.to_owned());
        [lines].into_iter().chain(tables).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// Fields as lines, and lists of structs as tables below all of them.
    fn tell(&self, name: &str, lines: &mut Table, tables: &mut Vec<String>) {
        match self {
            Self::Missing => {}
            Self::List(items) if items.iter().any(|item| matches!(item, Self::Fields(_))) => {
                tables.push(table(name, items));
            }
            Self::Fields(fields) => {
                fields.iter().for_each(|(field, value)| value.tell(&joined(name, field), lines, tables));
            }
            // As `--seed` takes it.
            Self::Count(seed) if name.ends_with("seed") => lines.row(vec![name.to_owned(), seed.to_string()]),
            other => lines.row(vec![name.to_owned(), other.word()]),
        }
    }

    /// In a cell.
    fn word(&self) -> String {
        match self {
            Self::Missing => "-".to_owned(),
            Self::Is(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            Self::Count(number) => grouped(*number),
            Self::Negative(number) => format!("-{}", grouped(number.unsigned_abs())),
            Self::Number(number) => decimal(*number),
            Self::Text(text) => text.clone(),
            Self::List(items) if items.is_empty() => "none".to_owned(),
            Self::List(items) => items.iter().map(Self::word).collect::<Vec<_>>().join(", "),
            Self::Fields(fields) => {
                let words = fields.iter().map(|(field, value)| format!("{field} {}", value.word()));
                words.collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Fields by name, those of structs inside among them.
    fn cells(&self, name: &str, cells: &mut Vec<(String, String)>) {
        match self {
            Self::Fields(fields) => {
                fields.iter().for_each(|(field, value)| value.cells(&joined(name, field), cells));
            }
            other => cells.push((name.to_owned(), other.word())),
        }
    }
}

fn joined(name: &str, field: &str) -> String {
    let field = field.replace(['_', '-'], " ");
    if name.is_empty() { field } else { format!("{name} {field}") }
}

/// A line per item, or a column if they have many fields. What the first one has is what all are shown with.
fn table(name: &str, items: &[Figure]) -> String {
    let rows: Vec<Vec<(String, String)>> = items
        .iter()
        .map(|item| {
            let mut cells = Vec::new();
            item.cells("", &mut cells);
            cells
        })
        .collect();
    let fields: Vec<&str> = rows.first().into_iter().flatten().map(|(field, _)| field.as_str()).collect();
    let cell = |row: &Vec<(String, String)>, field: &str| {
        row.iter().find(|(other, _)| other == field).map_or_else(|| "-".to_owned(), |(_, cell)| cell.clone())
    };
    if fields.len() > COLUMNS_MAX {
        let mut table = Table::new([name].into_iter().chain(rows.iter().map(|_| ">")));
        for field in fields {
            table
                .row([field.to_owned()].into_iter().chain(rows.iter().map(|row| cell(row, field))).collect());
        }
        return table.render();
    }
    let titles: Vec<String> = (0..).zip(&fields).map(|(at, field)| title(name, at, field)).collect();
    let mut table = Table::new(titles.iter().map(String::as_str));
    rows.iter().for_each(|row| table.row(fields.iter().map(|field| cell(row, field)).collect()));
    table.render()
}

/// The first column is headed by the list's name too.
fn title(name: &str, at: usize, field: &str) -> String {
    match at {
        0 if field == name.trim_end_matches('s') => name.to_owned(),
        0 => format!("{name}: {field}"),
        _ => format!(">{field}"),
    }
}

/// As many decimals as say something: `1234.6`, `12.35`, `0.123`.
fn decimal(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.1}"),
        10.0..100.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

/// Fields as they come.
fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Figure)>, D::Error> {
    from.deserialize_map(InOrder)
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(String, Figure)>;

    fn expecting(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = from.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Fault {
        fault: &'static str,
        gap_ms: f64,
        back_ms: Option<f64>,
    }

    #[derive(Serialize)]
    struct Found {
        drill: &'static str,
        lost: u64,
        resync_ms: Option<f64>,
        by_cluster: [u64; 2],
        first_seed: u64,
        failures: Vec<Fault>,
        commit: Fault,
        faults: Vec<Fault>,
        is_right: bool,
    }

    fn found() -> Found {
        let fault = |fault, gap_ms, back_ms| Fault { fault, gap_ms, back_ms };
        let faults = vec![fault("cut", 1_234.56, None), fault("kill", 12.345, Some(0.5))];
        let commit = fault("none", 1.0, None);
        Found {
            drill: "wice",
            lost: 12_345,
            resync_ms: None,
            by_cluster: [1, 2_000],
            first_seed: 7_000,
            failures: Vec::new(),
            commit,
            faults,
            is_right: true,
        }
    }

    #[test]
    fn text_and_json_have_the_same_names_in_order() {
        let wanted = "drill         wice\nlost          12,345\nby cluster    1, 2,000\nfirst seed    7000\nfailures      none\ncommit fault  none\n\
                      commit gap ms 1.000\nis right      yes\n";
        let text = figures_text(false, &found());
        let squeeze = |text: &str| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let (lines, table) = text.split_once("\n\n").unwrap();
        assert_eq!(squeeze(lines), squeeze(wanted));
        assert_eq!(table, "faults  gap ms  back ms\ncut     1234.6        -\nkill     12.35    0.500\n");
        assert!(figures_text(true, &found()).starts_with(r#"{"drill":"wice","lost":12345,"resync_ms":null"#));
    }

    #[test]
    fn a_wide_table_is_turned() {
        let row = |first: u64| (0..11).map(|at| (format!("f{at:02}"), first + at)).collect();
        let rows: Vec<std::collections::BTreeMap<String, u64>> = vec![row(1), row(100)];
        let text = figures_text(false, &std::collections::BTreeMap::from([("rows", rows)]));
        assert!(text.contains("\nf08    9  108\n"), "{text}");
    }

    #[test]
    fn a_spread_needs_no_order() {
        let spread = Spread { count: 3, min: 1.0, median: 2.5, max: 9.0 };
        assert_eq!(Spread::of([9_000, 1_000, 2_500], 1e3), Some(spread));
        assert_eq!(Spread::of([], 1e3), None);
    }

    #[test]
    fn what_was_found_is_named_with_its_count() {
        assert!(none_of([(0, "lost")]).is_ok());
        assert_eq!(
            none_of([(2, "lost"), (0, "x"), (1, "twice")]).unwrap_err().to_string(),
            "2 lost, 1 twice"
        );
    }
}

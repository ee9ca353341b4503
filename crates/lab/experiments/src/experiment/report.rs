//! What an experiment leaves: CSV and SVG files, and its section of `results.md`.
//!
//! ```text
//! <!-- fig3 -->
//! ## Figure 3: ...          replaced when fig3 is run again; all other text of the file is kept
//! <!-- end fig3 -->
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pares_load::{LabError, LabResult};
use pares_text::Table;

use super::Context;
use pares_chart::{Axis, Scale};
pub use pares_chart::{Chart, Look, Series};

/// What an experiment gave.
pub(crate) struct Report {
    /// As on the command line.
    pub name: &'static str,
    /// The section's title.
    pub title: &'static str,
    /// What the paper did and found.
    pub paper: &'static str,
    /// What was done here, as far as it differs.
    pub here: String,
    /// The charts' files, without the ending, each with what it shows.
    pub charts: Vec<(String, String)>,
    /// Ours beside the paper's.
    pub grids: Vec<Grid>,
    /// The same for programs.
    pub figures: serde_json::Value,
}

/// A table. A title that begins with `>` heads a column of figures.
pub struct Grid {
    /// Column titles.
    pub head: Vec<&'static str>,
    /// A cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table: its title, and what stands in it of a row's subject.
pub type Column<'a, T> = (&'static str, &'a dyn Fn(&T) -> String);

impl Grid {
    /// A row for each subject.
    pub fn of<'t, T: 't>(subjects: impl IntoIterator<Item = &'t T>, columns: &[Column<'_, T>]) -> Self {
        let row = |subject| columns.iter().map(|(_, cell)| cell(subject)).collect();
        let head = columns.iter().map(|(title, _)| *title).collect();
        Self { head, rows: subjects.into_iter().map(row).collect() }
    }

    /// For a terminal.
    fn text(&self) -> String {
        let mut table = Table::new(self.head.iter().copied());
        self.rows.iter().for_each(|row| table.row(row.clone()));
        table.render()
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let titles = self.head.iter().map(|title| title.trim_start_matches('>')).collect();
        let rule = self.head.iter().map(|title| if title.starts_with('>') { "--:" } else { "---" }).collect();
        let rows = self.rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
        [line(titles), line(rule)].into_iter().chain(rows).collect()
    }
}

impl Report {
    /// For a terminal.
    pub fn text(&self) -> String {
        let grids: Vec<String> = self.grids.iter().map(Grid::text).collect();
        format!("{}\n\n{}", self.title, grids.join("\n"))
    }

    /// Puts the section into `results.md`.
    ///
    /// # Errors
    /// If that cannot be read or written.
    pub fn save(&self, context: &Context) -> LabResult {
        let path = context.page();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "# Results\n".to_owned(),
            Err(error) => return Err(LabError::io(format!("reading {}", path.display()))(error)),
        };
        let section = self.section(context);
        std::fs::write(&path, replaced(&text, self.name, &section))
            .map_err(LabError::io(format!("writing {}", path.display())))
    }

    fn section(&self, context: &Context) -> String {
        let folder = context.out.file_name().map_or(".".into(), |name| name.to_string_lossy());
        let mut out = format!("## {}\n\nThe paper: {}\n\nHere: {}\n\n", self.title, self.paper, self.here);
        for (file, shows) in &self.charts {
            writeln!(out, "![{shows}]({folder}/{file}.svg)\n").expect("writing to a string never fails");
        }
        for grid in &self.grids {
            writeln!(out, "{}", grid.markdown()).expect("as above");
        }
        let quick = if context.quick { " --quick` (a trial: these figures mean little)" } else { "`" };
        let data: Vec<String> =
            self.data().map(|file| format!("[{file}.csv]({folder}/{file}.csv)")).collect();
        let data = if data.is_empty() { String::new() } else { format!("; data: {}", data.join(", ")) };
        let command = self.command();
        writeln!(out, "{}, commit {}: `pares experiment {command}{quick}{data}.", machine(), commit())
            .expect("as above");
        out
    }

    /// How it is asked for: a name with a dash is that of an experiment with an option.
    fn command(&self) -> String {
        match self.name.split_once('-') {
            Some((experiment, option)) => format!("{experiment} --{option} FILE"),
            None => self.name.to_owned(),
        }
    }

    /// The CSV files: one per chart.
    fn data(&self) -> impl Iterator<Item = &str> {
        self.charts.iter().map(|(file, _)| file.as_str())
    }
}

/// The text with the section between the marks of `name` replaced, or put at its end.
fn replaced(text: &str, name: &str, section: &str) -> String {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- end {name} -->"));
    let block = format!("{open}\n{section}{close}");
    let found =
        text.find(&open).and_then(|start| Some(start..start + text[start..].find(&close)? + close.len()));
    match found {
        Some(range) => format!("{}{block}{}", &text[..range.start], &text[range.end..]),
        None => format!("{}\n\n{block}\n", text.trim_end()),
    }
}

/// Cores, processor and kernel.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, Linux {}", kernel.trim())
}

/// The commit of the working directory, and whether the code was changed since.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ":/crates"]);
    match (git(&["rev-parse", "--short=12", "HEAD"]), changed) {
        (Some(commit), Some(changed)) if changed.is_empty() => commit,
        (Some(commit), _) => format!("{commit} with changes"),
        (None, _) => "unknown".to_owned(),
    }
}

impl Context {
    /// Writes a chart and the data it shows, under one name.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, name: &str, chart: &Chart, csv: &str) -> LabResult {
        let path = self.file(name, "svg");
        chart.save(&path).map_err(LabError::io(format!("drawing {}", path.display())))?;
        let path = self.file(name, "csv");
        std::fs::write(&path, csv).map_err(LabError::io(format!("writing {}", path.display())))
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        Path::new(&self.out).join(format!("{name}.{ending}"))
    }
}

/// An axis on which equal differences are equally long.
pub fn linear(label: &'static str) -> Axis {
    Axis { label, scale: Scale::Linear }
}

/// An axis on which equal ratios are.
pub fn logarithmic(label: &'static str) -> Axis {
    Axis { label, scale: Scale::Log }
}

/// Points under a name.
pub fn series(name: impl Into<String>, look: Look, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    Series { name: name.into(), look, points: points.into_iter().collect() }
}

/// A chart without marks.
pub fn chart(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
    Chart { title: title.into(), x, y, series, marks: Vec::new() }
}

/// `1 symbol`, `10 symbols`.
pub fn count(n: u32, of: &str) -> String {
    format!("{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// Lines of comma-separated values, the titles first.
pub fn csv(titles: &str, rows: impl IntoIterator<Item = Vec<f64>>) -> String {
    let mut out = format!("{titles}\n");
    for row in rows {
        let cells: Vec<String> = row.iter().map(|value| format!("{}", (value * 1e4).round() / 1e4)).collect();
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_alone_and_put_at_the_end_if_new() {
        let text = "# Results\n\n<!-- fig3 -->\nold\n<!-- end fig3 -->\n\nkept\n";
        let once = replaced(text, "fig3", "new\n");
        assert_eq!(once, "# Results\n\n<!-- fig3 -->\nnew\n<!-- end fig3 -->\n\nkept\n");
        let twice = replaced(&once, "fig4", "four\n");
        assert!(
            twice.starts_with(once.trim_end()) && twice.ends_with("<!-- fig4 -->\nfour\n<!-- end fig4 -->\n")
        );
    }

    #[test]
    fn figures_in_csv_are_rounded_to_a_ten_thousandth() {
        assert_eq!(csv("a,b", [vec![1.0, 0.123_456]]), "a,b\n1,0.1235\n");
    }
}

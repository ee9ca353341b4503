//! A run as a picture: replies over time, and below it, where it is known, what commands waited for, as in paper 4, figure 6.3.

use std::fs::OpenOptions;
use std::path::Path;

use pares_chart::{Axis, Chart, Look, Scale, Series};

use crate::figures::RunFigures;
use crate::tally::BacklogSample;

/// Whether it can be written to `path`; nothing is there afterwards that was not.
///
/// # Errors
/// If not.
pub(crate) fn can_draw(path: &Path) -> std::io::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new().create(true).append(true).open(path)?;
    if is_new { std::fs::remove_file(path) } else { Ok(()) }
}

/// Writes it to `path`.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn draw(figures: &RunFigures, path: &Path) -> std::io::Result<()> {
    let charts: Vec<Chart> =
        std::iter::once(throughput(figures)).chain(figures.backlog.as_deref().map(backlog)).collect();
    pares_chart::save(&charts.iter().collect::<Vec<_>>(), path)
}

fn throughput(figures: &RunFigures) -> Chart {
    let slots = (0_u32..).zip(&figures.per_100ms);
    let points = slots.map(|(slot, replies)| (f64::from(slot) / 10.0, *replies as f64 * 10.0)).collect();
    let marks = figures.last_quote_s.map(|at| (at, "the last quote came".to_owned()));
    let series = vec![Series { name: "replies".into(), points, look: Look::Steps }];
    chart(
        "Commands a second",
        "commands a second, in tenths of a second",
        series,
        marks.into_iter().collect(),
    )
}

fn backlog(samples: &[BacklogSample]) -> Chart {
    let line = |name: &str, count: fn(&BacklogSample) -> usize| {
        let point = |sample: &BacklogSample| (sample.ms as f64 / 1e3, count(sample) as f64);
        let points = samples.iter().map(point).collect();
        Series { name: name.into(), points, look: Look::Steps }
    };
    let series = vec![
        line("waiting for an earlier command of their user's", |sample| sample.for_users),
        line("waiting for a quote", |sample| sample.for_quotes),
        line("at the accounts", |sample| sample.under_way),
    ];
    chart("Commands without a reply", "commands", series, Vec::new())
}

fn chart(title: &str, y: &'static str, series: Vec<Series>, marks: Vec<(f64, String)>) -> Chart {
    let axis = |label| Axis { label, scale: Scale::Linear };
    Chart { title: title.into(), x: axis("seconds"), y: axis(y), series, marks }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_picture_path_is_detected_beforehand() {
        let dir = tempfile::tempdir().unwrap();
        assert!(can_draw(&dir.path().join("none/x.svg")).is_err());
        let path = dir.path().join("x.svg");
        can_draw(&path).unwrap();
        assert!(!path.exists());
        std::fs::write(&path, "of before").unwrap();
        can_draw(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"of before");
    }
}

//! Charts of a day trading system.

use pares_brokerage::{BacklogSample, RunFigures};
use pares_load::LabError;

use super::super::Context;
use super::super::report::{Look, Series, chart, csv, linear, series};
use super::desks::{DeskPoint, Division};
use super::runs::Runs;
use super::workers::WorkersPoint;

/// Tenths of a second that are one point.
const TENTHS: usize = 5;
/// Workers whose backlog is drawn, of twelve.
const SHOWN: [usize; 4] = [0, 3, 7, 11];

/// Writes them: files, and what they show.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write(
    context: &Context,
    desks: &[DeskPoint],
    workers: &[WorkersPoint],
    runs: &Runs,
) -> Result<Vec<(String, String)>, LabError> {
    let some = ["quotes take 0 to 4 s", "asked again after 30 ms", "quotes at once"];
    let users = ["quotes take 0 to 4 s", "10 users", "1,000 users"];
    let charts = [
        ("daytrading", "Commands a second, 100,000 commands", throughput(runs, &some)),
        ("daytrading2", "Questions by the number of quote desks (figure 6.2)", questions(desks)),
        ("daytrading3", "Commands loaded and without a reply (figure 6.3)", backlog(workers, runs)),
        ("daytrading4", "What some of the paper's twelve workers have left (figure 6.4)", starving(workers)),
        ("daytrading5", "Users all of whose commands have their replies", idle(runs, &users)),
    ];
    let mut written = Vec::new();
    for (file, shows, ((x, y), lines)) in charts {
        let rows = (0_u32..)
            .zip(&lines)
            .flat_map(|(at, line)| line.points.iter().map(move |(x, y)| vec![f64::from(at), *x, *y]));
        let data = csv("series,x,y", rows);
        context.write(file, &chart(shows, linear(x), linear(y), lines), &data)?;
        written.push((file.to_owned(), shows.to_owned()));
    }
    Ok(written)
}

type Lines = ((&'static str, &'static str), Vec<Series>);

fn throughput(runs: &Runs, names: &[&str]) -> Lines {
    let of = |figures: &RunFigures| {
        let seconds = TENTHS as f64 / 10.0;
        let chunks = (0_u32..).zip(figures.per_100ms.chunks(TENTHS));
        let point = |(at, chunk): (u32, &[u64])| {
            (f64::from(at) * seconds, chunk.iter().sum::<u64>() as f64 / (chunk.len() as f64 / 10.0))
        };
        chunks.map(point).collect::<Vec<_>>()
    };
    let lines = runs.named(names).map(|(name, figures)| series(name, Look::Steps, of(figures)));
    (("seconds", "commands a second"), lines.collect())
}

fn questions(desks: &[DeskPoint]) -> Lines {
    let of = |division| {
        let points = desks.iter().filter(move |point: &&DeskPoint| point.division == division);
        points.map(|point| (point.desks as f64, point.hits as f64))
    };
    let lines = vec![
        series("a desk for each stock", Look::Line, of(Division::ByStock)),
        series("in turn, hearing each other, as in the paper", Look::Line, of(Division::InTurn)),
    ];
    (("quote desks", "questions to the quote server"), lines)
}

fn backlog(workers: &[WorkersPoint], runs: &Runs) -> Lines {
    let theirs = workers.iter().filter(|point| point.workers % 2 == 0).map(|point| {
        let totals = (0_u32..).zip(&point.left);
        let points = totals.map(|(at, left)| (f64::from(at) / 2.0, left.iter().sum::<usize>() as f64));
        series(format!("the paper, {} workers, computed", point.workers), Look::Steps, points)
    });
    let open = |sample: &BacklogSample| sample.for_quotes + sample.for_users + sample.under_way;
    let ours = runs.large().map(|(name, figures)| {
        let points =
            figures.backlog.iter().flatten().map(|sample| (sample.ms as f64 / 1e3, open(sample) as f64));
        series(format!("here, {name}"), Look::Steps, points)
    });
    (("seconds", "commands"), theirs.chain(ours).collect())
}

fn starving(workers: &[WorkersPoint]) -> Lines {
    let of = |point: &WorkersPoint, worker: usize| {
        let left = point.left.iter().map(|left| left[worker] as f64);
        (0_u32..).zip(left).map(|(at, left)| (f64::from(at) / 2.0, left)).collect::<Vec<_>>()
    };
    let twelve = workers.last().into_iter();
    let lines = twelve.flat_map(|point| {
        SHOWN.map(|worker| series(format!("worker {}", worker + 1), Look::Steps, of(point, worker)))
    });
    (("seconds", "commands"), lines.collect())
}

fn idle(runs: &Runs, names: &[&str]) -> Lines {
    let lines = runs.named(names).map(|(name, figures)| {
        let share = |sample: &BacklogSample| sample.idle_users as f64 / figures.users.max(1) as f64 * 100.0;
        let points = figures.backlog.iter().flatten().map(|sample| (sample.ms as f64 / 1e3, share(sample)));
        let name = if name.ends_with("users") { name } else { "100 users" };
        series(name, Look::Steps, points)
    });
    (("seconds", "per cent of the users"), lines.collect())
}

//! `pares broker generate`: workloads of any size, in the mix of the largest one known.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use pares_broker::{StockSymbol, dollars};
use pares_front::SeededDraw;

use crate::error::{BrokerageError, BrokerageResult};

/// Commands, and how many of a thousand they are: of 1,200,000 commands, counted. What of a thousand is left over is quotes.
const MIX: [(&str, u64); 14] = [
    ("BUY", 141),
    ("ADD", 111),
    ("DISPLAY_SUMMARY", 90),
    ("SET_BUY_TRIGGER", 84),
    ("COMMIT_BUY", 82),
    ("SET_SELL_TRIGGER", 73),
    ("SELL", 63),
    ("SET_BUY_AMOUNT", 49),
    ("SET_SELL_AMOUNT", 45),
    ("COMMIT_SELL", 44),
    ("CANCEL_BUY", 24),
    ("CANCEL_SET_SELL", 24),
    ("CANCEL_SELL", 20),
    ("CANCEL_SET_BUY", 20),
];
/// All stocks that there may be: 26 letters, and two and three of them.
const STOCKS_MAX: u64 = 26 + 26 * 26 + 26 * 26 * 26;

/// Arguments of `pares broker generate`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Where it is written
    file: PathBuf,
    /// Commands, the dump at the end included
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    commands: u64,
    /// Users
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    users: u64,
    /// Stocks
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=STOCKS_MAX))]
    stocks: u64,
    /// What it is drawn from: the same seed writes the same file
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[cfg(test)]
impl Args {
    pub(crate) fn of(file: &std::path::Path, commands: u64, users: u64, stocks: u64) -> Self {
        Self { file: file.to_owned(), commands, users, stocks, seed: 1 }
    }
}

/// Writes a workload.
///
/// # Errors
/// If it cannot be written.
pub fn run(args: &Args) -> BrokerageResult {
    let writing = || BrokerageError::io(format!("writing {}", args.file.display()));
    let mut file = BufWriter::new(File::create(&args.file).map_err(writing())?);
    let mut draw = SeededDraw::new(args.seed);
    for number in 1..args.commands {
        // Everybody begins with money, as in the published files.
        let command = match number <= args.users {
            true => format!("ADD,{},{}", user(number - 1), dollars(100_000 + draw.below(9_900_000))),
            false => command(args, &mut draw),
        };
        writeln!(file, "[{number}] {command} ").map_err(writing())?;
    }
    writeln!(file, "[{}] DUMPLOG,./testLOG", args.commands).map_err(writing())?;
    file.flush().map_err(writing())
}

fn command(args: &Args, draw: &mut SeededDraw) -> String {
    let mut drawn = draw.below(1_000);
    let found = MIX.iter().find(|(_, weight)| match drawn.checked_sub(*weight) {
        Some(left) => {
            drawn = left;
            false
        }
        None => true,
    });
    let name = found.map_or("QUOTE", |(name, _)| *name);
    let (user, amount) = (user(draw.below(args.users)), dollars(draw.below(100_000)));
    let stock = stock(draw.below(args.stocks));
    match name {
        "ADD" => format!("{name},{user},{amount}"),
        "QUOTE" | "CANCEL_SET_BUY" | "CANCEL_SET_SELL" => format!("{name},{user},{stock}"),
        "DISPLAY_SUMMARY" | "COMMIT_BUY" | "COMMIT_SELL" | "CANCEL_BUY" | "CANCEL_SELL" => {
            format!("{name},{user}")
        }
        _ => format!("{name},{user},{stock},{amount}"),
    }
}

/// Ten letters and digits, another for each number.
fn user(number: u64) -> String {
    format!("u{number:09}")
}

/// The stock of that number, below [`STOCKS_MAX`]: `A` to `Z`, then those of two letters, then of three.
fn stock(number: u64) -> StockSymbol {
    let (mut left, mut letters) = (number, 1);
    let mut count = 26;
    while left >= count {
        left -= count;
        count *= 26;
        letters += 1;
    }
    let mut text = String::new();
    for _ in 0..letters {
        text.insert(0, char::from(b'A' + (left % 26) as u8));
        left /= 26;
    }
    StockSymbol::new(&text).expect("one to three letters")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use pares_broker::{Verb, WorkloadLine};

    use super::*;

    #[test]
    fn a_workload_has_all_commands_in_lines_that_can_be_read_and_is_the_same_for_a_seed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, seed| {
            let file = dir.path().join(name);
            run(&Args { file: file.clone(), commands: 5_000, users: 7, stocks: 800, seed }).unwrap();
            std::fs::read_to_string(file).unwrap()
        };
        let text = write("a", 1);
        assert!(text == write("b", 1) && text != write("c", 2));
        let lines: Vec<_> = text.lines().map(|line| WorkloadLine::parse(line.as_bytes()).unwrap()).collect();
        let verbs: BTreeSet<Verb> = lines.iter().map(|line| line.command.verb).collect();
        assert_eq!(verbs, Verb::ALL.into());
        let stocks: BTreeSet<_> = lines.iter().filter_map(|line| line.command.symbol).collect();
        assert!(stocks.len() > 500 && lines.iter().any(|line| line.fault.is_none()));
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), (1..=5_000).collect::<Vec<_>>());
    }

    #[test]
    fn stocks_are_all_different() {
        let all: BTreeSet<StockSymbol> = (0..STOCKS_MAX).map(stock).collect();
        assert_eq!(all.len() as u64, STOCKS_MAX);
    }
}

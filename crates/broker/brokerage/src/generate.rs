//! `pares broker generate`: workloads of any size, made as the published ones were.
//!
//! Commands drawn one by one have the right mix and the wrong sense: a commit seldom follows a buy, and most are refused. In the published files what a user does next depends on what he did last: half
//! of the buys are committed next, seven of ten amounts are armed next. These are their chances, counted in 100,000 commands of 100 users and rounded to a hundredth; the mix, and how
//! many commands are refused, follow from them.
//!
//! | field | in the published files, and here |
//! |---|---|
//! | amount of `ADD` | about 70,000, as the sum of four draws |
//! | other amounts | any up to 750 |
//! | a trigger's price behind its amount | any up to that amount; elsewhere low ones more often |
//! | stock of `SET_SELL_TRIGGER`, `CANCEL_SET_SELL` behind `SET_SELL_AMOUNT` | that one |
//! | stock of `SELL` and of amounts | few, some of them often |
//! | other stocks | any |

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pares_broker::{StockSymbol, Verb, dollars};
use pares_random::Random;

use crate::dump;
use crate::error::{BrokerageError, BrokerageResult, already_exists};

/// All commands but the dump, as the columns of the chances.
const VERBS: [Verb; 15] = [
    Verb::Buy,
    Verb::Quote,
    Verb::Add,
    Verb::DisplaySummary,
    Verb::SetBuyTrigger,
    Verb::CommitBuy,
    Verb::SetSellTrigger,
    Verb::Sell,
    Verb::SetBuyAmount,
    Verb::SetSellAmount,
    Verb::CommitSell,
    Verb::CancelSetSell,
    Verb::CancelBuy,
    Verb::CancelSell,
    Verb::CancelSetBuy,
];
/// Of so many hundred, how many of a user's commands behind all others than these are which.
const USUAL: [u64; 15] = [10, 10, 20, 15, 7, 1, 7, 10, 7, 7, 1, 2, 1, 1, 1];
const BEHIND: [(Verb, [u64; 15]); 6] = [
    (Verb::Buy, [3, 5, 2, 3, 3, 50, 3, 3, 3, 3, 3, 3, 10, 3, 3]),
    (Verb::Sell, [3, 5, 2, 3, 3, 3, 3, 3, 3, 3, 50, 3, 3, 10, 3]),
    (Verb::Quote, [30, 20, 10, 6, 7, 2, 2, 3, 7, 3, 2, 2, 2, 2, 2]),
    (Verb::Add, [40, 40, 1, 2, 2, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1]),
    (Verb::SetBuyAmount, [5, 5, 0, 5, 70, 0, 0, 5, 0, 0, 0, 0, 0, 0, 10]),
    (Verb::SetSellAmount, [5, 5, 0, 5, 0, 0, 70, 5, 0, 0, 0, 10, 0, 0, 0]),
];
/// Stocks that are sold and have amounts set.
const FAVOURITES: u64 = 110;
/// Largest amount of all but `ADD`, cents.
const AMOUNT_MAX: u64 = 75_000;
/// Least amount of `ADD`, and how far each of four draws reaches, cents.
const ADDED: (u64, u64) = (1_820_000, 2_590_000);
/// Prices of triggers that follow no amount are below this, cents.
const PRICE_MAX: u64 = 44_000;
/// All stocks that there may be: 26 letters, and two and three of them.
const STOCKS_MAX: u64 = 26 + 26 * 26 + 26 * 26 * 26;

/// Arguments of `pares broker generate`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The file to write
    pub file: PathBuf,
    /// Number of commands, including the final dump
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    pub commands: u64,
    /// Users
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub users: u64,
    /// Stocks
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=STOCKS_MAX))]
    pub stocks: u64,
    /// Random seed: the same seed writes the same file
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

impl Args {
    /// So much of everything, to `file`.
    #[must_use]
    pub fn of(file: &Path, commands: u64, users: u64, stocks: u64) -> Self {
        Self { file: file.to_owned(), commands, users, stocks, seed: 1, force: true }
    }
}

/// Writes a workload.
///
/// # Errors
/// If it cannot be written, or is there already and is not to be overwritten.
pub fn run(args: &Args) -> BrokerageResult {
    if args.file.is_file() && !args.force {
        return Err(already_exists(&args.file));
    }
    match args.file.exists() && !args.file.is_file() {
        // A pipe or a device keeps its place.
        true => write(args, &args.file),
        false => dump::whole(&args.file, |part| write(args, part)),
    }
}

fn write(args: &Args, to: &Path) -> BrokerageResult {
    let writing = || BrokerageError::io(format!("writing {}", args.file.display()));
    let mut file = BufWriter::new(File::create(to).map_err(writing())?);
    let mut draw = Random::new(args.seed);
    let mut users: Vec<Last> = Vec::new();
    for number in 1..args.commands {
        // All users begin with money, as in the published files.
        let at = if number <= args.users { number - 1 } else { below(&mut draw, args.users) };
        if number <= args.users {
            users.push(Last::default());
        }
        let last = &mut users[usize::try_from(at).expect("there is a place for each user")];
        let command = last.next(&user(at), args.stocks, &mut draw);
        writeln!(file, "[{number}] {command} ").map_err(writing())?;
    }
    writeln!(file, "[{}] DUMPLOG,./testLOG", args.commands).map_err(writing())?;
    file.flush().map_err(writing())
}

/// What a user did last.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    verb: Option<Verb>,
    stock: u64,
    cents: u64,
}

impl Last {
    fn next(&mut self, user: &str, stocks: u64, draw: &mut Random) -> String {
        let verb = self.verb.map_or(Verb::Add, |last| behind(last, draw));
        let is_of_amount = self.verb == Some(Verb::SetSellAmount)
            && matches!(verb, Verb::SetSellTrigger | Verb::CancelSetSell);
        let stock = match verb {
            _ if is_of_amount => self.stock,
            Verb::Sell | Verb::SetBuyAmount | Verb::SetSellAmount => product(FAVOURITES.min(stocks), draw),
            _ => below(draw, stocks),
        };
        let cents = self.cents(verb, draw);
        *self = Self { verb: Some(verb), stock, cents };
        let (name, stock, dollars) = (verb.name(), symbol(stock), dollars(cents));
        match verb {
            Verb::Add => format!("{name},{user},{dollars}"),
            Verb::Quote | Verb::CancelSetBuy | Verb::CancelSetSell => format!("{name},{user},{stock}"),
            Verb::DisplaySummary
            | Verb::CommitBuy
            | Verb::CommitSell
            | Verb::CancelBuy
            | Verb::CancelSell => format!("{name},{user}"),
            _ => format!("{name},{user},{stock},{dollars}"),
        }
    }

    fn cents(&self, verb: Verb, draw: &mut Random) -> u64 {
        match (verb, self.verb) {
            (Verb::Add, _) => ADDED.0 + (0..4).map(|_| below(draw, ADDED.1)).sum::<u64>(),
            (Verb::SetBuyTrigger, Some(Verb::SetBuyAmount))
            | (Verb::SetSellTrigger, Some(Verb::SetSellAmount)) => below(draw, self.cents) + 1,
            (Verb::SetBuyTrigger | Verb::SetSellTrigger, _) => product(PRICE_MAX, draw) + 1,
            _ => below(draw, AMOUNT_MAX) + 1,
        }
    }
}

/// What a user does next.
fn behind(last: Verb, draw: &mut Random) -> Verb {
    let row = BEHIND.iter().find(|(verb, _)| *verb == last).map_or(&USUAL, |(_, row)| row);
    let mut drawn = below(draw, 100);
    for (verb, chance) in VERBS.iter().zip(row) {
        match drawn.checked_sub(*chance) {
            Some(left) => drawn = left,
            None => return *verb,
        }
    }
    unreachable!("the chances of a row are a hundred")
}

/// A number below `bound`, low ones more often: as the product of two draws.
fn product(bound: u64, draw: &mut Random) -> u64 {
    const ONE: u64 = 1 << 20;
    bound * below(draw, ONE) / ONE * below(draw, ONE) / ONE
}

/// A number below `bound`. The remainder, so that the workload of a seed stays what it was.
fn below(draw: &mut Random, bound: u64) -> u64 {
    draw.next_u64() % bound
}

/// Ten letters and digits, another for each number.
fn user(number: u64) -> String {
    format!("u{number:09}")
}

/// The stock of that number, below [`STOCKS_MAX`]: `A` to `Z`, then those of two letters, then of three.
fn symbol(number: u64) -> StockSymbol {
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
    fn workload_lines_parse_and_seed_reproduces_them() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, seed| {
            let file = dir.path().join(name);
            run(&Args { seed, ..Args::of(&file, 5_000, 7, 800) }).unwrap();
            std::fs::read_to_string(file).unwrap()
        };
        let text = write("a", 1);
        assert!(text == write("b", 1) && text != write("c", 2));
        let lines: Vec<_> = text.lines().map(|line| WorkloadLine::parse(line.as_bytes()).unwrap()).collect();
        let verbs: BTreeSet<Verb> = lines.iter().map(|line| line.command.verb).collect();
        assert_eq!(verbs, Verb::ALL.into());
        let stocks: BTreeSet<_> = lines.iter().filter_map(|line| line.command.symbol).collect();
        assert!(stocks.len() > 300 && lines.iter().any(|line| line.fault.is_none()));
        assert_eq!(lines.iter().map(|line| line.number).collect::<Vec<_>>(), (1..=5_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_workload_that_cannot_be_written_leaves_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "old").unwrap();
        std::fs::create_dir(dump::part_of(&file)).unwrap();
        assert!(run(&Args::of(&file, 9, 2, 2)).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn the_mix_is_that_of_the_largest_workload_known() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        run(&Args::of(&file, 60_000, 100, 981)).unwrap();
        let mut counts = std::collections::BTreeMap::<Verb, f64>::new();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            *counts.entry(WorkloadLine::parse(line.as_bytes()).unwrap().command.verb).or_default() += 1.0;
        }
        // Of 1,200,000 commands, in the order of the columns, per cent.
        let known = [14.1, 13.1, 11.1, 9.0, 8.4, 8.2, 7.3, 6.3, 4.9, 4.5, 4.4, 2.4, 2.4, 2.0, 2.0];
        for (verb, known) in VERBS.iter().zip(known) {
            let share = counts[verb] / 600.0;
            assert!((share - known).abs() < 0.6, "{}: {share} %, not {known}", verb.name());
        }
        assert!(BEHIND.iter().map(|(_, row)| row).chain([&USUAL]).all(|row| row.iter().sum::<u64>() == 100));
    }

    #[test]
    fn stocks_are_all_different() {
        let all: BTreeSet<StockSymbol> = (0..STOCKS_MAX).map(symbol).collect();
        assert_eq!(all.len() as u64, STOCKS_MAX);
    }
}

//! What `cargo xtask instructions` counts the instructions of.
//!
//! ```text
//!   instructions write FILE SCENARIO COUNT   the beginning of a stream, to a file
//!   instructions apply FILE                  everything: read it, make requests of it, apply them
//!   instructions read FILE                   the same without applying: what is not the book's
//! ```

use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;

use pares_book::FastBook;
use pares_books::{Books, Engine, ReportRing, load, save};
use pares_flow::BookScenario;

type Book = Books<FastBook>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["write", path, scenario, count] => write(Path::new(path), scenario, count),
        ["apply", path] => apply(Path::new(path)),
        ["read", path] => read(Path::new(path)),
        _ => None,
    };
    if done.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(path: &Path, scenario: &str, count: &str) -> Option<()> {
    let messages = BookScenario::named(scenario)?.messages();
    save(messages.get(..count.parse().ok()?)?, path).ok()
}

fn apply(path: &Path) -> Option<()> {
    let messages = load(path).ok()?;
    let (mut book, mut ring) = (Book::new(), ReportRing::new());
    book.apply(&messages, &mut ring, &mut || {});
    black_box((&book, &ring));
    Some(())
}

fn read(path: &Path) -> Option<()> {
    let messages = load(path).ok()?;
    let (book, ring) = (Book::new(), ReportRing::new());
    for request in Book::requests(&messages) {
        black_box(&request);
    }
    black_box((&book, &ring));
    Some(())
}

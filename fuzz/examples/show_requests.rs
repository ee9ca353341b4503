//! Prints what the bytes of a file ask, one request a line: `show_requests books|markets FILE`. For an input that
//! the target of that name does not take.
#![allow(clippy::print_stdout)] // a command line talks

use std::io::{Error, Result};

use pares_exercise::requests::Requests;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, file] = &arguments[..] else {
        return Err(Error::other("usage: show_requests books|markets FILE"));
    };
    let bytes = std::fs::read(file)?;
    let requests = match target.as_str() {
        "books" => Requests::of_a_book(&bytes),
        "markets" => Requests::of_a_market(&bytes),
        _ => return Err(Error::other(format!("the bytes of {target} are not requests"))),
    };
    for instrument in requests.instruments() {
        println!("{instrument:?}");
    }
    for request in requests {
        println!("{request:?}");
    }
    Ok(())
}

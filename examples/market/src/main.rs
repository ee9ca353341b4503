//! An exchange with traders and a page. Run it, watch it, kill its processes:
//!
//! ```text
//! cargo xtask demo
//! ```
//! It starts `pares up`, the program beside this one, in a temporary folder, and trades there until Ctrl-C.
//!
//! | module | what |
//! |---|---|
//! | [`exchange`] | `pares up` in a folder of its own |
//! | [`trader`] | a member's program: orders around a price; when its gateway dies it continues at another |
//! | [`board`] | what the traders have come to |
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program talks
#![allow(unreachable_pub)] // and has no outside: `pub` here means "for the other modules"

mod board;
mod exchange;
mod trader;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use board::{Board, INSTRUMENTS};
use exchange::Exchange;
use trader::Trader;

/// Members that trade, one session each.
const TRADERS: u32 = 6;
/// A member that none of them is, for the person who opens the page.
const GUEST: u32 = 100;
/// Between two lines about the market.
const LINE_EVERY: Duration = Duration::from_secs(2);
/// Between two looks at the exchange and at the signals.
const PAUSE: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("market: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let stop = pares_os::process::stop_on_signals().map_err(|error| format!("signals: {error}"))?;
    let mut exchange = Exchange::start()?;
    println!("starting an exchange in {}", exchange.dir().display());
    if let Some(page) = exchange.wait_until_up(&stop)? {
        introduce(&exchange, &page);
        let board = Arc::<Board>::default();
        let traders = start_traders(&exchange, &board, &stop)?;
        let watched = watch(&mut exchange, &board, &stop);
        // An exchange that has ended by itself ends the traders too.
        stop.store(true, Ordering::Relaxed);
        for trader in traders {
            trader.join().map_err(|_| "a trader panicked")?;
        }
        watched?;
    }
    exchange.stop()?;
    println!("stopped: every process has ended, and its folder is deleted");
    Ok(())
}

/// What there is to look at, and what to try.
fn introduce(exchange: &Exchange, page: &str) {
    let dir = exchange.dir().display();
    let pares = exchange.program().display();
    println!(
        "\nAn exchange: 2 gateways, 2 venues and 2 recorders; {TRADERS} members trade {} instruments.\n\n\
         the market       http://{page}/   sign on as member {GUEST}, without a key, to see it and to trade\n\
         kill a venue     kill -9 $(cat {dir}/run/venue-0.pid)\n\
         kill a gateway   kill -9 $(cat {dir}/run/gateway-0.pid)\n\
         look inside      {pares} stat --dir {dir}\n\
         end              Ctrl-C ends every process and deletes {dir}\n",
        INSTRUMENTS.len()
    );
}

fn start_traders(
    exchange: &Exchange,
    board: &Arc<Board>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<JoinHandle<()>>, String> {
    let start = |member| {
        let trader = Trader::new(member, exchange.gateways(), Arc::clone(board));
        let stop = Arc::clone(stop);
        let thread = std::thread::Builder::new().name(format!("trader-{member}"));
        thread.spawn(move || trader.run(&stop)).map_err(|error| format!("starting a trader: {error}"))
    };
    (1..=TRADERS).map(start).collect()
}

/// Says what happens, until `stop` is set.
///
/// # Errors
/// If the exchange has ended by itself.
fn watch(exchange: &mut Exchange, board: &Board, stop: &AtomicBool) -> Result<(), String> {
    let begun = Instant::now();
    let mut next = LINE_EVERY;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PAUSE);
        exchange.news()?.iter().for_each(|line| println!("          {line}"));
        board.take_news().iter().for_each(|line| println!("          {line}"));
        if begun.elapsed() >= next {
            println!("{:>6} s  {}", begun.elapsed().as_secs(), board.line(LINE_EVERY));
            next += LINE_EVERY;
        }
    }
    Ok(())
}

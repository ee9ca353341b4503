//! `pares member terminal`: a trader's screen.
//!
//! ```text
//!   +- ladder ------------+- own orders and trades -+
//!   |  bids | price | off |                         |
//!   |                     +- messages --------------+
//!   |                     |                         |
//!   +---------------------+-------------------------+
//!   > buy 100 at 10.50
//! ```
//! What is typed is a [`command`]; what is known is [`state`]; [`view`] draws it. The member's servers tell the market, the messages and what became
//! of orders; orders themselves go to the exchange's gateways.

mod command;
mod orders;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use pares_member::{MemberConfig, TraderClient, TraderOptions, process};
use pares_node::Layout;
use pares_os::terminal::is_gone_after;
use ratatui::DefaultTerminal;

use super::Servers;
use crate::error::{CommandError, CommandResult};
use command::Command;
use orders::Orders;
use state::TerminalState;

const DRAW_EVERY: Duration = Duration::from_millis(100);
const KEY_WAIT: Duration = Duration::from_millis(20);

/// Arguments of `pares member terminal`.
#[derive(clap::Args)]
#[command(after_help = command::HELP)]
pub struct Args {
    #[command(flatten)]
    servers: Servers,
    /// The trader's number, from 1
    #[arg(long = "as", value_name = "TRADER", value_parser = clap::value_parser!(u32).range(1..0xffff_0000))]
    trader: u32,
    /// The key file of the session for orders, if the exchange requires a key
    #[arg(long)]
    key: Option<PathBuf>,
}

/// Runs until the trader leaves.
pub(super) fn run(args: &Args) -> CommandResult {
    let options = TraderOptions { books: true, ..TraderOptions::default() };
    let mut client = args.servers.connect(args.trader, options)?;
    let config = MemberConfig::load(&process::config_file(&Layout::new(&args.servers.dir))).ok();
    let exchange = config.and_then(|config| config.exchange);
    let mut orders = Orders::new(exchange, args.trader, args.key.clone());
    let mut state = TerminalState::new(args.trader);
    let screen = ratatui::try_init().map_err(CommandError::io(
        "setting up the screen (a terminal is needed; `pares member watch` prints lines)",
    ))?;
    let result = work(screen, &mut client, &mut orders, &mut state);
    // A terminal that was closed cannot be given back.
    let _ = ratatui::try_restore();
    result
}

fn work(
    mut screen: DefaultTerminal,
    client: &mut TraderClient,
    orders: &mut Orders,
    state: &mut TerminalState,
) -> CommandResult {
    let mut drawn: Option<Instant> = None;
    loop {
        client.poll(|news| state.on_news(news));
        orders.poll(|said| state.say(said));
        if drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            drawn = Some(Instant::now());
            screen.draw(|frame| view::draw(frame, state)).map_err(CommandError::io("drawing"))?;
        }
        if is_gone_after(KEY_WAIT).map_err(CommandError::io("waiting for the keyboard"))? {
            return Ok(());
        }
        let next = || event::poll(Duration::ZERO)?.then(event::read).transpose();
        match next().map_err(CommandError::io("reading the keyboard"))? {
            Some(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                drawn = None;
                match on_key(state, key) {
                    Some(Command::Quit) => return Ok(()),
                    Some(command) => carry_out(command, client, orders, state),
                    None => {}
                }
            }
            Some(Event::Resize(..)) => drawn = None,
            _ => {}
        }
    }
}

fn carry_out(command: Command, client: &mut TraderClient, orders: &mut Orders, state: &mut TerminalState) {
    match command {
        Command::Quit => {}
        Command::Help => state.say(command::HELP.to_owned()),
        Command::Say(words) => {
            if let Err(error) = client.submit(&words.as_body()) {
                state.say(error.to_string());
            }
        }
        Command::Order(ticket) => match orders.enter(ticket) {
            Ok(name) => state.on_entered(name, ticket),
            Err(why) => state.say(why),
        },
        Command::Cancel(name) => state.say(orders.cancel(name)),
    }
}

/// What a key does; a line that is complete may be a command.
fn on_key(state: &mut TerminalState, key: KeyEvent) -> Option<Command> {
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Command::Quit),
        KeyCode::Esc => return Some(Command::Quit),
        KeyCode::Tab | KeyCode::Down => state.select(1),
        KeyCode::BackTab | KeyCode::Up => state.select(-1),
        KeyCode::Backspace => drop(state.input.pop()),
        KeyCode::Char(letter) => state.input.push(letter),
        KeyCode::Enter => {
            let line = std::mem::take(&mut state.input);
            match command::read(&line, state.instrument()) {
                Ok(command) => return command,
                Err(why) => state.say(why),
            }
        }
        _ => {}
    }
    None
}

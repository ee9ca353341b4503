//! `pares broker desk`: a quote desk in a process of its own, for any number of fronts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::{Events, Poll, Token, Waker};
use pares_broker::dollars;
use pares_front::{
    DeskEffect, FRAME_MAX, FrontNumber, HIT_MILLS, QuoteFault, SharedDesk, SharedEffect, ToDesk,
};
use pares_os::{clock, descriptors, process};
use pares_wice::codec::Coded as _;

use crate::error::{BrokerageError, BrokerageResult};
use crate::link::{self, Port, SocketOwner};
use crate::on_loopback;
use crate::quoter::Quoter;

const FRONTS: SocketOwner = SocketOwner(0);
const WAKER: Token = Token(usize::MAX);
/// Fronts that are connected at a time.
const FRONTS_MAX: usize = 256;
/// A front that leaves so many bytes unread is closed; it will connect again.
const BACKLOG_MAX: usize = 4 << 20;
/// Questions of one front that are read in one turn, bytes.
const READ_MAX: usize = 64 << 10;
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Arguments of `pares broker desk`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The address to listen at for fronts
    #[arg(long, default_value = "127.0.0.1:4500", value_parser = on_loopback)]
    listen: SocketAddr,
    /// The quote server's address
    #[arg(long, default_value = "127.0.0.1:4444", value_name = "ADDRESS")]
    quote_server: SocketAddr,
    /// End when this parent process ends
    #[arg(long, hide = true)]
    with_parent: Option<u32>,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// If it cannot listen.
pub fn run(args: &Args) -> BrokerageResult {
    crate::children::end_with(args.with_parent)?;
    let stop = process::stop_on_signals().map_err(BrokerageError::io("installing a signal handler"))?;
    let listening = BrokerageError::io(format!("listening at {}", args.listen));
    let mut desk = Serving::open(args).map_err(listening)?;
    pares_text::tell!("desk for fronts at {}, asks {}", args.listen, args.quote_server);
    while !stop.load(Ordering::Relaxed) {
        desk.turn().map_err(BrokerageError::io("waiting for fronts"))?;
    }
    let (hits, faults) = (desk.desk.desk().hits(), desk.desk.desk().faults());
    pares_text::tell!("{hits} questions, {faults} without a quote, ${}", dollars(hits * HIT_MILLS / 10));
    Ok(())
}

struct Serving {
    poll: Poll,
    port: Port,
    quoter: Quoter,
    desk: SharedDesk,
    server: SocketAddr,
    /// The server did not let itself be connected to when it was asked last.
    is_unreached: bool,
}

impl Serving {
    fn open(args: &Args) -> io::Result<Self> {
        descriptors::raise_limit();
        let poll = Poll::new()?;
        let port = Port::bind(args.listen, poll.registry(), FRONTS, FRONTS_MAX)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let quoter = Quoter::start(args.quote_server, None, move || drop(waker.wake()))?;
        let desk = SharedDesk::new(crate::drawn());
        Ok(Self { poll, port, quoter, desk, server: args.quote_server, is_unreached: false })
    }

    fn turn(&mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(256);
        link::wait(&mut self.poll, &mut events, Some(WAIT_MAX))?;
        for event in events.iter().filter(|event| event.token() != WAKER) {
            self.port.wake(SocketOwner::of(event.token()).1);
        }
        for front in self.port.accept() {
            self.desk.come(front);
        }
        for front in self.port.take_ready() {
            self.read(front);
        }
        let now_ms = now_ms();
        for (hit, answer) in self.quoter.answers().collect::<Vec<_>>() {
            self.say(answer.as_ref().err() == Some(&QuoteFault::Unreached));
            self.desk.quoted(hit, answer, now_ms);
        }
        self.desk.tick(now_ms);
        self.carry_out();
        Ok(())
    }

    /// Says when the server cannot be reached, and when it can again: once each.
    fn say(&mut self, is_unreached: bool) {
        if std::mem::replace(&mut self.is_unreached, is_unreached) != is_unreached {
            let how = if is_unreached {
                "cannot be reached: refusing commands that need a quote"
            } else {
                "answers again"
            };
            pares_text::tell!("the quote server at {} {how}", self.server);
        }
    }

    fn read(&mut self, front: FrontNumber) {
        if self.take_words(front).is_none() {
            self.port.close(front);
            self.desk.gone(front);
        }
    }

    /// Nothing if the connection is over.
    fn take_words(&mut self, front: FrontNumber) -> Option<()> {
        let conn = self.port.conn(front)?;
        conn.fill(READ_MAX).ok()?;
        while let Some(frame) = conn.frame(FRAME_MAX).ok()? {
            let word = ToDesk::from_bytes(&frame).ok()?;
            self.desk.heard(front, word, now_ms());
        }
        if conn.has_ended() {
            return None;
        }
        self.port.keep_ready(front);
        Some(())
    }

    fn carry_out(&mut self) {
        for effect in self.desk.take_effects() {
            match effect {
                SharedEffect::Server(DeskEffect::Ask { hit, symbol, user }) => {
                    self.quoter.ask(hit, symbol, user);
                }
                SharedEffect::Server(DeskEffect::Abandon { hit }) => self.quoter.abandon(hit),
                SharedEffect::Server(_) => {}
                SharedEffect::Say(front, word) => {
                    if let Some(conn) = self.port.writer(front) {
                        conn.push_frame(&word.to_bytes());
                    }
                }
            }
        }
        let gone = self.port.flush(BACKLOG_MAX);
        if !gone.is_empty() {
            gone.into_iter().for_each(|front| self.desk.gone(front));
            self.carry_out();
        }
    }
}

fn now_ms() -> u64 {
    clock::now_ns() / 1_000_000
}

//! The router between its two connections, in one duty cycle.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_broker::{Asked, BrokerRead, Refusal};
use pares_os::clock;
use pares_router::{Router, RouterEffect};

use crate::RoutingError;
use crate::accounts::AccountsClient;
use crate::gateway::{Gateways, Heard};

/// Longest wait for something to come.
const WAIT_MAX: Duration = Duration::from_millis(2);
/// The same of a router that stands by.
const STANDS_BY: Duration = Duration::from_millis(20);

/// See the module.
pub struct RouterDuty {
    router: Router,
    accounts: AccountsClient,
    gateways: Gateways,
    effects: VecDeque<RouterEffect>,
}

/// By a clock that nobody sets: nothing must wait for an hour that was set back.
fn now_ms() -> u64 {
    clock::mono_ns() / 1_000_000
}

impl RouterDuty {
    /// The router of that number, which no other has.
    #[must_use]
    pub fn new(number: u64, accounts: AccountsClient, gateways: Gateways) -> Self {
        let router = Router::new(number, gateways.member().0);
        Self { router, accounts, gateways, effects: VecDeque::new() }
    }

    /// Does what there is to do.
    ///
    /// # Errors
    /// If the sites do not take this router's questions, or the accounts and the exchange do not agree.
    pub fn turn(&mut self, stop: &AtomicBool) -> Result<(), RoutingError> {
        self.router.tick(now_ms());
        self.carry_out(stop)?;
        if self.router.term().is_none() {
            // An exchange has one connection of a session: who signs on without work to do would end that of the active router.
            if self.gateways.leave() {
                self.router.disconnected();
            }
            std::thread::sleep(STANDS_BY);
            return Ok(());
        }
        for heard in self.gateways.turn(WAIT_MAX) {
            match heard {
                Heard::Connected(listed) => self.router.connected(listed, now_ms()),
                Heard::Lost => self.router.disconnected(),
                Heard::Told(reply) => self.router.told(&reply, now_ms()),
                Heard::Resumed(shard) => self.router.resumed(shard),
                Heard::NotKept => self.router.not_kept(),
            }
            self.carry_out(stop)?;
        }
        Ok(())
    }

    /// In their order: what follows from one comes behind what was there before.
    fn carry_out(&mut self, stop: &AtomicBool) -> Result<(), RoutingError> {
        self.effects.extend(self.router.take_effects());
        while let Some(effect) = self.effects.pop_front() {
            match effect {
                RouterEffect::Ask { id, asked } => {
                    let reply = self.accounts.execute(Asked::Order { asked }, stop)?;
                    let Some(reply) = reply else { return Ok(()) };
                    self.router.answered(id, reply, now_ms());
                }
                RouterEffect::Look { id, read } => {
                    let bytes = self.accounts.read(BrokerRead::Order { read }, stop)?;
                    let Some(bytes) = bytes else { return Ok(()) };
                    let found = self.router.found(id, &bytes, now_ms());
                    found.map_err(|error| RoutingError::Sites(error.to_string()))?;
                }
                RouterEffect::Send { request } => self.gateways.send(&request),
                RouterEffect::Resume { shard, next } => self.gateways.resume(shard, next),
                RouterEffect::Halt { refusal: Refusal::OtherMember } => {
                    return Err(RoutingError::OtherMember(self.gateways.member().0));
                }
                RouterEffect::Halt { refusal } => return Err(RoutingError::Halted(refusal)),
            }
            self.effects.extend(self.router.take_effects());
        }
        Ok(())
    }
}

/// What a router says of itself, when it changes.
#[derive(Default)]
pub struct Pulse {
    said: Option<(Option<u64>, bool)>,
    at: Option<Instant>,
}

impl Pulse {
    /// Says it, a second apart at least.
    pub fn tell(&mut self, duty: &RouterDuty) {
        let now = (duty.router.term(), duty.gateways.is_connected());
        let is_soon = self.at.is_some_and(|at| at.elapsed() < Duration::from_secs(1));
        if is_soon || self.said == Some(now) {
            return;
        }
        (self.said, self.at) = (Some(now), Some(Instant::now()));
        match now {
            (None, _) => pares_text::tell!("router: standby"),
            (Some(term), true) => pares_text::tell!("router: active, term {term}"),
            (Some(term), false) => pares_text::tell!(
                "router: active, term {term}, but no gateway accepts its sign-on: {}",
                duty.gateways.why()
            ),
        }
    }
}

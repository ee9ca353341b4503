//! A signed-on session: its line, the connection that carries it, and those who wait.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pares_http::problem::Problem;
use pares_resources::positions::MemberPositions;
use pares_resources::{Effect, Line, LineTold, Question};
use pares_types::{ClientRequest, MemberId, Reason, ShardId};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{interval, timeout};

use crate::followers::{Followed, Followers};
use crate::refused;
use crate::settings::ApiSettings;
use crate::wire::{Agreed, Inbox, SignedOn, Waiter, Wire};

/// A gateway that answers has let a timer go off by then.
const TIMER_LATE_MAX: Duration = Duration::from_secs(1);
/// Heartbeats that a gateway may miss.
const BEATS_MISSED: u32 = 3;
/// Between two rounds of calls while no gateway is there.
const PAUSE: Duration = Duration::from_millis(100);

/// Stands for all shards in what a gateway is asked, so it is none.
pub(crate) const EVERY_SHARD: u16 = u16::MAX;

pub(crate) struct Session {
    pub(crate) member: MemberId,
    pub(crate) number: u16,
    line: Mutex<Line<Waiter>>,
    /// Something is to be sent.
    to_send: Notify,
    followers: Followers,
    /// When the dead man's timer goes off.
    timer: Mutex<Option<Instant>>,
    /// Held while a symbol is looked up.
    pub(crate) looking_up: tokio::sync::Mutex<()>,
    /// What the member has, as far as a client asked.
    positions: tokio::sync::Mutex<MemberPositions>,
    /// The member whose streams it receives; 0: its own. A copy enters, changes and cancels nothing: its names would be taken for that member's.
    pub(crate) copied: u32,
    has_ended: AtomicBool,
    ending: Notify,
    patience: Duration,
    begun: Instant,
    /// When it was used last, ms since it began.
    used_ms: AtomicU64,
}

impl Session {
    pub(crate) fn new((member, number): (MemberId, u16), copied: u32, patience: Duration) -> Arc<Self> {
        Arc::new(Self {
            member,
            number,
            line: Mutex::new(Line::new(oneshot::Sender::is_closed)),
            to_send: Notify::new(),
            followers: Followers::default(),
            timer: Mutex::default(),
            looking_up: tokio::sync::Mutex::default(),
            positions: tokio::sync::Mutex::default(),
            copied,
            has_ended: AtomicBool::new(false),
            ending: Notify::new(),
            patience,
            begun: Instant::now(),
            used_ms: AtomicU64::new(0),
        })
    }

    fn line(&self) -> MutexGuard<'_, Line<Waiter>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the member has, for one who counts it.
    pub(crate) fn positions(&self) -> &tokio::sync::Mutex<MemberPositions> {
        &self.positions
    }

    fn timer(&self) -> MutexGuard<'_, Option<Instant>> {
        self.timer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the dead man's timer; 0 stops it. Done once a gateway has it; if it is refused, nothing was set.
    pub(crate) async fn set_timer(&self, seconds: u32) -> Result<(), Problem> {
        let told = self.answered(|line, waiter| {
            line.set_timer(seconds * 1_000, waiter)?;
            *self.timer() = (seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds.into()));
            Ok(())
        });
        match told.await {
            Err(problem) if problem == refused::no_answer_yet() => Err(refused::timer_without_gateway()),
            told => told.map(drop),
        }
    }

    /// When the dead man's timer goes off, and whether a gateway says that it has it.
    pub(crate) async fn timer_set(&self) -> Result<(Option<Instant>, bool), Problem> {
        let mut set = None;
        let told = self.answered(|line, waiter| {
            set = *self.timer();
            line.question(Question::Limits, waiter)
        });
        match told.await {
            Err(problem) if problem == refused::sign_on_again() => Err(problem),
            told => Ok((set, told.is_ok())),
        }
    }

    /// What was asked then is answered. A gateway that reads goes by the time: a timer that was to go off before that has gone off.
    fn settle_timer(&self, asked: Instant) {
        let mut timer = self.timer();
        *timer = timer.filter(|at| *at + TIMER_LATE_MAX >= asked);
    }

    /// The time left, ms, unless it is known to have gone off. A gateway that hangs lets it pass: then it goes off at once at the next one.
    fn timer_ms(&self) -> Option<u32> {
        let timer = *self.timer();
        let left_ms = timer?.saturating_duration_since(Instant::now()).as_millis();
        Some(u32::try_from(left_ms).unwrap_or(u32::MAX).max(1))
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes the use.
    pub(crate) fn note_used(&self) {
        self.used_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// Whether it was not used for so long. One that is followed is used.
    pub(crate) fn is_idle(&self, after: Duration) -> bool {
        let unused_ms = self.now_ms().saturating_sub(self.used_ms.load(Ordering::Relaxed));
        u128::from(unused_ms) > after.as_millis() && self.followers.is_empty()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Ends it: all who wait receive that.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        let waiting = self.line().abandon();
        waiting.into_iter().for_each(|waiter| drop(waiter.send(LineTold::SignOnAgain)));
        self.followers.clear();
        self.ending.notify_one();
    }

    /// Asks, and waits for the answer as long as a caller waits.
    pub(crate) async fn ask(&self, request: ClientRequest) -> Result<LineTold, Problem> {
        if self.copied != 0 {
            return Err(refused::refused(Reason::NoRight));
        }
        self.answered(|line, waiter| line.ask(request, waiter)).await
    }

    pub(crate) async fn question(&self, question: Question) -> Result<LineTold, Problem> {
        self.answered(|line, waiter| line.question(question, waiter)).await
    }

    async fn answered(
        &self,
        ask: impl FnOnce(&mut Line<Waiter>, Waiter) -> Result<(), pares_resources::Refused>,
    ) -> Result<LineTold, Problem> {
        let (waiter, told) = oneshot::channel();
        let asked = Instant::now();
        {
            let mut line = self.line();
            if self.has_ended() {
                return Err(refused::sign_on_again());
            }
            ask(&mut line, waiter).map_err(|why| match why {
                pares_resources::Refused::Full => refused::refused(Reason::Overloaded),
                pares_resources::Refused::Differs => refused::refused(Reason::DuplicateRequest),
            })?;
        }
        self.to_send.notify_one();
        let told = timeout(self.patience, told).await;
        if let Ok(Ok(_)) = told {
            self.settle_timer(asked);
        }
        match told {
            Ok(Ok(LineTold::SignOnAgain) | Err(_)) => Err(refused::sign_on_again()),
            Ok(Ok(LineTold::Rejected(reason))) => Err(refused::refused(reason)),
            Ok(Ok(told)) => Ok(told),
            Err(_) => Err(refused::no_answer_yet()),
        }
    }

    /// Follows the member's streams of shards, each from a number on (0: from now on), with room for so many messages.
    pub(crate) fn follow(self: &Arc<Self>, from: &[(ShardId, u64)], room: usize) -> Following {
        let (id, told) = self.followers.add(from, room);
        self.wish(from);
        if self.has_ended() {
            // It may have ended before that follower was there.
            self.followers.clear();
        }
        Following { session: Arc::clone(self), id, told }
    }

    /// A follower has room again, and is current from now on.
    pub(crate) fn tell_again(&self, id: u64) {
        let from = self.followers.lacks(id);
        if !from.is_empty() {
            self.wish(&from);
        }
    }

    /// Has the gateway tell streams from these numbers on.
    fn wish(&self, from: &[(ShardId, u64)]) {
        let mut line = self.line();
        from.iter().for_each(|(shard, number)| line.follow(*shard, *number));
        drop(line);
        self.to_send.notify_one();
    }

    /// Carries the line over this connection, and over others if it breaks, until the session ends: with its gateway where it is said so.
    pub(crate) async fn run(
        self: Arc<Self>,
        settings: ApiSettings,
        wire: Wire,
        agreed: Agreed,
        ends_with_gateway: bool,
    ) {
        let mut carried = Some((wire, agreed));
        let mut turn = usize::from(agreed.gateway.0);
        while let Some((wire, agreed)) = carried.take() {
            self.on_signed_on(agreed.in_flight_max);
            self.to_send.notify_one();
            tokio::select! {
                _ = self.carry(wire, agreed.heartbeat) => {}
                () = self.ending.notified() => {}
            }
            self.line().on_lost();
            if ends_with_gateway || self.has_ended() {
                break;
            }
            turn += 1;
            carried = tokio::select! {
                // What it received of one member must not continue with another's.
                next = self.next_gateway(&settings, turn) => next.filter(|(_, agreed)| agreed.copied == self.copied),
                () = self.ending.notified() => None,
            };
        }
        self.end();
    }

    fn on_signed_on(&self, in_flight_max: u16) {
        let mut line = self.line();
        line.on_signed_on(in_flight_max, self.timer_ms());
    }

    /// The next gateway that takes the session; none if it is refused.
    async fn next_gateway(&self, settings: &ApiSettings, mut turn: usize) -> Option<(Wire, Agreed)> {
        loop {
            match Wire::sign_on(settings, turn, (self.member, self.number)).await {
                Ok((wire, SignedOn::Done(agreed))) => return Some((wire, agreed)),
                Ok((_, SignedOn::Refused(Reason::TooManyConnections | Reason::TooManySessions))) | Err(_) => {
                }
                Ok((_, SignedOn::Challenged(_) | SignedOn::Refused(_))) => return None,
            }
            turn += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn carry(&self, wire: Wire, heartbeat: Duration) -> io::Result<()> {
        let Wire { mut inbox, mut to } = wire;
        tokio::select! {
            ended = self.write(&mut *to) => ended,
            ended = self.read(&mut inbox, heartbeat * BEATS_MISSED) => ended,
            () = self.beat(heartbeat) => Ok(()),
        }
    }

    async fn write(&self, to: &mut (dyn AsyncWrite + Send + Unpin)) -> io::Result<()> {
        let mut out = Vec::new();
        loop {
            self.to_send.notified().await;
            self.line().take_out(&mut out);
            if !out.is_empty() {
                to.write_all(&out).await?;
                to.flush().await?;
            }
        }
    }

    async fn read(&self, inbox: &mut Inbox, patience: Duration) -> io::Result<()> {
        let mut effects = Vec::new();
        loop {
            timeout(patience, inbox.fill()).await??;
            self.take_in(inbox, &mut effects)?;
        }
    }

    async fn beat(&self, heartbeat: Duration) {
        let mut beat = interval(heartbeat);
        loop {
            beat.tick().await;
            self.line().beat();
            self.to_send.notify_one();
        }
    }

    /// Takes in all frames that are whole, carries out what follows, and ends the replays that no follower takes any more.
    fn take_in(&self, inbox: &mut Inbox, effects: &mut Vec<Effect<Waiter>>) -> io::Result<()> {
        let taken = hear(&mut self.line(), inbox, effects);
        effects.drain(..).for_each(|effect| self.carry_out(effect));
        let mut line = self.line();
        line.end_in_vain(|shard, number| self.followers.stand(shard, number));
        if line.has_out() {
            self.to_send.notify_one();
        }
        taken
    }

    fn carry_out(&self, effect: Effect<Waiter>) {
        match effect {
            // Who waited may be gone.
            Effect::Told(waiter, told) => drop(waiter.send(told)),
            Effect::Stream(shard, number, reply) => {
                self.followers.tell(Followed::Message(shard, number, reply))
            }
            Effect::Live(shard, next) => self.followers.tell(Followed::Live(shard, next)),
            Effect::NotTold(shard, oldest, reason) => {
                self.followers.tell(Followed::NotTold(shard, oldest, reason))
            }
            Effect::Ended(Reason::TakenOver | Reason::Revoked | Reason::WrongKey) => self.end(),
            Effect::Ended(_) => {}
        }
    }
}

/// What a follower receives.
pub(crate) struct Following {
    pub(crate) session: Arc<Session>,
    pub(crate) id: u64,
    pub(crate) told: mpsc::Receiver<Followed>,
}

impl Following {
    /// The next of it; none once the session has ended.
    pub(crate) async fn recv(&mut self) -> Option<Followed> {
        if [0, self.told.max_capacity() / 2].contains(&self.told.len()) {
            self.session.tell_again(self.id);
        }
        self.told.recv().await
    }
}

fn hear(line: &mut Line<Waiter>, inbox: &mut Inbox, effects: &mut Vec<Effect<Waiter>>) -> io::Result<()> {
    while let Some(frame) = inbox.next()? {
        line.on_frame(frame, |effect| effects.push(effect));
    }
    Ok(())
}

#[cfg(test)]
mod tests;

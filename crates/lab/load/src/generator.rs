//! The sending thread.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use pares_config::ROLE_MAX;
use pares_os::clock::mono_ns;
use pares_types::ClientOrderId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::RequestSource;
use crate::connection::{Connection, Told};
use crate::error::LabError;
use crate::fix::{FixCaller, FixEngine};
use crate::front::session::FrontSession;
use crate::numbers::Numbers;
use crate::observed::{Observed, histogram};
use crate::ouch::{OuchCaller, OuchEngine};
use crate::plan::{LoadPlan, LoadProtocol, Rate};
use crate::session::Session;
use crate::web::{WebCaller, WebEngine};
use crate::worker::Worker;

/// Requests sent before answers are looked at again.
const BATCH_MAX: usize = 256;
/// Nearer deadlines are waited for by yielding: a timer would be late by about as much.
const YIELD_NS: u64 = 60_000;
/// How long the next answer may take after the last request, and after each answer that follows it: a slow machine is late, not silent.
const DRAIN_NS: u64 = 10_000_000_000;
/// How long streams are listened to after the last that came: what happened before the last answer comes by another connection,
/// and perhaps later.
const LINGER_NS: u64 = 2_000_000_000;
/// The most that both take together: others may continue to trade.
const ENDING_MAX_NS: u64 = 60_000_000_000;
/// Between two hand-overs of latencies to [`Observed`].
const PUBLISH_NS: u64 = 50_000_000;

/// An active load generator.
pub struct Load {
    observed: Arc<Observed>,
    thread: Worker<Result<(), LabError>>,
}

impl Load {
    /// Connects the members and starts sending.
    ///
    /// # Errors
    /// If a gateway cannot be reached.
    pub fn start(plan: LoadPlan) -> Result<Self, LabError> {
        let mut flow = plan.flow();
        Self::start_with(plan, Box::new(move || flow.next_command()))
    }

    /// The same with requests from another source, in place of the plan's own flow.
    ///
    /// # Errors
    /// If a gateway cannot be reached.
    pub fn start_with(plan: LoadPlan, flow: Box<dyn RequestSource>) -> Result<Self, LabError> {
        let observed = Arc::new(Observed::new());
        let mut generator = Generator::new(plan, flow, Arc::clone(&observed))?;
        let thread = Worker::start("load", move |_| generator.run())?;
        Ok(Self { observed, thread })
    }

    /// What it has seen so far.
    #[must_use]
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Whether it has ended: its time is over, or it failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Whether it continues.
    ///
    /// # Errors
    /// If it has ended.
    pub fn goes_on(&self) -> Result<(), LabError> {
        match self.is_finished() {
            true => Err(LabError::Failed("the load generator ended: a gateway was lost".into())),
            false => Ok(()),
        }
    }

    /// Waits until all that was sent is answered (or has had ten seconds), and gives the figures.
    ///
    /// # Errors
    /// If a connection was lost.
    pub fn finish(self) -> Result<Arc<Observed>, LabError> {
        self.observed.stop();
        self.thread.finish().map(|()| self.observed)
    }
}

struct Generator {
    plan: LoadPlan,
    observed: Arc<Observed>,
    sessions: Vec<Box<dyn Connection + Send>>,
    flow: Box<dyn RequestSource>,
    start_ns: u64,
    sent: u64,
    /// With [`Rate::Max`]: when each request in flight was sent, by its number modulo the ring.
    sent_at: Vec<u64>,
    answers: Answers,
}

/// The receiving half: which requests are answered, and how late.
struct Answers {
    observed: Arc<Observed>,
    first: u64,
    answered: Numbers,
    completed: u64,
    latencies: [Histogram<u64>; 3],
    last_ns: u64,
    /// The same for the members of each gateway.
    last_ns_of: [u64; ROLE_MAX],
}

/// The wait after the last request.
struct Ending {
    begun_ns: u64,
    /// When something came last.
    heard_ns: u64,
}

impl Ending {
    fn is_over(&mut self, now_ns: u64, received: usize, silence_ns: u64) -> bool {
        if received > 0 {
            self.heard_ns = now_ns;
        }
        now_ns - self.heard_ns >= silence_ns || now_ns - self.begun_ns >= ENDING_MAX_NS
    }
}

impl Generator {
    fn new(plan: LoadPlan, flow: Box<dyn RequestSource>, observed: Arc<Observed>) -> Result<Self, LabError> {
        let sessions = (0..plan.members as usize).map(|place| connect(&plan, place));
        let sessions = sessions.collect::<Result<Vec<_>, LabError>>()?;
        let answers = Answers {
            observed: Arc::clone(&observed),
            first: plan.first_client_order_id,
            answered: Numbers::default(),
            completed: 0,
            latencies: [histogram(), histogram(), histogram()],
            last_ns: mono_ns(),
            last_ns_of: [mono_ns(); ROLE_MAX],
        };
        let sent_at = vec![0; plan.in_flight_max.next_power_of_two() * 2];
        Ok(Self { flow, plan, observed, sessions, start_ns: 0, sent: 0, sent_at, answers })
    }

    fn begin(&mut self) {
        // A timer may fire 50 us late by default. Where that cannot be changed, latencies show it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        pares_os::scheduling::short_slices();
        self.start_ns = mono_ns();
        (self.answers.last_ns, self.answers.last_ns_of) = (self.start_ns, [self.start_ns; ROLE_MAX]);
    }

    fn run(&mut self) -> Result<(), LabError> {
        self.begin();
        let (mut published_ns, mut ending) = (self.start_ns, None::<Ending>);
        loop {
            let now_ns = mono_ns();
            if self.plan.resume {
                self.bring_back(now_ns);
            }
            let sending = ending.is_none() && !self.is_over(now_ns);
            let sent = if sending { self.send_due(now_ns)? } else { 0 };
            // Also after the last request: a connection may have taken a part of what it was given.
            for session in &mut self.sessions {
                session.flush()?;
            }
            let received = self.receive()?;
            if now_ns - published_ns > PUBLISH_NS {
                published_ns = now_ns;
                self.answers.publish();
            }
            if !sending {
                let ending = ending.get_or_insert(Ending { begun_ns: now_ns, heard_ns: now_ns });
                if ending.is_over(now_ns, received, self.silence_ns()) {
                    self.answers.publish();
                    self.observed.keep_answered(std::mem::take(&mut self.answers.answered));
                    return Ok(());
                }
            }
            if sent == 0 && received == 0 {
                self.idle(sending)?;
            }
        }
    }

    /// How long nothing has come when nothing more will.
    fn silence_ns(&self) -> u64 {
        let rejected = self.observed.rejected.load(Ordering::Relaxed);
        if self.sent > self.answers.completed + rejected { DRAIN_NS } else { self.linger_ns() }
    }

    fn linger_ns(&self) -> u64 {
        let follows = matches!(&self.plan.protocol, LoadProtocol::Web(web) if !web.follows.is_empty());
        if follows { LINGER_NS } else { 0 }
    }

    fn is_over(&self, now_ns: u64) -> bool {
        let over = |duration: Duration| now_ns - self.start_ns >= duration.as_nanos() as u64;
        self.observed.stopped() || self.plan.duration.is_some_and(over)
    }

    /// When request `n` is due.
    fn due_ns(&self, n: u64) -> u64 {
        match self.plan.rate {
            Rate::PerSecond(rate) => {
                self.start_ns + (u128::from(n) * 1_000_000_000 / u128::from(rate)) as u64
            }
            Rate::Max => 0,
        }
    }

    fn send_due(&mut self, now_ns: u64) -> Result<usize, LabError> {
        let offered = match self.plan.rate {
            Rate::PerSecond(rate) => {
                (u128::from(now_ns - self.start_ns) * u128::from(rate) / 1_000_000_000) as u64 + 1
            }
            Rate::Max => u64::MAX,
        };
        let answered = self.answers.completed + self.observed.rejected.load(Ordering::Relaxed);
        let room = (self.plan.in_flight_max as u64).saturating_sub(self.sent - answered);
        let count = (offered - self.sent).min(room).min(BATCH_MAX as u64);
        for _ in 0..count {
            let command = self.flow.next_command();
            let ring = self.sent as usize % self.sent_at.len();
            self.sent_at[ring] = now_ns;
            self.sessions[(command.member.0 - self.plan.first_member) as usize]
                .send(&command.to_request())?;
            self.sent += 1;
        }
        let offered = if self.plan.rate == Rate::Max { self.sent } else { offered };
        self.observed.offered.store(offered, Ordering::Relaxed);
        self.observed.sent.store(self.sent, Ordering::Relaxed);
        Ok(count as usize)
    }

    fn receive(&mut self) -> Result<usize, LabError> {
        let (start_ns, rate, sent_at) = (self.start_ns, self.plan.rate, &self.sent_at);
        let due_ns = |n: u64| match rate {
            Rate::PerSecond(rate) => start_ns + (u128::from(n) * 1_000_000_000 / u128::from(rate)) as u64,
            Rate::Max => sent_at[n as usize % sent_at.len()],
        };
        let mut received = 0;
        for session in &mut self.sessions {
            let (answers, home) = (&mut self.answers, session.home());
            let (mut now_ns, before) = (0, answers.completed);
            received += session.poll(&mut |told| {
                if now_ns == 0 {
                    now_ns = mono_ns();
                }
                answers.on_told(now_ns, home, told, due_ns);
            })?;
            if answers.completed > before && session.take_fresh() {
                self.observed.note_resumed(now_ns);
            }
        }
        self.observed.completed.store(self.answers.completed, Ordering::Relaxed);
        Ok(received)
    }

    /// Lets members connect again that have lost their gateway, and return to it when they are recalled.
    fn bring_back(&mut self, now_ns: u64) {
        let recalled = self.observed.recalled();
        for session in &mut self.sessions {
            let repeated = session.come_back(now_ns);
            if recalled {
                session.go_home();
            }
            self.observed.retried.fetch_add(repeated, Ordering::Relaxed);
        }
        let away = self.sessions.iter().filter(|session| session.is_away()).count();
        self.observed.away.store(away as u64, Ordering::Relaxed);
    }

    /// Waits for an answer or for the next request to be due, whichever comes first.
    fn idle(&self, sending: bool) -> Result<(), LabError> {
        let now_ns = mono_ns();
        // A session that is disconnected wants to try again soon.
        let soon_ns = now_ns + 1_000_000;
        let patient = sending && self.sessions.iter().all(|session| session.socket().is_some());
        let next_ns = if sending { self.due_ns(self.sent).max(now_ns) } else { soon_ns };
        let next_ns = if patient { next_ns } else { next_ns.min(soon_ns) };
        let left_ns = match self.plan.rate {
            Rate::Max => 1_000_000,
            Rate::PerSecond(_) => next_ns - now_ns,
        };
        if left_ns <= YIELD_NS {
            std::thread::yield_now();
            return Ok(());
        }
        let wait_ns = left_ns - YIELD_NS / 2;
        let timeout =
            Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as _ };
        let mut fds: Vec<PollFd<'_>> = self
            .sessions
            .iter()
            .filter_map(|session| session.socket())
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(LabError::io("waiting for answers")(error.into())),
        }
    }
}

impl Answers {
    fn on_told(&mut self, now_ns: u64, home: usize, told: Told, due_ns: impl Fn(u64) -> u64) {
        match told {
            Told::Answered(ClientOrderId(name)) => self.on_answer(now_ns, home, name - self.first, due_ns),
            Told::Rejected => bump(&self.observed.rejected),
            Told::Traded => bump(&self.observed.trades),
        }
    }

    fn on_answer(&mut self, now_ns: u64, home: usize, n: u64, due_ns: impl Fn(u64) -> u64) {
        if !self.answered.insert(n) {
            bump(&self.observed.duplicated);
            return;
        }
        self.completed += 1;
        // Members' times of reading are not in order of the members.
        let since = |last_ns: u64| now_ns.saturating_sub(last_ns);
        self.observed.note_gaps(since(self.last_ns), home, since(self.last_ns_of[home]));
        (self.last_ns, self.last_ns_of[home]) = (now_ns, now_ns);
        let latency_ns = now_ns.saturating_sub(due_ns(n));
        self.latencies[self.observed.phase()].saturating_record(latency_ns.max(1));
    }

    fn publish(&mut self) {
        self.observed.last_ns.store(self.last_ns, Ordering::Relaxed);
        self.observed.add_latencies(&mut self.latencies);
    }
}

/// A member of the plan, by its place among them.
fn connect(plan: &LoadPlan, place: usize) -> Result<Box<dyn Connection + Send>, LabError> {
    Ok(match &plan.protocol {
        LoadProtocol::Binary => Box::new(Session::connect(plan, place)?),
        LoadProtocol::Fix(fix) => {
            let caller = FixCaller::of(plan, fix, place);
            Box::new(FrontSession::<FixEngine>::connect(plan, caller, place)?)
        }
        LoadProtocol::Ouch(ouch) => {
            let caller = OuchCaller::of(plan, ouch, place);
            Box::new(FrontSession::<OuchEngine>::connect(plan, caller, place)?)
        }
        LoadProtocol::Web(web) => {
            let caller = WebCaller::of(plan, web, place);
            Box::new(FrontSession::<WebEngine>::connect(plan, caller, place)?)
        }
    })
}

/// Only the generator's thread writes these.
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ending_lasts_until_silence_or_sixty_seconds() {
        let mut ending = Ending { begun_ns: 5, heard_ns: 5 };
        assert!(!ending.is_over(14, 0, 10) && ending.is_over(15, 0, 10), "nothing came for 10 ns");
        assert!(!ending.is_over(14, 1, 10) && !ending.is_over(23, 0, 10) && ending.is_over(24, 0, 10));
        assert!(!ending.is_over(ENDING_MAX_NS + 4, 1, 10) && ending.is_over(ENDING_MAX_NS + 5, 1, 10));
    }
}

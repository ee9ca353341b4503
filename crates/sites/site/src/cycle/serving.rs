//! Requests of clients, of other sites and of the process's driver: executing, answering.

use pares_store::{Work, is_reserved};
use pares_wice::{AbortReason, Command, Outcome, Snapshot, TransactionId, Version};

use super::Cycle;
use super::admission::{no, too_old};
use super::transactions::{OWN, attempt_of};
use crate::application::{Application, answer_of};
use crate::config::number_of;
use crate::error::ProcessError;
use crate::protocol::{Ask, Between, Code, Horizon, REPLY_BYTES_MAX, Reply};
use crate::requests::{Answer, Answered, Asker, EXECUTIONS_MAX, Remembered, State, reply_key, reply_value};
use crate::rights::{Rights, denied};
use crate::view::View;
use crate::world::{Connections, World};

/// Requests that are executed between two looks at the clock.
const EXECUTED_BETWEEN_LOOKS: usize = 64;
const _: () = assert!(EXECUTIONS_MAX <= 0xff, "executions of a request are numbered in a byte");

impl<W: World, A: Application> Cycle<W, A> {
    /// Whether requests can be executed: the log has been read, and the store is not too far behind.
    pub(super) fn may_execute(&self) -> bool {
        let unstored = self.site.stable().0.saturating_sub(self.base.version().0);
        let held = self.site.held();
        assert!(held.unstable <= held.versions, "what is not stable is a part of all versions");
        let is_near = unstored <= self.bounds.unstored_max
            && held.versions - held.unstable <= self.bounds.unstored_bytes_max;
        !self.site.is_recalling() && self.shows_all && is_near
    }

    pub(super) fn asked(
        &mut self,
        client: pares_link::ClientId,
        rights: Rights,
        ask: Ask,
    ) -> Result<(), ProcessError> {
        let to = ask.number();
        if let Some(answer) = self.take(client, rights, ask)? {
            let says_something = matches!(answer.code, Code::Done | Code::Refused);
            self.reply(client, to, &answer, if says_something { self.site.stable() } else { Version(0) });
        }
        Ok(())
    }

    /// Takes what a client asks, unless it is answered at once.
    fn take(
        &mut self,
        client: pares_link::ClientId,
        rights: Rights,
        ask: Ask,
    ) -> Result<Option<Answer>, ProcessError> {
        let needed = Rights::needed_for(&ask);
        Ok(match ask {
            _ if needed > rights => Some(denied(needed)),
            Ask::Execute(id, ..) if id.client >= OWN => Some(no_number()),
            Ask::Execute(id, seen, request) => {
                let refused = self.refusal(id, seen, request.len())?;
                if refused.is_none() {
                    self.requests.arrived(id, Asker::Client(client), seen.version, request);
                }
                refused
            }
            Ask::Read(tag, seen, request) => self.read((client, tag), request, seen).err(),
            Ask::Latest(tag, seen, request) => self.read_latest((client, tag), request, seen).err(),
            Ask::Operate(_, command) => Some(self.operate(command)),
            Ask::Remove(_, site) => Some(self.remove(site)),
            Ask::Copy(tag, wanted) => self.copy(client, tag, &wanted)?,
            Ask::Grant(..) | Ask::Begin(..) => Some(no(Code::Impossible, "this is a site, not a witness")),
            Ask::Versions(tag, after) => self.versions_after(client, tag, after),
            Ask::Report(_) => {
                let body = serde_json::to_vec(&self.report()).expect("a report is JSON");
                Some(Answer { code: Code::Done, body })
            }
        })
    }

    /// Tells a client what rests on nothing later than `version`.
    pub(super) fn reply(&mut self, client: pares_link::ClientId, to: u64, answer: &Answer, version: Version) {
        let horizon = match version {
            Version(0) => Horizon::default(),
            version => Horizon { database: self.database, version },
        };
        let mut reply = Reply { to, code: answer.code, horizon, body: answer.body.clone() };
        if reply.body.len() > REPLY_BYTES_MAX {
            reply.body = b"the reply is too long for one frame: ask for less at a time".to_vec();
            reply.code = if reply.code == Code::Done { Code::Impossible } else { reply.code };
        }
        self.told.count(reply.code);
        // A client that is gone asks again elsewhere.
        let _ = self.links.send_client(client, &reply.to_bytes());
    }

    fn operate(&mut self, command: Command) -> Answer {
        match self.site.command(command, &mut self.wanted) {
            Ok(()) => Answer { code: Code::Done, body: Vec::new() },
            Err(refused) => Answer { code: Code::Impossible, body: refused.to_string().into_bytes() },
        }
    }

    pub(super) fn execute(&mut self) -> Result<(), ProcessError> {
        if !self.may_execute() {
            return Ok(());
        }
        let began = self.world.now();
        for count in 0..self.bounds.executed_max {
            let is_late = || self.world.now().saturating_sub(began) >= self.bounds.executing_max;
            if count % EXECUTED_BETWEEN_LOOKS == EXECUTED_BETWEEN_LOOKS - 1 && is_late() {
                break;
            }
            let Some(id) = self.requests.queue.pop_front() else { break };
            if self.requests.least_of(id) > self.site.snapshot().version {
                self.requests.wait(id);
            } else {
                self.execute_one(id)?;
            }
        }
        Ok(())
    }

    fn execute_one(&mut self, id: TransactionId) -> Result<(), ProcessError> {
        if self.is_answered(id)? {
            return Ok(());
        }
        let Some(request) = self.requests.open.get_mut(&id) else { return Ok(()) };
        let snapshot = self.site.snapshot();
        let view = View::new(self.site.overlay(), &*self.base, snapshot.version);
        assert!(
            request.least <= snapshot.version,
            "a request is executed on what its client has seen, or later"
        );
        request.executions += 1;
        self.work.executed += 1;
        let mut work = Work::new(view);
        let answer = permitted(answer_of(self.application.execute(&request.body, &mut work))?, &work);
        if answer.code != Code::Done {
            // Nothing of it is done. That it was refused is certified all the same: an attempt of this request at another site may be under way.
            work = Work::new(view);
        }
        work.put(&reply_key(id), reply_value(id, &answer));
        let attempt = attempt_of(self.site.id(), self.life, request.executions);
        let transaction = self.site.isolation().certified(work.finish(id, attempt, snapshot.version));
        self.requests.executed(id, answer);
        if let Err(error) = self.site.submit(transaction, snapshot, &mut self.wanted) {
            let body = error.to_string().into_bytes();
            self.answer(id, Answer { code: Code::Impossible, body }, Version(0));
        }
        Ok(())
    }

    /// Whether a request is not to be executed: it is no longer open, or was executed before, and its outcome is answered once it may be.
    fn is_answered(&mut self, id: TransactionId) -> Result<bool, ProcessError> {
        let snapshot = self.site.snapshot();
        let remembered = self.remembered_at(id, snapshot.version)?;
        let Some(request) = self.requests.open.get_mut(&id) else { return Ok(true) };
        match remembered {
            Remembered::Nothing => return Ok(false),
            Remembered::Answered(answer) => {
                request.state = State::Waiting;
                self.waiting.insert((snapshot.version, id), (snapshot.branch, answer));
            }
            Remembered::TooOld => self.answer(id, too_old(), Version(0)),
        }
        Ok(true)
    }

    pub(super) fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        self.work.lost += u64::from(matches!(outcome, Outcome::Aborted(_)));
        assert!(self.work.lost <= self.work.executed, "an execution has one outcome at most");
        let Some(request) = self.requests.open.get_mut(&id) else {
            self.work.done += u64::from(matches!(outcome, Outcome::Committed { attempt: Some(_), .. }));
            return self.transactions.outcome(id, outcome, self.world.now());
        };
        match outcome {
            Outcome::Committed { attempt, version } => {
                assert!(version <= self.site.stable(), "a version reported as committed is stable");
                let own = attempt_of(self.site.id(), self.life, request.executions);
                if attempt != Some(own) {
                    self.requests.again(id); // finds the reply of the attempt that was committed
                } else if let Some(request) = self.requests.remove(id) {
                    self.tell(id, request.asker, request.answer, version);
                }
            }
            Outcome::Aborted(AbortReason::Behind) => {
                self.answer(id, Answer { code: Code::Behind, body: Vec::new() }, Version(0));
            }
            Outcome::Aborted(_) if request.executions >= EXECUTIONS_MAX => {
                self.answer(id, Answer { code: Code::Aborted, body: Vec::new() }, Version(0));
            }
            Outcome::Aborted(_) if self.site.certifies() => self.requests.again(id),
            // Also what was forwarded to this site when it certified: here it would lose on and on.
            Outcome::Aborted(_) => self.forward(id),
        }
    }

    /// Lets the certifier's site execute it, on what it has just certified; here, if there is none, or if it was that site that asked.
    pub(super) fn forward(&mut self, id: TransactionId) {
        let Some(request) = self.requests.open.get_mut(&id) else { return };
        match self.site.certifier() {
            Some(certifier) if certifier != self.site.id() && request.asker != Asker::Site(certifier) => {
                self.work.forwarded += u64::from(!matches!(request.state, State::Forwarded { .. }));
                request.state = State::Forwarded { ticks: 0 };
                request.forwards = request.forwards.saturating_add(1);
                let frame = Between::Forward(id, request.least, &request.body).to_bytes();
                let _ = self.links.send(number_of(certifier), &frame);
            }
            _ => self.requests.again(id),
        }
    }

    /// Answers found, on versions that are stable now; on versions that never were, executes again. So does what waited for a version that has come.
    pub(super) fn tell_waiting(&mut self) {
        self.requests.come_to(self.site.snapshot().version);
        let stable = self.site.stable();
        while let Some(entry) = self.waiting.first_entry() {
            let (version, id) = *entry.key();
            if version > stable {
                break;
            }
            let (branch, answer) = entry.remove();
            if self.site.holds(Snapshot { version, branch }) {
                self.answer(id, answer, version);
            } else {
                self.requests.again(id);
            }
        }
    }

    /// A request has its answer, which rests on nothing later than `version`.
    pub(super) fn answer(&mut self, id: TransactionId, answer: Answer, version: Version) {
        if let Some(request) = self.requests.remove(id) {
            self.tell(id, request.asker, answer, version);
        }
    }

    fn tell(&mut self, id: TransactionId, asker: Asker, answer: Answer, version: Version) {
        self.work.done += u64::from(answer.code == Code::Done);
        match asker {
            Asker::Client(client) => self.reply(client, id.sequence, &answer, version),
            Asker::Site(site) => {
                let frame = Between::Forwarded(id, answer.code, version, &answer.body).to_bytes();
                let _ = self.links.send(number_of(site), &frame);
            }
            Asker::Here => self.answered.push(Answered { id, answer }),
            Asker::Nobody => {}
        }
    }
}

fn no_number() -> Answer {
    Answer { code: Code::Impossible, body: b"a client number must be below 2^63".to_vec() }
}

/// What stands behind tables is written by SQL alone.
fn permitted(answer: Answer, work: &Work<View<'_>>) -> Answer {
    if !work.writes_any(is_reserved) {
        return answer;
    }
    let body = b"names that begin with sql/ are reserved for tables: use SQL, or another name".to_vec();
    Answer { code: Code::Refused, body }
}

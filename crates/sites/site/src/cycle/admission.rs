//! Which requests a site takes, and what it says to those who wait for long.
//!
//! When a cluster is cut off nothing becomes stable, and whatever is taken waits: to take all, and to say nothing, fills the memory and tells a
//! client the same as a dead site does. So a request is refused as soon as too much waits, before anything is done for it: a refusal is final, as far
//! as this asking goes. And a client whose request was taken receives "not known yet" after a while; the request may be done all the same, and the
//! client learns what became of it by asking again under the same number, here or elsewhere.
//!
//! ```text
//!   asked --> known already, and stable ------------------------> its reply
//!         --> known already, and not stable, and no room here --> not known yet
//!         --> too much waits: behind; the client has 64: busy
//!         --> its client has seen what this site does not have: waits; after a while: elsewhere
//!         --> taken --in time--> answered
//!                   \--later---> not known yet; asked again --> taken again, or its reply
//! ```

use pares_store::{Reads, StoreError};
use pares_wice::{SiteId, TransactionId, Version};

use super::{Cycle, FORWARD_PATIENCE_TICKS, TICK, TICKS_OF_RULES};
use crate::application::Application;
use crate::protocol::{Code, Horizon};
use crate::requests::{Answer, Asker, Remembered, Request, State, remembered, reply_key};
use crate::view::View;
use crate::world::World;

impl<W: World, A: Application> Cycle<W, A> {
    /// What a client that has seen so much receives at once, if its request of so many bytes is not taken.
    pub(super) fn refusal(
        &self,
        id: TransactionId,
        seen: Horizon,
        bytes: usize,
    ) -> Result<Option<Answer>, StoreError> {
        if self.requests.open.contains_key(&id) {
            return Ok(None);
        }
        if let Some(refused) = self.refusal_of(seen) {
            return Ok(Some(refused));
        }
        let has_its_share = self.requests.of_client(id.client) >= self.bounds.client_open_max;
        let is_full = self.requests.is_full(bytes, &self.bounds);
        if !has_its_share && !is_full && !self.site.is_behind() {
            return Ok(None);
        }
        if self.site.is_recalling() {
            return Ok(Some(no(Code::Busy, "this site is starting: ask another one")));
        }
        if let Some(told) = self.told_before(id)? {
            return Ok(Some(told));
        }
        Ok(Some(if has_its_share {
            no(Code::Busy, "this client has reached its limit of open requests")
        } else if is_full {
            no(Code::Behind, "this site has reached its limit of waiting requests")
        } else {
            no(Code::Behind, "too many versions are waiting to become stable")
        }))
    }

    /// The answer to a request that was executed before.
    fn told_before(&self, id: TransactionId) -> Result<Option<Answer>, StoreError> {
        Ok(match self.remembered_at(id, self.site.snapshot().version)? {
            Remembered::Nothing => None,
            Remembered::TooOld => Some(too_old()),
            Remembered::Answered(answer) => match self.remembered_at(id, self.site.stable())? {
                Remembered::Answered(_) => Some(answer),
                _ => Some(not_known_yet()),
            },
        })
    }

    /// The refusal of a request with which this site does not wait until it has come to what its client has seen.
    fn refusal_of(&self, seen: Horizon) -> Option<Answer> {
        if !seen.is_of(self.database) {
            return Some(of_another_database());
        }
        let is_beyond = seen.version > self.site.snapshot().version;
        (is_beyond && self.requests.has_enough_ahead(&self.bounds)).then(is_ahead)
    }

    /// What is known of a request at that version.
    pub(super) fn remembered_at(
        &self,
        id: TransactionId,
        version: Version,
    ) -> Result<Remembered, StoreError> {
        let view = View::new(self.site.overlay(), &*self.base, version);
        Ok(remembered(id, view.get(&reply_key(id))?.as_ref()))
    }

    /// Another site wants a request executed. What finds no room is as good as lost: it is sent again.
    pub(super) fn forwarded_here(&mut self, from: SiteId, id: TransactionId, least: Version, request: &[u8]) {
        let is_open = self.requests.open.contains_key(&id);
        if is_open || !self.requests.is_full_for_sites(request.len(), &self.bounds) {
            self.requests.arrived(id, Asker::Site(from), least, request.to_vec());
        }
    }

    /// What became of a request that was sent on. If it was sent more than once, a no says nothing of the other times.
    pub(super) fn forwarded_back(&mut self, id: TransactionId, code: Code, version: Version, body: &[u8]) {
        let Some(request) = self.requests.open.get(&id) else { return };
        if !matches!(request.state, State::Forwarded { .. }) {
            return;
        }
        let is_open = request.forwards > 1 && !matches!(code, Code::Done | Code::Refused);
        let answer = if is_open { not_known_yet() } else { Answer { code, body: body.to_vec() } };
        self.answer(id, answer, version);
    }

    /// Some time has passed.
    pub(super) fn tick_requests(&mut self) {
        let tick_ms = TICK.as_millis() * u128::from(TICKS_OF_RULES);
        let patience = self.bounds.answer_patience.as_millis().div_ceil(tick_ms);
        let due = self.requests.tick(FORWARD_PATIENCE_TICKS, u32::try_from(patience).unwrap_or(u32::MAX));
        for id in due.forwards {
            self.forward(id);
        }
        for id in due.unanswered {
            let Some(request) = self.requests.open.get_mut(&id) else { continue };
            if let Asker::Client(client) = std::mem::replace(&mut request.asker, Asker::Nobody) {
                self.work.unknown += 1;
                self.reply(client, id.sequence, &not_known_yet(), Version(0));
            }
        }
        for id in due.ahead {
            // Where two sites have to do with it, one of them may yet do what the other says it has not.
            let is_shared =
                |request: &Request| request.forwards > 0 || matches!(request.asker, Asker::Site(_));
            let may_be_done = self.requests.open.get(&id).is_some_and(is_shared);
            self.answer(id, if may_be_done { not_known_yet() } else { is_ahead() }, Version(0));
        }
    }
}

pub(super) fn no(code: Code, why: &str) -> Answer {
    assert!(!matches!(code, Code::Done | Code::Refused), "a no is neither done nor refused");
    Answer { code, body: why.into() }
}

fn not_known_yet() -> Answer {
    no(
        Code::Unknown,
        "it waits for another cluster or for the certifier, or has committed and waits to become stable",
    )
}

/// It has seen what this site does not have.
pub(super) fn is_ahead() -> Answer {
    no(Code::Elsewhere, "this site lags behind what this client has seen")
}

pub(super) fn of_another_database() -> Answer {
    no(Code::Impossible, "this client has seen another database: start with a new client")
}

pub(super) fn too_old() -> Answer {
    no(Code::Impossible, "more than 64 later requests of this client were executed")
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use pares_wice::codec::Coded;
    use pares_wice::{Era, Message, Status, Term};

    use super::*;
    use crate::protocol::{Ask, Between};
    use crate::testing::{Machine, TestSite};

    fn execute(sequence: u64) -> Ask {
        let id = TransactionId { client: 1, sequence };
        Ask::Execute(id, Horizon::default(), format!("add a/{sequence} 1").into_bytes())
    }

    /// What a client receives that asks this, and waits longer than a site is patient.
    fn told(machine: &Machine, site: &mut TestSite, sequence: u64) -> Option<Code> {
        machine.client_sent(&execute(sequence).to_bytes());
        machine.pass(site, 160);
        machine.heard().map(|reply| reply.code)
    }

    /// A site whose clients' requests wait for the other cluster.
    fn cut_off() -> (Machine, TestSite) {
        let (machine, mut site) = Machine::with_site(&[1, 1]);
        all_told(&machine, &mut site, 1..=4, Code::Unknown);
        (machine, site)
    }

    fn all_told(machine: &Machine, site: &mut TestSite, all: RangeInclusive<u64>, code: Code) {
        all.for_each(|sequence| assert_eq!(told(machine, site, sequence), Some(code), "{sequence}"));
    }

    /// The other cluster says that it has everything.
    fn heal(machine: &Machine, site: &mut TestSite) {
        let status = Status {
            site: SiteId::new(1, 0),
            term: Term(1),
            serial: 1,
            eras: vec![(Era::default(), Version(0))],
            delivered: Version(site.report().delivered),
            received: Version(site.report().delivered),
            is_whole: true,
            ..Status::default()
        };
        machine.site_sent(&Between::Rules(&Message::Status(status).to_bytes()));
        machine.pass(site, 8);
    }

    #[test]
    fn waiter_for_cluster_is_informed_excess_is_refused() {
        let (machine, mut site) = cut_off();
        assert_eq!(site.report().delivered, 4, "what cannot be stored yet keeps nobody from executing");
        assert_eq!((site.report().open, site.report().work.unknown), (4, 4));
        assert_eq!(told(&machine, &mut site, 5), Some(Code::Behind));
        assert_eq!(told(&machine, &mut site, 1), Some(Code::Unknown), "a repeat has a place already");
        heal(&machine, &mut site);
        assert_eq!((machine.told_client(), site.report().open), (0, 0), "nobody waits any more");
        all_told(&machine, &mut site, 1..=4, Code::Done);
        assert_eq!(told(&machine, &mut site, 5), Some(Code::Unknown));
        assert_eq!(site.report().delivered, 5, "each was done once; the last waits");
    }

    #[test]
    fn what_was_done_before_is_known_though_there_is_no_room() {
        let (machine, before) = cut_off();
        drop(before);
        let mut site = machine.begin(&[1, 1]).unwrap();
        all_told(&machine, &mut site, 5..=8, Code::Unknown);
        assert_eq!(told(&machine, &mut site, 9), Some(Code::Behind));
        assert_eq!(told(&machine, &mut site, 1), Some(Code::Unknown), "done, and not stable");
        assert_eq!(site.report().open, 4);
        heal(&machine, &mut site);
        all_told(&machine, &mut site, 9..=12, Code::Unknown);
        assert_eq!(told(&machine, &mut site, 13), Some(Code::Behind));
        assert_eq!(told(&machine, &mut site, 1), Some(Code::Done));
    }

    #[test]
    fn requests_of_other_sites_have_their_own_room_and_no_more() {
        let (machine, mut site) = cut_off();
        for sequence in 100..120 {
            machine.site_sent(&Between::Forward(
                TransactionId { client: 2, sequence },
                Version(0),
                b"add b 1",
            ));
        }
        machine.pass(&mut site, 3);
        assert_eq!(site.report().open, 8);
    }

    #[test]
    fn second_forward_refusal_says_nothing_of_first() {
        for (forwards, code) in [(1, Code::Behind), (2, Code::Unknown)] {
            let (machine, mut site) = Machine::with_site(&[1, 1]);
            machine.ask(&mut site, &execute(1));
            let id = TransactionId { client: 1, sequence: 1 };
            let request = site.cycle().requests.open.get_mut(&id).unwrap();
            (request.state, request.forwards) = (State::Forwarded { ticks: 0 }, forwards);
            machine.site_sent(&Between::Forwarded(id, Code::Behind, Version(0), b""));
            machine.pass(&mut site, 1);
            assert_eq!(machine.heard().map(|reply| reply.code), Some(code));
        }
    }
}

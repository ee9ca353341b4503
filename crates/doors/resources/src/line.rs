//! A signed-on session at some gateway: what is in flight, and what follows from each frame.
//!
//! ```text
//!            ask            on_frame: Answer, Rejected
//!   free ----------> asked ---------------------------> free
//!                     | ^
//!          lost       | | on_signed_on: asked again, by name, in the order they were asked
//!                     +-+
//! ```
//! The same name asked twice is one request with two who wait: the exchange executes it once anyway, and says the same to both. Who does not wait any more
//! counts no more; a request for which nobody waits, and which no gateway can have, is forgotten.
//!
//! A name is answered for life by what was first asked for under it. An answer says what was asked, so no waiter receives another request's,
//! perhaps of another shard. Of which order a refused cancel was it does not say: the request is sent again, and the gateway answers it outside of the stream.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use pares_types::{
    Answer, ClientOrderId, ClientRequest, OrderId, OrderStatus, OwnLimits, Reason, Reply, ShardId, Status,
};
use pares_wire::frame::{self, CancelAfter, GatewayFrame, Ping};

use crate::questions::{InstrumentTold, Question, Questions};
use crate::streams::Streams;

/// So many may wait for one name.
const WAITERS_MAX: usize = 8;
/// So many questions may wait.
const QUESTIONS_MAX: usize = 1_024;

/// What a waiter receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineTold {
    /// The one answer to a request.
    Answer(Answer),
    /// Nothing was done, for that reason; if that is `DuplicateRequest`, the name stands for another request.
    Rejected(Reason),
    /// How the order is; `None` if the gateway knows of none.
    Order(Option<OrderStatus>),
    /// The member's orders that are in flight or work.
    Orders(Vec<OrderStatus>),
    /// All instruments.
    Instruments(Vec<InstrumentTold>),
    /// What the session may do.
    Limits(OwnLimits),
    /// The session has ended: sign on, and ask again by name.
    SignOnAgain,
}

/// What follows from a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<W> {
    /// A waiter receives that.
    Told(W, LineTold),
    /// Something of the member's stream of a shard, to all who follow it.
    Stream(ShardId, u64, Reply),
    /// All that was asked for of a shard has been sent; that number comes next.
    Live(ShardId, u64),
    /// The stream is not told, for that reason; the lowest number that is kept.
    NotTold(ShardId, u64, Reason),
    /// The gateway ends the session.
    Ended(Reason),
}

/// Why a request was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many are unanswered as may be.
    Full,
    /// Another request of that name is unanswered.
    Differs,
}

struct Asked<W> {
    request: ClientRequest,
    /// Whether a gateway may have it.
    was_sent: bool,
    /// Its place among those asked.
    place: u64,
    waiters: Vec<W>,
}

impl<W> Asked<W> {
    /// One more waits for its answer.
    fn join(&mut self, request: &ClientRequest, waiter: W, is_gone: fn(&W) -> bool) -> Result<(), Refused> {
        self.waiters.retain(|waiter| !is_gone(waiter));
        if self.request != *request {
            return Err(Refused::Differs);
        }
        if self.waiters.len() >= WAITERS_MAX {
            return Err(Refused::Full);
        }
        self.waiters.push(waiter);
        Ok(())
    }
}

/// A session. `W` is who waits for an answer.
pub struct Line<W> {
    out: Vec<u8>,
    is_up: bool,
    in_flight_max: usize,
    asked: BTreeMap<ClientOrderId, Asked<W>>,
    /// The order that was cancelled last, and its name.
    cancelled: Option<(OrderId, ClientOrderId)>,
    places: u64,
    questions: Questions<W>,
    streams: Streams,
    /// Whether a waiter does not wait any more.
    is_gone: fn(&W) -> bool,
}

impl<W> Line<W> {
    /// The line of a session that is at no gateway yet. `is_gone` says of who waits that he does so no more.
    #[must_use]
    pub fn new(is_gone: fn(&W) -> bool) -> Self {
        Self {
            is_gone,
            out: Vec::new(),
            is_up: false,
            in_flight_max: 1,
            asked: BTreeMap::new(),
            cancelled: None,
            places: 0,
            questions: Questions::default(),
            streams: Streams::default(),
        }
    }

    /// Takes out the bytes to be sent; `into` takes their place.
    pub fn take_out(&mut self, into: &mut Vec<u8>) {
        into.clear();
        std::mem::swap(&mut self.out, into);
    }

    /// Asks. One of a name that is in flight joins it.
    ///
    /// # Errors
    /// If too many wait, or another request of that name is in flight; nothing was done.
    pub fn ask(&mut self, request: ClientRequest, waiter: W) -> Result<(), Refused> {
        if self.asked.len() >= self.in_flight_max {
            self.forget_unsent();
        }
        let room = self.asked.len() < self.in_flight_max;
        match self.asked.entry(request.client_order_id()) {
            Entry::Occupied(mut same) => return same.get_mut().join(&request, waiter, self.is_gone),
            Entry::Vacant(free) if room => {
                free.insert(Asked {
                    request,
                    was_sent: self.is_up,
                    place: self.places,
                    waiters: vec![waiter],
                });
                self.places += 1;
                if self.is_up {
                    frame::write_request(&mut self.out, &request);
                }
            }
            Entry::Vacant(_) => return Err(Refused::Full),
        }
        Ok(())
    }

    /// Forgets requests for which nobody waits, and which no gateway can have.
    fn forget_unsent(&mut self) {
        let is_gone = self.is_gone;
        self.asked.retain(|_, asked| asked.was_sent || !asked.waiters.iter().all(is_gone));
    }

    /// Asks what changes nothing.
    ///
    /// # Errors
    /// If too many wait.
    pub fn question(&mut self, question: Question, waiter: W) -> Result<(), Refused> {
        self.question_behind(question, waiter, |_| {})
    }

    /// Sets the timer at whose end the gateway cancels what the session guards, ms from now; 0: not at all. The waiter receives the limits once a gateway
    /// has it: gateways read in order. The timer is of the connection: another gateway receives the time left by [`Line::on_signed_on`].
    ///
    /// # Errors
    /// If too many wait: nothing was set.
    pub fn set_timer(&mut self, after_ms: u32, waiter: W) -> Result<(), Refused> {
        self.question_behind(Question::Limits, waiter, |line| line.cancel_after(after_ms))
    }

    /// Asks, behind something that is sent before, if there is room.
    fn question_behind(
        &mut self,
        question: Question,
        waiter: W,
        before: impl FnOnce(&mut Self),
    ) -> Result<(), Refused> {
        if self.questions.len() >= QUESTIONS_MAX {
            self.questions.forget(self.is_gone);
        }
        if self.questions.len() >= QUESTIONS_MAX {
            return Err(Refused::Full);
        }
        before(self);
        self.questions.ask(question, waiter);
        if self.is_up {
            self.questions.send(&mut self.out);
        }
        Ok(())
    }

    /// A follower wants the member's stream of a shard from a number on; from now on if that is 0.
    pub fn follow(&mut self, shard: ShardId, from: u64) {
        // While it is down that is sent once, on the next connection.
        let mut unsent = Vec::new();
        self.streams.follow(shard, from, if self.is_up { &mut self.out } else { &mut unsent });
    }

    /// Ends a repeat that no follower takes. `stand` says where the current followers stand in the shard, 0 for one who wants what comes from
    /// now on; or nothing, if that number, which comes next, is one that a follower takes.
    pub fn end_in_vain(&mut self, stand: impl Fn(ShardId, u64) -> Option<Vec<u64>>) {
        if self.is_up {
            self.streams.end_in_vain(stand, &mut self.out);
        }
    }

    /// Tells the gateway that this end is there.
    pub fn beat(&mut self) {
        if self.is_up {
            frame::write(&mut self.out, &Ping { token: 0.into() });
        }
    }

    /// Whether there is something to be sent.
    #[must_use]
    pub fn has_out(&self) -> bool {
        !self.out.is_empty()
    }

    fn cancel_after(&mut self, after_ms: u32) {
        if self.is_up {
            frame::write(&mut self.out, &CancelAfter { after_ms: after_ms.into(), reserved: 0.into() });
        }
    }

    /// A gateway has signed the session on: requests without an answer are asked again, in the order it was asked, behind the timer if it runs.
    pub fn on_signed_on(&mut self, in_flight_max: u16, cancel_after_ms: Option<u32>) {
        self.out.clear();
        (self.is_up, self.in_flight_max) = (true, usize::from(in_flight_max).max(1));
        cancel_after_ms.into_iter().for_each(|after_ms| self.cancel_after(after_ms));
        self.streams.begin_anew(&mut self.out);
        self.forget_unsent();
        self.asked.values_mut().for_each(|asked| asked.was_sent = true);
        let mut again: Vec<(u64, ClientRequest)> =
            self.asked.values().map(|asked| (asked.place, asked.request)).collect();
        again.sort_unstable_by_key(|(place, _)| *place);
        again.iter().for_each(|(_, request)| frame::write_request(&mut self.out, request));
        self.questions.begin_anew();
        self.questions.forget(self.is_gone);
        self.questions.send(&mut self.out);
    }

    /// The connection is lost. Requests in flight stay.
    pub fn on_lost(&mut self) {
        self.is_up = false;
        self.out.clear();
    }

    /// The session has ended for good: all who wait are to be told.
    pub fn abandon(&mut self) -> Vec<W> {
        self.on_lost();
        let asked = std::mem::take(&mut self.asked).into_values().flat_map(|asked| asked.waiters);
        asked.chain(self.questions.abandon()).collect()
    }

    /// Takes in a frame.
    pub fn on_frame(&mut self, frame: GatewayFrame, mut effect: impl FnMut(Effect<W>)) {
        match frame {
            GatewayFrame::Reply(reply) => self.on_reply(reply, &mut effect),
            GatewayFrame::Resumed { shard, next, reason: Reason::None } => {
                self.streams.on_live(shard, next, &mut self.out);
                effect(Effect::Live(shard, next));
            }
            GatewayFrame::Resumed { shard, reason: Reason::Requested, .. } => {
                self.streams.on_ended(shard, &mut self.out);
            }
            GatewayFrame::Resumed { shard, next: oldest, reason } => {
                self.streams.on_not_told(shard, oldest, reason, &mut self.out);
                effect(Effect::NotTold(shard, oldest, reason));
            }
            GatewayFrame::Challenge(_) | GatewayFrame::SignedOn(_) | GatewayFrame::Pong(_) => {}
            answer => {
                if let Some((waiter, told)) = self.questions.on_frame(&answer) {
                    effect(Effect::Told(waiter, told));
                    self.questions.send(&mut self.out);
                }
            }
        }
    }

    fn on_reply(&mut self, reply: Reply, effect: &mut impl FnMut(Effect<W>)) {
        if let Some((shard, number)) = place_of(&reply) {
            self.streams.on_number(shard, number);
            effect(Effect::Stream(shard, number, reply));
        }
        match reply {
            Reply::Answer(answer) if !answer.is_part() => self.on_answer(answer, effect),
            Reply::Cancelled(one) => self.cancelled = Some((one.order, one.client_order_id)),
            Reply::Rejected { client_order_id: ClientOrderId(0), reason } => effect(Effect::Ended(reason)),
            Reply::Rejected { client_order_id, reason } => {
                tell(self.asked.remove(&client_order_id), &LineTold::Rejected(reason), effect);
            }
            _ => {}
        }
    }

    fn on_answer(&mut self, answer: Answer, effect: &mut impl FnMut(Effect<W>)) {
        let Entry::Occupied(asked) = self.asked.entry(answer.client_order_id) else { return };
        let request = &asked.get().request;
        // What a cancel has cancelled comes before its answer.
        let cancelled = self.cancelled.filter(|(order, _)| *order == answer.order);
        let is_of_order = match (request, cancelled) {
            (ClientRequest::Cancel { target, .. }, Some((_, name))) => name == *target,
            _ => true,
        };
        let is_refused_cancel =
            answer.status == Status::Refused && matches!(request, ClientRequest::Cancel { .. });
        let told = match is_of_order && answer.can_be_of(request) {
            // Perhaps of another order.
            true if is_refused_cancel && answer.number > 0 => {
                return frame::write_request(&mut self.out, request);
            }
            true => LineTold::Answer(answer),
            // Another request's, perhaps told again. What is asked for now is refused, or has an answer of its own.
            false if answer.number > 0 => return,
            false => LineTold::Rejected(Reason::DuplicateRequest),
        };
        tell(Some(asked.remove()), &told, effect);
    }
}

/// All who wait for a request receive that.
fn tell<W>(asked: Option<Asked<W>>, told: &LineTold, effect: &mut impl FnMut(Effect<W>)) {
    for waiter in asked.into_iter().flat_map(|asked| asked.waiters) {
        effect(Effect::Told(waiter, told.clone()));
    }
}

/// Where a reply stands in the member's stream, if it does.
fn place_of(reply: &Reply) -> Option<(ShardId, u64)> {
    let (shard, number) = match reply {
        Reply::Answer(answer) => (answer.shard, answer.number),
        Reply::Trade(trade) => (trade.shard, trade.number),
        Reply::Cancelled(cancelled) => (cancelled.shard, cancelled.number),
        Reply::News(news) => (news.shard, news.number),
        Reply::Busted(bust) => (bust.shard, bust.number),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    };
    (number > 0).then_some((shard, number))
}

#[cfg(test)]
mod tests;

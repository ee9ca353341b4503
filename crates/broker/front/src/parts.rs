//! The parts of a front's users: made when a command arrives, dropped when many are idle. What is early is sent again, or given up.

use pares_broker::{BrokerReply, BrokerRequest, UserName, is_order};
use pares_wice::TransactionId;

use crate::effect::FrontEffect;
use crate::front::{BrokerFront, PARTS_KEPT};
use crate::user::{Again, Cause, DEPTH, Moment, UnderWay, UserPart, Waiting};

impl BrokerFront {
    /// The user's part; made if there is none.
    pub(crate) fn part_of(&mut self, user: Option<&UserName>) -> usize {
        let Some(user) = user else { return 0 };
        if let Some(at) = self.names.get(user) {
            return *at;
        }
        if self.names.len() >= self.parts_kept {
            self.drop_idle();
        }
        let at = self.free.pop().unwrap_or(self.parts.len());
        if at == self.parts.len() {
            self.parts.push(UserPart::default());
        }
        let part = &self.parts[at];
        assert!(at > 0 && part.user.is_none() && part.is_idle(), "a part that is free is nobody's, and idle");
        self.parts[at].user = Some(user.clone());
        self.names.insert(user.clone(), at);
        let all = 1 + self.names.len() + self.free.len();
        assert_eq!(all, self.parts.len(), "each part but the first has a user, or is free");
        at
    }

    /// Their names as clients continue with other users.
    fn drop_idle(&mut self) {
        let Self { names, parts, free, .. } = self;
        names.retain(|_, at| {
            assert!(*at > 0, "the first part, which is nobody's, stays");
            let part = &mut parts[*at];
            if part.is_idle() {
                free.push(*at);
                *part = UserPart { sequence: part.sequence, ..UserPart::default() };
            }
            part.user.is_some()
        });
        let all = 1 + names.len() + free.len();
        assert_eq!(all, parts.len(), "a part that loses its user is free");
        self.parts_kept = PARTS_KEPT.max(2 * self.names.len());
    }

    /// Sends on what was early and whose turn may have come, or gives it up.
    pub(crate) fn send_again(&mut self, at: usize, now_ms: u64) {
        for again in self.parts[at].again(now_ms, &mut self.turns) {
            match again {
                Again::Now(sequence, request) => {
                    let id = TransactionId { client: self.client_of(at), sequence };
                    self.effects.push(FrontEffect::Submit { id, request: *request });
                }
                Again::At(due_ms) => drop(self.pauses.insert((due_ms, at))),
                Again::GivenUp(sequence) => self.give_up(at, sequence, None, now_ms),
                Again::TooMany(sequence) => {
                    self.give_up(at, sequence, Some(BrokerReply::Early), now_ms);
                }
            }
        }
    }

    /// The command of this name is given up, with those that come after it, and told so.
    fn give_up(&mut self, at: usize, sequence: u64, reply: Option<BrokerReply>, now_ms: u64) {
        for (waiting, request) in self.parts[at].give_up(sequence) {
            self.tell_given_up(waiting, request, reply.clone());
        }
        self.advance(at, now_ms);
        self.advance(0, now_ms);
    }

    /// A command is given up; with its request, if it was handed on, whose hit is noted then.
    pub(crate) fn tell_given_up(
        &mut self,
        waiting: Waiting,
        request: Option<BrokerRequest>,
        reply: Option<BrokerReply>,
    ) {
        self.is_through(&waiting);
        let number = request.as_ref().map_or(0, |request| request.number);
        let hit = request.and_then(|request| request.quote).filter(|brought| brought.hit.is_some());
        if let Some(brought) = hit {
            self.parts[0].note(Moment::Hit(brought));
        }
        let Waiting { arrival, asked, .. } = waiting;
        self.effects.push(FrontEffect::Told { arrival, number, asked, reply });
    }

    /// Sites do not take a request, however often it is repeated: its command is given up with all that wait for it, and its user continues.
    pub fn not_taken(&mut self, id: TransactionId, now_ms: u64) {
        let Some(at) = self.part_of_client(id.client) else { return };
        if self.parts[at].refuse(id.sequence, now_ms) {
            self.turns.came_back(None, now_ms);
        }
        self.after_answer(at, now_ms);
    }

    /// An answer has come to this part: what waited for it is handed on.
    pub(crate) fn after_answer(&mut self, at: usize, now_ms: u64) {
        self.send_again(at, now_ms);
        self.advance(at, now_ms);
        if self.is_turn_of_dump() {
            self.advance(0, now_ms);
        }
        self.serve_turns(now_ms);
    }

    pub(crate) fn submit(&mut self, at: usize, request: BrokerRequest, cause: Cause) {
        let client = self.client_of(at);
        let part = &mut self.parts[at];
        assert!(part.under_way.len() < DEPTH, "a request is handed on while its user has room");
        assert!(
            is_order(request.number, request.after),
            "a command comes after an earlier one of its session"
        );
        part.sequence += 1;
        let sequence = part.sequence;
        self.effects
            .push(FrontEffect::Submit { id: TransactionId { client, sequence }, request: request.clone() });
        let has_before = part.has_had(request.after);
        part.under_way.push_back(UnderWay::of(sequence, request, cause, has_before));
        self.turns.handed_on();
    }

    /// A command has its reply, or is given up.
    pub(crate) fn is_through(&mut self, waiting: &Waiting) {
        let was_open = self.open.remove(&waiting.arrival).is_some();
        assert!(was_open, "a command is answered once");
        if waiting.is_early {
            self.turns.leaves_early(waiting.sender);
        }
    }

    /// The client of sites that a front is for a user's part.
    fn client_of(&self, at: usize) -> u64 {
        assert!(self.number().is_some(), "nothing is handed on before the front has its number");
        assert!(u32::try_from(at).is_ok(), "the number of a part has 32 bits");
        (self.number().unwrap_or_default() << 32) + at as u64
    }

    /// The part of a client.
    pub(crate) fn part_of_client(&self, client: u64) -> Option<usize> {
        let at = usize::try_from(client.checked_sub(self.number()? << 32)?).ok()?;
        (at < self.parts.len()).then_some(at)
    }
}

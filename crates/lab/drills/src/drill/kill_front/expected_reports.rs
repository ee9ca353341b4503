//! What members over a standard protocol must have been told, by the record.
//!
//! What they receive has a place there: `SHARD-POSITION-A` what became of a request, `SHARD-POSITION-INDEX-NAME` a trade, `SHARD-Nn` all else,
//! n being its number in the member's stream of that shard. FIX has these as ExecID. So the record alone says which ones each member must have.

use std::collections::BTreeMap;

use pares_load::{FrontTold, LogNotes, Numbers};
use pares_stream::{StreamNumbers, Told};
use pares_types::{
    CancelCause, Command, Event, MemberId, OrderChange, Outcome, Position, Reason, Reply, Request, ShardId,
    Status,
};
use pares_wire::WireError;
use pares_wire::record::ResultRecord;

use super::FrontProtocol;

/// In the series of what an OUCH session asks without a name.
const CHANGES: u16 = 0x4000;

/// What one log says of members 1 to `members`, whose names begin at 1.
#[derive(Clone, Debug)]
pub(super) struct FrontNotes {
    members: u32,
    protocol: FrontProtocol,
    recorded: Numbers,
    pub(super) executed_twice: u64,
    numbers: BTreeMap<ShardId, StreamNumbers>,
    /// The places that each member must have been told of.
    due: Vec<(MemberId, String)>,
}

impl FrontNotes {
    pub(super) fn of(members: u32, protocol: FrontProtocol) -> Self {
        let (recorded, numbers, due) = (Numbers::default(), BTreeMap::new(), Vec::new());
        Self { members, protocol, recorded, executed_twice: 0, numbers, due }
    }

    /// Requests that were answered by what says that they are recorded, and are not.
    pub(super) fn missing(&self, answered: &Numbers, told: &FrontTold) -> u64 {
        let mut known = self.recorded.clone();
        told.refused().into_iter().for_each(|name| _ = known.insert(name - 1));
        answered.count_missing_in(&known)
    }

    /// What the record says of their members, and they were not told.
    pub(super) fn untold(&self, told: &FrontTold) -> u64 {
        self.due.iter().filter(|(member, place)| !told.has(*member, place)).count() as u64
    }

    fn is_ours(&self, member: MemberId) -> bool {
        (1..=self.members).contains(&member.0)
    }

    /// What a record tells members.
    fn note_told(&mut self, request: &Request, told: &Told<'_>) {
        let (shard, position) = (request.shard, told.position);
        let mut replies = Vec::new();
        let numbers = self.numbers.entry(shard).or_default();
        told.read(|member, reply| replies.push((member, reply, numbers.next(member))));
        replies.retain(|(member, ..)| self.is_ours(*member));
        for (member, reply, number) in replies {
            if self.protocol == FrontProtocol::Ws {
                self.due.push((member, format!("{shard}-N{number}")));
            }
            self.due.extend(self.place(request, position, &reply, number).map(|place| (member, place)));
        }
    }

    /// The place of what a member must have been told, if it must.
    fn place(&self, request: &Request, position: Position, reply: &Reply, number: u64) -> Option<String> {
        let shard = request.shard;
        let is_of_session = matches!(self.protocol, FrontProtocol::Fix | FrontProtocol::Ouch);
        // A change that is refused is answered by a reject, which has no place; over HTTP an order too.
        let tells_refusal = is_of_session && matches!(request.command, Command::Enter(_));
        match reply {
            Reply::Answer(answer) => {
                (answer.status != Status::Refused || tells_refusal).then(|| format!("{shard}-{position}-A"))
            }
            _ if !is_of_session => None,
            Reply::Trade(trade) => {
                Some(format!("{shard}-{position}-{}-{}", trade.index, trade.client_order_id))
            }
            // Told with the answer, or not at all.
            Reply::Cancelled(one) if matches!(one.cause, CancelCause::Requested | CancelCause::Reduced) => {
                None
            }
            Reply::News(news) if news.change == OrderChange::Refilled => None,
            Reply::Cancelled(_) | Reply::News(_) | Reply::Busted(_) => Some(format!("{shard}-N{number}")),
            Reply::Journalled { .. } | Reply::Rejected { .. } => None,
        }
    }
}

impl LogNotes for FrontNotes {
    fn note(&mut self, _: (ShardId, Position), request: &Request, outcome: &Outcome) {
        let is_repeat = matches!(outcome.reason, Reason::DuplicateRequest | Reason::TooOld);
        let name = request.client_order_id;
        // An OUCH session's cancels are named by a clock, in a series of their own.
        if self.is_ours(request.member) && !is_repeat && name.series() & CHANGES == 0 {
            self.executed_twice += u64::from(!self.recorded.insert(name.number() - 1));
        }
    }

    fn note_events(
        &mut self,
        result: &ResultRecord<'_>,
        request: &Request,
        outcome: &Outcome,
    ) -> Result<(), WireError> {
        let events = result.events().collect::<Result<Vec<Event>, _>>()?;
        self.note_told(request, &Told { position: result.position(), request, outcome, events: &events });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use pares_types::{
        ClientOrderId, GatewayId, InstrumentId, NewOrder, OrderId, Price, Quantity, RequestId, Side,
        Timestamp,
    };

    use super::*;

    const SESSION: u64 = 1 << 48;

    fn note(notes: &mut FrontNotes, position: u64, name: u64, status: Status, reason: Reason) {
        let (id, member) = (RequestId::new(GatewayId(0), position), MemberId(1));
        let order = NewOrder::limit(Side::Buy, Price(10_000), Quantity(1));
        let request = Request {
            id,
            stamp: Timestamp(0),
            member,
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::Enter(order),
        };
        let (executed, remaining) = (Quantity::ZERO, Quantity(1));
        let outcome = Outcome { order: OrderId(id), status, reason, executed, remaining };
        notes.note((ShardId(0), Position(position)), &request, &outcome);
        let told = Told { position: Position(position), request: &request, outcome: &outcome, events: &[] };
        notes.note_told(&request, &told);
    }

    /// The record of three orders and a repeat, and a member that received all of it.
    fn told_all() -> (FrontNotes, FrontTold, Numbers) {
        let (mut notes, told, mut answered) =
            (FrontNotes::of(4, FrontProtocol::Fix), FrontTold::default(), Numbers::default());
        for number in 1..=3 {
            note(&mut notes, number, SESSION | number, Status::Resting, Reason::None);
            told.note(MemberId(1), format!("0-{number}-A"), false);
            answered.insert(number - 1);
        }
        note(&mut notes, 9, SESSION | 3, Status::Refused, Reason::DuplicateRequest);
        (notes, told, answered)
    }

    #[test]
    fn who_was_told_all_once_lacks_nothing() {
        let (notes, told, answered) = told_all();
        let counts = (notes.missing(&answered, &told), notes.untold(&told), notes.executed_twice);
        assert_eq!((counts, told.repeated()), ((0, 0, 0), 0));
    }

    #[test]
    fn what_is_lost_doubled_or_untold_is_counted_as_that() {
        let (mut notes, told, mut answered) = told_all();
        // Answered, and in no record.
        answered.insert(6);
        assert_eq!(notes.missing(&answered, &told), 1);
        // Recorded, and reported to no member.
        note(&mut notes, 4, SESSION | 4, Status::Resting, Reason::None);
        assert_eq!(notes.untold(&told), 1);
        // Executed under a name that was executed.
        note(&mut notes, 5, SESSION | 2, Status::Resting, Reason::None);
        assert_eq!(notes.executed_twice, 1);
        // Told twice: without saying so, and saying so.
        told.note(MemberId(1), "0-2-A".into(), false);
        told.note(MemberId(1), "0-2-A".into(), true);
        assert_eq!((told.repeated(), told.marked()), (1, 1));
    }

    #[test]
    fn websocket_needs_every_number_http_every_answer() {
        let dues = [FrontProtocol::Ws, FrontProtocol::Http].map(|protocol| {
            let mut notes = FrontNotes::of(4, protocol);
            note(&mut notes, 1, SESSION | 1, Status::Resting, Reason::None);
            note(&mut notes, 2, SESSION | 2, Status::Refused, Reason::OffTick);
            notes.due.into_iter().map(|(_, place)| place).collect::<Vec<_>>()
        });
        assert_eq!(dues, [vec!["0-N1", "0-1-A", "0-N2"], vec!["0-1-A"]]);
    }
}

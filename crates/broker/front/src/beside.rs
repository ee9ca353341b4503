//! What supervisors say of a customer: beside his own commands.
//!
//! The obvious way hands the kill switch on as one of the customer's commands. Then it waits for what it is to stop: for his slow quotes, or for a line before his that does not come. But it is to stop what comes after
//! it, not to come after anything. So these requests have a session of the front's own, in which none comes after another, and go to the sites at once.

use pares_broker::{Asked, BrokerRequest};

use crate::front::BrokerFront;

impl BrokerFront {
    /// The request by which a supervisor limits or blocks a customer (`Asked::Order`), to be executed at once. None until the front has its number.
    ///
    /// Of two for one customer that are under way, the sites may take the later one first; the other's reply is then that it was overtaken.
    pub fn beside(&mut self, asked: Asked, now_ms: u64) -> Option<BrokerRequest> {
        let number = self.numbers.next_beside()?;
        let time_ms = self.time_of(&asked, now_ms);
        Some(BrokerRequest { number, after: 0, name: None, time_ms, quote: None, asked })
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::{
        BrokerReply, OrderAsked, UserName, WorkloadLine, number_in_session, session_of_front,
    };
    use pares_wice::TransactionId;

    use super::*;
    use crate::desk::QUOTE_LIMIT_MS;
    use crate::effect::{Arrival, FrontEffect};
    use crate::user::CommandOrder;

    const NOON_MS: u64 = 1_680_000_000_000;
    const HOUR_MS: u64 = 3_600_000;

    #[test]
    fn kill_switch_waits_for_neither_commands_nor_clock() {
        let [user, by] = ["jo", "ann"].map(|name| UserName::new(name).unwrap());
        let block = || Asked::Order {
            asked: OrderAsked::Block { user: user.clone(), is_blocked: true, by: by.clone() },
        };
        let mut front = BrokerFront::new(1);
        assert_eq!(front.beside(block(), NOON_MS), None);
        front.tick(NOON_MS);
        let begin = TransactionId { client: 1, sequence: 1 };
        front.answered(begin, BrokerReply::FrontNumber { front: 5 }, NOON_MS);
        front.take_effects();
        for line in ["[1] BUY,jo,S,10.00", "[2] CANCEL_BUY,jo"] {
            let WorkloadLine { command, fault, .. } = WorkloadLine::parse(line.as_bytes()).unwrap();
            let (order, asked) = (CommandOrder::Arrival { name: None }, Asked::Command { command, fault });
            let arrival = Arrival { sender: 0, user: Some(user.clone()), order, asked };
            front.arrives(arrival, NOON_MS).unwrap();
        }
        let effects = front.take_effects();
        assert!(!effects.iter().any(|effect| matches!(effect, FrontEffect::Submit { .. })), "{effects:?}");
        let of = |count, time_ms| {
            let number = number_in_session(session_of_front(5, 2), count);
            Some(BrokerRequest { number, after: 0, name: None, time_ms, quote: None, asked: block() })
        };
        assert_eq!(front.beside(block(), NOON_MS), of(1, NOON_MS));
        (0..3).for_each(|_| front.clock.stamped(NOON_MS - HOUR_MS, NOON_MS));
        let found = front.beside(block(), NOON_MS);
        assert_eq!(found, of(2, NOON_MS - HOUR_MS + QUOTE_LIMIT_MS), "the clock is off");
    }
}

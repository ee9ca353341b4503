//! What an operator asks for, or proposes to a second one. Whether it may be, and whether it is seconded, the gateway says.

use pares_types::{
    ClientOrderId, ClientRequest, Command, Entry, InstrumentId, MemberId, Proposal, Registration,
};

/// The exchange itself, of which operators are sessions.
pub const EXCHANGE: MemberId = MemberId(0);

/// The request by which the operator of that session proposes it; `None` if it needs no second operator.
#[must_use]
pub fn proposed_by(session: u16, instrument: InstrumentId, command: &Command) -> Option<Command> {
    let entry = Entry::Propose(Proposal::of(instrument, command)?);
    Some(Command::Register(Registration { member: EXCHANGE, session, entry }))
}

/// The request that asks for `command`, or that proposes it where a proposer is named; `None` if that needs no second operator.
#[must_use]
pub fn request(
    client_order_id: ClientOrderId,
    (instrument, command): (InstrumentId, Command),
    proposer: Option<u16>,
) -> Option<ClientRequest> {
    let (instrument, command) = match proposer {
        Some(session) => (InstrumentId(0), proposed_by(session, instrument, &command)?),
        None => (instrument, command),
    };
    Some(ClientRequest::Exchange { client_order_id, instrument, command })
}

#[cfg(test)]
mod tests {
    use pares_types::Phase;

    use super::*;

    #[test]
    fn only_market_halting_deeds_are_proposed() {
        let (name, alfa) = (ClientOrderId(2 << 48 | 5), InstrumentId(3));
        let halt = Command::SetPhase(Phase::Halted);
        let asked = ClientRequest::Exchange { client_order_id: name, instrument: alfa, command: halt };
        assert_eq!(request(name, (alfa, halt), None), Some(asked));
        let entry = Entry::Propose(Proposal::of(alfa, &halt).unwrap());
        let command = Command::Register(Registration { member: EXCHANGE, session: 2, entry });
        let proposed =
            ClientRequest::Exchange { client_order_id: name, instrument: InstrumentId(0), command };
        assert_eq!(request(name, (alfa, halt), Some(2)), Some(proposed));
        let open = Command::SetPhase(Phase::Continuous);
        assert_eq!(request(name, (alfa, open), Some(2)), None);
    }
}

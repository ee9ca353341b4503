//! What was asked under a name, in three bytes.
//!
//! Two sessions of a member may ask for different things under one name, and one would take the other's answer for its own. So an answer bears a digest of
//! what its request says, made of the record: its receiver compares it with that of its own request.
//!
//! ```text
//!  23    20 19                    0
//! +--------+-----------------------+
//! | VERSION| of all that is said   |     all 0: it is not known
//! +--------+-----------------------+
//! ```

use std::hash::{Hash, Hasher};

use crate::{Amendment, ClientOrderId, ClientRequest, Command, OrderId, RequestId};

const NO_ORDER: OrderId = OrderId(RequestId::NONE);

/// Counts on, from 1 to 15 and round, whenever the digest of any request changes, which a new field or a new compiler can cause: programs of two builds then compare nothing.
const VERSION: u8 = 1;

/// A digest of what a request asks. A chance of one in a million makes two requests look alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestDigest([u8; 3]);

impl RequestDigest {
    /// It is not known what was asked.
    pub const UNKNOWN: Self = Self([0; 3]);

    /// Of all that is said.
    #[must_use]
    pub fn of(said: &impl Hash) -> Self {
        let mut digest = Digest::default();
        said.hash(&mut digest);
        let [.., low, middle, high] = digest.finish().to_le_bytes();
        Self([low, middle, high >> 4 | VERSION << 4])
    }

    /// As a number below 2^24.
    #[must_use]
    pub const fn bits(self) -> u32 {
        let Self([low, middle, high]) = self;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// Reads what [`RequestDigest::bits`] made; a higher byte is left out.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        let [low, middle, high, _] = bits.to_le_bytes();
        Self([low, middle, high])
    }

    /// Whether something else was asked, as far as both are known and of one version.
    #[must_use]
    pub fn differs(self, other: Self) -> bool {
        let version = |Self([.., high]): Self| high >> 4;
        self != other && version(self) == version(other)
    }
}

impl Command {
    /// What is asked, in terms that its client knows too: without the ids that gateways and venues give. Unknown of an amend that does not say its order's
    /// name, as in records of earlier builds.
    #[must_use]
    pub fn asked(&self) -> RequestDigest {
        RequestDigest::of(&match *self {
            Self::Amend(Amendment { target_name: ClientOrderId(0), .. }) => return RequestDigest::UNKNOWN,
            Self::Amend(terms) => Self::Amend(Amendment { target: NO_ORDER, ..terms }),
            Self::Cancel { .. } => Self::Cancel { target: NO_ORDER },
            Self::Time { .. } => Self::TIME,
            said => said,
        })
    }
}

impl ClientRequest {
    /// What the answer to it says that was asked.
    #[must_use]
    pub fn asked(&self) -> RequestDigest {
        let command = match *self {
            Self::Enter { order, .. } => Command::Enter(order),
            Self::Amend { target, terms, .. } => Command::Amend(terms.of(NO_ORDER, target)),
            Self::Cancel { .. } => Command::Cancel { target: NO_ORDER },
            Self::MassCancel { side, .. } => Command::MassCancel { side },
            Self::Exchange { command, .. } => command,
        };
        command.asked()
    }
}

/// Not proof against collisions that a member looks for: they would confuse nothing but its own requests.
#[derive(Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let turned = self.0.rotate_left(23) ^ u64::from_le_bytes(word);
            // Zeros count, too.
            self.0 = turned.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        BusinessDay, BustedTrade, Entry, InstrumentId, Key, MemberId, NewOrder, NewTerms, OrderKind, Peg,
        Phase, Position, Price, Quantity, Registration, Rule, SelfTrade, Side, Symbol, TimeInForce,
        Timestamp,
    };

    use super::*;

    const NAME: ClientOrderId = ClientOrderId(5);
    const PRICE: Price = Price(2_238_200);

    /// Programs of two builds compare digests of one version.
    #[test]
    fn another_digest_of_a_request_needs_another_version() {
        let orders = orders().map(Command::Enter);
        let commands: Vec<_> = orders.into_iter().chain(amends()).chain(others()).collect();
        let bits: Vec<_> = commands.iter().map(|command| command.asked().bits()).collect();
        let known = [
            1_165_700, 1_684_367, 2_025_837, 1_980_779, 1_659_772, 1_089_054, 1_569_467, 1_911_302,
            1_344_825, 1_610_474, 1_524_767, 1_155_165, 1_439_060, 1_359_810, 1_345_899, 1_947_856,
            1_540_110, 1_521_540, 1_164_297, 1_250_265, 2_056_321, 1_443_017,
        ];
        assert_eq!((VERSION, bits.as_slice()), (1, known.as_slice()));
        let again: Vec<_> = bits.into_iter().map(RequestDigest::from_bits).collect();
        assert_eq!(again, commands.iter().map(Command::asked).collect::<Vec<_>>());
    }

    fn orders() -> [NewOrder; 6] {
        let plain = NewOrder::limit(Side::Buy, PRICE, Quantity(100));
        let iceberg = NewOrder { display: Quantity(10), minimum: Quantity(20), ..plain };
        let stop = NewOrder { trigger: Some(PRICE), ..NewOrder::market(Side::Sell, Quantity(100)) };
        let peg = NewOrder { kind: OrderKind::Pegged { to: Peg::Mid, limit: PRICE }, ..plain };
        let dated = NewOrder { time_in_force: TimeInForce::Gtd { until: Timestamp(7) }, ..plain };
        let careful = NewOrder { post_only: true, self_trade: SelfTrade::CancelBoth, ..plain };
        [plain, iceberg, stop, peg, dated, careful]
    }

    fn amends() -> [Command; 3] {
        let plain = NewTerms::new(PRICE, Quantity(50));
        let (display, trigger) = (Some(Quantity(10)), Some(PRICE));
        let full = NewTerms { display, trigger, time_in_force: Some(TimeInForce::Gtc), ..plain };
        [plain, full, NewTerms::reduction(Quantity(50))].map(|terms| Command::Amend(terms.of(NO_ORDER, NAME)))
    }

    fn others() -> [Command; 13] {
        let member = MemberId(7);
        let side = Some(Side::Sell);
        let registration = |entry| Command::Register(Registration { member, session: 1, entry });
        let bust = BustedTrade {
            position: Position(9),
            index: 2,
            resting: NO_ORDER,
            incoming: NO_ORDER,
            price: PRICE,
            quantity: Quantity(100),
            resting_side: Side::Buy,
            resting_owner: (member, NAME),
            incoming_owner: (MemberId(8), NAME),
        };
        [
            Command::Cancel { target: NO_ORDER },
            Command::MassCancel { side: None },
            Command::MassCancel { side },
            Command::Time { draw: 9 },
            Command::SetPhase(Phase::Halted),
            Command::SetRule(Rule::Lot(Quantity(10))),
            Command::SetRule(Rule::Tick { from: PRICE, tick: Price(100) }),
            Command::AddInstrument(Symbol::new("ACME").unwrap()),
            Command::Block { member },
            Command::Bust(bust),
            Command::BeginDay { day: BusinessDay(20_000) },
            registration(Entry::AddMember),
            registration(Entry::SetKey(Key::Shared([3; 32]))),
        ]
    }

    #[test]
    fn clients_and_records_say_alike_what_was_asked() {
        let (instrument, order) = (InstrumentId(3), orders()[1]);
        let terms = NewTerms::new(PRICE, Quantity(50));
        let target = OrderId(RequestId::new(crate::GatewayId(1), 9));
        let (command, side) = (Command::SetPhase(Phase::Halted), Some(Side::Buy));
        let pairs = [
            (ClientRequest::Enter { client_order_id: NAME, instrument, order }, Command::Enter(order)),
            (
                ClientRequest::Amend { client_order_id: NAME, target: ClientOrderId(1), terms },
                Command::Amend(terms.of(target, ClientOrderId(1))),
            ),
            (
                ClientRequest::Cancel { client_order_id: NAME, target: ClientOrderId(1) },
                Command::Cancel { target },
            ),
            (
                ClientRequest::MassCancel { client_order_id: NAME, instrument, side },
                Command::MassCancel { side },
            ),
            (ClientRequest::Exchange { client_order_id: NAME, instrument, command }, command),
        ];
        for (request, recorded) in pairs {
            assert_eq!(request.asked(), recorded.asked(), "{request:?}");
        }
    }

    /// Records of earlier builds do not say the order's name.
    #[test]
    fn what_an_amend_without_a_name_asks_is_unknown() {
        let old = Command::Amend(Amendment::new(NO_ORDER, PRICE, Quantity(50)));
        assert_eq!(old.asked(), RequestDigest::UNKNOWN);
        assert!(!old.asked().differs(amends()[0].asked()));
    }

    #[test]
    fn digests_of_two_versions_do_not_differ() {
        let one = orders().map(|order| Command::Enter(order).asked());
        assert!(one[0].differs(one[1]) && !one[0].differs(one[0]));
        let other = RequestDigest::from_bits(one[1].bits() ^ 3 << 20);
        assert!(!one[0].differs(other) && !other.differs(one[0]));
    }
}

//! Whatever is asked, a market does what plain maps of books and members would.

use std::collections::{BTreeMap, BTreeSet};

use pares_types::{Amendment, Phase, Rule, SelfTrade, TimeInForce};
use proptest::prelude::*;

use super::*;

/// The rules once more, without directory, deadlines and digest. The flag: a book in a call has been touched since
/// it was last told the time.
struct Model {
    books: BTreeMap<InstrumentId, (NaiveBook, bool)>,
    blocked: BTreeSet<MemberId>,
    time: Timestamp,
}

impl Model {
    fn apply(&mut self, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let (member, instrument) = (request.member, request.instrument);
        let is_new = matches!(request.command, Command::Enter(_) | Command::Amend(_));
        if is_new && self.blocked.contains(&member) {
            return self.refuse_blocked(request);
        }
        let adds = matches!(request.command, Command::AddInstrument(_)) && instrument.may_be_listed();
        let of_all = matches!(
            request.command,
            Command::Time { .. }
                | Command::MassCancel { .. }
                | Command::Block { .. }
                | Command::Unblock { .. }
        );
        let of_one = !matches!(request.command, Command::Block { .. } | Command::Unblock { .. });
        let known = if instrument.0 == 0 { of_all } else { self.books.contains_key(&instrument) && of_one };
        let members = matches!(request.command, Command::Cancel { .. } | Command::MassCancel { .. })
            || is_new
            || matches!(request.command, Command::Block { member: other } if other == member);
        match request.command {
            // It names an instrument, and which is said before who may.
            Command::Block { .. } | Command::Unblock { .. }
                if self.books.contains_key(&instrument) && member.0 != 0 && !members =>
            {
                outcome(request, Status::Refused, Reason::NotPermitted)
            }
            _ if !known && !adds => outcome(request, Status::Refused, Reason::UnknownInstrument),
            _ if member.0 != 0 && !members => outcome(request, Status::Refused, Reason::NotPermitted),
            Command::AddInstrument(symbol) => self.add(request, symbol),
            Command::Block { member } => {
                self.blocked.insert(member);
                self.everywhere(request, events, |book, _| concerns(book, member))
            }
            Command::Unblock { member } if self.blocked.remove(&member) => {
                outcome(request, Status::Accepted, Reason::None)
            }
            Command::Unblock { .. } => outcome(request, Status::Refused, Reason::NotBlocked),
            Command::MassCancel { .. } if instrument.0 == 0 => {
                self.everywhere(request, events, |book, _| concerns(book, member))
            }
            Command::Time { .. } if instrument.0 == 0 => {
                let time = request.stamp;
                self.time = self.time.max(time);
                self.everywhere(request, events, |book, touched| touched || book.deadline() <= time)
            }
            _ => self.one(request, events),
        }
    }

    fn refuse_blocked(&self, request: &Request) -> Outcome {
        let refusal = outcome(request, Status::Refused, Reason::Blocked);
        let Command::Amend(Amendment { target, .. }) = request.command else { return refusal };
        let order = self.books.get(&request.instrument).and_then(|(book, _)| book.order(target));
        match order.filter(|order| order.member == request.member) {
            Some(order) => {
                Outcome { order: target, executed: order.executed, remaining: order.remaining, ..refusal }
            }
            None => Outcome { order: target, ..refusal },
        }
    }

    fn add(&mut self, request: &Request, symbol: Symbol) -> Outcome {
        if self.books.contains_key(&request.instrument) {
            return outcome(request, Status::Refused, Reason::InstrumentExists);
        }
        if self.books.values().any(|(book, _)| book.instrument().symbol == symbol) {
            return outcome(request, Status::Refused, Reason::SymbolInUse);
        }
        let mut book = NaiveBook::new(Instrument::listed(request.instrument, symbol));
        let mut exchange = Request { member: MemberId(0), ..*request };
        exchange.command = Command::SetPhase(Phase::Closed);
        let mut told = Vec::new();
        assert_eq!(book.apply(&exchange, &mut told).status, Status::Accepted);
        self.books.insert(request.instrument, (book, false));
        outcome(request, Status::Accepted, Reason::None)
    }

    fn one(&mut self, request: &Request, events: &mut Vec<Event>) -> Outcome {
        let (book, touched) = self.books.get_mut(&request.instrument).unwrap();
        if let Command::SetRule(rule @ Rule::Schedule { .. }) = request.command
            && !*touched
            && book.deadline() > self.time
            && book.trading().time < self.time
            && book.instrument().with_rule(rule, true).is_ok()
        {
            let spared = Request { command: Command::Time { draw: u64::MAX }, stamp: self.time, ..*request };
            book.apply(&spared, events);
        }
        let outcome = book.apply(request, events);
        *touched = book.trading().phase.is_call() && !matches!(request.command, Command::Time { .. });
        let gone = request.command == Command::RemoveInstrument && outcome.status == Status::Accepted;
        if gone && book.orders_len() == 0 {
            self.books.remove(&request.instrument);
        }
        outcome
    }

    fn everywhere(
        &mut self,
        request: &Request,
        events: &mut Vec<Event>,
        due: impl Fn(&NaiveBook, bool) -> bool,
    ) -> Outcome {
        let mut all = outcome(request, Status::Accepted, Reason::None);
        for (&id, (book, touched)) in &mut self.books {
            if !due(book, *touched) {
                continue;
            }
            let mut own = Vec::new();
            let outcome = book.apply(request, &mut own);
            *touched = book.trading().phase.is_call() && !matches!(request.command, Command::Time { .. });
            events.extend((!own.is_empty()).then_some(Event::Instrument(id)));
            events.extend(own);
            all.executed = all.executed.plus(outcome.executed);
            all.remaining = all.remaining.plus(outcome.remaining);
            if outcome.reason == Reason::Unfinished {
                all.reason = Reason::Unfinished;
            }
        }
        match request.command {
            Command::Time { .. } => all,
            _ => Outcome { status: Status::MassCancelled, ..all },
        }
    }
}

/// Whether a mass cancel of the member's has something to do there.
fn concerns(book: &NaiveBook, member: MemberId) -> bool {
    let is_left = book.deadline() == Timestamp(0);
    is_left || book.snapshot().orders.iter().any(|order| order.member == member)
}

fn outcome(request: &Request, status: Status, reason: Reason) -> Outcome {
    let (executed, remaining) = (Quantity::ZERO, Quantity::ZERO);
    Outcome { status, reason, order: OrderId(request.id), executed, remaining }
}

pub(super) const IDS: [u32; 7] = [0, 1, 2, 3, 700, 2_000_000, 3_000_000_000];

pub(super) fn command(sequence: u64) -> impl Strategy<Value = Command> {
    let target = OrderId(RequestId::new(GatewayId(1), sequence));
    let price = (500_i64..506).prop_map(|cents| Price(cents * 100));
    let enter =
        (price, any::<bool>(), 1_u64..6, 0_u8..6, 0_u64..60).prop_map(|(price, buys, lots, kind, until)| {
            let side = if buys { Side::Buy } else { Side::Sell };
            let plain = NewOrder::limit(side, price, Quantity(lots));
            Command::Enter(match kind {
                0 => NewOrder { time_in_force: TimeInForce::Gtd { until: Timestamp(until) }, ..plain },
                1 => NewOrder { trigger: Some(price), ..plain },
                2 => NewOrder { self_trade: SelfTrade::CancelBoth, ..plain },
                _ => plain,
            })
        });
    let member = (0_u32..4).prop_map(MemberId);
    prop_oneof![
        12 => enter,
        2 => Just(Command::Cancel { target }),
        2 => Just(Command::Amend(Amendment::new(target, Price(50_200), Quantity(3)))),
        2 => prop::option::of(any::<bool>()).prop_map(|buys| Command::MassCancel {
            side: buys.map(|buys| if buys { Side::Buy } else { Side::Sell }),
        }),
        4 => Just(Command::TIME),
        4 => prop::sample::select(Phase::ALL.to_vec()).prop_map(Command::SetPhase),
        2 => Just(Command::SetPhase(Phase::Continuous)),
        1 => (1_u32..5).prop_map(|events| Command::SetRule(Rule::StepMax(events))),
        1 => (0_u64..100, prop::option::of(Just(Phase::OpeningCall)))
            .prop_map(|(at_ns, phase)| Command::SetRule(Rule::Schedule { at_ns, phase })),
        1 => prop::sample::select(vec!["NEW", "OLD"]).prop_map(|name| Command::AddInstrument(Symbol::new(name).unwrap())),
        2 => Just(Command::RemoveInstrument),
        1 => member.clone().prop_map(|member| Command::Block { member }),
        2 => member.prop_map(|member| Command::Unblock { member }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_market_does_what_plain_maps_would(
        asked in prop::collection::vec((0_u32..4, 0..IDS.len(), (1_u64..60).prop_flat_map(command)), 1..80)
    ) {
        let configured = [1, 2, 700, 3_000_000_000].map(instrument);
        let mut rig = Rig::of(&configured);
        let mut model = Model {
            books: configured.map(|one| (one.id, (NaiveBook::new(one), false))).into(),
            blocked: BTreeSet::new(),
            time: Timestamp(0),
        };
        for (member, id, command) in asked {
            // The exchange asks most of what only it may.
            let members = matches!(
                command,
                Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. } | Command::MassCancel { .. }
            );
            let member = if members || member == 3 { member } else { 0 };
            let request = rig.request(member, IDS[id], command);
            let outcome = rig.apply(&request);
            let mut expected = Vec::new();
            prop_assert_eq!(outcome, model.apply(&request, &mut expected), "{:?}", request);
            prop_assert_eq!(&rig.events, &expected);
            let books = rig.market.books().iter().map(Book::snapshot);
            prop_assert!(books.eq(model.books.values().map(|(book, _)| book.snapshot())));
            let blocked: Vec<_> = model.blocked.iter().copied().collect();
            prop_assert_eq!(rig.market.blocked(), blocked);
        }
    }
}

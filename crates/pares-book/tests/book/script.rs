//! Requests as text, and what became of them as text.
//!
//! ```text
//!  a = m1 buy 100 @ 10.00          an order named a; without a name it is called #n
//!  m1 sell 50 @ market ioc         also: fok, post
//!  m1 amend a 80 @ 10.01
//!  m1 cancel a
//!  m1 mass cancel
//!  book                            shows the book
//!  restore                         goes on with a book restored from a snapshot
//!  orders_max 2                    goes on with an empty book that holds two orders
//! ```

use crate::checked::{Checked, instrument};
use pares_book::{Book, RestingOrder};
use pares_types::{
    CancelCause, ClientOrderId, Command, Event, GatewayId, MemberId, NewOrder, OrderId, OrderKind, Outcome,
    Price, Quantity, Reason, Request, RequestId, ShardId, Side, Status, TimeInForce, Timestamp,
};
use std::collections::BTreeMap;

/// The request a gateway would make of a member's command.
pub(crate) fn request(sequence: u64, member: u32, command: Command) -> Request {
    Request {
        id: RequestId::new(GatewayId(1), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(member),
        client_order_id: ClientOrderId(1_000 + sequence),
        instrument: instrument(1).id,
        shard: ShardId(0),
        command,
    }
}

/// A book to talk to.
pub(crate) struct Script<B> {
    pub(crate) checked: Checked<B>,
    sequence: u64,
    names: BTreeMap<OrderId, String>,
}

impl<B: Book> Script<B> {
    pub(crate) fn new() -> Self {
        Self { checked: Checked::new(1_000), sequence: 0, names: BTreeMap::new() }
    }

    /// A book to which these lines were said.
    pub(crate) fn after(lines: &[&str]) -> Self {
        let mut script = Self::new();
        for line in lines {
            script.say(line);
        }
        script
    }

    /// Says one line and returns what happened, the outcome last.
    pub(crate) fn say(&mut self, line: &str) -> Vec<String> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["book"] => self.show_book(),
            ["restore"] => self.restore(),
            ["orders_max", number] => {
                self.checked = Checked::new(number.parse().unwrap());
                Vec::new()
            }
            [name, "=", ref words @ ..] => self.request(Some(name), words),
            ref words => self.request(None, words),
        }
    }

    /// The order of that name.
    pub(crate) fn id(&self, name: &str) -> OrderId {
        let found = self.names.iter().find(|(_, known)| *known == name);
        *found.unwrap_or_else(|| panic!("no order is named {name}")).0
    }

    fn request(&mut self, name: Option<&str>, words: &[&str]) -> Vec<String> {
        self.sequence += 1;
        let member = words[0].strip_prefix('m').expect("a line starts with a member, as m1").parse().unwrap();
        let request = request(self.sequence, member, self.command(&words[1..]));
        let name = name.map_or_else(|| format!("#{}", self.sequence), str::to_owned);
        self.names.insert(OrderId(request.id), name);
        let (events, outcome) = self.checked.apply(&request);
        let mut lines: Vec<String> = events.iter().map(|event| self.tell_event(event)).collect();
        lines.push(self.tell_outcome(&outcome));
        lines
    }

    fn command(&self, words: &[&str]) -> Command {
        match *words {
            ["buy", quantity, "@", price, ref flags @ ..] => enter(Side::Buy, quantity, price, flags),
            ["sell", quantity, "@", price, ref flags @ ..] => enter(Side::Sell, quantity, price, flags),
            ["amend", name, total, "@", price] => Command::Amend {
                target: self.id(name),
                price: parse_price(price),
                quantity: parse_quantity(total),
            },
            ["cancel", name] => Command::Cancel { target: self.id(name) },
            ["mass", "cancel"] => Command::MassCancel,
            _ => panic!("not understood: {words:?}"),
        }
    }

    fn restore(&mut self) -> Vec<String> {
        let book = &mut self.checked.book;
        let restored = B::restore(*book.instrument(), &book.snapshot()).unwrap();
        assert_eq!(restored.state_hash(), book.state_hash());
        *book = restored;
        Vec::new()
    }

    fn show_book(&self) -> Vec<String> {
        let (mut offers, mut bids) = (self.show_side(Side::Sell), self.show_side(Side::Buy));
        offers.reverse();
        offers.append(&mut bids);
        offers
    }

    fn show_side(&self, side: Side) -> Vec<String> {
        let mut levels: Vec<(Price, Vec<String>)> = Vec::new();
        self.checked.book.for_each_order(side, &mut |order| {
            if levels.last().is_none_or(|level| level.0 != order.price) {
                levels.push((order.price, Vec::new()));
            }
            levels.last_mut().unwrap().1.push(self.show_order(order));
        });
        let show = |(price, orders): (Price, Vec<String>)| {
            format!(
                "{} {}: {}",
                if side == Side::Buy { "buy " } else { "sell" },
                money(price),
                orders.join(", ")
            )
        };
        levels.into_iter().map(show).collect()
    }

    fn show_order(&self, order: &RestingOrder) -> String {
        format!("{} m{} {}", self.names[&order.order], order.member, order.remaining)
    }

    fn tell_event(&self, event: &Event) -> String {
        match *event {
            Event::Fill { resting, resting_member, price, quantity, resting_remaining, .. } => {
                let name = &self.names[&resting];
                let price = money(price);
                format!(
                    "fill {quantity} @ {price} with {name} of m{resting_member}, {resting_remaining} left"
                )
            }
            Event::Cancelled { order, member, quantity, cause, .. } => {
                let name = &self.names[&order];
                format!("cancelled {quantity} of {name} of m{member}, {}", tell_cause(cause))
            }
        }
    }

    fn tell_outcome(&self, outcome: &Outcome) -> String {
        let Outcome { status, reason, order, executed, remaining } = *outcome;
        let (name, why) = (&self.names[&order], tell_reason(reason));
        match status {
            Status::MassCancelled => "mass cancelled".to_owned(),
            Status::Refused => format!("{name} refused{why}: executed {executed}, remaining {remaining}"),
            Status::Resting => format!("{name} resting{why}: executed {executed}, remaining {remaining}"),
            Status::Filled => format!("{name} filled{why}: executed {executed}"),
            Status::Cancelled => format!("{name} cancelled{why}: executed {executed}"),
        }
    }
}

fn enter(side: Side, quantity: &str, price: &str, flags: &[&str]) -> Command {
    let kind = match price {
        "market" => OrderKind::Market,
        price => OrderKind::Limit { price: parse_price(price) },
    };
    let time_in_force = match flags {
        _ if flags.contains(&"ioc") => TimeInForce::Ioc,
        _ if flags.contains(&"fok") => TimeInForce::Fok,
        _ => TimeInForce::Day,
    };
    assert!(flags.iter().all(|flag| ["ioc", "fok", "post"].contains(flag)), "flags: {flags:?}");
    let post_only = flags.contains(&"post");
    Command::Enter(NewOrder { side, kind, time_in_force, post_only, quantity: parse_quantity(quantity) })
}

fn parse_quantity(text: &str) -> Quantity {
    Quantity(text.parse().unwrap())
}

/// Currency with up to four decimals.
fn parse_price(text: &str) -> Price {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let units: i64 = format!("{whole}{decimals:0<4}").parse().unwrap();
    Price(units)
}

/// Currency with two decimals, four where they are needed.
fn money(price: Price) -> String {
    let text = price.to_string();
    text.strip_suffix("00").unwrap_or(&text).to_owned()
}

fn tell_cause(cause: CancelCause) -> &'static str {
    match cause {
        CancelCause::Requested => "requested",
        CancelCause::MassCancel => "mass cancel",
        CancelCause::Remainder => "remainder",
        CancelCause::FillOrKill => "fill or kill",
        CancelCause::Reduced => "reduced",
    }
}

fn tell_reason(reason: Reason) -> String {
    if reason == Reason::None { String::new() } else { format!(" ({reason:?})") }
}

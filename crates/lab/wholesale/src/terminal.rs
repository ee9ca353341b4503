//! A terminal: what its user asks for, as the mix has it (clauses 2 and 5.2).

use pares_tpcc::{Dice, Kind};

use crate::population::{DISTRICTS, DatabaseSize, names};
use crate::request::{Asks, CustomerAsked, Delivery, LineAsked, NewOrder, OrderStatus, Payment, StockLevel};

/// What a user wants done.
#[derive(Clone, Debug)]
pub struct TerminalTransaction {
    /// Which transaction.
    pub kind: Kind,
    /// The request; it stays the same however often it is sent.
    pub request: Vec<u8>,
    /// It names an item that does not exist, and is to be refused (clause 2.4.1.4).
    pub rolls_back: bool,
    pub(crate) warehouse: u32,
    pub(crate) district: u32,
    pub(crate) tag: u64,
}

/// A terminal of a warehouse.
#[derive(Clone, Debug)]
pub struct Terminal {
    scale: DatabaseSize,
    warehouse: u32,
    /// Unique among all terminals.
    number: u32,
    asked: u32,
    in_counters: bool,
    dice: Dice,
}

impl Terminal {
    /// Terminal `number`, unique among all and from 1 on, of `warehouse`. `in_counters` says whether payments add to counters of a year's takings, or
    /// write columns.
    ///
    /// # Panics
    /// If the number is 0, or there is no such warehouse.
    #[must_use]
    pub fn new(scale: DatabaseSize, warehouse: u32, number: u32, in_counters: bool) -> Self {
        assert!(number > 0 && (1..=scale.warehouses).contains(&warehouse), "terminals stand in warehouses");
        Self { scale, warehouse, number, asked: 0, in_counters, dice: Dice::new(number.into()) }
    }

    /// Where its user takes times to think from.
    pub fn dice(&mut self) -> &mut Dice {
        &mut self.dice
    }

    /// The next errand, of a kind that the mix has; `now_ms` by the user's clock.
    pub fn draw(&mut self, now_ms: u64) -> TerminalTransaction {
        let kind = Kind::draw(&mut self.dice);
        self.draw_kind(kind, now_ms)
    }

    /// The next errand, of that kind.
    pub fn draw_kind(&mut self, kind: Kind, now_ms: u64) -> TerminalTransaction {
        self.asked += 1;
        let tag = u64::from(self.number) << 32 | u64::from(self.asked);
        let district = self.dice.between(1, DISTRICTS);
        let rolls_back = kind == Kind::NewOrder && self.dice.chance(1);
        let asks = match kind {
            Kind::NewOrder => self.new_order(district, rolls_back, now_ms, tag),
            Kind::Payment => self.payment(district, tag),
            Kind::Delivery => Asks::Delivery(Delivery {
                warehouse: self.warehouse,
                carrier: self.dice.between(1, 10) as u8,
                delivered_ms: now_ms,
            }),
            Kind::OrderStatus => {
                Asks::OrderStatus(OrderStatus { warehouse: self.warehouse, district, who: self.customer() })
            }
            Kind::StockLevel => {
                let threshold = self.dice.between(10, 20);
                Asks::StockLevel(StockLevel { warehouse: self.warehouse, district, threshold })
            }
        };
        TerminalTransaction {
            kind,
            request: asks.to_bytes(),
            rolls_back,
            warehouse: self.warehouse,
            district,
            tag,
        }
    }

    /// Some are known by number, 60 % by last name (clause 2.5.1.2).
    fn customer(&mut self) -> CustomerAsked {
        let by_name = self.dice.chance(60);
        let number = match by_name {
            true => self.dice.uneven(255, 0, names(self.scale.customers) - 1),
            false => self.dice.uneven(1_023, 1, self.scale.customers),
        };
        CustomerAsked { by_name, number }
    }

    fn elsewhere(&mut self) -> u32 {
        1 + self.dice.elsewhere(self.warehouse - 1, self.scale.warehouses)
    }

    /// 5 to 15 different items, 1 % of them from another warehouse (clause 2.4.1.5).
    fn new_order(&mut self, district: u32, rolls_back: bool, entered_ms: u64, tag: u64) -> Asks {
        let count = self.dice.between(5, 15) as usize;
        let mut lines: Vec<LineAsked> = Vec::with_capacity(count);
        while lines.len() < count {
            let supplier = if self.dice.chance(1) { self.elsewhere() } else { self.warehouse };
            let item = self.dice.uneven(8_191, 1, self.scale.items);
            let quantity = self.dice.between(1, 10) as u8;
            if !lines.iter().any(|line| line.item == item) {
                lines.push(LineAsked { item, supplier, quantity });
            }
        }
        if let (true, Some(last)) = (rolls_back, lines.last_mut()) {
            last.item = self.scale.items + 1;
        }
        let customer = self.dice.uneven(1_023, 1, self.scale.customers);
        Asks::NewOrder(NewOrder { warehouse: self.warehouse, district, customer, lines, entered_ms, tag })
    }

    /// 15 % of those who pay live elsewhere (clause 2.5.1.2).
    fn payment(&mut self, district: u32, tag: u64) -> Asks {
        let (customer_warehouse, customer_district) = match self.dice.chance(15) {
            true => (self.elsewhere(), self.dice.between(1, DISTRICTS)),
            false => (self.warehouse, district),
        };
        Asks::Payment(Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            who: self.customer(),
            amount: i64::from(self.dice.between(100, 500_000)),
            in_counters: self.in_counters,
            tag,
        })
    }
}

//! What a book knows besides its orders: phase, prices, time. A plain value, part of every snapshot.

use pares_types::{
    ClientOrderId, MemberId, OrderId, OrderKind, Phase, Position, Price, Quantity, SelfTrade, Side,
    TimeInForce, Timestamp,
};

use crate::Instrument;

/// The trading state of one instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trading {
    /// The phase it is in; while a transition is pending, the one it leaves.
    pub phase: Phase,
    /// A change of phase that one step could not finish.
    pub transition: Option<Transition>,
    /// An order that one step could not finish. Nothing else trades, and nothing changes the book, before it ends.
    pub unfinished: Option<Unfinished>,
    /// When a volatility call, a call that was extended, or one whose end is being drawn, ends at the earliest; [`Timestamp::NEVER`] otherwise.
    pub until: Timestamp,
    /// The phase after it.
    pub after: Phase,
    /// How often this call was extended.
    pub extended: u8,
    /// The price of the last trade; none before the first, and after the exchange has set the reference price.
    pub last: Option<Price>,
    /// What static bands and auctions refer to.
    pub reference: Option<Price>,
    /// The price at which the last closing call ended.
    pub closing: Option<Price>,
    /// The latest time told.
    pub time: Timestamp,
    /// Up to when the timetable is done; zero before the first time told.
    pub timetable_done: Timestamp,
    /// The auction price and volume last told in this call.
    pub indicated: Option<(Price, Quantity)>,
    /// Trades busted since the business day began, in ascending order.
    pub busts: Vec<(Position, u16)>,
}

/// A change of phase on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The phase to come.
    pub to: Phase,
    /// The price of its auction, if there is one.
    pub price: Option<Price>,
}

/// An order in the middle of matching: neither on the book nor held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// The order, with what is left of it; it shows nothing.
    pub order: RestingOrder,
    /// The worst price it accepts.
    pub limit: Price,
    /// The bands it began under, lowest and highest price.
    pub bands: (Price, Price),
    /// Whether it joins a call, and meets nobody but its owner.
    pub gathers: bool,
    /// The priority that was next when it came in: icebergs with a later one have shown more since.
    pub begun: Priority,
}

impl Trading {
    /// Busted trades an instrument remembers.
    pub const BUSTS_MAX: usize = 1_024;
    /// Pegged orders an instrument takes.
    pub const PEGS_MAX: usize = 64;
    /// Pegged orders it takes of one member, so that nobody can take all places.
    pub const PEGS_OF_A_MEMBER_MAX: usize = 8;
    /// Into how many parts the time is cut in which a call ends at random: how often that is drawn, at least.
    pub const DRAWS: u64 = 32;
    /// How long the call lasts that opens a crossed book, in an instrument without a call time.
    pub const OPENING_CALL_NS: u64 = 60_000_000_000;

    /// The state of an instrument that never traded, in `phase`.
    #[must_use]
    pub fn new(phase: Phase) -> Self {
        Self {
            phase,
            transition: None,
            unfinished: None,
            until: Timestamp::NEVER,
            after: Phase::Continuous,
            extended: 0,
            last: None,
            reference: None,
            closing: None,
            time: Timestamp(0),
            timetable_done: Timestamp(0),
            indicated: None,
            busts: Vec::new(),
        }
    }

    /// Whether the call has an end of its own, and the last moment for that has come.
    pub(crate) fn is_call_over(&self, instrument: &Instrument) -> bool {
        self.until != Timestamp::NEVER && self.last_end(instrument) <= self.time
    }

    /// The last moment at which the call can end.
    pub(crate) fn last_end(&self, instrument: &Instrument) -> Timestamp {
        self.until.plus_ns(instrument.random_end_ns)
    }

    /// The phase has no end of its own.
    pub(crate) fn forget_end(&mut self) {
        (self.until, self.after, self.extended) = (Timestamp::NEVER, Phase::Continuous, 0);
    }

    /// Whether something is under way that takes several steps: until it ends, nothing else may change the book.
    pub(crate) fn is_busy(&self) -> bool {
        self.transition.is_some() || self.unfinished.is_some()
    }

    /// The latest price known: of the last trade, or the reference price if it was set after that.
    pub(crate) fn latest(&self) -> Option<Price> {
        self.last.or(self.reference)
    }

    /// Whether the last trade price has reached a stop order's trigger.
    pub(crate) fn reaches(&self, side: Side, trigger: Price) -> bool {
        self.last.is_some_and(|last| side.crosses(last, trigger))
    }

    /// Lowest and highest price at which the instrument may trade in this step (docs/rules.md, section 6). What continues
    /// keeps to those it began under.
    pub(crate) fn bands(&self, instrument: &Instrument) -> (Price, Price) {
        self.unfinished.map_or_else(|| self.bands_times(instrument, 1), |unfinished| unfinished.bands)
    }

    /// Lowest and highest price at which a call may end in an auction: each extension widens the bands by themselves, and a
    /// volatility call begins with them doubled, since a trade outside them is why it is there.
    pub(crate) fn auction_bands(&self, instrument: &Instrument) -> (Price, Price) {
        let doubled = u32::from(self.phase == Phase::VolatilityCall);
        self.bands_times(instrument, 1 + u32::from(self.extended) + doubled)
    }

    /// The prices at which an auction may be held: all, as long as the call can be extended if it is to end outside its bands; then
    /// those within them.
    pub(crate) fn auction_range(&self, instrument: &Instrument) -> (Price, Price) {
        if self.phase.is_call() && self.extended >= instrument.extensions_max {
            self.auction_bands(instrument)
        } else {
            (Price(i64::MIN), Price(i64::MAX))
        }
    }

    fn bands_times(&self, instrument: &Instrument, times: u32) -> (Price, Price) {
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        let bands = [(self.reference, instrument.static_band), (self.latest(), instrument.dynamic_band)];
        for (price, band) in bands {
            let (Some(price), true) = (price, band.is_set()) else { continue };
            let share = u128::from(price.0.unsigned_abs()) * u128::from(band.width) / 10_000;
            let away = share.max(band.least.0.unsigned_abs().into()) * u128::from(times);
            let away = i64::try_from(away).unwrap_or(i64::MAX);
            low = low.max(price.0.saturating_sub(away));
            high = high.min(price.0.saturating_add(away));
        }
        (Price(low), Price(high))
    }
}

/// What an auction would do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indication {
    /// The price.
    pub price: Price,
    /// Shares that would trade.
    pub quantity: Quantity,
    /// Shares that would be left at that price.
    pub surplus: Quantity,
    /// The side of the surplus; [`Side::Buy`] without one.
    pub surplus_side: Side,
}

/// The place of an order in a book's queue: the book counts the orders it puts to rest, so of two
/// orders at one price the one with the lower number is older and trades first. An order that loses
/// its priority gets a new number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(pub u64);

impl Priority {
    /// The number after this one.
    ///
    /// # Panics
    /// Beyond [`Priority::MAX`], which a book resting a billion orders a second reaches in two years.
    #[must_use]
    #[inline]
    pub(crate) fn next(self) -> Self {
        assert!(self < Self::MAX, "a book rests fewer than 2^56 orders");
        Self(self.0 + 1)
    }

    /// The highest number.
    pub const MAX: Self = Self((1 << 56) - 1);
}

/// An order that is there: on the book, or held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestingOrder {
    /// Its id: that of the request that entered it.
    pub order: OrderId,
    /// Its owner.
    pub member: MemberId,
    /// The owner's name for it.
    pub client_order_id: ClientOrderId,
    /// Bid or offer.
    pub side: Side,
    /// Limit, market or pegged, as entered or amended.
    pub kind: OrderKind,
    /// The price at which it is on the book; zero while it is held.
    pub price: Price,
    /// Shares still to trade; never zero.
    pub remaining: Quantity,
    /// Shares shown, of those; zero while it is held.
    pub shown: Quantity,
    /// Shares traded so far.
    pub executed: Quantity,
    /// What an iceberg shows at a time; zero for all.
    pub display: Quantity,
    /// How long it stays; `Ioc` and `Fok` only while it is [`Unfinished`].
    pub time_in_force: TimeInForce,
    /// What happens when it comes in and meets an order of the same member.
    pub self_trade: SelfTrade,
    /// What a stop order waits for; `None` once it has come in.
    pub trigger: Option<Price>,
    /// Whether a trade has reached its trigger: it comes in as soon as a step has room for it, wherever prices have gone since.
    pub elected: bool,
    /// Whether it must not trade when it comes to the book, amended too.
    pub post_only: bool,
    /// Its place in the queue of its price, or among the held.
    pub priority: Priority,
}

impl RestingOrder {
    /// Whether it is held: accepted, but not on the book.
    #[must_use]
    #[inline]
    pub fn is_held(&self) -> bool {
        self.shown.is_zero()
    }

    /// Whether its price follows the book.
    #[must_use]
    #[inline]
    pub fn is_pegged(&self) -> bool {
        matches!(self.kind, OrderKind::Pegged { .. })
    }
}

//! Ten seeded streams of orders that try a book in different ways, for measuring engines side by side: five walks, and five
//! that are unkind where walks are kind (`trying`).
//!
//! A stream of one's own making proves that one's own book likes it: a middle that moves slowly, as in life, keeps all that
//! happens on a few warm levels. So the construction is that of a public yardstick, with which 247 engines were compared:
//! `flash1-dev/matching-engine-benchmark` (commit 41656c8, MIT; arXiv 2606.01183). Its ideas: bids are priced along the
//! first half of a random walk, offers along the second, and then the orders arrive in *shuffled* order, so
//! that neither order ids nor prices have anything to do with what came just before; most orders are cancelled soon, and the
//! few that stay stand where the walk's halves do not meet. What is written here is our own, in integers only (theirs
//! needs one C library's logarithm), so a stream is the same on every machine. A figure measured on it is close to, but
//! not one of, that survey's.
//!
//! ```text
//!   order 1 .. 1,000,000 --15 %--> immediate or cancel                                   1,000,000 new
//!        |                                                                                 824,000 cancels
//!        +--85 %--> rests; amended (20 %), then cancelled (95 %);                          173,000 amends
//!                   sometimes both once more (2 %), when the order is gone               ---------
//!                                                                                        1,997,000 messages
//! ```
//! A sender of a cancel here knows when the order was sent, not what became of it, as members do; a cancel of an order
//! that traded is refused.
//!
//! | scenario | the walk is expected to get | resting at the end | levels at most | fills |
//! |---|---|---|---|---|
//! | `static` | nowhere | 42,000 | 180 | 600 |
//! | `normal` | 2 % away | 5,400 | 140 | 62,000 |
//! | `swing-25` | 25 % away | 2,100 | 790 | 68,000 |
//! | `swing-40` | 40 % away | 1,400 | 715 | 69,000 |
//! | `flash-crash` | 60 % away | 740 | 340, thousands of ticks apart | 70,000 |
//!
//! The book grows steadily, so half as many rest in the mean. What stands depends on how the two halves of a walk happen to
//! lie; [`BookScenario`] therefore names the walk (of those that seed 23 gives) whose book is like the public one: there
//! 20,900, 2,700, 1,300, 700 and 240 orders rest in the mean, and 800, 62,000, 67,000, 69,000 and 70,000 fills happen.

mod lifecycle;
mod message;
mod orders;
#[cfg(test)]
mod shape;
mod trying;

pub use message::{BookMessage, MessageKind};

use pares_random::Random;
use trying::Trying;

/// The seed of the streams that are compared.
pub const SCENARIO_SEED: u64 = 23;
/// New orders of a whole stream; with their cancels and amends about two million messages.
pub const SCENARIO_ORDERS: u32 = 1_000_000;
/// How many members the orders belong to; the member of an order is `1 + id % MEMBERS`.
pub const SCENARIO_MEMBERS: u32 = 64;
/// The price at which every walk begins, in ticks: 100.00 in cents.
pub const SCENARIO_START_TICKS: i64 = 10_000;

/// One of the ten streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookScenario {
    /// Its name.
    pub name: &'static str,
    kind: Kind,
}

/// How its orders are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Along a walk that is expected to get so many percent of the price away from its start: which of the seed's walks.
    Walk {
        swing_percent: u32,
        walk: u64,
    },
    Trying(Trying),
}

impl BookScenario {
    /// All of them: the walks from the deepest book to the thinnest, then the trying ones.
    pub const ALL: [Self; 10] = [
        Self::walk("static", 0, 0),
        Self::walk("normal", 2, 41),
        Self::walk("swing-25", 25, 53),
        Self::walk("swing-40", 40, 29),
        Self::walk("flash-crash", 60, 12),
        Self { name: "churn", kind: Kind::Trying(Trying::Churn) },
        Self { name: "sweep", kind: Kind::Trying(Trying::Sweep) },
        Self { name: "far", kind: Kind::Trying(Trying::Far) },
        Self { name: "amends", kind: Kind::Trying(Trying::Amends) },
        Self { name: "misses", kind: Kind::Trying(Trying::Misses) },
    ];

    const fn walk(name: &'static str, swing_percent: u32, walk: u64) -> Self {
        Self { name, kind: Kind::Walk { swing_percent, walk } }
    }

    /// The scenario of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name == name)
    }

    /// The whole stream, of [`SCENARIO_ORDERS`] new orders from [`SCENARIO_SEED`].
    #[must_use]
    pub fn messages(&self) -> Vec<BookMessage> {
        self.messages_of(SCENARIO_SEED, SCENARIO_ORDERS)
    }

    /// A stream of `orders` new orders, at least 2, with ids from 1; a trying one may have some more.
    ///
    /// # Panics
    /// If there are fewer than 2 orders.
    #[must_use]
    pub fn messages_of(&self, seed: u64, orders: u32) -> Vec<BookMessage> {
        assert!(orders >= 2, "a bid and an offer");
        match self.kind {
            Kind::Walk { swing_percent, walk } => {
                let mut random = Random::new(seed ^ (walk << 32) ^ (u64::from(swing_percent) << 56));
                let placed = orders::placed(swing_percent, orders, &mut random);
                lifecycle::expand(&placed, &mut random)
            }
            Kind::Trying(trying) => trying.messages(orders, Random::new(seed)),
        }
    }
}

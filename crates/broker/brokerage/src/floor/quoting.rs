//! Who has quotes, as a front asks them.

use pares_broker::{HitName, QuoteBrought, StockSymbol, UserName};
use pares_front::DeskNews;

use crate::desk::DeskLinks;
use crate::quoter::{QuoteAnswer, Quoter};

/// See the [module](self).
pub(crate) enum Quoting {
    /// The server itself.
    Server(Quoter),
    /// Desks; who has the front turns them.
    Desks(DeskLinks),
}

impl Quoting {
    pub(super) fn ask(&mut self, hit: u64, symbol: StockSymbol, user: UserName) {
        match self {
            Self::Server(quoter) => quoter.ask(hit, symbol, user),
            Self::Desks(desks) => desks.ask(hit, symbol, user),
        }
    }

    pub(super) fn abandon(&mut self, hit: u64) {
        match self {
            Self::Server(quoter) => quoter.abandon(hit),
            Self::Desks(desks) => desks.abandon(hit),
        }
    }

    /// What was said since it was asked last, to a front of that number.
    pub(super) fn turn(&mut self, desk: u64) -> Vec<DeskNews> {
        match self {
            Self::Server(quoter) => {
                let named = |(count, answer): QuoteAnswer| {
                    let hit = Some(HitName { desk, count });
                    DeskNews::Answer(count, answer.map(|quote| QuoteBrought { quote, hit }))
                };
                quoter.answers().map(named).collect()
            }
            Self::Desks(desks) => desks.turn(),
        }
    }

    /// How often a question was asked again before it had its answer; desks ask for many, and do not say.
    pub(crate) fn hedges(&self) -> Option<u64> {
        match self {
            Self::Server(quoter) => Some(quoter.hedges()),
            Self::Desks(_) => None,
        }
    }
}

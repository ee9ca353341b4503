//! What the rules are asked, as bytes.

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{fields, kinds};

use crate::coded::{Text, encode_text};
use crate::command::{StockSymbol, TradeWay, UserCommand, UserName};
use crate::heads::LogDigest;
use crate::names::{CommandName, HitName};
use crate::orders::OrderAsked;
use crate::people::PersonAsked;
use crate::refusal::Refusal;

/// How long a quote may be used after its server's stamp, and a pending buy or sell be committed, ms.
pub const WINDOW_MS: u64 = 60_000;

/// A quote as the legacy server returned it: nothing in it is ever changed, since its key is made of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockQuote {
    /// Cents.
    pub price_cents: u64,
    /// Of which stock.
    pub symbol: StockSymbol,
    /// For which user it was asked.
    pub user: String,
    /// The server's stamp, ms since 1970. Taken before the server's delay.
    pub server_ms: u64,
    /// The server's proof.
    pub key: String,
}

impl Coded for StockQuote {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.price_cents, self.symbol).encode(to);
        encode_text(&self.user, to);
        self.server_ms.encode(to);
        encode_text(&self.key, to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (price_cents, symbol) = Coded::decode(from)?;
        let (user, (server_ms, key)) = <(Text, (u64, Text))>::decode(from)?;
        Ok(Self { price_cents, symbol, user: user.0, server_ms, key: key.0 })
    }
}

/// The quote that comes with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuoteBrought {
    /// The quote.
    pub quote: StockQuote,
    /// The question that brought it, until the log has that: the first request to bring it has it in its entry.
    pub hit: Option<HitName>,
}

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A user's command.
    Command {
        /// As far as it could be read.
        command: UserCommand,
        /// Why it is refused, if its form is wrong.
        fault: Option<Refusal>,
    },
    /// A user's commit or cancel of what he has seen: refused if the newest pending is another one.
    Settle {
        /// `COMMIT_BUY`, `CANCEL_BUY`, `COMMIT_SELL` or `CANCEL_SELL`; refused if not.
        command: UserCommand,
        /// The number of the buy's or sell's request.
        number: u64,
    },
    /// Fire an armed trigger, if the quote says so.
    Fire {
        /// Which trigger.
        way: TradeWay,
        /// Whose.
        user: UserName,
        /// On which stock.
        symbol: StockSymbol,
    },
    /// Release what has been pending for too long.
    Lapse {
        /// Of which stack.
        way: TradeWay,
        /// Whose.
        user: UserName,
    },
    /// Note a hit that no command caused: the desk's own, for triggers.
    Hit,
    /// Give a front its number.
    BeginFront,
    /// Keep what a log that was written hashes to.
    KeepHead {
        /// Whose log; none: of everything.
        user: Option<UserName>,
        /// What it hashes to.
        digest: LogDigest,
        /// Elements of the file.
        elements: u64,
    },
    /// About orders on the exchange.
    Order {
        /// What.
        asked: OrderAsked,
    },
    /// Something about a person.
    Person {
        /// What.
        asked: PersonAsked,
    },
}

impl Asked {
    /// Whether nobody commanded it: it has no place in a session, and does nothing a second time.
    #[must_use]
    pub fn is_moment(&self) -> bool {
        match self {
            Self::Fire { .. } | Self::Lapse { .. } | Self::Hit => true,
            Self::Order { asked } => asked.is_of_router(),
            Self::Command { .. } | Self::Settle { .. } => false,
            Self::BeginFront | Self::KeepHead { .. } | Self::Person { .. } => false,
        }
    }

    /// Whether a router asks. Its clock is held against nothing, so its times are no users' times.
    pub(crate) fn is_of_router(&self) -> bool {
        matches!(self, Self::Order { asked } if asked.is_of_router())
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerRequest {
    /// Positive, as [`number_in_session`](crate::number_in_session) makes it; of a session's commands ascending for each user. It is executed once for each user; that no two
    /// users have one is the promise of who sends it. [`Asked::BeginFront`], [`Asked::KeepHead`] and [`Asked::Person`] have none: 0.
    pub number: u64,
    /// The number of the same user's command before in the same session, without which this one is not executed, or that of the session with 0 behind it; 0 if the order does not
    /// matter. So a front may send several, whatever becomes of each.
    pub after: u64,
    /// Its sender's name for it: however often it comes under it, in whatever session, it is executed once.
    pub name: Option<CommandName>,
    /// When the front made it, ms since 1970, to the end of the year 9999. The front is trusted with it.
    pub time_ms: u64,
    /// The quote it is executed by, where it needs one.
    pub quote: Option<QuoteBrought>,
    /// What to do.
    pub asked: Asked,
}

/// A command that its sender has named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Where its entry lies.
    pub(crate) place: u64,
    pub(crate) asked: Asked,
}

kinds!(Asked, "request" {
    1 => Command { command, fault },
    2 => Fire { way, user, symbol },
    3 => Lapse { way, user },
    4 => Hit,
    5 => BeginFront,
    6 => Settle { command, number },
    7 => KeepHead { user, digest, elements },
    20 => Order { asked },
    10 => Person { asked },
});
fields! {
    Named { place, asked }
    QuoteBrought { quote, hit }
    BrokerRequest { number, after, name, time_ms, quote, asked }
}

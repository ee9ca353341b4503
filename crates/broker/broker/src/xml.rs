//! The log as the course's XML (`logfile_2023.xsd`): an entry is one to a few elements, written in order, one entry at a time.

use core::fmt::Write as _;

use pares_wice::Key;

use crate::audit::AuditNote;
use crate::command::{StockSymbol, TradeWay, UserCommand, Verb};
use crate::money::dollars;
use crate::orders::{CustomerLimits, OrderAsked, OrderNote, OrderTerms};
use crate::pages::{AuditEntry, AuditPage};
use crate::refusal::Refusal;
use crate::reply::BrokerReply;
use crate::request::StockQuote;

/// What a log begins with.
pub const LOG_BEGIN: &str = "<?xml version=\"1.0\"?>\n<log>\n";
/// Whether a log's first line, without blanks around it, is its declaration, and nothing else.
#[must_use]
pub fn is_declaration(line: &str) -> bool {
    line.starts_with("<?xml ") && line.find("?>") == Some(line.len() - 2)
}

/// What it ends with.
pub const LOG_END: &str = "</log>\n";
/// What the words begin with that say what a supervisor did.
pub(crate) const SUPERVISED: &str = "supervised by ";

/// What the log calls the server that tells it.
const SERVER: &str = "broker";

impl AuditEntry {
    /// Appends its elements.
    pub fn xml(&self, to: &mut String) {
        let (number, record) = (self.record.number, &self.record);
        let mut elements = Elements { user: &self.user, time_ms: record.time_ms, to };
        if let Some(command) = &record.command {
            elements.command("userCommand", number, command, &[]);
        }
        for note in &record.notes {
            elements.note(number, note, &record.reply);
        }
        if let (Some(command), BrokerReply::Refused { refusal }) = (&record.command, &record.reply) {
            elements.command("errorEvent", number, command, &[("errorMessage", &refusal.to_string())]);
        }
    }
}

/// Tells a log from its beginning to its end; how many entries it has. `page` reads the page from a key on, the first without one.
///
/// # Errors
/// The first of `page` and `tell`.
pub fn tell_log<E>(
    mut page: impl FnMut(Option<Key>) -> Result<AuditPage, E>,
    mut tell: impl FnMut(&str) -> Result<(), E>,
) -> Result<u64, E> {
    tell(LOG_BEGIN)?;
    let (mut count, mut from, mut text) = (0, None, String::new());
    loop {
        let AuditPage { entries, next } = page(from)?;
        entries.iter().for_each(|entry| entry.xml(&mut text));
        count += entries.len() as u64;
        tell(&text)?;
        text.clear();
        from = next;
        if from.is_none() {
            tell(LOG_END)?;
            return Ok(count);
        }
    }
}

struct Elements<'a> {
    user: &'a str,
    time_ms: u64,
    to: &'a mut String,
}

impl Elements<'_> {
    fn note(&mut self, number: u64, note: &AuditNote, reply: &BrokerReply) {
        match note {
            AuditNote::Hit { quote } => self.hit(number, quote),
            AuditNote::Moved { origin, is_add, cents } => {
                let action = if *is_add { "add" } else { "remove" };
                let (user, funds) = (self.user, dollars(*cents));
                let fields = [("action", action), ("username", user), ("funds", &funds)];
                self.element("accountTransaction", *origin, &fields);
            }
            AuditNote::Done { origin, verb, symbol, cents } => {
                self.of_stock("systemEvent", *origin, *verb, *symbol, ("funds", &dollars(*cents)));
            }
            AuditNote::Deal { origin, verb, symbol, shares, price_cents } => {
                let deal = format!("{shares} at {}", dollars(*price_cents));
                self.of_stock("debugEvent", *origin, *verb, *symbol, ("debugMessage", &deal));
            }
            AuditNote::Order { note } => self.order(note),
            AuditNote::Limited { .. } | AuditNote::Blocked { .. } => self.supervised(number, note),
            AuditNote::NotDone { asked } => {
                if let BrokerReply::Refused { refusal } = reply {
                    self.not_done(number, asked, *refusal);
                }
            }
        }
    }

    /// An error belongs to what was to happen: so that is said first, and nothing moves behind it.
    fn not_done(&mut self, number: u64, asked: &OrderAsked, refusal: Refusal) {
        let why = format!("{}: {refusal}", wished(asked));
        let placing = match asked {
            OrderAsked::Place { terms, .. } => Some(terms),
            _ => None,
        };
        let verb = placing.map_or(Verb::DisplaySummary, |terms| verb_of(terms.way));
        let funds = placing.map(|terms| dollars(terms.limit_cents));
        let mut fields = vec![("command", verb.name()), ("username", self.user)];
        fields.extend(placing.map(|terms| ("stockSymbol", terms.symbol.as_str())));
        fields.extend(funds.as_deref().map(|funds| ("funds", funds)));
        self.element("systemEvent", number, &fields);
        fields.push(("errorMessage", &why));
        self.element("errorEvent", number, &fields);
    }

    /// The schema has no command for it: it stands with the one that changes nothing.
    fn supervised(&mut self, number: u64, note: &AuditNote) {
        let Some(message) = supervised(note) else { return };
        let head = [("command", Verb::DisplaySummary.name()), ("username", self.user)];
        self.element("systemEvent", number, &head);
        self.element("debugEvent", number, &[head[0], head[1], ("debugMessage", &message)]);
    }

    fn hit(&mut self, number: u64, quote: &StockQuote) {
        let fields = [
            ("price", dollars(quote.price_cents)),
            ("stockSymbol", quote.symbol.to_string()),
            ("username", quote.user.clone()),
            ("quoteServerTime", quote.server_ms.to_string()),
            ("cryptokey", quote.key.clone()),
        ];
        self.element("quoteServer", number, &fields.each_ref().map(|(name, value)| (*name, value.as_str())));
    }

    fn order(&mut self, note: &OrderNote) {
        let OrderNote { order, way, symbol, shares, cents, happened } = *note;
        let (verb, cents) = (verb_of(way), dollars(cents));
        let per = if happened.is_at_limit() { "at" } else { "for" };
        let message = format!("order {}: {shares} {per} {cents}", happened.word());
        self.of_stock("systemEvent", order, verb, symbol, ("funds", &cents));
        self.of_stock("debugEvent", order, verb, symbol, ("debugMessage", &message));
    }

    fn of_stock(&mut self, name: &str, number: u64, verb: Verb, symbol: StockSymbol, last: (&str, &str)) {
        let head = [("command", verb.name()), ("username", self.user), ("stockSymbol", symbol.as_str())];
        self.element(name, number, &[head[0], head[1], head[2], last]);
    }

    fn command(&mut self, name: &str, number: u64, command: &UserCommand, more: &[(&str, &str)]) {
        let funds = command.cents.map(dollars);
        let mut fields = vec![("command", command.verb.name())];
        fields.extend(command.user.as_ref().map(|user| ("username", user.as_str())));
        fields.extend(command.symbol.as_ref().map(|symbol| ("stockSymbol", symbol.as_str())));
        fields.extend(command.file.as_deref().map(|file| ("filename", file)));
        fields.extend(funds.as_deref().map(|funds| ("funds", funds)));
        fields.extend_from_slice(more);
        self.element(name, number, &fields);
    }

    fn element(&mut self, name: &str, number: u64, fields: &[(&str, &str)]) {
        let (time, number) = (self.time_ms.to_string(), number.to_string());
        let head = [("timestamp", time.as_str()), ("server", SERVER), ("transactionNum", &number)];
        let _ = writeln!(self.to, "\t<{name}>");
        for (field, value) in head.iter().chain(fields) {
            let _ = write!(self.to, "\t\t<{field}>");
            escape(value, self.to);
            let _ = writeln!(self.to, "</{field}>");
        }
        let _ = writeln!(self.to, "\t</{name}>");
    }
}

fn verb_of(way: TradeWay) -> Verb {
    match way {
        TradeWay::Buy => Verb::Buy,
        TradeWay::Sell => Verb::Sell,
    }
}

/// What was asked of orders, limits or blocks, in words.
#[must_use]
pub fn wished(asked: &OrderAsked) -> String {
    let note = match asked {
        OrderAsked::Place { terms: OrderTerms { symbol, shares, limit_cents, .. }, .. } => {
            return format!("order not placed: {shares} {symbol} at {}", dollars(*limit_cents));
        }
        OrderAsked::Cancel { of } => return format!("order not cancelled: {}", of.number),
        OrderAsked::Limit { limits, by, .. } => AuditNote::Limited { by: by.clone(), limits: *limits },
        OrderAsked::Block { is_blocked, by, .. } => {
            AuditNote::Blocked { by: by.clone(), is_blocked: *is_blocked }
        }
        _ => return "a router's request".to_owned(),
    };
    format!("not done: {}", supervised(&note).unwrap_or_default())
}

/// What a supervisor did, in words; none if it is no such note.
#[must_use]
pub fn supervised(note: &AuditNote) -> Option<String> {
    match note {
        AuditNote::Limited { by, limits } => {
            let CustomerLimits { shares_max, cents_max, open_max, position_max, loss_max } = *limits;
            let (cents, loss) = (dollars(cents_max), dollars(loss_max));
            Some(format!(
                "{SUPERVISED}{by}: limits {shares_max} shares, {cents}, {open_max} open, {position_max} of a stock, loss {loss}"
            ))
        }
        AuditNote::Blocked { by, is_blocked } => {
            Some(format!("{SUPERVISED}{by}: {}", if *is_blocked { "blocked" } else { "not blocked" }))
        }
        _ => None,
    }
}

fn escape(text: &str, to: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => to.push_str("&amp;"),
            '<' => to.push_str("&lt;"),
            '>' => to.push_str("&gt;"),
            other => to.push(other),
        }
    }
}

//! The log as the course's XML (`logfile_2023.xsd`): an entry is one to a few elements, written in order, one entry at a time.

use core::fmt::Write as _;

use crate::audit::{AuditNote, AuditRecord};
use crate::command::{StockSymbol, UserCommand, Verb};
use crate::money::dollars;
use crate::orders::{CustomerLimits, OrderNote};
use crate::reply::BrokerReply;
use crate::request::{StockQuote, TradeWay};

/// What a log begins with.
pub const LOG_BEGIN: &str = "<?xml version=\"1.0\"?>\n<log>\n";
/// What it ends with.
pub const LOG_END: &str = "</log>\n";
/// What the words begin with that say what a supervisor did.
pub(crate) const SUPERVISED: &str = "supervised by ";

/// Appends the elements of an entry. `user` is empty for an entry of nobody; `server` is the name of the server that tells it.
pub fn xml(server: &str, user: &str, record: &AuditRecord, to: &mut String) {
    let number = record.number;
    let mut elements = Elements { server, user, time_ms: record.time_ms, to };
    if let Some(command) = &record.command {
        elements.command("userCommand", number, command, &[]);
    }
    for note in &record.notes {
        elements.note(number, note);
    }
    if let (Some(command), BrokerReply::Refused { refusal }) = (&record.command, &record.reply) {
        elements.command("errorEvent", number, command, &[("errorMessage", &refusal.to_string())]);
    }
}

struct Elements<'a> {
    server: &'a str,
    user: &'a str,
    time_ms: u64,
    to: &'a mut String,
}

impl Elements<'_> {
    fn note(&mut self, number: u64, note: &AuditNote) {
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
        }
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
        let verb = if way == TradeWay::Buy { Verb::Buy } else { Verb::Sell };
        let cents = dollars(cents);
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
        let head = [("timestamp", time.as_str()), ("server", self.server), ("transactionNum", &number)];
        let _ = writeln!(self.to, "\t<{name}>");
        for (field, value) in head.iter().chain(fields) {
            let _ = write!(self.to, "\t\t<{field}>");
            escape(value, self.to);
            let _ = writeln!(self.to, "</{field}>");
        }
        let _ = writeln!(self.to, "\t</{name}>");
    }
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

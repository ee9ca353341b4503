//! Elements from lines: one tag, or one field with its value, to a line, as the log is written.

use std::collections::BTreeMap;

use crate::command::StockSymbol;
use crate::request::StockQuote;
use crate::xml::is_declaration;

/// So much is quoted of what a log holds, characters: the reason that follows is read too.
const QUOTED_MAX: usize = 100;

/// A value of the log, for a message.
pub(super) fn quoted(value: &str) -> String {
    let rest = value.chars().nth(QUOTED_MAX).map_or("", |_| "...");
    format!("`{}{rest}`", value.chars().take(QUOTED_MAX).collect::<String>())
}

/// An element.
#[derive(Clone, Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    fields: BTreeMap<String, String>,
}

impl Element {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    pub(super) fn need(&self, name: &str) -> Result<&str, String> {
        self.field(name).ok_or_else(|| format!("{} without {name}", self.name))
    }

    pub(super) fn number(&self) -> Result<u64, String> {
        let number = self.need("transactionNum")?;
        let positive = number.parse().ok().filter(|number| *number > 0);
        positive.ok_or_else(|| format!("{} is no number of a command", quoted(number)))
    }

    /// The quote of a `quoteServer`.
    pub(super) fn quote(&self) -> Result<StockQuote, String> {
        let (symbol, time) = (self.need("stockSymbol")?, self.need("quoteServerTime")?);
        Ok(StockQuote {
            price_cents: self.cents("price")?,
            symbol: StockSymbol::new(symbol).ok_or_else(|| format!("{} is no stock", quoted(symbol)))?,
            user: self.need("username")?.to_owned(),
            server_ms: time.parse().map_err(|_| format!("{} is no time", quoted(time)))?,
            key: self.need("cryptokey")?.to_owned(),
        })
    }

    pub(super) fn cents(&self, name: &str) -> Result<u64, String> {
        let text = self.need(name)?;
        cents(text)
    }
}

/// The cents of any sum that a log may show.
pub(super) fn cents(text: &str) -> Result<u64, String> {
    let parts = text.split_once('.').filter(|(_, decimals)| decimals.len() == 2);
    let digits = parts.map(|(whole, decimals)| format!("{whole}{decimals}"));
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("{} is no sum of money", quoted(text)))
}

const KINDS: [&str; 6] =
    ["userCommand", "quoteServer", "accountTransaction", "systemEvent", "errorEvent", "debugEvent"];

/// Where in the log the reader is.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    pub(super) lines: u64,
    pub(super) has_ended: bool,
    has_begun: bool,
    open: Option<Element>,
}

impl Reader {
    /// Takes a line; gives an element if it ends one.
    pub(super) fn line(&mut self, line: &str) -> Result<Option<Element>, String> {
        self.lines += 1;
        let text = line.trim();
        if text.is_empty() || (self.lines == 1 && is_declaration(text)) {
            return Ok(None);
        }
        let found = match self.open.take() {
            _ if self.has_ended => None,
            Some(open) => self.inside(open, text),
            None => self.outside(text).then_some(None),
        };
        found.ok_or_else(|| format!("{} is not expected here", quoted(text)))
    }

    /// A line between elements; whether it may stand there.
    fn outside(&mut self, text: &str) -> bool {
        let name = text.strip_prefix('<').and_then(|tag| tag.strip_suffix('>')).unwrap_or_default();
        match name {
            "log" if !self.has_begun => self.has_begun = true,
            "/log" if self.has_begun => self.has_ended = true,
            name if self.has_begun && KINDS.contains(&name) => {
                self.open = Some(Element { name: name.to_owned(), ..Element::default() });
            }
            _ => return false,
        }
        true
    }

    /// A line of the element `open`. None if it may not stand there.
    fn inside(&mut self, mut open: Element, text: &str) -> Option<Option<Element>> {
        if text.strip_prefix("</").and_then(|tag| tag.strip_suffix('>')) == Some(&open.name) {
            return Some(Some(open));
        }
        let (name, value) = field(text)?;
        if open.fields.insert(name.to_owned(), value).is_some() {
            return None;
        }
        self.open = Some(open);
        Some(None)
    }
}

/// The name and value of `<name>value</name>`.
fn field(text: &str) -> Option<(&str, String)> {
    let (name, rest) = text.strip_prefix('<')?.split_once('>')?;
    let value = rest.strip_suffix('>')?.strip_suffix(name)?.strip_suffix("</")?;
    let is_plain = !value.contains(['<', '>']);
    is_plain.then(|| (name, value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")))
}

//! The application of `pares site`: items by name, transfers between accounts, counters. Requests and replies are text, or `steps`, which carry any value.
//!
//! | request | effect | reply |
//! |---|---|---|
//! | `get NAME` | none | the value; refused if there is none |
//! | `put NAME VALUE` | the item has this value, all that follows the name: a whole number is a counter, anything else text; in double quotes it is text, whatever it is | what was done, in words |
//! | `append NAME WORD` | the word is put behind the item's text, which is empty if there is no item | the same |
//! | `expect NAME VALUE` | refused unless the item has this value, written as for `put`; nobody changes it before this commits | that it is so |
//! | `absent NAME` | refused if there is such an item; nobody makes it before this commits | the same |
//! | `delete NAME` | the item is no more | the same |
//! | `add NAME AMOUNT` | added to the counter, without reading it | the same |
//! | `transfer FROM TO AMOUNT` | between two accounts, none of which may fall below 0 | the balance left |
//! | `trade A B C AMOUNT ID` | a broker's: reads three items, changes two, writes two new ones | what was done |
//! | `together REQUEST; REQUEST; ..` | all of them in one transaction, each on what those before it have done; none if one is refused | a line for each |
//! | `noted NAME REQUEST` | that of the request, and 1 is added to the counter | the request's |
//! | `sum PREFIX` | none | how many counters there are, and their sum |
//! | `list PREFIX AFTER COUNT` | none | so many items from behind `AFTER` on, by name, a line each: name, value; `-` is all, or the beginning |
//! | `digest` | none | one number for all there is, replies remembered included |
//!
//! `get` and `together` can be executed as well as read; `together` has neither itself nor `noted` inside, and
//! values in it have no semicolon. `together expect a 5; put a 6` is compare-and-set, over as many items as it has. A reply beyond a kibibyte is not remembered: a repeat learns only that it was done. `sum`, `list` and `digest` can only be read. A note tells afterwards whether a request was executed, and
//! how often.

use core::ops::ControlFlow;

use pares_store::{Reads, StoreError, Work, WorkError};
use pares_wice::{Key, KeyRange, VALUE_BYTES_MAX, Value};

use crate::application::{Application, ApplicationError};
use crate::protocol::REPLY_BYTES_MAX;
use crate::requests::REMEMBERED_BYTES_MAX;
use crate::steps;
use crate::view::View;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Items;

pub(crate) fn refuse<T>(why: impl Into<String>) -> Result<T, ApplicationError> {
    Err(ApplicationError::Refused(why.into()))
}

fn number(text: &str) -> Result<i64, ApplicationError> {
    text.parse().or_else(|_| refuse(format!("`{text}` is not a whole number")))
}

/// What a request may be.
const REQUESTS: &str = "get NAME, put NAME VALUE, expect NAME VALUE, absent NAME, append NAME WORD, delete NAME, add NAME AMOUNT, \
                        transfer FROM TO AMOUNT, trade CASH HOLDING RATE AMOUNT ID, noted COUNTER and one of \
                        these, or together and several of these with ; between";
/// What may be read.
const READS: &str = "get NAME, sum, sum PREFIX, list PREFIX AFTER COUNT (PREFIX and AFTER may be -), digest, \
                     or together and several of these with ; between";

fn unknown<T>(words: &[&str], known: &str) -> Result<T, ApplicationError> {
    refuse(format!("`{}` is not one of {known}", words.join(" ")))
}

/// What the name of each item begins with in the store.
const NAMES: &str = "i/";

/// An item's name in the store: none of the site's own begins so.
pub(crate) fn named(name: &str) -> Key {
    Key::from(format!("{NAMES}{name}").as_str())
}

fn text(request: &[u8]) -> Result<Vec<&str>, ApplicationError> {
    match core::str::from_utf8(request) {
        Ok(text) => Ok(words(text)),
        Err(_) => refuse("a request is text"),
    }
}

/// The words of a request; what is put is one word, however many it has.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_ascii();
    while !rest.is_empty() {
        let verb = if words.first() == Some(&"noted") { 2 } else { 0 };
        let is_value = words.len() == verb + 2 && matches!(words[verb], "put" | "expect");
        let end = rest.find(|letter: char| letter.is_ascii_whitespace()).filter(|_| !is_value);
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after.trim_ascii_start();
    }
    words
}

/// The requests of one that begins with `together`, if this is one.
fn together(request: &[u8]) -> Option<impl Iterator<Item = Vec<&str>>> {
    let all = core::str::from_utf8(request).ok()?.trim_ascii_start().strip_prefix("together ")?;
    Some(all.split(';').map(words))
}

/// A line for each request, within what a reply may have.
fn lines<'a>(
    requests: impl Iterator<Item = Vec<&'a str>>,
    mut reply: impl FnMut(&[&str]) -> Result<Vec<u8>, ApplicationError>,
) -> Result<Vec<u8>, ApplicationError> {
    let mut lines = Vec::new();
    for request in requests {
        lines.extend(reply(&request)?);
        lines.push(b'\n');
        if lines.len() > REPLY_BYTES_MAX {
            return refuse("the reply would be too long: ask for less together");
        }
    }
    Ok(lines)
}

fn shown(value: &Value) -> Vec<u8> {
    match value.as_counter() {
        Some(total) => total.to_string().into_bytes(),
        None => value.as_bytes().to_vec(),
    }
}

fn found(name: &str, value: Option<&Value>) -> Result<Vec<u8>, ApplicationError> {
    value.map_or_else(|| refuse(format!("there is no item {name}")), |value| Ok(shown(value)))
}

/// What a refusal begins with whose request expected something else than there is, and that of no other [step](crate::steps).
pub(crate) const CHANGED: &str = "changed: ";
/// Bytes of a value that such a refusal shows.
const TOLD_BYTES_MAX: usize = 100;
const _: () =
    assert!(4 * TOLD_BYTES_MAX < REMEMBERED_BYTES_MAX, "a refusal is remembered with the values it names");

/// Refuses what expected something else.
pub(crate) fn expected(
    name: &str,
    found: Option<&Value>,
    expected: Option<&Value>,
) -> Result<(), ApplicationError> {
    if found == expected {
        return Ok(());
    }
    let text = |value: &Value| {
        let text = String::from_utf8(shown(value)).ok().filter(|text| text.len() <= TOLD_BYTES_MAX)?;
        Some(if value.as_counter().is_some() { text } else { format!("\"{text}\"") })
    };
    // What is refused is remembered, if it is short.
    let name = if name.len() <= TOLD_BYTES_MAX { name } else { "of a long name" };
    refuse(match (found, expected) {
        (None, _) => format!("{CHANGED}there is no item {name}"),
        (Some(_), None) => format!("{CHANGED}there is an item {name}"),
        (Some(found), Some(expected)) => match (text(found), text(expected)) {
            (Some(found), Some(expected)) => format!("{CHANGED}{name} is {found}, not {expected}"),
            _ => format!("{CHANGED}{name} has another value"),
        },
    })
}

/// In the words of the request: names, not keys.
pub(crate) fn told(error: WorkError, name: &str) -> ApplicationError {
    match error {
        WorkError::NotACounter(_) => ApplicationError::Refused(format!("{name} is text, not a number")),
        other => other.into(),
    }
}

fn sum(
    prefix: &str,
    mut walk: impl FnMut(&KeyRange, &mut pares_store::Visit<'_>) -> Result<(), StoreError>,
) -> Result<Vec<u8>, ApplicationError> {
    let (mut count, mut total) = (0u64, 0i128);
    walk(&KeyRange::prefix(named(prefix).as_bytes()), &mut |_, value| {
        if let Some(amount) = value.as_counter() {
            (count, total) = (count + 1, total + amount);
        }
        ControlFlow::Continue(())
    })?;
    Ok(format!("{count} {total}").into_bytes())
}

/// Items by name, from behind `after` (a name that begins so itself, or `-`) on.
fn list(items: &dyn Reads, prefix: &str, after: &str, count: i64) -> Result<Vec<u8>, ApplicationError> {
    if after != "-" && !after.starts_with(prefix) {
        return refuse(format!(
            "`{after}` does not begin with `{prefix}`: give an AFTER with that prefix, or -"
        ));
    }
    let all = KeyRange::prefix(named(prefix).as_bytes());
    let range = if after == "-" { all } else { KeyRange { from: named(&format!("{after}\0")), ..all } };
    let (mut lines, mut left) = (Vec::new(), count);
    let mut fits = true;
    items.range(&range, &mut |key, value| {
        fits = lines.len() + key.as_bytes().len() + value.as_bytes().len().max(40) < REPLY_BYTES_MAX;
        if left <= 0 || !fits {
            return ControlFlow::Break(());
        }
        left -= 1;
        lines.extend_from_slice(&key.as_bytes()[NAMES.len()..]);
        lines.push(b' ');
        lines.extend(shown(&value));
        lines.push(b'\n');
        ControlFlow::Continue(())
    })?;
    assert!(lines.len() <= REPLY_BYTES_MAX, "a list fits into one reply");
    if fits || left <= 0 { Ok(lines) } else { refuse("the reply would be too long: list fewer items") }
}

/// FNV-1a over all items, their lengths and their order, in hexadecimal: two databases with the same content have the same.
///
/// # Errors
/// If they cannot be read.
pub fn digest(items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    items.range(&KeyRange::prefix(b""), &mut |key, value| {
        for bytes in [key.as_bytes(), value.encoded()] {
            let length = (bytes.len() as u64).to_le_bytes();
            for byte in length.iter().chain(bytes) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(format!("{hash:016x}").into_bytes())
}

/// What is put, as it is written.
fn put_value(written: &str) -> Value {
    let quoted = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match quoted {
        Some(text) => Value::from(text),
        None => written.parse().map_or_else(|_| Value::from(written), Value::counter),
    }
}

impl Items {
    fn change(words: &[&str], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        match words {
            ["get", name] => found(name, work.get(&named(name))?.as_ref()),
            ["put", name, value] => {
                work.put(&named(name), put_value(value));
                Ok(format!("{name} is {value}").into_bytes())
            }
            ["expect", name, value] => {
                expected(name, work.hold(&named(name))?.as_ref(), Some(&put_value(value)))?;
                Ok(format!("{name} is {value}").into_bytes())
            }
            ["absent", name] => {
                expected(name, work.hold(&named(name))?.as_ref(), None)?;
                Ok(format!("{name} is absent").into_bytes())
            }
            ["append", name, word] => Self::append(work, name, word),
            ["delete", name] => {
                work.delete(&named(name));
                Ok(format!("{name} is deleted").into_bytes())
            }
            ["add", name, amount] => {
                work.add(&named(name), number(amount)?).map_err(|error| told(error, name))?;
                Ok(format!("{amount} added to {name}").into_bytes())
            }
            ["transfer", from, to, amount] => Self::transfer(work, from, to, number(amount)?),
            ["trade", a, b, c, amount, id] => Self::trade(work, [a, b, c], number(amount)?, id),
            _ => unknown(words, REQUESTS),
        }
    }

    fn append(work: &mut Work<View<'_>>, name: &str, word: &str) -> Result<Vec<u8>, ApplicationError> {
        let appended = match work.get(&named(name))? {
            None => word.into(),
            Some(value) if value.as_counter().is_some() => {
                return refuse(format!("{name} is a number, not text"));
            }
            Some(value) => [value.as_bytes(), word.as_bytes()].join(&b' '),
        };
        if appended.len() > VALUE_BYTES_MAX {
            return refuse(format!("{name} has reached its longest text"));
        }
        work.put(&named(name), Value::new(appended));
        Ok(format!("{word} appended to {name}").into_bytes())
    }

    fn transfer(
        work: &mut Work<View<'_>>,
        from: &str,
        to: &str,
        amount: i64,
    ) -> Result<Vec<u8>, ApplicationError> {
        if from == to {
            return refuse(format!("a transfer needs two different accounts, but both are {from}"));
        }
        if amount < 0 {
            return refuse(format!("{amount} is negative: transfer in the other direction"));
        }
        let mut balance = |name| work.counter(&named(name)).map_err(|error| told(error, name));
        let (has, receives, amount) = (balance(from)?, balance(to)?, i128::from(amount));
        if has < amount {
            return refuse(format!("insufficient balance: {from} has {has}"));
        }
        work.put(&named(from), Value::counter(has - amount));
        work.put(&named(to), Value::counter(receives + amount));
        Ok(format!("{from} has {} left", has - amount).into_bytes())
    }

    fn trade(
        work: &mut Work<View<'_>>,
        read: [&str; 3],
        amount: i64,
        id: &str,
    ) -> Result<Vec<u8>, ApplicationError> {
        let [cash, holding, rate] = read.map(named);
        let (has, holds, rate) = (work.counter(&cash)?, work.counter(&holding)?, work.counter(&rate)?);
        work.put(&cash, Value::counter(has - i128::from(amount) - rate));
        work.put(&holding, Value::counter(holds + 1));
        work.put(&named(&format!("order/{id}")), Value::new(format!("bought 1 for {amount}").into_bytes()));
        work.put(&named(&format!("audit/{id}")), Value::new(format!("{has} {holds}").into_bytes()));
        Ok(format!("bought 1 for {amount} as {id}").into_bytes())
    }
}

impl Items {
    fn look(words: &[&str], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        match words {
            ["get", name] => found(name, items.get(&named(name))?.as_ref()),
            ["sum", prefix] => sum(prefix, |range, visit| items.range(range, visit)),
            ["sum"] => sum("", |range, visit| items.range(range, visit)),
            ["list", "-", after, count] => list(items, "", after, number(count)?),
            ["list", prefix, after, count] => list(items, prefix, after, number(count)?),
            ["digest"] => digest(items),
            words => unknown(words, READS),
        }
    }
}

impl Application for Items {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        if let Some(steps) = steps::read(request) {
            return steps::execute(&steps?, work);
        }
        if let Some(requests) = together(request) {
            return lines(requests, |words| Self::change(words, work));
        }
        match text(request)?.as_slice() {
            ["noted", name, words @ ..] => {
                let reply = Self::change(words, work)?;
                work.add(&named(name), 1)?;
                Ok(reply)
            }
            words => Self::change(words, work),
        }
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        if let Some(steps) = steps::read(request) {
            return steps::look(&steps?, items);
        }
        match together(request) {
            Some(requests) => lines(requests, |words| Self::look(words, items)),
            None => Self::look(&text(request)?, items),
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_store::{Applied, Memory, Store};
    use pares_wice::Version;

    use super::*;

    #[test]
    fn a_list_that_fits_no_reply_is_refused() {
        let store = Memory::default();
        let long = Value::new(vec![b'x'; 400 << 10]);
        let writes = ["a", "b", "c"].map(|name| (named(name), Some(long.clone()))).to_vec();
        store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
        let items = store.snapshot().unwrap();
        assert!(Items.read(b"list - - 2", &*items).unwrap().len() <= REPLY_BYTES_MAX);
        Items.read(b"list - - 3", &*items).unwrap_err();
        assert_eq!(Items.read(b"sum", &*items).unwrap(), b"0 0");
    }

    #[test]
    fn what_is_expected_is_compared_as_it_would_be_put() {
        let found = [Some(Value::counter(5)), Some(Value::from("5")), None];
        for (number, found) in found.iter().enumerate() {
            for (other, expect) in found_as().iter().enumerate() {
                assert_eq!(expected("a", found.as_ref(), expect.as_ref()).is_ok(), number == other);
            }
        }
        let told = |found: &Value, expect: &Value| expected("a", Some(found), Some(expect)).unwrap_err();
        let (number, text) = (Value::counter(5), put_value("\"5\""));
        assert_eq!(told(&number, &text).to_string(), "changed: a is 5, not \"5\"");
        assert_eq!(told(&number, &Value::new(vec![9; 999])).to_string(), "changed: a has another value");
    }

    fn found_as() -> [Option<Value>; 3] {
        [Some(put_value("5")), Some(put_value("\"5\"")), None]
    }
}

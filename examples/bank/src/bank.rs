//! The bank: what a site executes. Read this file first; it is all that an application has to say.
//!
//! A request is text. A site executes it on a snapshot of all items, over a [`Work`] that notes what is read and written; the
//! sites then agree on its place among all transactions of all clusters, or execute it again on a newer snapshot. So
//! there are no locks here, no network and no other sites: only reads, writes and refusals.
//!
//! | request | what it does | reply |
//! |---|---|---|
//! | `found AMOUNT` | makes the money: all of it lies in the vault | |
//! | `open NAME` | opens an account, with nothing in it | |
//! | `deposit NAME AMOUNT SLIP` | from the vault to the account | what is left in the vault |
//! | `transfer FROM TO AMOUNT SLIP` | between two accounts; refused if the first has not so much | what is left there |
//! | `interest NAME AMOUNT SLIP` | from the vault to the account, without looking at either | |
//! | `total` (read) | | how many accounts there are, the sum of all balances, and the lowest but the vault's |
//! | `statement NAME AFTER` (read) | | the balance, then up to 1,000 entries after the slip AFTER (`-`: from the first) |
//!
//! The items are `account/NAME`, its balance, and `entry/NAME/SLIP`, what one slip has moved there. These things are true at every version, and
//! the auditors look at them all the time: all balances together are what the bank was founded with, and a balance is the sum
//! of its entries. And no customer's is below 0.

use core::ops::ControlFlow;

use pares_site::{Application, ApplicationError, View};
use pares_store::{Reads, Work};
use pares_wice::{Key, KeyRange, Value};

/// The bank's own account.
pub const VAULT: &str = "vault";
/// Entries in one reply.
pub const PAGE: usize = 1_000;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Bank;

impl Application for Bank {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        execute(request, work)
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        match words(request)?.as_slice() {
            ["total"] => total(items),
            ["statement", name, after] => statement(items, name, after),
            _ => refuse("only total and statement can be read"),
        }
    }
}

/// Executes a request on whatever can be read: a site's view, or a store in memory in a test.
fn execute<R: Reads>(request: &[u8], work: &mut Work<R>) -> Result<Vec<u8>, ApplicationError> {
    match words(request)?.as_slice() {
        ["found", sum] => found(work, amount(sum)?),
        ["open", name] => open(work, name),
        ["deposit", name, sum, slip] => transfer(work, VAULT, name, amount(sum)?, slip),
        ["transfer", from, to, sum, slip] => transfer(work, from, to, amount(sum)?, slip),
        ["interest", name, sum, slip] => interest(work, name, amount(sum)?, slip),
        _ => refuse("found, open, deposit, transfer or interest"),
    }
}

fn found<R: Reads>(work: &mut Work<R>, sum: i64) -> Result<Vec<u8>, ApplicationError> {
    open(work, VAULT)?;
    work.add(&account(VAULT), sum)?;
    work.add(&entry(VAULT, "founding"), sum)?;
    Ok(Vec::new())
}

fn open<R: Reads>(work: &mut Work<R>, name: &str) -> Result<Vec<u8>, ApplicationError> {
    if work.get(&account(name))?.is_some() {
        return refuse(format!("{name} has an account"));
    }
    work.put(&account(name), Value::counter(0));
    Ok(Vec::new())
}

/// A transaction that decides by what was read must *put*: of two transfers from one account at once only one is certified, and the other is
/// executed again and sees what is left. What only grows is *added to*: any number can pay into an account at once.
fn transfer<R: Reads>(
    work: &mut Work<R>,
    from: &str,
    to: &str,
    sum: i64,
    slip: &str,
) -> Result<Vec<u8>, ApplicationError> {
    if from == to {
        return refuse("a transfer goes from one account to another");
    }
    balance(work, to)?;
    let left = balance(work, from)? - i128::from(sum);
    if left < 0 {
        return refuse(format!("{from} has not so much"));
    }
    work.put(&account(from), Value::counter(left));
    work.add(&account(to), sum)?;
    work.add(&entry(from, slip), -sum)?;
    work.add(&entry(to, slip), sum)?;
    Ok(left.to_string().into_bytes())
}

/// Adds on both sides, so that it conflicts with no other interest, from wherever it comes. The price: nothing keeps the vault above 0.
fn interest<R: Reads>(
    work: &mut Work<R>,
    name: &str,
    sum: i64,
    slip: &str,
) -> Result<Vec<u8>, ApplicationError> {
    balance(work, name)?;
    for (account_name, change) in [(VAULT, -sum), (name, sum)] {
        work.add(&account(account_name), change)?;
        work.add(&entry(account_name, slip), change)?;
    }
    Ok(Vec::new())
}

/// An account's balance; there must be such an account. Nobody can close one, so that it is read here and not written is no risk.
fn balance<R: Reads>(work: &mut Work<R>, name: &str) -> Result<i128, ApplicationError> {
    match work.get(&account(name))? {
        Some(value) => Ok(value.as_counter().expect("accounts are counters")),
        None => refuse(format!("{name} has no account")),
    }
}

fn total(items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
    let (mut accounts, mut sum, mut lowest) = (0u64, 0i128, 0i128);
    items.range(&KeyRange::prefix(b"account/"), &mut |key, value| {
        let balance = value.as_counter().expect("accounts are counters");
        (accounts, sum) = (accounts + 1, sum + balance);
        if key != account(VAULT) {
            lowest = lowest.min(balance);
        }
        ControlFlow::Continue(())
    })?;
    Ok(format!("{accounts} {sum} {lowest}").into_bytes())
}

fn statement(items: &dyn Reads, name: &str, after: &str) -> Result<Vec<u8>, ApplicationError> {
    let Some(balance) = items.get(&account(name))? else { return refuse(format!("{name} has no account")) };
    let mut text = balance.as_counter().expect("accounts are counters").to_string();
    let mut range = KeyRange::prefix(entry(name, "").as_bytes());
    if after != "-" {
        // The first key after that slip's.
        range.from = Key::from(format!("entry/{name}/{after}\0").as_str());
    }
    for (key, value) in items.first(&range, PAGE)? {
        let key = String::from_utf8_lossy(key.as_bytes()).into_owned();
        let slip = key.rsplit('/').next().expect("a key has a last part").to_owned();
        let moved = value.as_counter().expect("entries are counters");
        text.push_str(&format!("\n{slip} {moved}"));
    }
    Ok(text.into_bytes())
}

fn account(name: &str) -> Key {
    Key::from(format!("account/{name}").as_str())
}

fn entry(name: &str, slip: &str) -> Key {
    Key::from(format!("entry/{name}/{slip}").as_str())
}

fn words(request: &[u8]) -> Result<Vec<&str>, ApplicationError> {
    match core::str::from_utf8(request) {
        Ok(text) => Ok(text.split_ascii_whitespace().collect()),
        Err(_) => refuse("a request is text"),
    }
}

fn amount(text: &str) -> Result<i64, ApplicationError> {
    match text.parse() {
        Ok(sum) if sum > 0 => Ok(sum),
        _ => refuse(format!("{text} is not a sum of money")),
    }
}

/// The client receives the reason, and nothing has changed.
fn refuse<T>(why: impl Into<String>) -> Result<T, ApplicationError> {
    Err(ApplicationError::Refused(why.into()))
}

#[cfg(test)]
mod tests {
    use pares_store::{Applied, Memory, Store};
    use pares_wice::{Change, Transaction, TransactionId, Version};

    use super::*;

    const ID: TransactionId = TransactionId { client: 1, sequence: 1 };

    /// A bank of 1,000, with 100 for anne and nothing for bob.
    fn bank() -> Memory {
        let store = Memory::default();
        for request in ["found 1000", "open anne", "open bob", "deposit anne 100 s1"] {
            done(&store, request);
        }
        store
    }

    fn attempt(store: &Memory, request: &str) -> Result<(Transaction, String), String> {
        let snapshot = store.snapshot().unwrap();
        let mut work = Work::new(&*snapshot);
        let reply = execute(request.as_bytes(), &mut work).map_err(|failure| failure.to_string())?;
        Ok((work.finish(ID, 0, snapshot.version()), String::from_utf8(reply).unwrap()))
    }

    fn done(store: &Memory, request: &str) -> String {
        let (transaction, reply) = attempt(store, request).unwrap();
        let before = store.snapshot().unwrap();
        let writes = transaction.writes.into_iter().map(|write| {
            let value = match write.change {
                Change::Put(value) => Some(value),
                Change::Delete => None,
                Change::Add(more) => {
                    let has = before.get(&write.key).unwrap().map_or(0, |value| value.as_counter().unwrap());
                    Some(Value::counter(has + i128::from(more)))
                }
            };
            (write.key, value)
        });
        let version = Version(before.version().0 + 1);
        store.apply(&[Applied { version, writes: writes.collect() }], None).unwrap();
        reply
    }

    fn read(store: &Memory, request: &str) -> String {
        let snapshot = store.snapshot().unwrap();
        String::from_utf8(Bank.read(request.as_bytes(), &snapshot).unwrap()).unwrap()
    }

    #[test]
    fn a_transfer_moves_money_and_leaves_an_entry_on_both_sides() {
        let bank = bank();
        assert_eq!(done(&bank, "transfer anne bob 30 s2"), "70");
        assert_eq!(read(&bank, "statement anne -"), "70\ns1 100\ns2 -30");
        assert_eq!(read(&bank, "statement bob -"), "30\ns2 30");
        assert_eq!(read(&bank, "total"), "3 1000 0");
    }

    #[test]
    fn nobody_falls_below_zero() {
        let bank = bank();
        assert_eq!(attempt(&bank, "transfer anne bob 101 s2").unwrap_err(), "anne has not so much");
        assert_eq!(done(&bank, "transfer anne bob 100 s2"), "0");
    }

    #[test]
    fn interest_added_without_reading_conflicts_with_nothing() {
        let bank = bank();
        let (transaction, _) = attempt(&bank, "interest anne 5 s2").unwrap();
        assert!(transaction.writes.iter().all(|write| matches!(write.change, Change::Add(_))));
        done(&bank, "interest anne 5 s2");
        assert_eq!(read(&bank, "statement anne s1"), "105\ns2 5");
        assert_eq!(read(&bank, "total"), "3 1000 0");
    }

    #[test]
    fn transfers_conflict_on_one_source_not_one_target() {
        let (transaction, _) = attempt(&bank(), "transfer anne bob 30 s2").unwrap();
        let change =
            |key: Key| transaction.writes.iter().find(|write| write.key == key).unwrap().change.clone();
        assert_eq!(change(account("anne")), Change::Put(Value::counter(70)));
        assert_eq!(change(account("bob")), Change::Add(30));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let bank = bank();
        for request in [
            "transfer anne anne 1 s",
            "transfer anne carl 1 s",
            "transfer anne bob -1 s",
            "open bob",
            "found 5",
            "rob",
        ] {
            assert!(attempt(&bank, request).is_err(), "{request}");
        }
    }

    #[test]
    fn a_long_statement_is_read_page_by_page() {
        let bank = bank();
        for slip in 0..=PAGE {
            done(&bank, &format!("interest bob 1 t{slip:06}"));
        }
        assert_eq!(read(&bank, "statement bob -").lines().count(), 1 + PAGE);
        assert_eq!(read(&bank, "statement bob t000999"), "1001\nt001000 1");
    }
}

//! The audit in the end: every slip of every teller against the books of every site.

use std::collections::BTreeMap;
use std::time::Duration;

use pares_site::{CallError, Client};

use crate::bank::PAGE;
use crate::teller::{Fate, Slip};

const PATIENCE: Duration = Duration::from_secs(20);

/// One site's books: by account, the balance, and what each slip has moved.
pub type Books = BTreeMap<String, (i128, BTreeMap<String, i128>)>;

/// What is wrong with a site's books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Acknowledged slips that are not in them.
    pub missing: u64,
    /// Slips that are in them with another sum than their own: done twice, or half.
    pub not_once: u64,
    /// Slips that are in them though the teller received the answer that nothing had changed.
    pub denied: u64,
    /// Accounts whose balance is not the sum of their entries.
    pub unbalanced: u64,
    /// Entries that no teller has a slip for.
    pub unknown: u64,
}

impl Findings {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads a site's books, account by account and page by page.
pub fn read(client: &mut Client, accounts: &[String]) -> Result<Books, CallError> {
    let mut books = Books::new();
    for account in accounts {
        let (balance, entries) = books.entry(account.clone()).or_default();
        let mut after = "-".to_owned();
        loop {
            let request = format!("statement {account} {after}");
            let reply = client.read(request.as_bytes(), PATIENCE)?;
            let text = String::from_utf8_lossy(&reply).into_owned();
            let mut lines = text.lines();
            *balance = lines.next().and_then(|line| line.parse().ok()).unwrap_or(i128::MIN);
            let page: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(' ')).collect();
            for (slip, sum) in &page {
                entries.insert((*slip).to_owned(), sum.parse().unwrap_or(i128::MIN));
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = (*last).to_owned(),
                _ => break,
            }
        }
    }
    Ok(books)
}

/// Holds the slips against the books.
pub fn check(books: &Books, slips: &[Slip]) -> Findings {
    let mut findings = Findings::default();
    let mut explained = 0;
    for slip in slips {
        let entry = |account: &str| books.get(account).and_then(|(_, entries)| entries.get(&slip.name));
        let sides = [(&slip.from, -i128::from(slip.sum)), (&slip.to, i128::from(slip.sum))];
        // The founding has one side only: nobody had the money before.
        let sides = if slip.from.is_empty() { &sides[1..] } else { &sides[..] };
        let found: Vec<_> = sides.iter().map(|(account, sum)| (entry(account), *sum)).collect();
        explained += found.iter().filter(|(entry, _)| entry.is_some()).count();
        if found.iter().all(|(entry, _)| entry.is_none()) {
            findings.missing += u64::from(slip.fate == Fate::Done);
        } else if slip.fate == Fate::Not {
            findings.denied += 1;
        } else if found.iter().any(|(entry, sum)| *entry != Some(sum)) {
            findings.not_once += 1;
        }
    }
    let entries: usize = books.values().map(|(_, entries)| entries.len()).sum();
    findings.unknown = (entries - explained) as u64;
    let unbalanced = books.values().filter(|(balance, entries)| entries.values().sum::<i128>() != *balance);
    findings.unbalanced = unbalanced.count() as u64;
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slip(name: &str, fate: Fate) -> Slip {
        Slip { name: name.into(), from: "anne".into(), to: "bob".into(), sum: 5, fate }
    }

    fn books(entries: &[(&str, i128)]) -> Books {
        let side = |sign: i128| {
            let entries: BTreeMap<_, _> =
                entries.iter().map(|(name, sum)| ((*name).to_owned(), sum * sign)).collect();
            (entries.values().sum(), entries)
        };
        Books::from([("anne".into(), side(-1)), ("bob".into(), side(1))])
    }

    #[test]
    fn acknowledged_applied_once_refused_not_at_all() {
        let slips = [slip("a", Fate::Done), slip("b", Fate::Not), slip("c", Fate::Unknown)];
        assert!(check(&books(&[("a", 5)]), &slips).is_clean());
        assert!(check(&books(&[("a", 5), ("c", 5)]), &slips).is_clean());
        assert_eq!(check(&books(&[]), &slips).missing, 1);
        assert_eq!(check(&books(&[("a", 10)]), &slips).not_once, 1);
        assert_eq!(check(&books(&[("a", 5), ("b", 5)]), &slips).denied, 1);
        assert_eq!(check(&books(&[("a", 5), ("z", 5)]), &slips).unknown, 2);
    }

    #[test]
    fn a_balance_is_the_sum_of_its_entries() {
        let mut books = books(&[("a", 5)]);
        books.get_mut("bob").unwrap().0 = 6;
        assert_eq!(check(&books, &[slip("a", Fate::Done)]).unbalanced, 1);
    }
}

//! The items of a scenario: lists that are appended to, and accounts. What is asked of them, and what the answers say.
//!
//! Every list begins with a mark, so that one without elements is there. A few lists are in use at a time, so that transactions meet; one that
//! has grown long is replaced by the next, so that reads stay short.

use std::sync::atomic::{AtomicU32, Ordering};

use pares_isolation::history::{Element, ListName, MicroOperation};

/// Lists in use at a time.
const SLOTS: u32 = 6;
/// How often one is appended to before the next takes its place.
const APPENDS: u32 = 40;
/// How many take a slot one after the other; the last of them stays.
const GENERATIONS: u32 = 80;
/// All lists of a scenario.
pub(super) const LISTS: u32 = SLOTS * GENERATIONS;
/// What a list begins with.
const MARK: &str = "-";

/// Accounts of a scenario.
pub(super) const ACCOUNTS: u64 = 8;
/// What each begins with.
const FUNDS: i128 = 100;
/// What they have together, for ever.
pub(super) const MONEY: i128 = FUNDS * ACCOUNTS as i128;

/// The lists and accounts of a scenario.
#[derive(Debug, Default)]
pub(super) struct Lists {
    scenario: usize,
    appends: [AtomicU32; SLOTS as usize],
}

impl Lists {
    pub(super) fn new(scenario: usize) -> Self {
        Self { scenario, ..Self::default() }
    }

    /// The request that makes them all.
    pub(super) fn founding(&self) -> String {
        let lists = (0..LISTS).map(|list| format!("put {} {MARK}", self.list(ListName(list))));
        let accounts = (0..ACCOUNTS).map(|account| format!("put {} {FUNDS}", self.account(account)));
        format!("together {}", lists.chain(accounts).collect::<Vec<_>>().join("; "))
    }

    /// One of those in use, any number saying which.
    pub(super) fn in_use(&self, any: u64) -> ListName {
        let slot = (any % u64::from(SLOTS)) as u32;
        let generation = self.appends[slot as usize].load(Ordering::Relaxed) / APPENDS;
        ListName(slot + SLOTS * generation.min(GENERATIONS - 1))
    }

    pub(super) fn note_append(&self, list: ListName) {
        self.appends[(list.0 % SLOTS) as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn list(&self, list: ListName) -> String {
        format!("list/{}/{}", self.scenario, list.0)
    }

    fn account(&self, account: u64) -> String {
        format!("bank/{}/{account}", self.scenario)
    }

    /// The request for a transaction.
    pub(super) fn request(&self, parts: &[MicroOperation]) -> String {
        let part = |part: &MicroOperation| match part {
            MicroOperation::Append(list, element) => format!("append {} {}", self.list(*list), element.0),
            MicroOperation::Read(list, _) => format!("get {}", self.list(*list)),
        };
        format!("together {}", parts.iter().map(part).collect::<Vec<_>>().join("; "))
    }

    /// A read of all accounts at the stable version.
    pub(super) fn balances_request(&self) -> String {
        format!("list bank/{}/ - 1000", self.scenario)
    }

    /// A read of all accounts and a transfer, in one transaction.
    pub(super) fn transfer_request(&self, from: u64, to: u64, amount: u64) -> String {
        let reads = (0..ACCOUNTS).map(|account| format!("get {}; ", self.account(account)));
        let [from, to] = [from, to].map(|account| self.account(account));
        format!("together {}transfer {from} {to} {amount}", reads.collect::<String>())
    }
}

/// What was read, put into the transaction that asked; nothing if this is no answer to it.
pub(super) fn answered(parts: &[MicroOperation], reply: &str) -> Option<Vec<MicroOperation>> {
    let mut lines = reply.lines();
    let part = |part: &MicroOperation| {
        let line = lines.next()?;
        match part {
            MicroOperation::Append(..) => Some(part.clone()),
            MicroOperation::Read(list, _) => Some(MicroOperation::Read(*list, Some(elements(line)?))),
        }
    };
    let parts = parts.iter().map(part).collect::<Option<Vec<_>>>()?;
    lines.next().is_none().then_some(parts)
}

fn elements(line: &str) -> Option<Vec<Element>> {
    let mut words = line.split(' ');
    words.next().filter(|mark| *mark == MARK)?;
    words.map(|element| element.parse().ok().map(Element)).collect()
}

/// The balances in a reply; a transfer's own line behind them is none.
pub(super) fn balances(reply: &str) -> Vec<i128> {
    let balance = |line: &str| line.rsplit(' ').next().and_then(|word| word.parse().ok());
    reply.lines().filter_map(balance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_given() {
        let list = ListName(3);
        let asked = [MicroOperation::Append(list, Element(7)), MicroOperation::Read(list, None)];
        assert_eq!(Lists::new(2).request(&asked), "together append list/2/3 7; get list/2/3");
        let read = answered(&asked, "7 appended to list/2/3\n- 4 7\n").unwrap();
        assert_eq!(read[1], MicroOperation::Read(list, Some(vec![Element(4), Element(7)])));
        for wrong in ["", "x\n", "x\n- 4 x\n", "x\n4 7\n", "x\n- 4\nmore\n"] {
            assert_eq!(answered(&asked, wrong), None, "{wrong}");
        }
        assert_eq!(balances("bank/2/0 90\nbank/2/1 -5\n"), [90, -5]);
        assert_eq!(balances("90\n110\nbank/2/0 has 80 left\n"), [90, 110]);
    }

    #[test]
    fn a_list_that_is_long_is_replaced() {
        let lists = Lists::new(0);
        let first = lists.in_use(1);
        (0..APPENDS).for_each(|_| lists.note_append(first));
        assert_eq!(lists.in_use(1), ListName(first.0 + SLOTS));
        (0..APPENDS * GENERATIONS).for_each(|_| lists.note_append(first));
        assert!(lists.in_use(1).0 < LISTS);
    }
}

//! A transaction that has been executed and asks to commit (the paper's *committing* state, section 2.1).

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::entry::held_bytes;
use crate::ids::{TransactionId, Version};
use crate::item::{Change, KEY_BYTES_MAX, Key, KeyRange, VALUE_BYTES_MAX, Write};

/// Most a transaction's keys and values may have together, bytes: it must fit into one record of a log.
pub const TRANSACTION_BYTES_MAX: usize = 768 << 10;

/// What a key that was read costs in memory beside its bytes, about.
const NAMED_HELD_BYTES: usize = 48;

/// What counts as a conflict; one choice for all that sites execute themselves (paper section 3.1, *Certification*). Certification itself looks at whatever a
/// transaction says, so who executes transactions elsewhere may choose for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Two concurrent transactions may not write the same item: the first to be certified wins (1-copy snapshot isolation).
    #[default]
    Snapshot,
    /// Nor may one have read, by name or by range, what a concurrent one wrote (1-copy serialisability).
    Serialisable,
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Snapshot => "snapshot",
            Self::Serialisable => "serialisable",
        })
    }
}

impl FromStr for Isolation {
    type Err = UnknownIsolation;

    fn from_str(text: &str) -> Result<Self, UnknownIsolation> {
        let known = [Self::Snapshot, Self::Serialisable].into_iter().find(|known| known.to_string() == text);
        known.ok_or_else(|| UnknownIsolation(text.to_owned()))
    }
}

/// A word that names no [`Isolation`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{0}` is neither `snapshot` nor `serialisable`")]
pub struct UnknownIsolation(String);

impl Isolation {
    /// The transaction, saying of what it saw only what is to be certified.
    #[must_use]
    pub fn certified(self, transaction: Transaction) -> Transaction {
        match self {
            Self::Snapshot => Transaction { reads: Vec::new(), ranges: Vec::new(), ..transaction },
            Self::Serialisable => transaction,
        }
    }
}

/// What a transaction saw and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Transaction {
    /// Its name.
    pub id: TransactionId,
    /// How often it was executed before: an answer is about one attempt.
    pub attempt: u32,
    /// The version it read.
    pub snapshot: Version,
    /// Items read by name, which nobody may have changed since; left empty under [`Isolation::Snapshot`].
    pub reads: Vec<Key>,
    /// Ranges read; as `reads`.
    pub ranges: Vec<KeyRange>,
    /// Items changed, each once.
    pub writes: Vec<Write>,
}

/// Why a transaction cannot be submitted at all. Nothing has changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Malformed {
    /// A key of no bytes, or of too many.
    #[error("a key has {0} bytes: 1 to {KEY_BYTES_MAX} are allowed")]
    Key(usize),
    /// A value of too many bytes.
    #[error("a value has {0} bytes: at most {VALUE_BYTES_MAX} are allowed")]
    Value(usize),
    /// Too much in all.
    #[error("the transaction has {0} bytes: at most {TRANSACTION_BYTES_MAX} are allowed; split it")]
    Transaction(usize),
    /// The same item twice.
    #[error("the transaction changes an item twice: merge the changes")]
    Twice,
}

impl Transaction {
    /// Bytes that it takes in memory, about.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let ranges = self.ranges.iter().flat_map(|range| [Some(&range.from), range.to.as_ref()]).flatten();
        let looked_at = self.reads.iter().chain(ranges).map(|key| NAMED_HELD_BYTES + key.as_bytes().len());
        held_bytes(&self.writes) + looked_at.sum::<usize>()
    }

    /// Checks what later stages take for granted.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), Malformed> {
        let named = self.writes.iter().map(|write| &write.key).chain(&self.reads);
        let bounds = self.ranges.iter().map(|range| &range.from);
        let mut bytes = 0;
        for key in named.chain(bounds) {
            let length = key.as_bytes().len();
            // A range may begin before every key.
            if length > KEY_BYTES_MAX {
                return Err(Malformed::Key(length));
            }
            bytes += length;
        }
        for write in &self.writes {
            if write.key.as_bytes().is_empty() {
                return Err(Malformed::Key(0));
            }
            if let Change::Put(value) = &write.change {
                let length = value.as_bytes().len();
                if length > VALUE_BYTES_MAX {
                    return Err(Malformed::Value(length));
                }
                bytes += length;
            }
        }
        if bytes > TRANSACTION_BYTES_MAX {
            return Err(Malformed::Transaction(bytes));
        }
        self.each_item_once()
    }

    fn each_item_once(&self) -> Result<(), Malformed> {
        let mut keys: Vec<&Key> = self.writes.iter().map(|write| &write.key).collect();
        keys.sort_unstable();
        match keys.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err(Malformed::Twice),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writing(writes: Vec<Write>) -> Result<(), Malformed> {
        Transaction { writes, ..Transaction::default() }.check()
    }

    #[test]
    fn an_item_is_changed_once() {
        assert_eq!(writing(vec![Write::add("a", 1), Write::delete("b")]), Ok(()));
        assert_eq!(writing(vec![Write::add("a", 1), Write::delete("a")]), Err(Malformed::Twice));
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(writing(vec![Write::delete("")]), Err(Malformed::Key(0)));
        assert_eq!(writing(vec![Write::delete("k".repeat(1025).as_str())]), Err(Malformed::Key(1025)));
        let long = "v".repeat(VALUE_BYTES_MAX);
        assert_eq!(
            writing(vec![Write::put("a", format!("{long}v").as_str())]),
            Err(Malformed::Value(VALUE_BYTES_MAX + 1))
        );
        let many = (0..5).map(|i| Write::put(format!("k{i}").as_str(), long.as_str())).collect();
        assert!(matches!(writing(many), Err(Malformed::Transaction(_))));
    }
}

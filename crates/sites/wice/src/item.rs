//! Items and what transactions do to them.
//!
//! The paper's *page model* (section 2): named items with a value, of any granularity. An item is a key, a string of bytes;
//! keys are ordered bytewise, so an application that begins its keys with a table's name has tables and ranges.

use core::fmt;

use crate::bytes::Bytes;

/// Longest key, bytes.
pub const KEY_BYTES_MAX: usize = 1 << 10;
/// Longest value, bytes.
pub const VALUE_BYTES_MAX: usize = 512 << 10;

/// An item's name: 1 to [`KEY_BYTES_MAX`] bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

impl Key {
    /// The item with these bytes as its name. Lengths are checked where a transaction is submitted.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self(bytes.as_ref().into())
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::new(name.as_bytes())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_bytes().escape_ascii())
    }
}

/// An item's value: bytes, up to [`VALUE_BYTES_MAX`] of them, or a counter. Cheap to clone.
///
/// Its form says which, so that bytes that a client put are never taken for a counter, whatever they are:
///
/// ```text
///   kind u8       content
///   0 bytes       as they are
///   1 counter     total i128, little-endian
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Bytes);

const BYTES: u8 = 0;
const COUNTER: u8 = 1;

impl Value {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self::of(BYTES, bytes.as_ref())
    }

    /// The value of an item that can be added to.
    #[must_use]
    pub fn counter(total: i128) -> Self {
        Self::of(COUNTER, &total.to_le_bytes())
    }

    fn of(kind: u8, content: &[u8]) -> Self {
        Self(Bytes::joined(&[kind], content))
    }

    /// The bytes that were put; of a counter its total, as it is kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.encoded()[1..]
    }

    /// Its total, if it is a counter.
    #[must_use]
    pub fn as_counter(&self) -> Option<i128> {
        match self.encoded().split_first() {
            Some((&COUNTER, total)) => total.try_into().ok().map(i128::from_le_bytes),
            _ => None,
        }
    }

    /// Its form, as it is sent and kept.
    #[must_use]
    pub fn encoded(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Reads what [`Value::encoded`] gave. None if it is of no kind that is known.
    #[must_use]
    pub fn from_encoded(form: &[u8]) -> Option<Self> {
        match form.split_first()? {
            (&BYTES, _) => {}
            (&COUNTER, total) if total.len() == size_of::<i128>() => {}
            _ => return None,
        }
        Some(Self(form.into()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_counter() {
            Some(total) => write!(f, "{total}"),
            None => write!(f, "{}", self.as_bytes().escape_ascii()),
        }
    }
}

/// What a write costs in memory beside its key and value, about: its places in the maps and queues that hold it.
const WRITE_HELD_BYTES: usize = 256;

/// What a transaction does to an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The item has this value now, whatever it had.
    Put(Value),
    /// The item is no more.
    Delete,
    /// This much is added to a counter, which is 0 where it is absent. Additions commute, so two that add do not conflict, as two
    /// that put do; what the sum was before neither knows.
    Add(i64),
}

/// One item changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// Which item.
    pub key: Key,
    /// How.
    pub change: Change,
}

impl Write {
    /// `key` has `value` now.
    #[must_use]
    pub fn put(key: impl Into<Key>, value: impl Into<Value>) -> Self {
        Self { key: key.into(), change: Change::Put(value.into()) }
    }

    /// `key` is no more.
    #[must_use]
    pub fn delete(key: impl Into<Key>) -> Self {
        Self { key: key.into(), change: Change::Delete }
    }

    /// `delta` is added to the counter `key`.
    #[must_use]
    pub fn add(key: impl Into<Key>, delta: i64) -> Self {
        Self { key: key.into(), change: Change::Add(delta) }
    }
}

impl Write {
    /// Bytes that it takes in memory while its version is kept there, about: what is bounded in bytes is counted so, the same at all sites.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let value = if let Change::Put(value) = &self.change { value.encoded().len() } else { 0 };
        WRITE_HELD_BYTES + self.key.as_bytes().len() + value
    }
}

/// All keys from `from` (in) to `to` (out); without `to`, all keys from `from` on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyRange {
    /// First key in the range.
    pub from: Key,
    /// First key after the range.
    pub to: Option<Key>,
}

impl KeyRange {
    /// All keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(prefix: &[u8]) -> Self {
        let mut end = prefix.to_vec();
        // The smallest key above all that begin so: the last byte that can grow, grown.
        while end.pop_if(|byte| *byte == u8::MAX).is_some() {}
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        Self { from: Key::new(prefix), to: (!end.is_empty()).then(|| Key::new(end)) }
    }

    /// Whether `key` lies in it.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        self.from <= *key && self.to.as_ref().is_none_or(|to| key < to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_holds_what_begins_with_it_and_nothing_else() {
        let range = KeyRange::prefix(b"a\xff");
        for (key, inside) in
            [(&b"a\xff"[..], true), (b"a\xff\xff\xff", true), (b"b", false), (b"a\xfe", false)]
        {
            assert_eq!(range.contains(&Key::new(key)), inside, "{key:?}");
        }
        assert_eq!(KeyRange::prefix(b"\xff").to, None);
        assert!(KeyRange::prefix(b"").contains(&Key::from("anything")));
    }

    #[test]
    fn a_counter_keeps_its_total() {
        for total in [0, -1, i128::from(i64::MAX) * 3] {
            assert_eq!(Value::counter(total).as_counter(), Some(total));
        }
        assert_eq!(Value::from("12").as_counter(), None);
    }

    #[test]
    fn sixteen_bytes_are_no_counter_values_keep_type() {
        let sixteen = Value::from("sixteen bytes...");
        assert_eq!((sixteen.as_bytes().len(), sixteen.as_counter()), (16, None));
        for value in [sixteen, Value::counter(-7), Value::new([])] {
            assert_eq!(Value::from_encoded(value.encoded()), Some(value));
        }
        for form in [&[][..], &[COUNTER, 7], &[2, 0]] {
            assert_eq!(Value::from_encoded(form), None, "{form:?}");
        }
    }
}

//! State as words, for checkpoints and digests.

use crate::{
    Band, InstrumentId, Key, Limits, MemberId, Phase, Price, Proposal, Quantity, Rights, Symbol, TieBreak,
    Timestamp,
};

/// A part of a shard's state that is written word by word.
pub trait Words: Sized {
    /// Hands it out.
    fn write(&self, put: &mut impl FnMut(u64));

    /// What [`Words::write`] handed out; `None` if `next` ends before, or nothing is like that.
    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self>;
}

/// Implements [`Words`] for a struct: by these of its fields, which are all, in this order.
#[macro_export]
macro_rules! words {
    ($name:ident { $($field:ident)* }) => {
        impl $crate::Words for $name {
            fn write(&self, put: &mut impl FnMut(u64)) {
                $($crate::Words::write(&self.$field, put);)*
            }

            fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
                Some(Self { $($field: $crate::Words::read(next)?,)* })
            }
        }
    };
}

/// What is one word.
macro_rules! word {
    ($($type:ty: |$value:ident| $word:expr, |$read:ident| $from:expr;)*) => {$(
        impl Words for $type {
            fn write(&self, put: &mut impl FnMut(u64)) {
                let $value = *self;
                put($word);
            }

            fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
                let $read = next()?;
                $from
            }
        }
    )*};
}

word! {
    u64: |value| value, |word| Some(word);
    u32: |value| value.into(), |word| word.try_into().ok();
    u16: |value| value.into(), |word| word.try_into().ok();
    u8: |value| value.into(), |word| word.try_into().ok();
    bool: |value| value.into(), |word| (word <= 1).then_some(word == 1);
    Price: |price| price.0.cast_unsigned(), |word| Some(Self(word.cast_signed()));
    Quantity: |quantity| quantity.0, |word| Some(Self(word));
    Timestamp: |time| time.0, |word| Some(Self(word));
    InstrumentId: |id| id.0.into(), |word| word.try_into().ok().map(Self);
    MemberId: |id| id.0.into(), |word| word.try_into().ok().map(Self);
    Phase: |phase| phase as u64, |word| word.try_into().ok().and_then(Self::of);
    TieBreak: |one| one as u64,
        |word| [Self::Latest, Self::NearestLimit].into_iter().find(|one| *one as u64 == word);
    Rights: |rights| rights.bits().into(), |word| word.try_into().ok().and_then(Self::from_bits);
}

words! { Band { width least } }
words! { Limits { quantity_max value_max collar orders_max rate_max burst_max } }
words! { Proposal { kind instrument operand detail } }

/// The lower half first.
impl Words for u128 {
    fn write(&self, put: &mut impl FnMut(u64)) {
        put(*self as u64);
        put((*self >> 64) as u64);
    }

    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        Some(Self::from(next()?) | Self::from(next()?) << 64)
    }
}

impl Words for Symbol {
    fn write(&self, put: &mut impl FnMut(u64)) {
        u128::from_le_bytes(self.to_bytes()).write(put);
    }

    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        Self::from_bytes(u128::read(next)?.to_le_bytes()).ok()
    }
}

/// Its kind, and its bytes as four words.
impl Words for Key {
    fn write(&self, put: &mut impl FnMut(u64)) {
        let (kind, bytes) = match self {
            Self::Ed25519(bytes) => (1, bytes),
            Self::Shared(bytes) => (2, bytes),
        };
        put(kind);
        bytes.as_chunks::<8>().0.iter().for_each(|word| put(u64::from_le_bytes(*word)));
    }

    fn read(next: &mut impl FnMut() -> Option<u64>) -> Option<Self> {
        let kind = next()?;
        let mut bytes = [0; 32];
        for word in bytes.as_chunks_mut::<8>().0 {
            *word = next()?.to_le_bytes();
        }
        match kind {
            1 => Some(Self::Ed25519(bytes)),
            2 => Some(Self::Shared(bytes)),
            _ => None,
        }
    }
}

/// Hands out how many there are, and each.
pub fn write_all<'a, T: Words + 'a>(all: impl ExactSizeIterator<Item = &'a T>, put: &mut impl FnMut(u64)) {
    put(all.len() as u64);
    all.for_each(|one| one.write(put));
}

/// What [`write_all`] handed out; `None` also for more than `max`.
#[must_use]
pub fn read_all<T: Words>(max: usize, next: &mut impl FnMut() -> Option<u64>) -> Option<Vec<T>> {
    let count = usize::try_from(next()?).ok().filter(|&count| count <= max)?;
    (0..count).map(|_| T::read(next)).collect()
}

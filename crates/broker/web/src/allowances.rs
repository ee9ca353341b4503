//! How much a caller may ask: a bucket of tokens for each name or address, filled as time passes.
//!
//! A bucket that is full again says nothing that a new one does not, so those are dropped when there are many: the map stays small whatever names are made up.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::settings::Allowance;

/// More buckets than this are looked through for full ones.
const BUCKETS_MAX: usize = 10_000;

#[derive(Clone, Copy)]
struct Bucket {
    tokens: f64,
    at_ms: u64,
}

/// Buckets of one kind.
pub(crate) struct Allowances {
    of_each: Allowance,
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl Allowances {
    pub(crate) fn new(of_each: Allowance) -> Self {
        Self { of_each, buckets: Mutex::new(BTreeMap::new()) }
    }

    /// Takes one of `who`.
    ///
    /// # Errors
    /// If there is none: in so many seconds there is.
    pub(crate) fn take(&self, who: &str, now_ms: u64) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(who) {
            buckets.retain(|_, bucket| self.filled(*bucket, now_ms) < self.of_each.burst);
            if buckets.len() >= BUCKETS_MAX {
                return Err(1); // so many at a time are no users
            }
        }
        let full = Bucket { tokens: self.of_each.burst, at_ms: now_ms };
        let bucket = buckets.entry(who.to_owned()).or_insert(full);
        let tokens = self.filled(*bucket, now_ms);
        if tokens < 1.0 {
            return Err(((1.0 - tokens) / self.of_each.per_second).ceil() as u64);
        }
        *bucket = Bucket { tokens: tokens - 1.0, at_ms: now_ms.max(bucket.at_ms) };
        Ok(())
    }

    fn filled(&self, bucket: Bucket, now_ms: u64) -> f64 {
        let seconds = now_ms.saturating_sub(bucket.at_ms) as f64 / 1_000.0;
        (bucket.tokens + seconds * self.of_each.per_second).min(self.of_each.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_a_rate_for_each_name_alone() {
        let allowances = Allowances::new(Allowance { burst: 2.0, per_second: 0.5 });
        let take = |who: &str, now_ms| allowances.take(who, now_ms);
        assert_eq!([take("a", 0), take("a", 0), take("a", 0)], [Ok(()), Ok(()), Err(2)]);
        assert_eq!(take("b", 0), Ok(()));
        assert_eq!([take("a", 1_999), take("a", 2_000), take("a", 2_000)], [Err(1), Ok(()), Err(2)]);
        assert_eq!(take("a", 1_000), Err(2), "a clock that steps back fills nothing");
    }

    #[test]
    fn made_up_names_do_not_fill_the_memory() {
        let allowances = Allowances::new(Allowance { burst: 1.0, per_second: 1.0 });
        for name in 0..BUCKETS_MAX {
            assert_eq!(allowances.take(&name.to_string(), 0), Ok(()));
        }
        assert_eq!(allowances.take("more", 0), Err(1));
        assert_eq!(allowances.take("more", 1_000), Ok(()));
        assert_eq!(allowances.buckets.lock().unwrap().len(), 1);
    }
}

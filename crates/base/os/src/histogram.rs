//! A latency distribution in shared memory, recorded inside the path it measures.
//!
//! Paper 5 wraps the journal's write call with a timer and publishes the maximum of every second. A maximum says
//! that something was slow, not how often; keeping samples allocates; and a lock or a message to a collector adds to what
//! is measured. Here recording is one load and one store of a bucket, and any process may take a snapshot meanwhile.
//!
//! Buckets are log-linear (the layout of HDR histograms): values below 64 have a bucket each; above, each power of two
//! is split into 64 buckets, so that a bucket is never wider than 1/64 of what it holds (1.6 %).
//!
//! ```text
//!   value ns   0 .. 63   64 .. 127   128 .. 255   256 .. 511    ...   2^36 .. 2^37 - 1 (68 .. 137 s)
//!   width      1         1           2            4             ...   2^30
//!   buckets    0 .. 63   64 .. 127   128 .. 191   192 .. 255    ...   1984 .. 2047
//!
//!   memory     count u64 | max u64 | unused 48 | bucket 0 u64 | ... | bucket 2047 u64
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hdrhistogram::Histogram;

use crate::mapping::Mapping;

const BUCKETS: usize = 2048;
const HEADER: usize = 64;
const COUNT: usize = 0;
const MAX: usize = 8;

/// Bytes that a histogram takes in a mapping; it starts at a multiple of 8.
pub const HISTOGRAM_BYTES: usize = HEADER + BUCKETS * 8;

/// Largest value told apart: 2^37 - 1 ns, about 137 s. Larger ones count as this.
pub const VALUE_MAX: u64 = (1 << 37) - 1;

/// The bucket a value belongs to: 0 to 2047, growing with the value.
#[inline]
pub const fn bucket_of(value: u64) -> usize {
    let value = if value > VALUE_MAX { VALUE_MAX } else { value };
    if value < 64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - 6;
    64 * shift as usize + (value >> shift) as usize
}

/// The values of a bucket: its lowest, and how many there are.
pub const fn bucket_range(bucket: usize) -> (u64, u64) {
    if bucket < 128 {
        return (bucket as u64, 1);
    }
    let shift = bucket / 64 - 1;
    (((bucket % 64 + 64) as u64) << shift, 1 << shift)
}

/// What is reported of a distribution; none where nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// How many values there are.
    pub count: u64,
    /// Half of them are not above this, ns.
    pub p50: Option<u64>,
    /// Of a hundred, 99 are not above this, ns.
    pub p99: Option<u64>,
    /// None is above this, ns.
    pub max: Option<u64>,
}

impl Quantiles {
    /// Those of a snapshot.
    #[must_use]
    pub fn of(times: &Histogram<u64>) -> Self {
        let at = |quantile| (!times.is_empty()).then(|| times.value_at_quantile(quantile));
        Self { count: times.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// The recording end: one thread at a time in the whole system.
#[derive(Debug)]
pub struct HistogramWriter {
    map: Arc<Mapping>,
    base: usize,
}

impl HistogramWriter {
    /// A histogram at byte `base` of a mapping; continues what is recorded there (zeros are an empty histogram).
    ///
    /// # Panics
    /// If it does not fit there, or the mapping is read-only.
    pub fn new(map: Arc<Mapping>, base: usize) -> HistogramWriter {
        assert!(base.is_multiple_of(8) && base + HISTOGRAM_BYTES <= map.len() && map.is_writable());
        HistogramWriter { map, base }
    }

    /// Records one value, in nanoseconds.
    #[inline]
    pub fn record(&self, ns: u64) {
        self.add(HEADER + 8 * bucket_of(ns));
        self.add(COUNT);
        let max = self.map.atomic_u64(self.base + MAX);
        if ns > max.load(Ordering::Relaxed) {
            max.store(ns, Ordering::Relaxed);
        }
    }

    /// Forgets everything recorded. A snapshot taken meanwhile may hold part of it.
    pub fn reset(&self) {
        for word in (0..HISTOGRAM_BYTES).step_by(8) {
            self.map.atomic_u64(self.base + word).store(0, Ordering::Relaxed);
        }
    }

    // A load and a store instead of an atomic addition: there is one writer, and a locked instruction would cost
    // more than everything else here.
    #[inline]
    fn add(&self, offset: usize) {
        let word = self.map.atomic_u64(self.base + offset);
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// The reading end: any number, while the writer records.
#[derive(Debug)]
pub struct HistogramReader {
    map: Arc<Mapping>,
    base: usize,
}

impl HistogramReader {
    /// The histogram at byte `base` of a mapping, which may be read-only.
    ///
    /// # Panics
    /// If none fits there.
    pub fn new(map: Arc<Mapping>, base: usize) -> HistogramReader {
        assert!(base.is_multiple_of(8) && base + HISTOGRAM_BYTES <= map.len());
        HistogramReader { map, base }
    }

    /// Values recorded so far.
    pub fn count(&self) -> u64 {
        self.map.load_u64(self.base + COUNT, Ordering::Relaxed)
    }

    /// The largest value recorded, exact, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.map.load_u64(self.base + MAX, Ordering::Relaxed)
    }

    /// A copy to ask for percentiles: nanoseconds, each value within 0.8 % of what was recorded. A value recorded
    /// while the copy is made may or may not be in it.
    pub fn snapshot(&self) -> Histogram<u64> {
        let mut copy = Histogram::new_with_bounds(1, VALUE_MAX, 3).expect("constant bounds are legal");
        for bucket in 0..BUCKETS {
            let count = self.map.load_u64(self.base + HEADER + 8 * bucket, Ordering::Relaxed);
            let (lowest, width) = bucket_range(bucket);
            copy.saturating_record_n(lowest + width / 2, count);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_every_value_once_in_order() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (lowest, width) = bucket_range(bucket);
            assert_eq!(lowest, next);
            assert_eq!((bucket_of(lowest), bucket_of(lowest + width - 1)), (bucket, bucket));
            assert!(width == 1 || width * 64 <= lowest, "at most 1/64 wide");
            next = lowest + width;
        }
        assert_eq!(next, VALUE_MAX + 1);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_of_a_snapshot_are_within_three_percent() {
        let dir = tempfile::tempdir().unwrap();
        let map = Arc::new(Mapping::create(&dir.path().join("h"), 64 + HISTOGRAM_BYTES).unwrap());
        let writer = HistogramWriter::new(map.clone(), 64);
        (1..=100_000).for_each(|ns| writer.record(ns));
        let reader = HistogramReader::new(map, 64);
        let snapshot = reader.snapshot();
        assert_eq!((reader.count(), reader.max_ns(), snapshot.len()), (100_000, 100_000, 100_000));
        for quantile in [0.01, 0.5, 0.99, 0.999] {
            let error = snapshot.value_at_quantile(quantile) as f64 / (quantile * 1e5) - 1.0;
            assert!(error.abs() < 0.03, "{quantile}: {error}");
        }
    }

    #[test]
    fn a_reopened_histogram_continues_and_a_reset_one_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let map = Arc::new(Mapping::create(&dir.path().join("h"), HISTOGRAM_BYTES).unwrap());
        HistogramWriter::new(map.clone(), 0).record(5);
        HistogramWriter::new(map.clone(), 0).record(6);
        let reader = HistogramReader::new(map.clone(), 0);
        assert_eq!((reader.count(), reader.max_ns()), (2, 6));
        HistogramWriter::new(map, 0).reset();
        assert_eq!((reader.count(), reader.snapshot().len()), (0, 0));
    }
}

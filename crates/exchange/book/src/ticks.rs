//! Two small tables of an instrument: ticks by price, and phases by time of day.
//!
//! Both lie inside the instrument, without a heap, so that an instrument stays a plain value.

use pares_types::{DAY_NS, Phase, Price, Timestamp};

/// From which price on which tick holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TickRow {
    /// The first price of the row; a multiple of its tick.
    pub from: Price,
    /// The smallest price step; above zero.
    pub tick: Price,
}

/// The smallest price steps, by price: at most [`TickTable::ROWS_MAX`] rows, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickTable {
    rows: [TickRow; Self::ROWS_MAX],
    len: u8,
}

impl TickTable {
    /// The most rows a table has.
    pub const ROWS_MAX: usize = 8;

    /// One tick at all prices.
    #[must_use]
    pub const fn flat(tick: Price) -> Self {
        let mut rows = [TickRow { from: Price(0), tick: Price(0) }; Self::ROWS_MAX];
        rows[0] = TickRow { from: Self::lowest(tick), tick };
        Self { rows, len: 1 }
    }

    /// Where a row begins that holds from the lowest price on: the lowest multiple of its tick.
    const fn lowest(tick: Price) -> Price {
        Price(if tick.0 > 0 { i64::MIN / tick.0 * tick.0 } else { 0 })
    }

    /// The rows, lowest price first.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[TickRow] {
        &self.rows[..usize::from(self.len)]
    }

    /// The table with a row added, replaced, or with a zero tick removed; `None` if no table can be like that.
    /// The lowest price there is, `i64::MIN`, stands for the beginning of the first row.
    #[must_use]
    pub fn with_row(&self, from: Price, tick: Price) -> Option<Self> {
        let first = from.0 == i64::MIN;
        let from = if first { Self::lowest(tick) } else { from };
        let kept = self.rows().iter().skip(usize::from(first)).filter(|row| row.from != from);
        let mut rows: Vec<TickRow> = kept.copied().collect();
        if tick.0 != 0 {
            rows.push(TickRow { from, tick });
            rows.sort_unstable_by_key(|row| row.from);
        } else if rows.len() == self.rows().len() {
            return None;
        }
        Self::from_rows(&rows)
    }

    /// The table of these rows; `None` if no table can be like that.
    #[must_use]
    pub fn from_rows(rows: &[TickRow]) -> Option<Self> {
        let mut table =
            Self { rows: [TickRow::default(); Self::ROWS_MAX], len: u8::try_from(rows.len()).ok()? };
        table.rows.get_mut(..rows.len())?.copy_from_slice(rows);
        table.is_legal().then_some(table)
    }

    /// Whether it has rows, all ticks are above zero, and rows ascend and begin at multiples of their tick.
    pub(crate) fn is_legal(&self) -> bool {
        let rows = self.rows();
        let legal = |row: &TickRow| row.tick.0 > 0 && row.from.0 % row.tick.0 == 0;
        !rows.is_empty() && rows.iter().all(legal) && rows.windows(2).all(|two| two[0].from < two[1].from)
    }

    /// The tick that holds at a price; the lowest row's below the table.
    #[must_use]
    #[inline]
    pub fn tick_at(&self, price: Price) -> Price {
        if self.len == 1 {
            return self.rows[0].tick;
        }
        let row = self.rows().iter().rev().find(|row| row.from <= price);
        row.unwrap_or(&self.rows[0]).tick
    }

    /// Whether a price is a multiple of its tick.
    #[must_use]
    #[inline]
    pub fn on_tick(&self, price: Price) -> bool {
        price.0 % self.tick_at(price).0 == 0
    }

    /// The highest price on the tick that is not above `price`.
    #[must_use]
    pub fn round_down(&self, price: Price) -> Price {
        Price(price.0 - price.0.rem_euclid(self.tick_at(price).0))
    }

    /// The lowest price on the tick that is not below `price`.
    #[must_use]
    pub fn round_up(&self, price: Price) -> Price {
        let tick = self.tick_at(price).0;
        // A multiple of this row's tick beyond the next row is that row's beginning at the latest.
        let up = Price(price.0 + (tick - price.0.rem_euclid(tick)) % tick);
        let next = self.rows().iter().find(|row| row.from > price).map_or(up, |row| row.from);
        up.min(next.max(price))
    }

    /// The largest step that divides every legal price.
    #[must_use]
    pub fn grid(&self) -> Price {
        let divisor = |a: i64, b: i64| {
            let (mut a, mut b) = (a, b);
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        Price(self.rows().iter().map(|row| row.tick.0).fold(0, divisor))
    }
}

/// At a time of day the instrument enters a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimetableRow {
    /// Nanoseconds since midnight UTC, below a day.
    pub at_ns: u64,
    /// The phase.
    pub phase: Phase,
}

/// An instrument's trading day: at most [`Timetable::ROWS_MAX`] rows in ascending order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timetable {
    rows: [TimetableRow; Self::ROWS_MAX],
    len: u8,
}

impl Timetable {
    /// The most rows a timetable has.
    pub const ROWS_MAX: usize = 16;
    /// No rows.
    pub const EMPTY: Self =
        Self { rows: [TimetableRow { at_ns: 0, phase: Phase::Closed }; Self::ROWS_MAX], len: 0 };

    /// The rows, earliest first.
    #[must_use]
    #[inline]
    pub fn rows(&self) -> &[TimetableRow] {
        &self.rows[..usize::from(self.len)]
    }

    /// The timetable with a row added or replaced, or without the row at that time; `None` if no timetable can
    /// be like that.
    #[must_use]
    pub fn with_row(&self, at_ns: u64, phase: Option<Phase>) -> Option<Self> {
        let mut rows: Vec<TimetableRow> =
            self.rows().iter().copied().filter(|row| row.at_ns != at_ns).collect();
        match phase {
            Some(phase) => rows.push(TimetableRow { at_ns, phase }),
            None if rows.len() == self.rows().len() => return None,
            None => {}
        }
        Self::from_rows(&rows)
    }

    /// The timetable of these rows, in any order; `None` if no timetable can be like that.
    #[must_use]
    pub fn from_rows(rows: &[TimetableRow]) -> Option<Self> {
        let legal = |row: &TimetableRow| {
            row.at_ns < DAY_NS && !matches!(row.phase, Phase::Halted | Phase::VolatilityCall)
        };
        let mut sorted = Self { len: u8::try_from(rows.len()).ok()?, ..Self::EMPTY };
        let used = sorted.rows.get_mut(..rows.len())?;
        used.copy_from_slice(rows);
        used.sort_unstable_by_key(|row| row.at_ns);
        let ascending = used.windows(2).all(|two| two[0].at_ns < two[1].at_ns);
        (ascending && rows.iter().all(legal)).then_some(sorted)
    }

    /// The first row due after `done`, and when that is.
    #[must_use]
    pub fn next_after(&self, done: Timestamp) -> Option<(Timestamp, Phase)> {
        let midnight = done.0 - done.0 % DAY_NS;
        let today = self.rows().iter().map(|row| (midnight.saturating_add(row.at_ns), row.phase));
        let tomorrow =
            self.rows().first().map(|row| (midnight.saturating_add(DAY_NS + row.at_ns), row.phase));
        let next = today.chain(tomorrow).find(|(at, _)| *at > done.0)?;
        Some((Timestamp(next.0), next.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_round_within_their_row_and_up_to_the_next() {
        let rows = [TickRow { from: Price(0), tick: Price(1) }, TickRow { from: Price(10), tick: Price(5) }];
        let table = TickTable::from_rows(&rows).unwrap();
        assert_eq!((table.round_down(Price(9)), table.round_up(Price(9))), (Price(9), Price(9)));
        assert_eq!((table.round_down(Price(13)), table.round_up(Price(13))), (Price(10), Price(15)));
        assert!(table.on_tick(Price(7)) && !table.on_tick(Price(12)));
        assert_eq!(table.grid(), Price(1));
    }

    #[test]
    fn negative_prices_round_down_to_the_lower_multiple() {
        let table = TickTable::flat(Price(10));
        assert_eq!((table.round_down(Price(-13)), table.round_up(Price(-13))), (Price(-20), Price(-10)));
    }

    #[test]
    fn rows_are_added_replaced_and_removed() {
        let table = TickTable::flat(Price(1)).with_row(Price(100), Price(5)).unwrap();
        assert_eq!(table.with_row(Price(100), Price(10)).unwrap().tick_at(Price(150)), Price(10));
        assert_eq!(table.with_row(Price(100), Price(0)), Some(TickTable::flat(Price(1))));
        assert_eq!(table.with_row(Price(7), Price(0)), None);
        assert_eq!(table.with_row(Price(7), Price(2)), None);
    }

    #[test]
    fn the_next_row_may_be_tomorrows() {
        let rows = [(10, Phase::OpeningCall), (20, Phase::Continuous)];
        let rows = rows.map(|(at_ns, phase)| TimetableRow { at_ns, phase });
        let timetable = Timetable::from_rows(&rows).unwrap();
        assert_eq!(timetable.next_after(Timestamp(10)), Some((Timestamp(20), Phase::Continuous)));
        assert_eq!(timetable.next_after(Timestamp(20)), Some((Timestamp(DAY_NS + 10), Phase::OpeningCall)));
    }
}

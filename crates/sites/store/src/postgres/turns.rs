//! The turn of a change of the schema.
//!
//! A change of the schema commits only if no transaction has written to any table since it was tried, and a trial takes longer than a client's pause between two writes. Beside
//! such a client, at any site, it would lose for ever. So one that has lost often announces its turn by an item. A site that has that item refuses transactions that write: they would
//! lose against the change that is about to come. The change's own version deletes the item; so does its site when it gives up. A site that ends
//! before that, or whose withdrawal is aborted, leaves it. So a turn has an end at each site, and a site that sees the end deletes the item.

use std::time::{Duration, Instant};

use pares_wice::Write;

use super::failed;
use super::schema::{Schema, SchemaChange};
use super::snapshot::{READ_MARK, mark_of};
use crate::error::StoreError;

/// The item of the one who has the turn.
pub(super) const TURN: &str = "sql/turn";

/// How many statements were carried out; whose turn it is.
pub(super) const NUMBER_AND_TURN: &str = "
    SELECT coalesce(max(number), 0), (SELECT value FROM pares_items WHERE key = convert_to($1, 'UTF8')) FROM pares_schema";

/// A turn lasts no longer, from when a site has seen it first.
const TURN_MAX: Duration = Duration::from_secs(10);

/// Whose turn it is, as a site finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// All may write.
    None,
    /// That of a change of the schema.
    Taken,
    /// It was; the item is to be deleted. Said again after [`TURN_MAX`], since that can fail.
    Expired,
}

/// The last turn that this site has seen.
#[derive(Default)]
pub(super) struct Turn(Option<Seen>);

struct Seen {
    item: Vec<u8>,
    until: Instant,
    /// When its end is said.
    ends: Instant,
}

impl Turn {
    /// Whose turn it is; `item` is the item's value now.
    pub(super) fn look(&mut self, item: Option<&[u8]>, now: Instant) -> Look {
        let Some(item) = item else {
            self.0 = None;
            return Look::None;
        };
        if self.0.as_ref().is_none_or(|seen| seen.item != item) {
            self.0 = Some(Seen { item: item.to_vec(), until: now + TURN_MAX, ends: now + TURN_MAX });
        }
        match &mut self.0 {
            Some(seen) if now < seen.until => Look::Taken,
            Some(seen) if now >= seen.ends => {
                seen.ends = now + TURN_MAX;
                Look::Expired
            }
            _ => Look::None,
        }
    }
}

impl Schema {
    /// What announces that a change of the schema has its turn, so that all sites let it go first. None if one has it: another announcement would make that one lose.
    ///
    /// # Errors
    /// What the server says.
    pub fn announcement(&self) -> Result<Option<SchemaChange>, StoreError> {
        let mut client = self.options.connect()?;
        let snapshot = mark_of(&client.query_one(READ_MARK, &[]).map_err(failed)?)?.version;
        let row = client.query_one(NUMBER_AND_TURN, &[&TURN]).map_err(failed)?;
        let mut known = self.known();
        if known.turn.look(row.get(1), Instant::now()) == Look::Taken {
            return Ok(None);
        }
        let name = snapshot.0.to_string();
        known.turn.look(Some(name.as_bytes()), Instant::now());
        Ok(Some(SchemaChange { snapshot, writes: vec![Write::put(TURN, name.as_str())] }))
    }

    /// What withdraws that.
    ///
    /// # Errors
    /// What the server says.
    pub fn withdrawal(&self) -> Result<SchemaChange, StoreError> {
        let row = self.options.connect()?.query_one(READ_MARK, &[]).map_err(failed)?;
        Ok(SchemaChange { snapshot: mark_of(&row)?.version, writes: vec![Write::delete(TURN)] })
    }

    /// Whether [`Schema::table`] has found an announcement that is over, so that it has to be withdrawn. Says so once.
    #[must_use]
    pub fn has_expired_turn(&self) -> bool {
        std::mem::take(&mut self.known().has_expired)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_ends_when_its_item_goes_or_time_is_up() {
        let (mut turn, began) = (Turn::default(), Instant::now());
        let late = began + TURN_MAX;
        for (item, now, expected) in [
            (None, began, Look::None),
            (Some("1"), began, Look::Taken),
            (Some("1"), began + TURN_MAX / 2, Look::Taken),
            (Some("1"), late, Look::Expired), // its site may have ended
            (Some("1"), late + TURN_MAX / 2, Look::None),
            (Some("1"), late + TURN_MAX, Look::Expired), // it could not be deleted
            (Some("2"), late + TURN_MAX, Look::Taken),
            (None, late + TURN_MAX, Look::None),
            (Some("2"), late + 2 * TURN_MAX, Look::Taken),
        ] {
            assert_eq!(turn.look(item.map(str::as_bytes), now), expected, "{item:?} after {:?}", now - began);
        }
    }
}

//! Rules over several items, which only serialisable sites keep: requests that decide by more than they change.
//!
//! Two withdrawals from two accounts that belong together each leave enough, and both together do not (*write skew*); two that are called to one ward each find a
//! place free there, and write rows that neither has seen (*phantoms*). Each request keeps the rules on what it reads, so a version that breaks one shows that a
//! request has not read what was so.
//!
//! | items | rule |
//! |---|---|
//! | `pair/P/0`, `pair/P/1`: text, whole numbers | together they are not below 0 |
//! | `ward/W/N`: who is on call, a table that is walked | 1 to 3 of them, once there was one |

use std::collections::BTreeMap;

use pares_site::{ApplicationError, View};
use pares_store::Work;
use pares_wice::{Key, KeyRange, Value, Write};

use super::bank::Execution;

const PAIRS: u64 = 3;
const WARDS: u64 = 2;
/// Who can be called to a ward.
const STAFF: u64 = 6;
const ON_CALL_MAX: usize = 3;

fn pair(pair: u64) -> [Key; 2] {
    [0, 1].map(|half| Key::from(format!("pair/{pair}/{half}").as_str()))
}

fn ward(ward: u64) -> KeyRange {
    KeyRange::prefix(format!("ward/{ward}/").as_bytes())
}

fn amount_of(value: Option<&Value>) -> i64 {
    let text = value.and_then(|value| core::str::from_utf8(value.as_bytes()).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn amount(amount: i64) -> Value {
    Value::from(amount.to_string().as_str())
}

/// Takes from one account of a pair what both together have; otherwise brings twice as much.
pub(super) fn withdraw(
    number: u64,
    wanted: i64,
    work: &mut Work<View<'_>>,
    execution: &mut Execution,
) -> Result<(), ApplicationError> {
    let keys = pair(number % PAIRS);
    let mut has = [0; 2];
    for (key, has) in keys.iter().zip(&mut has) {
        let value = work.get(key)?;
        *has = amount_of(value.as_ref());
        execution.reads.push((key.clone(), value));
    }
    let half = (number / PAIRS % 2) as usize;
    let change = if has[0] + has[1] >= wanted { -wanted } else { 2 * wanted };
    execution.writes.push(Write::put(keys[half].clone(), amount(has[half] + change)));
    Ok(())
}

/// Calls one of the staff to a ward, if there is a place; otherwise sends the first home, unless that one is alone there.
pub(super) fn call(
    number: u64,
    wanted: i64,
    work: &mut Work<View<'_>>,
    execution: &mut Execution,
) -> Result<(), ApplicationError> {
    let range = ward(number % WARDS);
    let there = work.first(&range, usize::MAX)?;
    let who = Key::from(format!("ward/{}/{}", number % WARDS, wanted.unsigned_abs() % STAFF).as_str());
    let found = there.iter().find(|(key, _)| *key == who);
    let leaves = found.or(there.first()).filter(|_| there.len() > 1).map(|(key, _)| key.clone());
    let wants_to_leave = (number / WARDS).is_multiple_of(2) || there.len() >= ON_CALL_MAX;
    execution.writes.push(match leaves.filter(|_| wants_to_leave) {
        Some(leaves) => Write::delete(leaves),
        None => Write::put(who, amount(execution.id.sequence as i64)),
    });
    execution.ranges.push((range, there));
    Ok(())
}

/// How many are on call in each ward.
pub(super) fn on_call(items: &BTreeMap<Key, Value>) -> [usize; WARDS as usize] {
    core::array::from_fn(|number| {
        let range = ward(number as u64);
        items.range(range.from.clone()..).take_while(|(key, _)| range.contains(key)).count()
    })
}

/// Which rule does not hold, if any; so many `were` on call before.
pub(super) fn broken_rule(items: &BTreeMap<Key, Value>, were: [usize; WARDS as usize]) -> Option<String> {
    let overdrawn = (0..PAIRS).map(|number| {
        let has: i64 = pair(number).iter().map(|key| amount_of(items.get(key))).sum();
        (has < 0).then(|| format!("pair {number} is overdrawn: {has}"))
    });
    let staffed = were.into_iter().zip(on_call(items)).map(|(before, now)| {
        let is_broken = now > ON_CALL_MAX || now == 0 && before > 0;
        is_broken.then(|| format!("{now} are on call in a ward, after {before}"))
    });
    overdrawn.chain(staffed).flatten().next()
}

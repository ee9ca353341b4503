//! A history that all processes know, so that a store found somewhere in it can be checked.

use pares_store::{Applied, Memory, Store};
use pares_wice::{Key, Value, Version};

/// What every writer writes as version `number`.
pub(crate) fn version(number: u64) -> Applied {
    let key = |number: u64| Key::new((number % 41).to_be_bytes());
    let value = |size: u64| Some(Value::new(vec![number as u8; size as usize]));
    let writes = vec![
        (key(number), value(10)),
        (key(number * 7), value(number * 13 % 3000)),
        (key(number * 11), None),
        (Key::from("last"), Some(Value::new(number.to_le_bytes()))),
    ];
    Applied { version: Version(number), writes }
}

/// The store after all versions up to `last`.
pub(crate) fn replayed(last: Version) -> Memory {
    let memory = Memory::default();
    memory.apply(&(1..=last.0).map(version).collect::<Vec<_>>(), None).unwrap();
    memory
}

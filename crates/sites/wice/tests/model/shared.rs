//! A value that many states share, with its hash, which is found once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared<T> {
    value: Arc<T>,
    hash: u64,
}

impl<T: Hash + Clone> Shared<T> {
    pub fn new(value: T) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self { value: Arc::new(value), hash: hasher.finish() }
    }

    pub fn into_inner(self) -> T {
        Arc::unwrap_or_clone(self.value)
    }

    pub fn fingerprint(&self) -> u64 {
        self.hash
    }
}

impl<T> Hash for Shared<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

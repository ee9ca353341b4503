//! Runs in which members come by HTTP.

use super::Scenario;

impl Scenario {
    /// Servers over HTTP go from gateway to gateway as these die, stop and are full, connections break and disks are lost, and die themselves; their clients ask again by name and
    /// follow their streams, some from the first number again or ahead of what there is. Of FIX and OUCH there is nobody.
    #[must_use]
    pub fn http(seed: u64) -> Self {
        Self { name: "http", web: 3, ouch: 0, fix: 0, ..Self::ouch(seed) }
    }
}

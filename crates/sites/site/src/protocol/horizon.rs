//! How far a client has seen, and in which database.

use pares_wice::Version;

/// The number by which clients and operators name the database of this identity: a checksum, at least 1.
#[must_use]
pub fn database_of(identity: &str) -> u32 {
    crc32c::crc32c(identity.as_bytes()).max(1)
}

/// How far a client has seen: what it is shown from now on is not older. Versions have one content for ever once a client has seen them, in whatever era; so
/// they can be compared at all sites of a database, and at those of no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Horizon {
    /// Which database, as [`database_of`] says. 0: it has seen none.
    pub database: u32,
    /// What it has received rests on nothing later.
    pub version: Version,
}
pares_wice::fields! { Horizon { database, version } }

impl Horizon {
    /// Of a database with this identity.
    #[must_use]
    pub fn of(identity: &str, version: Version) -> Self {
        Self { database: database_of(identity), version }
    }

    /// Who has seen this, and is shown `other`. What another database shows changes nothing, so that a site can refuse a client of another one.
    ///
    /// # Panics
    /// If less of this database were seen than before.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let seen = match other.database {
            0 => self,
            database if database == self.database => {
                Self { version: self.version.max(other.version), ..self }
            }
            _ if self == Self::default() => other,
            _ => self,
        };
        assert!(
            seen.database != self.database || seen.version >= self.version,
            "what a client has seen only grows"
        );
        seen
    }

    /// Whether there is nothing that this database cannot have.
    pub(crate) fn is_of(self, database: u32) -> bool {
        self.database == database || self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_never_sees_older_than_seen_version() {
        let [older, newer] = [3, 9].map(|version| Horizon { database: 5, version: Version(version) });
        assert_eq!(newer.and(older), newer);
        assert_eq!(older.and(newer), newer);
        assert_eq!(newer.and(Horizon::default()), newer);
        assert_eq!(Horizon::default().and(older), older);
        let other = Horizon { database: 6, version: Version(1) };
        assert_eq!(newer.and(other), newer, "what another database shows changes nothing");
        assert!(newer.is_of(5) && !newer.is_of(6) && Horizon::default().is_of(6));
    }
}

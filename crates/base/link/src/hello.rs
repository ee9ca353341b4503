//! The first frame on a connection between sites: who speaks, to whom, of which system, in which version, and by which settings.
//!
//! ```text
//!  0       4        6             8      10   12     13
//! +-------+--------+-------------+------+----+------+----------+--------+------------------+
//! | PLNK  | speaks | understands | from | to | size | system   | fields | digest ...       |   u16, little-endian; size and fields u8;
//! +-------+--------+-------------+------+----+------+----------+--------+------------------+   digests u32, little-endian
//! ```
//! Two builds of neighbouring versions must be able to talk, or no system is ever upgraded without a stop. So a hello says a range, and both ends speak the lower of what
//! the two speak. A later version may append to a hello; who does not know it passes over what comes then.
//!
//! A number alone would let a site of another system, or one configured with a wrong address, pass for the one expected;
//! the mistake would show much later and elsewhere. So would one whose settings differ from ours where all must agree: two sites that take
//! different clusters for the certifier's each certify. So each of these settings has a digest (crc32c of its text) in the hello.

/// The version that this build speaks. It goes up by one in a release in which frames between sites change; what is new is sent only over connections that speak it.
pub const SPEAKS: u16 = 5;
/// The lowest version that this build understands: the one before. No build speaks only 4: the first hello with a range said 5. So sites of two versions were tried by having
/// this build play 4.
pub const UNDERSTANDS: u16 = SPEAKS - 1;
/// The most settings that can be agreed on.
pub(crate) const FIELDS_MAX: usize = 24;
/// The longest name of a system, bytes.
pub const SYSTEM_MAX: usize = 63;
/// The longest hello of any version, bytes: what a stranger may send before it is known.
pub(crate) const HELLO_MAX: usize = 200;

const MAGIC: &[u8; 4] = b"PLNK";
const DIGEST_BYTES: usize = size_of::<u32>();

/// A setting that all sites must have alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// What it is called, where it is configured.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Agreed {
    fn digest(&self) -> u32 {
        crc32c::crc32c(self.value.as_bytes())
    }
}

/// The digests of all, as in a hello.
#[must_use]
pub fn digests(agreed: &[Agreed]) -> Vec<u8> {
    agreed.iter().flat_map(|one| one.digest().to_le_bytes()).collect()
}

/// Who speaks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The highest version that its sender speaks.
    pub speaks: u16,
    /// The lowest that it understands.
    pub understands: u16,
    /// The site that sends it.
    pub from: u16,
    /// The site it believes to talk to.
    pub to: u16,
    /// The system both belong to.
    pub system: &'a str,
    /// Digests of what must be agreed on, in the order in which it is configured.
    pub digests: &'a [u8],
}

/// What is wrong with a hello.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Not the bytes of one.
    #[error("the first frame is not a hello: check whether another program uses that address")]
    NotAHello,
    /// The other end runs another version.
    #[error(
        "it speaks version {theirs} of the link protocol, and this build only {UNDERSTANDS} to {SPEAKS}: \
         upgrade all sites by one release at a time"
    )]
    Version {
        /// What it speaks.
        theirs: u16,
    },
    /// Another system.
    #[error("it belongs to the system {theirs:?}: check the addresses and the system's name")]
    System {
        /// The name it gave.
        theirs: String,
    },
    /// Something is configured otherwise there that must be alike everywhere.
    #[error("its `{field}` differs from {ours:?} at this site: make both configurations equal")]
    Differs {
        /// The site.
        from: u16,
        /// What.
        field: &'static str,
        /// What it is here.
        ours: String,
    },
    /// No site here has that number.
    #[error(
        "it is site {from}, which is not in this site's configuration: make both configurations equal, or stop it"
    )]
    Unnamed {
        /// Who it says it is.
        from: u16,
    },
    /// It is, or wants, another site.
    #[error(
        "it is site {from} and wants to reach site {to}: check numbers and addresses in both configurations"
    )]
    Numbers {
        /// Who it says it is.
        from: u16,
        /// Whom it wants.
        to: u16,
    },
}

impl<'a> Hello<'a> {
    /// Its bytes.
    ///
    /// # Panics
    /// If the system's name is longer than [`SYSTEM_MAX`], or more is to be agreed on than fits.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.system.len() <= SYSTEM_MAX, "configuration is checked before");
        assert!(self.digests.len() <= FIELDS_MAX * DIGEST_BYTES, "configuration is checked before");
        let mut bytes = MAGIC.to_vec();
        for field in [self.speaks, self.understands, self.from, self.to] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.push(self.system.len() as u8);
        bytes.extend_from_slice(self.system.as_bytes());
        bytes.push((self.digests.len() / DIGEST_BYTES) as u8);
        bytes.extend_from_slice(self.digests);
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is not one, or of another version.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, HelloError> {
        let fields = bytes.strip_prefix(MAGIC).ok_or(HelloError::NotAHello)?;
        let (speaks, fields) = number(fields)?;
        if speaks < UNDERSTANDS {
            return Err(HelloError::Version { theirs: speaks });
        }
        let (understands, fields) = number(fields)?;
        if understands > SPEAKS {
            return Err(HelloError::Version { theirs: speaks }); // the rest may be of another form
        }
        let (from, fields) = number(fields)?;
        let (to, fields) = number(fields)?;
        let (&size, rest) = fields.split_first().ok_or(HelloError::NotAHello)?;
        let (system, rest) = rest.split_at_checked(size.into()).ok_or(HelloError::NotAHello)?;
        let system = std::str::from_utf8(system).map_err(|_| HelloError::NotAHello)?;
        let (&fields, digests) = rest.split_first().ok_or(HelloError::NotAHello)?;
        let (digests, appended) =
            digests.split_at_checked(usize::from(fields) * DIGEST_BYTES).ok_or(HelloError::NotAHello)?;
        match appended.is_empty() || speaks > SPEAKS {
            true => Ok(Self { speaks, understands, from, to, system, digests }),
            false => Err(HelloError::NotAHello),
        }
    }

    /// The version of a connection between its sender and a site that speaks `ours`: the lower of both.
    ///
    /// # Errors
    /// If one of them does not understand that.
    pub fn agreed(&self, ours: u16) -> Result<u16, HelloError> {
        let version = self.speaks.min(ours);
        match version >= self.understands && version >= UNDERSTANDS {
            true => Ok(version),
            false => Err(HelloError::Version { theirs: self.speaks }),
        }
    }

    /// Checks that its sender is configured as this site where both must be.
    ///
    /// # Errors
    /// The first setting that differs.
    pub fn check(&self, agreed: &[Agreed]) -> Result<(), HelloError> {
        let theirs = self.digests.as_chunks::<DIGEST_BYTES>().0;
        let differs = |(at, ours): (usize, &Agreed)| {
            let same = theirs.get(at).is_some_and(|theirs| *theirs == ours.digest().to_le_bytes());
            (!same).then(|| HelloError::Differs {
                from: self.from,
                field: ours.name,
                ours: ours.value.clone(),
            })
        };
        agreed.iter().enumerate().find_map(differs).map_or(Ok(()), Err)
    }
}

fn number(bytes: &[u8]) -> Result<(u16, &[u8]), HelloError> {
    let (number, rest) = bytes.split_first_chunk::<2>().ok_or(HelloError::NotAHello)?;
    Ok((u16::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HELLO: Hello<'static> =
        Hello { speaks: 5, understands: 4, from: 0x0100, to: 0x0201, system: "pares", digests: &[] };

    #[test]
    fn adjacent_versions_use_lower_others_are_refused() {
        for (speaks, understands, ours, version) in [
            (5, 4, 5, Some(5)),
            (4, 3, 5, Some(4)),
            (5, 4, 4, Some(4)),
            (6, 5, 5, Some(5)),
            (6, 5, 4, None),
            (7, 6, 5, None),
            (3, 2, 5, None),
        ] {
            let agreed = Hello { speaks, understands, ..HELLO }.agreed(ours);
            assert_eq!(agreed.ok(), version, "{speaks} and {ours}");
        }
    }

    #[test]
    fn what_a_later_version_appends_is_passed_over() {
        let later = Hello { speaks: SPEAKS + 1, understands: SPEAKS, ..HELLO };
        let bytes = [later.encode(), vec![1, 2, 3]].concat();
        assert_eq!(Hello::decode(&bytes), Ok(later));
    }

    #[test]
    fn its_bytes_are_frozen() {
        let agreed = [Agreed { name: "certifier", value: "0".into() }];
        let digests = digests(&agreed);
        let bytes = Hello { digests: &digests, ..HELLO }.encode();
        assert_eq!(bytes, b"PLNK\x05\x00\x04\x00\x00\x01\x01\x02\x05pares\x01\xe0\x1a\x9e\x62");
    }

    #[test]
    fn the_first_setting_that_differs_is_named() {
        let agreed = |certifier: &str, isolation: &str| {
            [("certifier", certifier), ("isolation", isolation)]
                .map(|(name, value)| Agreed { name, value: value.into() })
        };
        let digests = digests(&agreed("0", "snapshot"));
        let hello = Hello { digests: &digests, ..HELLO };
        assert_eq!(hello.check(&agreed("0", "snapshot")), Ok(()));
        for (ours, named) in
            [(agreed("1", "snapshot"), "certifier"), (agreed("0", "serialisable"), "isolation")]
        {
            let Err(HelloError::Differs { field, .. }) = hello.check(&ours) else { panic!("{ours:?}") };
            assert_eq!(field, named);
        }
        let silent = Hello { digests: &[], ..hello };
        assert!(silent.check(&agreed("0", "snapshot")).is_err(), "who says nothing does not agree");
    }

    #[test]
    fn another_version_is_told_apart_from_rubbish() {
        assert_eq!(Hello::decode(b"PLNK\x01\x00and more"), Err(HelloError::Version { theirs: 1 }));
        assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(HelloError::NotAHello));
    }

    #[test]
    fn cut_or_lengthened_it_is_none() {
        let mut bytes = Hello { digests: &[7; 8], ..HELLO }.encode();
        for cut in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..cut]), Err(HelloError::NotAHello), "{cut}");
        }
        bytes.push(0);
        assert_eq!(Hello::decode(&bytes), Err(HelloError::NotAHello));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(from: u16, to: u16, system in "[a-z0-9.-]{1,63}", fields in 0..=FIELDS_MAX) {
            let digests = vec![5; fields * DIGEST_BYTES];
            let hello = Hello { from, to, system: &system, digests: &digests, ..HELLO };
            let bytes = hello.encode();
            prop_assert!(bytes.len() <= HELLO_MAX);
            prop_assert_eq!(Hello::decode(&bytes), Ok(hello));
        }

        #[test]
        fn rubbish_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Hello::decode(&bytes);
        }
    }
}

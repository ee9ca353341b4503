//! The first frame on a connection between sites: who speaks, to whom, of which system, in which version.
//!
//! ```text
//!  0       4         6      8    10     11
//! +-------+---------+------+----+------+----------+
//! | PLNK  | version | from | to | size | system   |   integers u16, little-endian; size u8
//! +-------+---------+------+----+------+----------+
//! ```
//! A number alone would let a site of another system, or one configured with a wrong address, pass for the one expected;
//! the mistake would show much later and elsewhere.

/// What both ends must speak alike.
pub const VERSION: u16 = 1;
/// The longest name of a system, bytes.
pub const SYSTEM_MAX: usize = 63;
/// The longest hello of any version, bytes: what a stranger may send before it is known.
pub(crate) const HELLO_MAX: usize = 200;

const MAGIC: &[u8; 4] = b"PLNK";

/// Who speaks to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The site that sends it.
    pub from: u16,
    /// The site it believes to talk to.
    pub to: u16,
    /// The system both belong to.
    pub system: &'a str,
}

/// What is wrong with a hello.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// Not the bytes of one.
    #[error("the first frame is not a hello: is something else listening, or dialling, at that address?")]
    NotAHello,
    /// The other end runs another version.
    #[error(
        "it speaks version {theirs} of the link protocol, this site {VERSION}: run one release on all sites"
    )]
    Version {
        /// What it speaks.
        theirs: u16,
    },
    /// Another system.
    #[error("it belongs to the system {theirs:?}: check the addresses, or the name of the system")]
    System {
        /// The name it gave.
        theirs: String,
    },
    /// It is, or wants, somebody else.
    #[error("it is site {from} and wants site {to}: check numbers and addresses in both configurations")]
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
    /// If the system's name is longer than [`SYSTEM_MAX`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.system.len() <= SYSTEM_MAX, "configuration is checked before");
        let mut bytes = MAGIC.to_vec();
        for field in [VERSION, self.from, self.to] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.push(self.system.len() as u8);
        bytes.extend_from_slice(self.system.as_bytes());
        bytes
    }

    /// Reads one.
    ///
    /// # Errors
    /// If it is not one, or of another version.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, HelloError> {
        let fields = bytes.strip_prefix(MAGIC).ok_or(HelloError::NotAHello)?;
        let (version, fields) = number(fields)?;
        if version != VERSION {
            return Err(HelloError::Version { theirs: version });
        }
        let (from, fields) = number(fields)?;
        let (to, fields) = number(fields)?;
        let (&size, system) = fields.split_first().ok_or(HelloError::NotAHello)?;
        if usize::from(size) != system.len() {
            return Err(HelloError::NotAHello);
        }
        let system = std::str::from_utf8(system).map_err(|_| HelloError::NotAHello)?;
        Ok(Self { from, to, system })
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

    #[test]
    fn its_bytes_are_frozen() {
        let bytes = Hello { from: 0x0100, to: 0x0201, system: "pares" }.encode();
        assert_eq!(bytes, b"PLNK\x01\x00\x00\x01\x01\x02\x05pares");
    }

    #[test]
    fn another_version_is_told_apart_from_rubbish() {
        assert_eq!(Hello::decode(b"PLNK\x02\x00and more"), Err(HelloError::Version { theirs: 2 }));
        assert_eq!(Hello::decode(b"GET / HTTP/1.1"), Err(HelloError::NotAHello));
    }

    #[test]
    fn cut_or_lengthened_it_is_none() {
        let mut bytes = Hello { from: 1, to: 2, system: "pares" }.encode();
        for cut in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..cut]), Err(HelloError::NotAHello), "{cut}");
        }
        bytes.push(0);
        assert_eq!(Hello::decode(&bytes), Err(HelloError::NotAHello));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(from: u16, to: u16, system in "[a-z0-9.-]{1,63}") {
            let bytes = Hello { from, to, system: &system }.encode();
            prop_assert!(bytes.len() <= HELLO_MAX);
            prop_assert_eq!(Hello::decode(&bytes), Ok(Hello { from, to, system: &system }));
        }

        #[test]
        fn rubbish_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Hello::decode(&bytes);
        }
    }
}

//! The names of instruments.

use core::fmt;

/// The name members know an instrument by: 1 to 16 printable ASCII characters without spaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol([u8; Symbol::LENGTH_MAX]);

impl Symbol {
    /// The most characters a symbol can have.
    pub const LENGTH_MAX: usize = 16;

    /// The symbol spelled `name`.
    ///
    /// # Errors
    /// [`SymbolError`] if `name` is empty, too long, or has a character that is not
    /// printable ASCII.
    pub fn new(name: &str) -> Result<Self, SymbolError> {
        let legal =
            (1..=Self::LENGTH_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
        if !legal {
            return Err(SymbolError);
        }
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Self(bytes))
    }

    /// The symbol of a fixed-width field: the name, then zero bytes.
    ///
    /// # Errors
    /// [`SymbolError`] if the field holds no legal name or something follows the zeros.
    pub fn from_bytes(bytes: [u8; Self::LENGTH_MAX]) -> Result<Self, SymbolError> {
        let length = bytes.iter().position(|&b| b == 0).unwrap_or(Self::LENGTH_MAX);
        let name = core::str::from_utf8(&bytes[..length]).map_err(|_| SymbolError)?;
        let symbol = Self::new(name)?;
        if symbol.0 == bytes { Ok(symbol) } else { Err(SymbolError) }
    }

    /// The fixed-width field: the name, then zero bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH_MAX] {
        self.0
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(Self::LENGTH_MAX);
        core::str::from_utf8(&self.0[..length]).expect("a symbol is ASCII by construction")
    }

    /// Whether people would take the two for one: they differ in nothing but case.
    #[must_use]
    pub fn reads_as(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({})", self.as_str())
    }
}

/// Not a legal symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolError;

impl fmt::Display for SymbolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a symbol must be 1 to 16 printable ASCII characters without spaces")
    }
}

impl core::error::Error for SymbolError {}

//! A command's name, which its sender chose.

/// Longest name, bytes.
pub const COMMAND_NAME_BYTES_MAX: usize = 64;

/// 1 to 64 visible ASCII characters: a user's commands of one name are one command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandName(String);

impl CommandName {
    /// The name; none if it cannot be one.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=COMMAND_NAME_BYTES_MAX).contains(&name.len());
        (fits && name.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

//! The sixteen commands.
//!
//! All of them are a verb and some of four fields. The audit log shows them in that form too, also those that were refused because a field was missing
//! or made no sense. So a command is kept in that form, and [`UserCommand::check`] says whether its fields are those of its verb.

use core::fmt;

use pares_wice::codec::{Coded, DecodeError};
use pares_wice::kinds;

use crate::coded::{Text, encode_text};
use crate::refusal::Refusal;

macro_rules! verbs {
    ($($number:literal $variant:ident $name:literal $user:literal $symbol:literal $cents:literal $file:literal)*) => {
        /// A command's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Verb { $(
            #[doc = concat!("`", $name, "`")]
            $variant = $number,
        )* }

        impl Verb {
            /// All of them.
            pub const ALL: [Self; 16] = [$(Self::$variant),*];

            /// As it is written in workloads and logs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// Which fields it has: user, symbol, cents, file.
            pub(crate) fn takes(self) -> [bool; 4] {
                match self { $(Self::$variant => [$user, $symbol, $cents, $file]),* }
            }
        }

        kinds!(Verb, "command" { $($number => $variant),* });
    };
}
verbs! {
    1 Add "ADD" true false true false
    2 Quote "QUOTE" true true false false
    3 Buy "BUY" true true true false
    4 CommitBuy "COMMIT_BUY" true false false false
    5 CancelBuy "CANCEL_BUY" true false false false
    6 Sell "SELL" true true true false
    7 CommitSell "COMMIT_SELL" true false false false
    8 CancelSell "CANCEL_SELL" true false false false
    9 SetBuyAmount "SET_BUY_AMOUNT" true true true false
    10 CancelSetBuy "CANCEL_SET_BUY" true true false false
    11 SetBuyTrigger "SET_BUY_TRIGGER" true true true false
    12 SetSellAmount "SET_SELL_AMOUNT" true true true false
    13 SetSellTrigger "SET_SELL_TRIGGER" true true true false
    14 CancelSetSell "CANCEL_SET_SELL" true true false false
    15 Dumplog "DUMPLOG" false false false true
    16 DisplaySummary "DISPLAY_SUMMARY" true false false false
}

impl Verb {
    /// The verb of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    /// Whether it is refused without a usable quote.
    #[must_use]
    pub fn needs_quote(self) -> bool {
        matches!(self, Self::Quote | Self::Buy | Self::Sell)
    }

    /// Whether it commits or cancels what is pending.
    #[must_use]
    pub fn settles(self) -> bool {
        matches!(self, Self::CommitBuy | Self::CancelBuy | Self::CommitSell | Self::CancelSell)
    }
}

/// Longest name of a user, bytes.
pub const USER_BYTES_MAX: usize = 32;

/// A user's name: 1 to [`USER_BYTES_MAX`] visible ASCII characters, no comma. Upper and lower case differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserName(String);

impl UserName {
    /// The user of that name; none if no user can have it.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let fits = (1..=USER_BYTES_MAX).contains(&name.len());
        let is_name = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
        (fits && is_name).then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Coded for UserName {
    fn encode(&self, to: &mut Vec<u8>) {
        encode_text(&self.0, to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Self::new(&Text::decode(from)?.0).ok_or(DecodeError::Kind(0, "user"))
    }
}

/// Which of a user's two stacks, or of a stock's two triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TradeWay {
    /// Cash becomes shares.
    Buy,
    /// Shares become cash.
    Sell,
}

kinds!(TradeWay, "way" { 1 => Buy, 2 => Sell });

/// A stock's symbol: 1 to 3 upper-case letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StockSymbol([u8; 3]);

impl StockSymbol {
    /// The symbol so written; none if that is not one.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase());
        fits.then(|| {
            let mut letters = [0; 3];
            letters[..text.len()].copy_from_slice(text.as_bytes());
            Self(letters)
        })
    }

    /// Its letters, and zeros behind them.
    #[must_use]
    pub fn padded(&self) -> [u8; 3] {
        self.0
    }

    /// The symbol of [`StockSymbol::padded`].
    #[must_use]
    pub(crate) fn of_padded(letters: [u8; 3]) -> Option<Self> {
        let end = letters.iter().position(|byte| *byte == 0).unwrap_or(3);
        let symbol = core::str::from_utf8(&letters[..end]).ok().and_then(Self::new)?;
        (symbol.0 == letters).then_some(symbol)
    }

    /// Its letters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(3);
        core::str::from_utf8(&self.0[..end]).expect("letters are ASCII")
    }
}

impl fmt::Display for StockSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Coded for StockSymbol {
    fn encode(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let letters = [u8::decode(from)?, u8::decode(from)?, u8::decode(from)?];
        Self::of_padded(letters).ok_or(DecodeError::Kind(letters[0], "symbol"))
    }
}

/// Longest name of a file, bytes.
pub const FILE_BYTES_MAX: usize = 64;

/// A file's name without its folders, if it may be one: a client names no other place than the one where logs lie.
#[must_use]
pub fn file_name(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    (is_plain && !name.is_empty() && !name.starts_with('.') && name.len() <= FILE_BYTES_MAX).then_some(name)
}

/// The folder of users' folders of dumps. No log of everything has this name, in capitals or not: some systems hold these for one.
pub const DUMPS_OF_USERS: &str = "users";

/// Where the dump of that name lies among the others, `/` between folder and file. That of everything is `NAME`, or `%users` if that is its name; a user's is `users/USER/NAME`, and USER has what
/// is no letter, digit, `-` or `_` in hexadecimal, behind `%`. So no user takes another's place, nor that of the log of everything.
#[must_use]
pub fn dump_path(user: Option<&UserName>, name: &str) -> String {
    let Some(user) = user else {
        let is_taken = name.eq_ignore_ascii_case(DUMPS_OF_USERS);
        return if is_taken { format!("%{name}") } else { name.to_owned() };
    };
    let mut path = format!("{DUMPS_OF_USERS}/");
    for byte in user.as_str().bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' | b'_' => path.push(char::from(byte)),
            _ => path.push_str(&format!("%{byte:02x}")),
        }
    }
    path + "/" + name
}

/// A command, or as much of one as could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCommand {
    /// What to do.
    pub verb: Verb,
    /// For which user. Only `DUMPLOG` goes without: all users.
    pub user: Option<UserName>,
    /// Which stock.
    pub symbol: Option<StockSymbol>,
    /// An amount of money, or a price, cents.
    pub cents: Option<u64>,
    /// A file's name, as [`file_name`] gives it.
    pub file: Option<String>,
}

impl UserCommand {
    /// A command without fields.
    #[must_use]
    pub fn of(verb: Verb) -> Self {
        Self { verb, user: None, symbol: None, cents: None, file: None }
    }

    /// Whether it has the fields of its verb, and no amount is zero or too large.
    ///
    /// # Errors
    /// Why the first field that is wrong is so.
    pub fn check(&self) -> Result<(), Refusal> {
        let [user, symbol, cents, file] = self.verb.takes();
        let may_have_user = user || self.verb == Verb::Dumplog;
        let file_is_plain = self.file.as_deref().is_none_or(|name| file_name(name) == Some(name));
        let amount_fits = self.cents.is_none_or(|cents| (1..=crate::CENTS_MAX).contains(&cents));
        if (user && self.user.is_none()) || (self.user.is_some() && !may_have_user) {
            Err(Refusal::BadUser)
        } else if symbol != self.symbol.is_some() {
            Err(Refusal::BadSymbol)
        } else if cents != self.cents.is_some() || !amount_fits {
            Err(Refusal::BadAmount)
        } else if file != self.file.is_some() || !file_is_plain {
            Err(Refusal::BadFile)
        } else {
            Ok(())
        }
    }
}

impl Coded for UserCommand {
    fn encode(&self, to: &mut Vec<u8>) {
        self.verb.encode(to);
        self.user.encode(to);
        self.symbol.encode(to);
        self.cents.encode(to);
        self.file.is_some().encode(to);
        if let Some(file) = &self.file {
            encode_text(file, to);
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        Ok(Self {
            verb: Coded::decode(from)?,
            user: Coded::decode(from)?,
            symbol: Coded::decode(from)?,
            cents: Coded::decode(from)?,
            file: Option::<Text>::decode(from)?.map(|name| name.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_their_own_folders_of_dumps_and_no_other() {
        let at = |user: &str| dump_path(UserName::new(user).as_ref(), "log");
        assert_eq!([at("jo_1-A"), at("../al")], ["users/jo_1-A/log", "users/%2e%2e%2fal/log"]);
        assert_ne!(at("a%2e"), at("a."));
        assert_eq!(dump_path(None, "log"), "log");
    }

    #[test]
    fn no_user_takes_the_place_of_a_log_of_everything() {
        let names = ["testLOG", "users", "Users", "USERS", "users.log", "jo", "log"];
        for all in names {
            let all = dump_path(None, all).to_lowercase();
            for (user, file) in names.iter().flat_map(|user| names.map(|file| (user, file))) {
                let path = dump_path(UserName::new(user).as_ref(), file).to_lowercase();
                assert!(path != all && !path.starts_with(&format!("{all}/")), "{path} and {all}");
            }
        }
        assert_eq!(file_name(&dump_path(None, "users")), None, "no log of everything is named so");
    }
}

//! Lines of workload files: `[n] CMD,user,args`, perhaps with blanks at the end.
//!
//! A line whose number and verb can be read is a command, whatever its fields: it has its place in the log, with the reason for which it is refused. Of
//! others there is nothing that the log's schema has an element for.

use crate::command::{StockSymbol, UserCommand, UserName, Verb, file_name};
use crate::money::cents_of;
use crate::refusal::Refusal;

/// A line of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadLine {
    /// Its number in the file.
    pub number: u64,
    /// What could be read.
    pub command: UserCommand,
    /// Why it is refused, if its form is wrong.
    pub fault: Option<Refusal>,
}

impl WorkloadLine {
    /// Reads a line, without its end.
    ///
    /// # Errors
    /// [`Refusal::NotText`], [`Refusal::NoNumber`], [`Refusal::UnknownCommand`].
    pub fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let text = core::str::from_utf8(line).ok().filter(|text| text.is_ascii()).ok_or(Refusal::NotText)?;
        let (number, rest) = numbered(text.trim()).ok_or(Refusal::NoNumber)?;
        let mut words = rest.trim().split(',').map(str::trim);
        let verb = words.next().and_then(Verb::of_name).ok_or(Refusal::UnknownCommand)?;
        let (command, fault) = fields(verb, &words.collect::<Vec<_>>());
        Ok(Self { number, command, fault })
    }
}

fn numbered(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = line.strip_prefix('[')?.split_once(']')?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())??;
    (number > 0).then_some((number, rest))
}

/// What `words` say, and why that is not right.
fn fields(verb: Verb, words: &[&str]) -> (UserCommand, Option<Refusal>) {
    let [mut user, symbol, cents, file] = verb.takes();
    user |= verb == Verb::Dumplog && words.len() > 1;
    let count = [user, symbol, cents, file].into_iter().filter(|takes| *takes).count();
    let mut left = words.iter().copied();
    let mut next = |takes: bool| if takes { left.next() } else { None };
    let command = UserCommand {
        verb,
        user: next(user).and_then(UserName::new),
        symbol: next(symbol).and_then(StockSymbol::new),
        cents: next(cents).and_then(cents_of),
        file: next(file).and_then(file_name).map(str::to_owned),
    };
    let is_whole = words.len() == count && (!user || command.user.is_some());
    let fault = match (words.len() == count, is_whole) {
        (false, _) => Some(Refusal::Arity),
        (true, false) => Some(Refusal::BadUser),
        (true, true) => command.check().err(),
    };
    (command, fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> Option<Refusal> {
        WorkloadLine::parse(line.as_bytes()).map_or_else(Some, |line| line.fault)
    }

    #[test]
    fn a_line_is_a_number_a_verb_and_the_fields_of_that_verb() {
        let line = WorkloadLine::parse(b"[30] SET_BUY_AMOUNT,oY01WVirLr,S,658.38 ").unwrap();
        assert_eq!((line.number, line.command.verb, line.fault), (30, Verb::SetBuyAmount, None));
        assert_eq!(line.command.user.unwrap().as_str(), "oY01WVirLr");
        assert_eq!(line.command.symbol.unwrap().as_str(), "S");
        assert_eq!(line.command.cents, Some(65_838));
        let dump = WorkloadLine::parse(b"[100] DUMPLOG,./testLOG").unwrap();
        assert_eq!((dump.command.user, dump.command.file.as_deref()), (None, Some("testLOG")));
        assert_eq!(fault("[1] DUMPLOG,jo,../../etc/log.xml"), None);
    }

    #[test]
    fn a_malformed_line_is_refused_for_a_reason() {
        let cases = [
            ("[9962] ADD,umhaEY4lil,-73280.58", Refusal::BadAmount),
            ("[1] BUY,jo,S,0.00", Refusal::BadAmount),
            ("[1] BUY,jo,S,1.005", Refusal::BadAmount),
            ("[1] BUY,jo,LONG,1.00", Refusal::BadSymbol),
            ("[1] BUY,jo,s,1.00", Refusal::BadSymbol),
            ("[1] BUY,jo,S", Refusal::Arity),
            ("[1] COMMIT_BUY,jo,S", Refusal::Arity),
            ("[1] COMMIT_BUY", Refusal::Arity),
            ("[1] COMMIT_BUY,", Refusal::BadUser),
            ("[1] DUMPLOG,jo,..", Refusal::BadFile),
            ("[1] DUMPLOG,,log", Refusal::BadUser),
            ("[1] STEAL,jo", Refusal::UnknownCommand),
            ("[0] ADD,jo,1.00", Refusal::NoNumber),
            ("[+1] ADD,jo,1.00", Refusal::NoNumber),
            ("ADD,jo,1.00", Refusal::NoNumber),
            ("", Refusal::NoNumber),
        ];
        for (line, reason) in cases {
            assert_eq!(fault(line), Some(reason), "{line}");
        }
        assert_eq!(WorkloadLine::parse(&[b'[', 0xff]), Err(Refusal::NotText));
    }
}

//! What a front says of a command: its reply, or that it was given up.

use pares_broker::{Asked, BrokerReply, UserCommand, Verb};

/// A command with its reply.
pub(crate) struct Told {
    /// Its place among those that arrived at this front, from 0.
    pub(crate) arrival: u64,
    pub(crate) asked: Asked,
    /// None if it was given up: the one before it in its session did not come, or sites do not take it.
    pub(crate) reply: Option<BrokerReply>,
    /// It commanded a dump, which could not be written.
    pub(crate) is_unwritten: bool,
}

impl Told {
    /// The dump that was commanded, if it was one, and it was executed.
    pub(crate) fn dump(&self) -> Option<&UserCommand> {
        dumps(&self.asked).filter(|_| self.reply == Some(BrokerReply::Done))
    }

    /// The command, if it is one of a user's language.
    pub(crate) fn command(&self) -> Option<&UserCommand> {
        command(&self.asked)
    }
}

fn command(asked: &Asked) -> Option<&UserCommand> {
    let Asked::Command { command, .. } = asked else { return None };
    Some(command)
}

/// The dump that this commands.
pub(crate) fn dumps(asked: &Asked) -> Option<&UserCommand> {
    command(asked).filter(|command| command.verb == Verb::Dumplog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_that_was_not_executed_writes_nothing() {
        let asked = Asked::Command { command: UserCommand::of(Verb::Dumplog), fault: None };
        let told = |reply| Told { arrival: 0, asked: asked.clone(), reply, is_unwritten: false };
        for reply in [BrokerReply::Overtaken, BrokerReply::Repeated, BrokerReply::NameTaken] {
            assert_eq!(told(Some(reply)).dump(), None);
        }
        assert!(told(None).dump().is_none() && told(Some(BrokerReply::Done)).dump().is_some());
    }
}

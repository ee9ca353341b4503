//! `pares admin member`: who takes part, by which keys, with which rights and limits.

use pares_node::{Layout, SystemConfig};
use pares_types::{Entry, InstrumentId, Limits, MemberId, Proposal, Reason, Rights};
use serde_json::json;

use super::PROPOSED;
use super::key::{self, MadeKey, NewKey};
use super::members::{limit_words, list};
use super::operator::Operator;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// What to do with a member.
#[derive(clap::Subcommand)]
pub(super) enum What {
    /// Let a member take part, and make a key for its session 1
    Add {
        /// The member
        member: u32,
        #[command(flatten)]
        key: NewKey,
    },
    /// Give a session a key; one that it had is revoked by that
    Key {
        /// The member; 0 is the exchange, whose sessions are the operators
        member: u32,
        /// Which of its sessions, from 1
        #[arg(value_parser = clap::value_parser!(u16).range(1..=0x7fff))]
        session: u16,
        #[command(flatten)]
        key: NewKey,
    },
    /// Revoke a session, or all of a member; who is signed on is disconnected, and orders stay (see `pares admin block`)
    Revoke {
        /// The member
        member: u32,
        /// Which of its sessions; without one the member is removed
        session: Option<u16>,
    },
    /// Set what a member, or one of its sessions, may ask; cancels are always allowed
    Right {
        /// The member
        member: u32,
        /// Only this session
        #[arg(long, default_value_t = 0)]
        session: u16,
        /// enter, amend, market_orders, buy, sell, every_instrument; of operators control, register; none names none
        #[arg(required = true, value_parser = right)]
        rights: Vec<Rights>,
    },
    /// Name instruments that a member, or one of its sessions, may trade without the right every_instrument
    Instrument {
        /// The member
        member: u32,
        /// Only this session
        #[arg(long, default_value_t = 0)]
        session: u16,
        /// Take them off the list
        #[arg(long)]
        remove: bool,
        /// The instruments, by number
        #[arg(required = true, value_parser = clap::value_parser!(u32).range(1..))]
        instruments: Vec<u32>,
    },
    /// Have a session told all of another member's orders and trades instead of its own member's (drop copy); it may ask for nothing then
    Copy {
        /// The member whose session it is
        member: u32,
        /// The member whose orders it is told; none, or its own, ends it
        #[arg(value_parser = copied)]
        of: Copied,
        /// Which session
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=0x7fff))]
        session: u16,
    },
    /// Set how much a member, or one of its sessions, may ask: all limits at once, and what is not given has none
    Limit {
        /// The member
        member: u32,
        /// Only this session
        #[arg(long, default_value_t = 0)]
        session: u16,
        #[command(flatten)]
        limits: NewLimits,
    },
    /// Show members, sessions, rights and limits
    List,
}

/// The limits; 0 is none.
#[derive(clap::Args)]
pub(super) struct NewLimits {
    /// Shares of one order
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    quantity: u64,
    /// Price times quantity of one order, ten-thousandths of the currency
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    value: u64,
    /// How far from the last trade a limit may lie, hundredths of a percent
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    collar: u32,
    /// Orders of the member at work
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    orders: u32,
    /// Shares of an instrument the member may have bought more than sold on a business day, or sold more than bought, if all its
    /// orders trade
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    position: u64,
    /// Orders and amends a session may send in a second
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    rate: u32,
    /// How many of them at once
    #[arg(long, default_value_t = 100)]
    burst: u32,
}

impl NewLimits {
    fn limits(&self) -> Limits {
        Limits {
            quantity_max: self.quantity,
            value_max: self.value,
            collar: self.collar,
            orders_max: self.orders,
            rate_max: self.rate,
            burst_max: if self.rate == 0 { 0 } else { self.burst },
        }
    }
}

/// The same error; of a session that is not there, with the command that makes it.
fn no_session(error: CommandError, (member, session): (u32, u16)) -> CommandError {
    match error {
        CommandError::Refused(Reason::UnknownSession) => CommandError::Failed(format!(
            "member {member} has no session {session}: `pares admin member key {member} {session}` makes it"
        )),
        other => other,
    }
}

/// Whom a session copies, if anybody.
#[derive(Clone, Copy)]
pub(super) struct Copied(Option<u32>);

fn copied(text: &str) -> Result<Copied, String> {
    match text {
        "none" => Ok(Copied(None)),
        _ => super::member(text).map(|member| Copied(Some(member))),
    }
}

fn right(word: &str) -> Result<Rights, String> {
    if word == "none" {
        return Ok(Rights::NONE);
    }
    let found = Rights::WORDS.iter().find(|(_, name)| *name == word);
    found.map(|(right, _)| *right).ok_or_else(|| {
        let words: Vec<&str> = Rights::WORDS.iter().map(|(_, name)| *name).collect();
        format!("a right is one of {}, or none", words.join(", "))
    })
}

/// Asks, and says what was done.
pub(super) fn run(
    what: &What,
    operator: impl FnOnce() -> Result<Operator, CommandError>,
    (config, layout): (&SystemConfig, &Layout),
    as_json: bool,
) -> CommandResult {
    if let What::List = what {
        return list(config, layout, as_json);
    }
    let mut operator = operator()?;
    let done = match what {
        What::Add { member, key } => add(&mut operator, *member, key, layout)?,
        What::Key { member, session, key } => set_key(&mut operator, (*member, *session), key, layout)?,
        What::Revoke { member, session } => revoke(&mut operator, (*member, *session), layout)?,
        What::Right { member, session, rights } => {
            let rights = rights.iter().fold(Rights::NONE, |all, right| all.or(*right));
            operator.register(*member, *session, Entry::SetRights(rights))?;
            format!("{} may {}", who(*member, *session), rights)
        }
        What::Instrument { member, session, remove, instruments } => {
            list_instruments(&mut operator, (*member, *session), instruments, *remove)?
        }
        What::Copy { member, of: Copied(of), session } => {
            let of = of.unwrap_or(*member);
            let set = operator.register(*member, *session, Entry::SetCopied(MemberId(of)));
            set.map_err(|error| no_session(error, (*member, *session)))?;
            format!("{} is told of member {of}", who(*member, *session))
        }
        What::Limit { member, session, limits } => set_limits(&mut operator, (*member, *session), limits)?,
        What::List => unreachable!("listed above"),
    };
    let is_told = matches!(what, What::Key { .. });
    let said = match operator.proposes {
        is_proposed if as_json => json!({ "proposed": is_proposed, "done": done }).to_string(),
        true if is_told => format!("proposed, not done: {done}"),
        true => format!("{PROPOSED}. Then {done}"),
        false => done,
    };
    text::print(&said);
    Ok(())
}

/// A session, or the member with all of them.
fn revoke(
    operator: &mut Operator,
    (member, session): (u32, Option<u16>),
    layout: &Layout,
) -> Result<String, CommandError> {
    let _held = key::hold(layout)?;
    let (entry, done) = match session {
        Some(session) => (Entry::RevokeKey, format!("session {session} of member {member} is revoked")),
        None => {
            let orders = format!("its orders stay: `pares admin block {member}` cancels them");
            (Entry::RemoveMember, format!("member {member} is removed; {orders}"))
        }
    };
    let revoked = operator.register(member, session.unwrap_or(0), entry);
    let is_gone = match &revoked {
        Ok(_) => !operator.proposes,
        Err(error) => {
            matches!(error, CommandError::Refused(Reason::UnknownMember | Reason::UnknownSession))
        }
    };
    if is_gone {
        // Of a change that did not end: it is not to come into force by the next one.
        key::forget_new((member, session), layout)?;
    }
    revoked.map(|_| done)
}

fn add(operator: &mut Operator, member: u32, key: &NewKey, layout: &Layout) -> Result<String, CommandError> {
    let _held = key.hold(layout)?;
    let made = MadeKey::of(key, (member, 1), layout)?;
    let added = match operator.register(member, 0, Entry::AddMember) {
        Err(CommandError::Refused(Reason::MemberExists)) => {
            let what = format!(
                "member {member} takes part already: `pares admin member key {member} SESSION{}` gives a further session of it a key; to name one that has a key replaces that",
                key.options()
            );
            Err(CommandError::Failed(what))
        }
        added => added,
    };
    made.settle(added.and_then(|_| operator.register(member, 1, Entry::SetKey(made.key))))?;
    Ok(format!("member {member} takes part; session 1 signs on with {}", made.about))
}

fn set_key(
    operator: &mut Operator,
    (member, session): (u32, u16),
    key: &NewKey,
    layout: &Layout,
) -> Result<String, CommandError> {
    let _held = key.hold(layout)?;
    if operator.proposes {
        return propose_key(operator, (member, session), key, layout);
    }
    let made = MadeKey::of(key, (member, session), layout)?;
    made.settle(operator.register(member, session, Entry::SetKey(made.key)))?;
    Ok(format!("session {session} of member {member} signs on with {}", made.about))
}

/// The key is made now, so that the other operator asks for this one and no other.
fn propose_key(
    operator: &mut Operator,
    (member, session): (u32, u16),
    key: &NewKey,
    layout: &Layout,
) -> Result<String, CommandError> {
    if !key.is_public() {
        let what = "a shared key or a password cannot be proposed: another operator has to name it; propose an Ed25519 key";
        return Err(CommandError::Usage(what.into()));
    }
    let made = MadeKey::of(key, (member, session), layout)?;
    operator.register(member, session, Entry::SetKey(made.key))?;
    let dir = layout.root().display();
    let by = format!(
        "pares admin member key {member} {session} --public-key {} --key THEIR-KEY --dir {dir}",
        made.public()
    );
    let place = made.place().map_or_else(String::new, |(new, path)| {
        format!(". Its secret lies in {new}, and belongs in {path} once it is in force")
    });
    Ok(format!(
        "a new key of session {session} of member {member}; another operator asks for it by `{by}`{place}"
    ))
}

/// Two requests: what stands if the second is not done is said.
fn set_limits(
    operator: &mut Operator,
    (member, session): (u32, u16),
    limits: &NewLimits,
) -> Result<String, CommandError> {
    let proposes = operator.proposes;
    operator.register(member, session, Entry::SetPositionMax(limits.position))?;
    operator.register(member, session, Entry::SetLimits(limits.limits())).map_err(|error| {
        let set = if proposes { "proposed" } else { "set" };
        let more = format!(". The limit of positions is {set}, the others are not: repeat the command");
        if error.is_certain() { error.and(&more) } else { error }
    })?;
    Ok(format!("{}: {}", who(member, session), limit_words(&limits.limits(), limits.position)))
}

fn who(member: u32, session: u16) -> String {
    if session == 0 { format!("member {member}") } else { format!("session {session} of member {member}") }
}

/// One request each: those before one that is refused stand.
fn list_instruments(
    operator: &mut Operator,
    (member, session): (u32, u16),
    instruments: &[u32],
    remove: bool,
) -> Result<String, CommandError> {
    if operator.proposes && instruments.len() > Proposal::OF_ONE_MAX {
        let most = Proposal::OF_ONE_MAX;
        let what = format!("an operator's last {most} proposals hold: propose fewer instruments at once");
        return Err(CommandError::Usage(what));
    }
    for &instrument in instruments {
        let instrument = InstrumentId(instrument);
        let entry =
            if remove { Entry::UnlistInstrument(instrument) } else { Entry::ListInstrument(instrument) };
        match operator.register(member, session, entry) {
            // Of a command that is repeated since it broke off.
            Err(CommandError::Refused(Reason::NothingChanged)) => {}
            other => _ = other?,
        }
    }
    let numbers: Vec<String> = instruments.iter().map(u32::to_string).collect();
    let change = if remove { "no longer listed" } else { "listed" };
    Ok(format!("{}: {change}: {}", who(member, session), numbers.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_words() {
        assert_eq!(right("enter"), Ok(Rights::ENTER));
        assert_eq!(right("none"), Ok(Rights::NONE));
        assert!(right("all").unwrap_err().contains("market_orders"));
        assert_eq!(right("every_instrument"), Ok(Rights::EVERY_INSTRUMENT));
    }
}

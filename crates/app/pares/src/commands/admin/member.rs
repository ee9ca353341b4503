//! `pares admin member`: who participates, by which keys, with which rights and limits.

use pares_node::{Layout, SystemConfig};
use pares_types::{Entry, InstrumentId, Limits, MemberId, Proposal, Reason, Rights};
use serde_json::json;

use super::PROPOSED;
use super::key::{self, MadeKey, NewKey};
use super::members::{limit_words, list};
use super::operator::Operator;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// Operations on members.
#[derive(clap::Subcommand)]
pub(super) enum What {
    /// Add a member, with a key for its session 1
    Add {
        /// The member
        member: u32,
        #[command(flatten)]
        key: NewKey,
    },
    /// Give a session a new key, which revokes its previous one
    Key {
        /// The member; member 0 is the exchange, and its sessions are the operators
        member: u32,
        /// The session, from 1
        #[arg(value_parser = clap::value_parser!(u16).range(1..=0x7fff))]
        session: u16,
        #[command(flatten)]
        key: NewKey,
    },
    /// Revoke one session, or remove a member with all sessions; they are disconnected, and their orders stay (see `pares admin block`)
    Revoke {
        /// The member
        member: u32,
        /// The session; without it, the member is removed
        session: Option<u16>,
    },
    /// Set the rights of a member or of one of its sessions; cancels are always allowed
    Right {
        /// The member
        member: u32,
        /// Only this session
        #[arg(long, default_value_t = 0)]
        session: u16,
        /// Rights: enter, amend, market_orders, buy, sell, every_instrument; for operators control, register; or none
        #[arg(required = true, value_parser = right)]
        rights: Vec<Rights>,
    },
    /// List instruments that a member or session without the right every_instrument may trade
    Instrument {
        /// The member
        member: u32,
        /// Only this session
        #[arg(long, default_value_t = 0)]
        session: u16,
        /// Remove them from the list
        #[arg(long)]
        remove: bool,
        /// The instruments, by id
        #[arg(required = true, value_parser = clap::value_parser!(u32).range(1..))]
        instruments: Vec<u32>,
    },
    /// Make a session a drop copy: it receives another member's orders and trades, and can send no requests
    Copy {
        /// The member that owns the session
        member: u32,
        /// The member to copy; without it, or with the session's own member, the drop copy ends
        #[arg(value_parser = copied)]
        of: Copied,
        /// The session
        #[arg(long, value_parser = clap::value_parser!(u16).range(1..=0x7fff))]
        session: u16,
    },
    /// Set all limits of a member or of one of its sessions; an omitted limit is removed
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
    /// Largest order, shares
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    quantity: u64,
    /// Largest order by price times quantity, ten-thousandths of the currency
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    value: u64,
    /// Largest distance of a limit price from the last trade, hundredths of a percent
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    collar: u32,
    /// Open orders of the member; without it the member may have an eighth of each book
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    orders: u32,
    /// Largest net position in an instrument on a business day, shares bought less shares sold or the reverse, counting the member's
    /// open orders as traded
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    position: u64,
    /// Orders and amends a session may send in a second
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    rate: u32,
    /// Orders and amends a session may send at once (burst)
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

/// The member that a session copies, if any.
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
        format!("a right must be one of {}, or none", words.join(", "))
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
            format!("{} receives the orders and trades of member {of}", who(*member, *session))
        }
        What::Limit { member, session, limits } => set_limits(&mut operator, (*member, *session), limits)?,
        What::List => unreachable!("listed above"),
    };
    let is_told = matches!(what, What::Key { .. });
    let said = match operator.proposes {
        is_proposed if as_json => json!({ "proposed": is_proposed, "done": done }).to_string(),
        true if is_told => format!("proposed, not done: {done}"),
        true => format!("{PROPOSED}. After that, {done}"),
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
                "member {member} already exists: `pares admin member key {member} SESSION{}` makes a key for another session, or replaces the key of an existing one",
                key.options()
            );
            Err(CommandError::Failed(what))
        }
        added => added,
    };
    made.settle(added.and_then(|_| operator.register(member, 1, Entry::SetKey(made.key))))?;
    Ok(format!("member {member} is added; session 1 signs on with {}", made.about))
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
        let what = "a shared key or a password cannot be proposed, because the second operator would have to know it: propose an Ed25519 key";
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
        format!(". Its secret key is in {new}; move it to {path} once the key is active")
    });
    Ok(format!("a new key of session {session} of member {member}; the second operator runs `{by}`{place}"))
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
        let more =
            format!(". The position limit is {set}, the other limits are unchanged: repeat the command");
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
        let what =
            format!("only an operator's last {most} proposals stay open: propose fewer instruments at once");
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

//! `pares admin`: the exchange's own requests: phases, rules, instruments, blocks, busts; and venues readmitted, shards moved.
//!
//! They go the way of all requests: signed on as member 0, numbered by a gateway, executed at a place in the total
//! order, and answered from the record. So the record says who was blocked and when trading began. To readmit a venue
//! or move a shard is no request: it changes no book, and is about files.

mod answer;
mod audit;
mod bust;
mod key;
mod lanes;
mod listed;
mod member;
mod members;
mod operator;
mod readmit;
mod rule;

use std::cell::LazyCell;
use std::path::PathBuf;

use pares_book::{Book, Day, Stage, TimetableRow};
use pares_client::Answer;
use pares_config::SignOnSetting;
use pares_node::{Layout, NodeId, SystemConfig};
use pares_types::{
    BusinessDay, Command, Entry, InstrumentId, MemberId, Phase, Reason, Rule, Status, Symbol, Timestamp,
};

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::standing::Standing;
use crate::text;
use answer::{as_json, as_line};
use listed::Listed;
pub(super) use members::limit_words;
use operator::{EXCHANGE, Operator};
pub(super) use rule::price;
use rule::{NewRule, PhaseName};

/// What a command says that only proposed.
const PROPOSED: &str = "proposed, not done: a second operator must repeat the command within ten minutes, with --key and without --propose";

/// Arguments of `pares admin`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory
    #[arg(long, global = true, default_value = "pares-data")]
    dir: PathBuf,
    /// A gateway's address; by default the first of the system that answers
    #[arg(long, global = true)]
    gateway: Option<String>,
    /// The operator's key file; by default keys/operator.key in the system's directory, if it is there
    #[arg(long, global = true)]
    key: Option<PathBuf>,
    /// Propose the request to a second operator instead of making it
    #[arg(long, global = true)]
    propose: bool,
    /// One JSON object instead of a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Change the phase of an instrument
    Phase {
        /// Symbol or id
        instrument: String,
        /// The phase
        phase: PhaseName,
    },
    /// Change a rule of an instrument
    Rule {
        /// Symbol or id
        instrument: String,
        #[command(subcommand)]
        rule: NewRule,
    },
    /// List a new instrument; it starts closed, with default rules
    Add {
        /// Its id, not used before
        #[arg(value_parser = id)]
        id: u32,
        /// Its symbol: up to 16 printable ASCII characters
        symbol: String,
    },
    /// Cancel all orders of a closed or halted instrument, and remove it
    Remove {
        /// Symbol or id
        instrument: String,
    },
    /// Cancel all orders of a member and refuse new ones
    Block {
        /// The member
        #[arg(value_parser = member)]
        member: u32,
    },
    /// Accept orders of a blocked member again
    Unblock {
        /// The member
        member: u32,
    },
    /// Declare a trade void
    Bust {
        /// Symbol or id
        instrument: String,
        /// POSITION.EVENT, as `pares history trades` shows it
        #[arg(value_parser = bust::trade_place)]
        trade: (u64, u16),
    },
    /// Release an instrument from quarantine, where it is since the matching engine failed on one of its requests
    Release {
        /// Symbol or id
        instrument: String,
    },
    /// Begin or end a business day
    Day {
        #[command(subcommand)]
        what: DayChange,
    },
    /// Send the current time, to apply due timetable rows and expire orders; gateways do this regularly
    Time,
    /// Manage members, their sessions, keys, rights and limits
    #[command(subcommand)]
    Member(member::What),
    /// Require a second operator for requests that can stop a market: closing, halting, removing, blocking
    FourEyes {
        /// on or off
        #[arg(value_parser = switch, action = clap::ArgAction::Set)]
        state: bool,
    },
    /// List the operators' requests from the record
    Audit,
    /// Readmit a venue that was shut out, after installing a correct build
    Readmit {
        /// The venue: venue-0, venue-1, ...
        venue: NodeId,
    },
    /// Move a shard to other venues while members trade; repeat it to continue, name the old venues to take it back
    Lanes {
        /// The shard, as `pares stat` shows it
        shard: u16,
        /// The venues that execute it from then on
        #[arg(required = true, num_args = 1.., value_parser = lanes::venue)]
        venues: Vec<u16>,
    },
}

#[derive(clap::Subcommand)]
enum DayChange {
    /// Accept orders again, on a later day than the last one
    Begin {
        /// The date [default: today, UTC]
        day: Option<BusinessDay>,
    },
    /// Close every instrument and record the day; orders valid beyond the day stay
    End {
        /// The date [default: the current business day]
        day: Option<BusinessDay>,
    },
}

/// Asks, and prints the answer.
///
/// # Errors
/// If there is no such system, instrument or trade, no gateway answers, or the request is refused.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    if let What::Readmit { venue } = args.what {
        return readmit::run(venue, &config, &layout, args.json);
    }
    if let What::Lanes { shard, venues } = &args.what {
        return lanes::run((*shard, venues), &config, &layout, args.json);
    }
    let operator = || {
        let key = (args.key.as_deref(), args.propose);
        Operator::new(args.gateway.as_deref(), key, &config, &layout)
    };
    match &args.what {
        What::Audit => audit::run(&config, &layout, args.json),
        What::Member(what) => member::run(what, operator, (&config, &layout), args.json),
        What::FourEyes { state } => {
            let answer = operator()?.register(EXCHANGE.0, 0, Entry::SetFourEyes(*state))?;
            text::print(&told(&answer, args));
            Ok(())
        }
        what => {
            let (instrument, command) = request(what, &config, &layout)?;
            let is_due =
                matches!(&command, Command::SetRule(rule) if is_due(instrument, *rule, &config, &layout));
            let answer = operator()?.ask(instrument, command)?;
            text::print(&told(&answer, args));
            check(&answer, command)?;
            if let Command::Block { member } = command
                && answer.executed.0 == 0
            {
                warn_of_nobody(member, &config, &layout);
            }
            if is_due {
                pares_text::aside!(
                    "pares: that time has already passed today, so the row takes effect at once"
                );
            }
            Ok(())
        }
    }
}

/// A mistyped kill switch stops nobody. One that was removed may have left orders, which shows that it was meant.
fn warn_of_nobody(member: MemberId, config: &SystemConfig, layout: &Layout) {
    let Ok(standing) = Standing::read(config, layout) else { return };
    let is_there = standing.register().members().any(|(one, _)| one == member);
    if config.sign_on == SignOnSetting::Required && !is_there {
        pares_text::aside!(
            "pares: the register has no member {member} (never added, or revoked): check the number"
        );
    }
}

fn told(answer: &Answer, args: &Args) -> String {
    let is_proposed = args.propose && answer.status != Status::Refused;
    match is_proposed {
        _ if args.json => as_json(answer, is_proposed),
        true => PROPOSED.to_owned(),
        false => as_line(answer),
    }
}

fn check(answer: &Answer, command: Command) -> CommandResult {
    if answer.status != Status::Refused {
        return Ok(());
    }
    let reason = answer.reason;
    let condition = match command {
        Command::SetRule(rule) if reason == Reason::InvalidRule => rule::condition(rule),
        _ => "",
    };
    Err(CommandError::Failed(format!("refused: {reason}: {}{condition}", reason.meaning())))
}

/// Whether the rule is a row of a timetable that changes the phase at once.
fn is_due(instrument: InstrumentId, rule: Rule, config: &SystemConfig, layout: &Layout) -> bool {
    let Rule::Schedule { at_ns, phase: Some(phase) } = rule else { return false };
    // A record that cannot be read says nothing.
    let Ok(standing) = Standing::read(config, layout) else { return false };
    let now = Timestamp(pares_os::clock::now_ns());
    standing.shards().any(|shard| {
        shard.book(instrument).is_some_and(|book| {
            let trading = book.trading();
            // A book with nothing due when its shard received the time receives it before the row is added.
            let done = trading.timetable_done.max(shard.market().time());
            let passed_over =
                trading.phase == phase || trading.phase == Phase::Halted && phase != Phase::Closed;
            !passed_over && rule::is_due(TimetableRow { at_ns, phase }, done, now)
        })
    })
}

fn request(
    what: &What,
    config: &SystemConfig,
    layout: &Layout,
) -> Result<(InstrumentId, Command), CommandError> {
    // Read for those requests only that name an instrument.
    let listed = LazyCell::new(|| Listed::read(config, layout));
    let named = |symbol: &str| listed.find(symbol);
    let all = InstrumentId(0);
    Ok(match what {
        What::Phase { instrument, phase } => (named(instrument)?, Command::SetPhase(Phase::from(*phase))),
        What::Rule { instrument, rule } => {
            (named(instrument)?, Command::SetRule(rule.rule().map_err(CommandError::Usage)?))
        }
        What::Add { id, symbol } => {
            let symbol = Symbol::new(symbol).map_err(|error| CommandError::Usage(error.to_string()))?;
            listed.check_free(&symbol, InstrumentId(*id))?;
            (InstrumentId(*id), Command::AddInstrument(symbol))
        }
        What::Remove { instrument } => (named(instrument)?, Command::RemoveInstrument),
        What::Block { member } => (all, Command::Block { member: MemberId(*member) }),
        What::Unblock { member } => (all, Command::Unblock { member: MemberId(*member) }),
        What::Bust { instrument, trade } => {
            let instrument = named(instrument)?;
            (instrument, Command::Bust(bust::recorded_trade(instrument, *trade, config, layout)?))
        }
        // A time for one instrument is what releases it.
        What::Release { instrument } => (named(instrument)?, Command::TIME),
        What::Time => (all, Command::TIME),
        What::Day { what: DayChange::Begin { day } } => {
            let today = BusinessDay::of(Timestamp(pares_os::clock::now_ns()));
            (all, Command::BeginDay { day: day.unwrap_or(today) })
        }
        What::Day { what: DayChange::End { day } } => {
            (all, Command::EndDay { day: day.map_or_else(|| day_on(config, layout), Ok)? })
        }
        What::Readmit { .. } | What::Lanes { .. } | What::Audit | What::Member(_) | What::FourEyes { .. } => {
            unreachable!("no request")
        }
    })
}

/// The day that is on, as the record has it.
fn day_on(config: &SystemConfig, layout: &Layout) -> Result<BusinessDay, CommandError> {
    let standing = Standing::read(config, layout)?;
    let on = standing.shards().map(|shard| shard.market().day()).find(|day| day.stage() != Stage::Over);
    match on.map(Day::number) {
        Some(BusinessDay::NONE) => Err(CommandError::Failed(
            "no business day has begun yet: begin one with `pares admin day begin`".to_owned(),
        )),
        Some(day) => Ok(day),
        None => Err(CommandError::Failed("the business day has already ended".to_owned())),
    }
}

/// Reads on or off.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

/// Reads the id of a new instrument.
fn id(text: &str) -> Result<u32, String> {
    let id = text.parse().ok().filter(|&id| InstrumentId(id).may_be_listed());
    id.ok_or_else(|| format!("an id must be 1 to {}", InstrumentId::LISTED_MAX))
}

/// Reads a member that can be blocked.
fn member(text: &str) -> Result<u32, String> {
    let member = text.parse().map_err(|_| "a member must be a number".to_owned())?;
    if member == EXCHANGE.0 {
        Err("member 0 is the exchange itself and cannot be blocked".into())
    } else {
        Ok(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruments_and_members_are_counted_from_1() {
        assert_eq!((id("1"), id("4294901759"), member("7")), (Ok(1), Ok(4_294_901_759), Ok(7)));
        for none in ["0", "4294901760", "4294967295", "4294967296", "x"] {
            assert_eq!(id(none).unwrap_err(), "an id must be 1 to 4294901759");
        }
        assert!(member("0").unwrap_err().contains("the exchange itself"));
        assert!(member("x").is_err());
    }
}

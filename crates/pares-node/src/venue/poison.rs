//! Requests that bring the matching engine down, for drills and tests.
//!
//! ```text
//!  PARES_POISON=666 pares up        the orders of member 666 are poison; the quantity says which
//! ```
//! | shares | what the engine does |
//! |---|---|
//! | 1 | panics |
//! | 2 | loops for ever |
//! | 3 | takes memory for ever |
//! | 4 | ends the process, as a full stack or no memory would |
//!
//! Each venue reads the variable once, when it starts, and says so on its standard error. Where it is not set it costs a
//! branch per request.

use pares_types::{Command, MemberId, Request};

use crate::NodeError;
use crate::error::complain;

/// The variable of the environment: a member.
pub const VARIABLE: &str = "PARES_POISON";

/// How the engine fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harm {
    Panic,
    Loop,
    Memory,
    Abort,
}

/// Whose orders are poison, if anybody's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Poison(Option<MemberId>);

impl Poison {
    /// As the environment says.
    pub(super) fn from_environment() -> Result<Self, NodeError> {
        let Ok(member) = std::env::var(VARIABLE) else { return Ok(Self(None)) };
        let wrong = || NodeError::Config(format!("{VARIABLE} is `{member}`: it names a member, as a number"));
        let member = member.parse().map(MemberId).map_err(|_| wrong())?;
        complain(format_args!("{VARIABLE}: the orders of member {member} bring the matching engine down"));
        Ok(Self(Some(member)))
    }

    /// Does what the request does to the engine.
    #[inline]
    pub(super) fn meet(self, request: &Request) {
        if self.0 == Some(request.member)
            && let Some(harm) = harm(request)
        {
            suffer(harm);
        }
    }
}

fn harm(request: &Request) -> Option<Harm> {
    let Command::Enter(order) = request.command else { return None };
    [Harm::Panic, Harm::Loop, Harm::Memory, Harm::Abort]
        .get(order.quantity.0.checked_sub(1)? as usize)
        .copied()
}

#[cold]
fn suffer(harm: Harm) {
    match harm {
        Harm::Panic => panic!("the matching engine met a poisonous request"),
        Harm::Loop => loop {
            std::hint::spin_loop();
        },
        Harm::Memory => {
            let mut taken: Vec<Vec<u8>> = Vec::new();
            loop {
                taken.push(std::hint::black_box(vec![1; 1 << 16]));
            }
        }
        Harm::Abort => std::process::abort(),
    }
}

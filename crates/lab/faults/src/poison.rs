//! Requests that bring the matching engine down.
//!
//! ```text
//!  PARES_POISON=666 pares-lab node venue-0      the orders of member 666 are poison; the quantity says which
//! ```
//! | shares | what the engine does |
//! |---|---|
//! | 1 | panics |
//! | 2 | loops for ever |
//! | 3 | takes memory for ever |
//! | 4 | ends the process, as a full stack or no memory would |

use pares_types::{Command, MemberId, Request};

/// The variable of the environment: a member. Nodes other than venues have no matching engine, and take no notice.
pub const VARIABLE: &str = "PARES_POISON";

/// Whose orders are poison, if any member's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Poison(Option<MemberId>);

impl Poison {
    /// As the variable says.
    pub(crate) fn read(variable: &impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let Some(member) = variable(VARIABLE) else { return Ok(Self(None)) };
        let wrong = || format!("{VARIABLE} is `{member}`, but must be a member's number");
        Ok(Self(Some(member.parse().map(MemberId).map_err(|_| wrong())?)))
    }

    pub(crate) fn member(self) -> Option<MemberId> {
        self.0
    }

    /// Does what the request does to the engine.
    #[inline]
    pub(crate) fn meet(self, request: &Request) {
        if self.0 == Some(request.member)
            && let Command::Enter(order) = request.command
        {
            suffer(order.quantity.0);
        }
    }
}

#[cold]
fn suffer(shares: u64) {
    match shares {
        1 => panic!("the matching engine met a poisonous request"),
        2 => loop {
            std::hint::spin_loop();
        },
        3 => {
            let mut taken: Vec<Vec<u8>> = Vec::new();
            loop {
                taken.push(std::hint::black_box(vec![1; 1 << 16]));
            }
        }
        4 => std::process::abort(),
        _ => {}
    }
}

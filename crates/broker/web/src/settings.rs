//! What this interface gets when it starts.

use std::sync::Arc;
use std::time::Duration;

/// The time, ms since 1970.
pub type WebClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// So much at once, and so much in a second from then on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// At once; at least 1.
    pub burst: f64,
    /// In a second; above 0.
    pub per_second: f64,
}

/// Limits and costs. The defaults are for a server that strangers reach.
#[derive(Clone)]
pub struct WebSettings {
    /// Commands of a user.
    pub commands: Allowance,
    /// Reads of a user.
    pub reads: Allowance,
    /// Requests from an address that say that they are a person's: looked at before a site is asked whose they are.
    pub callers: Allowance,
    /// Commands of a user for which the quote server has to be asked.
    pub fresh_quotes: Allowance,
    /// Tries to sign in, or to sign up, from an address.
    pub sign_ins: Allowance,
    /// Passwords of a person who is signed in that are looked at: each is a try of his address too.
    pub proofs: Allowance,
    /// Memory in KiB (8 at least) and passes (1 at least) of argon2id.
    pub password_cost: (u32, u32),
    /// Passwords looked at at a time.
    pub passwords_at_once: usize,
    /// No request waits longer for its body, or for a site.
    pub patience: Duration,
    /// Connections at a time; of one network (of IPv6 a /64) at most half.
    pub connections_max: usize,
    /// Names besides those of this machine itself that a server is asked by whose TLS does not end here; behind a proxy any, if there are none.
    pub hosts: Vec<String>,
    /// [Origins](pares_http::origins) of other servers' pages that may call, with a bearer token.
    pub origins: Vec<String>,
    /// The time.
    pub clock: WebClock,
}

impl Default for WebSettings {
    fn default() -> Self {
        Self {
            commands: Allowance { burst: 50.0, per_second: 20.0 },
            reads: Allowance { burst: 200.0, per_second: 50.0 },
            callers: Allowance { burst: 1_000.0, per_second: 200.0 },
            fresh_quotes: Allowance { burst: 60.0, per_second: 1.0 },
            sign_ins: Allowance { burst: 20.0, per_second: 0.5 },
            proofs: Allowance { burst: 10.0, per_second: 0.1 },
            password_cost: (19_456, 2),
            passwords_at_once: 2,
            patience: Duration::from_secs(15),
            connections_max: 1_024,
            hosts: Vec::new(),
            origins: Vec::new(),
            clock: Arc::new(|| pares_os::clock::now_ns() / 1_000_000),
        }
    }
}

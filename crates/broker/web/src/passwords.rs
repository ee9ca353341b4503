//! Passwords: argon2id, a few at a time.
//!
//! Looking at one takes 19 MiB and some tens of milliseconds, on purpose. On the threads that serve requests that would stop all others, and unbounded it would
//! be the cheapest way to take all memory. So it happens on threads of its own, so many at a time, and a short queue waits for them. Those who are signed in have half of that queue:
//! signing up is free, and who has signed up must not keep others from signing in.

use std::sync::Arc;

use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use pares_broker::PasswordString;
use pares_keys::opaque;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::{self, Answer, Problem};
use crate::settings::WebSettings;

/// So many wait for each that is looked at.
const WAITING_FOR_EACH: usize = 16;
/// Longest password, bytes: longer ones make no better key.
pub(crate) const PASSWORD_BYTES_MAX: usize = 256;
/// Shortest password, characters.
pub(crate) const PASSWORD_CHARACTERS_MIN: usize = 10;
const SALT_BYTES: usize = 16;

/// Who has a password looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    Anybody,
    SignedIn,
}

pub(crate) struct Passwords {
    argon: Argon2<'static>,
    /// Of those that are looked at and those that wait.
    places: Semaphore,
    /// Those of them that people who are signed in may have.
    places_inside: Semaphore,
    looking: Arc<Semaphore>,
    /// What the password of nobody is compared with, so that a name that is unknown takes as long as any.
    decoy: PasswordString,
}

impl Passwords {
    /// # Panics
    /// If the settings' cost is none that argon2id can have.
    pub(crate) fn new(settings: &WebSettings) -> Self {
        let (memory, passes) = settings.password_cost;
        let params = Params::new(memory, passes, 1, None).expect("a cost that argon2id can have");
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let looking = settings.passwords_at_once.max(1);
        let places = looking * (1 + WAITING_FOR_EACH);
        Self {
            decoy: hash(&argon, b"decoy"),
            argon,
            places: Semaphore::new(places),
            places_inside: Semaphore::new(places / 2),
            looking: Arc::new(Semaphore::new(looking)),
        }
    }

    /// The string that `password` fits, and no other.
    pub(crate) async fn hash(&self, password: String, asker: Asker) -> Answer<PasswordString> {
        let argon = self.argon.clone();
        self.look(asker, move || hash(&argon, opaque(&password).as_bytes())).await
    }

    /// The same on the thread that calls.
    pub(crate) fn hash_here(&self, password: &str) -> PasswordString {
        hash(&self.argon, opaque(password).as_bytes())
    }

    /// Whether `password` fits; one of nobody never does.
    pub(crate) async fn fits(
        &self,
        password: String,
        of: Option<PasswordString>,
        asker: Asker,
    ) -> Answer<bool> {
        let argon = self.argon.clone();
        let is_somebodys = of.is_some();
        let PasswordString(string) = of.unwrap_or_else(|| self.decoy.clone());
        let fits = move || argon.verify_password(opaque(&password).as_bytes(), string.as_str()).is_ok();
        Ok(self.look(asker, fits).await? && is_somebodys)
    }

    async fn look<T: Send + 'static>(
        &self,
        asker: Asker,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Answer<T> {
        let _inside = if asker == Asker::SignedIn { Some(place(&self.places_inside)?) } else { None };
        let _place = place(&self.places)?;
        let turn = self.looking.clone().acquire_owned().await.map_err(|_| problem::unavailable())?;
        // The turn goes along: who gives up waiting does not make room for another while this one is still looked at.
        let job = move || {
            let answer = job();
            drop(turn);
            answer
        };
        tokio::task::spawn_blocking(job).await.map_err(|_| problem::unavailable())
    }
}

fn hash(argon: &Argon2<'_>, password: &[u8]) -> PasswordString {
    let salt = &pares_keys::random()[..SALT_BYTES];
    let hashed = argon.hash_password_with_salt(password, salt).expect("salt and password are short");
    PasswordString(hashed.to_string())
}

fn place(of: &Semaphore) -> Answer<SemaphorePermit<'_>> {
    of.try_acquire().map_err(|_| Problem::too_many(2))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn signed_in_users_leave_half_the_places_for_sign_in() {
        let settings = WebSettings { password_cost: (8, 1), passwords_at_once: 1, ..WebSettings::default() };
        let passwords = Passwords::new(&settings);
        // Nobody's turn comes, so all that are asked for wait.
        let turn = passwords.looking.acquire().await.unwrap();
        let look = |asker| Box::pin(passwords.hash("correct horse".into(), asker));
        let mut waiting = Vec::new();
        let mut wait = |asker| {
            let mut look = look(asker);
            let answer = (&mut look).now_or_never();
            waiting.push(look);
            answer.map(|answer| answer.map(drop))
        };
        let refused = Some(Err(Problem::too_many(2)));
        for place in 0..8 {
            assert_eq!(wait(Asker::SignedIn), None, "{place}");
        }
        assert_eq!(wait(Asker::SignedIn), refused);
        for place in 8..17 {
            assert_eq!(wait(Asker::Anybody), None, "{place}");
        }
        assert_eq!(wait(Asker::Anybody), refused);
        drop((waiting, turn));
        assert!(look(Asker::SignedIn).await.is_ok());
    }
}

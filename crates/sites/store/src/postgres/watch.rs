//! Whether the server answers.
//!
//! A site asks its server when it has something for it, and waits as long as that takes: it cannot say meanwhile that it waits. So a thread asks,
//! once a second, on a connection of its own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use postgres::Client;

use super::{Options, failed};
use crate::error::StoreError;

/// Time between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// A server that has not answered for so long is said not to.
const PATIENCE: Duration = Duration::from_secs(5);

struct Heard {
    answered: Instant,
    /// Why it did not, if it did not.
    error: Option<String>,
}

/// The thread that asks. When this is dropped, it ends with its next answer.
pub struct Watch {
    heard: Arc<Mutex<Heard>>,
    ends: Arc<AtomicBool>,
}

impl Watch {
    /// Begins to ask the server that `options` names.
    ///
    /// # Errors
    /// If there is no room for another thread.
    pub fn begin(options: Options) -> io::Result<Self> {
        let heard = Arc::new(Mutex::new(Heard { answered: Instant::now(), error: None }));
        let ends = Arc::new(AtomicBool::new(false));
        let watch = Self { heard: Arc::clone(&heard), ends: Arc::clone(&ends) };
        std::thread::Builder::new().name("server".into()).spawn(move || {
            let mut client = None;
            while !ends.load(Ordering::Relaxed) {
                let answer = ask(&mut client, &options);
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.error = answer.as_ref().err().map(ToString::to_string);
                if answer.is_ok() {
                    heard.answered = Instant::now();
                }
                drop(heard);
                std::thread::park_timeout(EVERY);
            }
        })?;
        Ok(watch)
    }

    /// Why the server does not answer, and for how long; none if it does.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let silent = heard.answered.elapsed();
        let why = heard.error.as_deref().map_or(String::new(), |why| format!(" ({why})"));
        (silent > PATIENCE)
            .then(|| format!("its PostgreSQL server has not answered for {} s{why}", silent.as_secs()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn ask(client: &mut Option<Client>, options: &Options) -> Result<(), StoreError> {
    let connected = match client.take() {
        Some(connected) => connected,
        None => options.connect()?,
    };
    // One that has failed is not asked again.
    client.insert(connected).batch_execute("SELECT 1").map_err(failed).inspect_err(|_| *client = None)
}

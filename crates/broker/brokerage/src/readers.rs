//! Reads beside a front's duty cycle: on threads, each a blocking client of the sites.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pares_link::Door;
use pares_site::Client;
use pares_site::protocol::Horizon;

/// A read that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that only read execute nothing; so all can have this number.
pub(crate) const READER: u64 = 1;

/// Who is told what was read, or why nothing was.
type Then = Box<dyn FnOnce(Result<Vec<u8>, String>) + Send>;

struct Job {
    read: Vec<u8>,
    seen: Horizon,
    then: Then,
}

/// See the [module](self). The threads end when this is dropped and they have nothing to do.
#[derive(Clone)]
pub(crate) struct Readers {
    jobs: Sender<Job>,
}

impl Readers {
    /// So many threads, which begin with the first of these sites.
    pub(crate) fn start(count: usize, sites: &[Door]) -> io::Result<Self> {
        let (jobs, told) = channel();
        let told = Arc::new(Mutex::new(told));
        for _ in 0..count {
            let (told, client) = (Arc::clone(&told), Client::new(READER, 0, sites.to_vec()));
            std::thread::Builder::new().name("reader".into()).spawn(move || work(&told, client))?;
        }
        Ok(Self { jobs })
    }

    /// Reads from the stable version of any site that has all that was `seen`, and tells `then`.
    pub(crate) fn read(
        &self,
        read: Vec<u8>,
        seen: Horizon,
        then: impl FnOnce(Result<Vec<u8>, String>) + Send + 'static,
    ) {
        // Without threads nobody is told: that is when the process ends.
        let _ = self.jobs.send(Job { read, seen, then: Box::new(then) });
    }
}

fn work(told: &Mutex<Receiver<Job>>, mut client: Client) {
    loop {
        let job = told.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { read, seen, then }) = job else { return };
        client.has_seen(seen);
        then(client.read(&read, PATIENCE).map_err(|error| error.to_string()));
    }
}

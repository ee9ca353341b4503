//! Reads beside a front's duty cycle: on threads, each a blocking client of the sites.
//!
//! A queue without an end would grow for as long as sites are slow, and its reads be done for people who have gone. So [`WAITING_MAX`] wait at most, one more is refused at once, and one that
//! has waited for as long as a read may take is given up unasked.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pares_link::Door;
use pares_site::Client;
use pares_site::protocol::Horizon;

/// A read that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Reads that wait for a thread.
const WAITING_MAX: usize = 1_024;
/// Clients that only read execute nothing; so all can have this number.
pub(crate) const READER: u64 = 1;

/// Why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRead {
    /// As many reads as may wait do: later.
    #[error("too many reads wait")]
    Busy,
    /// No site has answered.
    #[error("{0}")]
    Silent(String),
}

/// Who is told what was read, or why nothing was.
type Then = Box<dyn FnOnce(Result<Vec<u8>, NotRead>) + Send>;

struct Job {
    read: Vec<u8>,
    seen: Horizon,
    since: Instant,
    then: Then,
}

/// See the [module](self). The threads end when this is dropped and they have nothing to do.
#[derive(Clone)]
pub(crate) struct Readers {
    jobs: SyncSender<Job>,
}

impl Readers {
    /// So many threads, which begin with the first of these sites.
    pub(crate) fn start(count: usize, sites: &[Door]) -> io::Result<Self> {
        Self::reading_by(count, || {
            let mut client = Client::new(READER, 0, sites.to_vec());
            move |read: &[u8], seen| {
                client.has_seen(seen);
                client.read(read, PATIENCE).map_err(|error| error.to_string())
            }
        })
    }

    /// So many threads, each of which reads so.
    fn reading_by<R>(count: usize, reader: impl Fn() -> R) -> io::Result<Self>
    where
        R: FnMut(&[u8], Horizon) -> Result<Vec<u8>, String> + Send + 'static,
    {
        let (jobs, told) = sync_channel(WAITING_MAX);
        let told = Arc::new(Mutex::new(told));
        for _ in 0..count {
            let (told, read) = (Arc::clone(&told), reader());
            std::thread::Builder::new().name("reader".into()).spawn(move || work(&told, read))?;
        }
        Ok(Self { jobs })
    }

    /// Reads from the stable version of any site that has all that was `seen`, and tells `then`: at once if it is refused.
    pub(crate) fn read(
        &self,
        read: Vec<u8>,
        seen: Horizon,
        then: impl FnOnce(Result<Vec<u8>, NotRead>) + Send + 'static,
    ) {
        let job = Job { read, seen, since: Instant::now(), then: Box::new(then) };
        // Without threads nobody is told: that is when the process ends.
        if let Err(TrySendError::Full(job)) = self.jobs.try_send(job) {
            (job.then)(Err(NotRead::Busy));
        }
    }
}

fn work(told: &Mutex<Receiver<Job>>, mut reader: impl FnMut(&[u8], Horizon) -> Result<Vec<u8>, String>) {
    loop {
        let job = told.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { read, seen, since, then }) = job else { return };
        let has_waited = since.elapsed() >= PATIENCE;
        then(if has_waited { Err(NotRead::Busy) } else { reader(&read, seen).map_err(NotRead::Silent) });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_read_beyond_those_that_may_wait_is_refused_at_once_and_the_others_are_done() {
        let ((began, begins), (go, wait)) = (channel(), channel::<()>());
        let wait = Arc::new(Mutex::new(wait));
        let readers = Readers::reading_by(1, || {
            let (began, wait) = (began.clone(), Arc::clone(&wait));
            move |read: &[u8], _| {
                began.send(()).expect("the test waits");
                // An error is the end of the wait.
                let _ = wait.lock().expect("one thread").recv();
                Ok(read.to_vec())
            }
        })
        .expect("a thread");
        let (tell, told) = channel();
        let read = |number: u64| {
            let tell = tell.clone();
            readers.read(number.to_be_bytes().to_vec(), Horizon::default(), move |answer| {
                tell.send(answer).expect("the test waits");
            });
        };
        read(0);
        begins.recv().expect("the thread has the first");
        let last = WAITING_MAX as u64;
        (1..=last).for_each(read);
        assert!(told.try_recv().is_err(), "all of them wait");
        read(last + 1);
        assert_eq!(told.try_recv(), Ok(Err(NotRead::Busy)));
        drop(go);
        for number in 0..=last {
            assert_eq!(told.recv(), Ok(Ok(number.to_be_bytes().to_vec())));
        }
    }
}

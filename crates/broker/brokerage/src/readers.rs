//! Reads beside a front's duty cycle: on threads, each a blocking client of the sites.
//!
//! A queue without an end would grow for as long as sites are slow, and its reads be done for people who have gone. So [`WAITING_MAX`] wait at most, one more is refused at once, and one that
//! has waited for as long as a read may take is given up unasked.
//!
//! A site that hangs still takes connections, so its silence is all that is seen of it, and each thread would find that out for itself, a second each. So all begin at the same site: the one at which
//! the read ended that had to continue from there. One that was left is asked again only when those behind it fail.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// What receives what was read, or why nothing was.
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
        let first = Arc::new(Mutex::new(sites[0].address()));
        Self::reading_by(count, || {
            let (mut client, first) = (Client::new(READER, 0, sites.to_vec()), Arc::clone(&first));
            move |read: &[u8], seen| {
                let began = *locked(&first);
                client.turn_to(began);
                client.has_seen(seen);
                let answer = client.read(read, PATIENCE).map_err(|error| error.to_string());
                let mut first = locked(&first);
                // Another thread may have gone further meanwhile.
                if answer.is_ok() && *first == began {
                    *first = client.site();
                }
                answer
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
        // Without threads there is no answer: that is when the process ends.
        if let Err(TrySendError::Full(job)) = self.jobs.try_send(job) {
            (job.then)(Err(NotRead::Busy));
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work(told: &Mutex<Receiver<Job>>, mut reader: impl FnMut(&[u8], Horizon) -> Result<Vec<u8>, String>) {
    loop {
        let job = locked(told).recv();
        let Ok(Job { read, seen, since, then }) = job else { return };
        let has_waited = since.elapsed() >= PATIENCE;
        then(if has_waited { Err(NotRead::Busy) } else { reader(&read, seen).map_err(NotRead::Silent) });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    use pares_link::frame;
    use pares_site::protocol::{Ask, Code, Reply};

    use super::*;

    /// A site that answers these tags when it hears that.
    fn site(hear: impl Fn(Ask) -> Vec<u64> + Send + Sync + 'static) -> Door {
        let (listener, hear) = (TcpListener::bind("127.0.0.1:0").expect("a port"), Arc::new(hear));
        let address = listener.local_addr().expect("it has one");
        std::thread::spawn(move || {
            for conn in listener.incoming() {
                let (conn, hear) = (conn.expect("a connection"), Arc::clone(&hear));
                std::thread::spawn(move || serve(conn, &*hear));
            }
        });
        address.into()
    }

    fn serve(mut conn: TcpStream, hear: &impl Fn(Ask) -> Vec<u64>) {
        let (mut input, mut bytes) = (Vec::new(), [0; 1_024]);
        while let Some(count) = conn.read(&mut bytes).ok().filter(|count| *count > 0) {
            input.extend_from_slice(&bytes[..count]);
            while let Some((frame, rest)) = frame::split(&input, 1 << 20).expect("a frame") {
                let ask = Ask::from_bytes(frame).expect("a question");
                input = rest.to_vec();
                for to in hear(ask) {
                    let reply = Reply { to, code: Code::Done, horizon: Horizon::default(), body: vec![7] };
                    let mut bytes = Vec::new();
                    frame::append(&mut bytes, &reply.to_bytes());
                    // Who gave it up does not hear it.
                    let _ = conn.write_all(&bytes);
                }
            }
        }
    }

    fn tag(ask: &Ask) -> u64 {
        match ask {
            Ask::Read(tag, ..) | Ask::Report(tag) => *tag,
            other => panic!("a reader does not ask {other:?}"),
        }
    }

    /// A site that counts the reads that it hears, and answers if it does not hang.
    fn counting(reads: &Arc<AtomicUsize>, hangs: bool) -> Door {
        let reads = Arc::clone(reads);
        site(move |ask| {
            reads.fetch_add(usize::from(matches!(ask, Ask::Read(..))), Ordering::SeqCst);
            if hangs { vec![] } else { vec![tag(&ask)] }
        })
    }

    #[test]
    fn hanging_site_is_left_by_its_read_others_start_elsewhere() {
        let reads = [Arc::<AtomicUsize>::default(), Arc::default()];
        let sites = [counting(&reads[0], true), counting(&reads[1], false)];
        let readers = Readers::start(2, &sites).expect("threads");
        let ((tell, told), (go, wait)) = (channel(), channel::<()>());
        let first = tell.clone();
        readers.read(vec![1], Horizon::default(), move |answer| {
            first.send(answer).expect("the test waits");
            // So the other thread does the reads behind it.
            let _ = wait.recv();
        });
        assert_eq!(told.recv(), Ok(Ok(vec![7])));
        for _ in 0..5 {
            let tell = tell.clone();
            readers.read(vec![2], Horizon::default(), move |answer| {
                tell.send(answer).expect("the test waits");
            });
            assert_eq!(told.recv(), Ok(Ok(vec![7])));
        }
        let reads = reads.map(|reads| reads.load(Ordering::SeqCst));
        assert_eq!(reads, [1, 6], "the site that hangs was asked once");
        drop(go);
    }

    #[test]
    fn a_site_that_is_slow_and_says_how_it_is_keeps_the_read() {
        let (others, heard) = (Arc::<AtomicUsize>::default(), Mutex::new((None, 0)));
        let slow = site(move |ask| {
            let (read, reports) = &mut *locked(&heard);
            match ask {
                Ask::Read(tag, ..) => {
                    assert_eq!(read.replace(tag), None, "it is asked once");
                    vec![]
                }
                ask => {
                    *reports += 1;
                    let answer = read.filter(|_| *reports == 4);
                    std::iter::once(tag(&ask)).chain(answer).collect()
                }
            }
        });
        let readers = Readers::start(1, &[slow, counting(&others, false)]).expect("a thread");
        let (tell, told) = channel();
        readers.read(vec![1], Horizon::default(), move |answer| tell.send(answer).expect("the test waits"));
        assert_eq!(told.recv(), Ok(Ok(vec![7])));
        assert_eq!(others.load(Ordering::SeqCst), 0, "no other site was asked");
    }

    #[test]
    fn excess_read_is_refused_at_once_others_complete() {
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

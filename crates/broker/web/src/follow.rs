//! What is new in users' logs, looked for once for all sockets of a user.
//!
//! The obvious form, in which each socket looks by itself, asks the sites as often as there are windows. Here the first socket of a user begins a look that continues for as long as there is one; what it
//! finds is handed to all. A socket that comes later takes what lies behind the moment at which it came.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use pares_broker::{AUDIT_PAGE_MAX, AuditEntry, AuditPage, BrokerRead, UserName, audit_place};
use tokio::sync::{OnceCell, broadcast};
use tokio::time::{MissedTickBehavior, interval};

use crate::app::{App, Shared};
use crate::history::newest;
use crate::problem::Answer;

/// The log is looked at so often, and at once again while there is more than a page: who has more happen to him in that time than a page holds would be told ever later.
const LOOK_EACH: Duration = Duration::from_millis(400);
/// So many entries wait for a socket.
const WAITING_MAX: usize = 1_024;

/// What sockets receive: an entry, or that no site answers.
pub(crate) type News = Answer<Arc<AuditEntry>>;

/// The logs that are followed.
#[derive(Default)]
pub(crate) struct Follows(Mutex<BTreeMap<UserName, Weak<Follow>>>);

/// A log that is followed for as long as a socket has this.
pub(crate) struct Follow {
    user: UserName,
    /// Where it begins, once that is known.
    start: OnceCell<u64>,
    news: broadcast::Sender<News>,
}

impl Follows {
    fn of(&self) -> MutexGuard<'_, BTreeMap<UserName, Weak<Follow>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, user: &UserName, which: &Weak<Follow>) {
        let mut of = self.of();
        if of.get(user).is_some_and(|found| found.ptr_eq(which)) {
            of.remove(user);
        }
    }
}

/// The place behind the newest entry of a user's log.
async fn behind(app: &App, user: &UserName) -> Answer<u64> {
    Ok(newest(app, user, None).await?.first().map_or(0, |entry| entry.place + 1))
}

/// Follows a user's log: what comes of it, of which only that from the place on is new, for as long as the first is kept.
///
/// # Errors
/// If no site answers.
pub(crate) async fn follow(
    app: &Shared,
    user: &UserName,
) -> Answer<(Arc<Follow>, broadcast::Receiver<News>, u64)> {
    let (follow, news) = joined(app, user);
    // It begins before what is read next, so nothing lies between.
    follow.start.get_or_try_init(|| behind(app, user)).await?;
    Ok((follow, news, behind(app, user).await?))
}

fn joined(app: &Shared, user: &UserName) -> (Arc<Follow>, broadcast::Receiver<News>) {
    let mut of = app.follows.of();
    if let Some(follow) = of.get(user).and_then(Weak::upgrade) {
        let news = follow.news.subscribe();
        return (follow, news);
    }
    let (sender, news) = broadcast::channel(WAITING_MAX);
    let follow = Arc::new(Follow { user: user.clone(), start: OnceCell::new(), news: sender });
    of.insert(user.clone(), Arc::downgrade(&follow));
    tokio::spawn(look(Arc::downgrade(app), user.clone(), Arc::downgrade(&follow)));
    (follow, news)
}

/// Looks until nobody follows any more, or no site answers.
async fn look(app: Weak<App>, user: UserName, which: Weak<Follow>) {
    let mut looks = interval(LOOK_EACH);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut next, mut reads_on) = (None, false);
    loop {
        if !reads_on {
            looks.tick().await;
        }
        let Some(app) = app.upgrade() else { return };
        let Some(follow) = which.upgrade() else { return app.follows.forget(&user, &which) };
        let Some(from) = next.or_else(|| follow.start.get().copied()) else { continue };
        match follow.entries(&app, from).await {
            Ok((place, has_more)) => {
                (next, reads_on) = (Some(place), has_more && follow.has_room());
            }
            Err(problem) => {
                app.follows.forget(&user, &which);
                // They may be gone.
                let _ = follow.news.send(Err(problem));
                return;
            }
        }
    }
}

impl Follow {
    /// Whether no socket is so far behind that another page would be too much for it.
    fn has_room(&self) -> bool {
        self.news.len() + AUDIT_PAGE_MAX <= WAITING_MAX
    }

    /// Hands on a page of the notices from a place on, and says where the next one begins, and whether it is there already.
    async fn entries(&self, app: &App, from: u64) -> Answer<(u64, bool)> {
        let read =
            BrokerRead::Log { user: Some(self.user.clone()), from: Some(audit_place(&self.user, from)) };
        let page: AuditPage = app.in_time(app.front.read(read)).await??;
        let (mut next, has_more) = (from, page.next.is_some());
        for entry in page.entries {
            next = entry.place + 1;
            // They may be gone.
            let _ = self.news.send(Ok(Arc::new(entry)));
        }
        Ok((next, has_more))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use pares_broker::{Asked, AuditRecord, BrokerReply, CommandName, StockQuote, StockSymbol};
    use pares_wice::codec::Coded as _;
    use tokio::time::Instant;

    use super::*;
    use crate::broker::{Broker, BrokerAnswer, Costs};
    use crate::settings::WebSettings;
    use pares_http::connections::WebTransport;

    /// A log of so many entries.
    #[derive(Clone, Default)]
    struct Log(Arc<AtomicU64>);

    impl Log {
        fn page(&self, read: &BrokerRead) -> AuditPage {
            let end = self.0.load(Ordering::SeqCst);
            let from = match read {
                BrokerRead::Log { from: Some(key), .. } => {
                    u64::from_be_bytes(*key.as_bytes().last_chunk().unwrap())
                }
                _ => end.saturating_sub(1),
            };
            let to = end.min(from + AUDIT_PAGE_MAX as u64);
            let record = AuditRecord {
                number: 1,
                time_ms: 1,
                command: None,
                reply: BrokerReply::Done,
                notes: Vec::new(),
            };
            let entry = |place| AuditEntry { user: "jo".to_owned(), place, record: record.clone() };
            let next = (to < end).then(|| audit_place(&jo(), to));
            AuditPage { entries: (from..to).map(entry).collect(), next }
        }
    }

    impl Broker for Log {
        fn ask(
            &self,
            _: Option<UserName>,
            _: Option<CommandName>,
            _: Asked,
        ) -> BrokerAnswer<'_, BrokerReply> {
            unreachable!("nobody asks")
        }

        fn read_bytes(&self, read: BrokerRead) -> BrokerAnswer<'_, Vec<u8>> {
            Box::pin(std::future::ready(Ok(self.page(&read).to_bytes())))
        }

        fn quote(&self, _: StockSymbol) -> Option<StockQuote> {
            None
        }

        fn quotes(&self) -> broadcast::Receiver<StockQuote> {
            broadcast::channel(1).1
        }

        fn costs(&self) -> Costs {
            Costs::default()
        }
    }

    fn jo() -> UserName {
        UserName::new("jo").unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn however_much_happens_it_is_told_as_it_happens() {
        let log = Log::default();
        let app = App::new(log.clone(), WebSettings::default(), &WebTransport::Loopback);
        let (_follow, mut news, next) = follow(&app, &jo()).await.unwrap();
        let (began, happened) = (Instant::now(), 25 * AUDIT_PAGE_MAX as u64);
        log.0.store(happened, Ordering::SeqCst);
        for place in next..happened {
            assert_eq!(news.recv().await.unwrap().unwrap().place, place, "none is left out");
        }
        // The clock of this test goes when all wait: it is not that of a machine.
        assert!(began.elapsed() <= 4 * LOOK_EACH, "{:?}", began.elapsed());
    }
}

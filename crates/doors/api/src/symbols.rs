//! Which instrument a symbol is.
//!
//! To ask a gateway for each order which number its symbol has would make two questions of one. To believe for long what was told once would refuse orders for a symbol that was
//! removed and listed again, under another number. Here a number is believed for two seconds, and while requests come somebody asks anew each second; a symbol that is not known is looked
//! up before anybody is told that there is no such instrument. Numbers are used once: an order under an old one is never another's. But its refusal is in the record and its name is used,
//! so it is not asked again here; no number is believed behind it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pares_http::problem::Problem;
use pares_resources::{InstrumentTold, LineTold, Question};
use pares_types::{Answer, ClientRequest, InstrumentId, Reason};
use tokio::time::timeout;

use crate::app::App;
use crate::orders::committed;
use crate::refused;
use crate::session::Session;

/// So old may be an instrument's state when it is told.
const FRESH: Duration = Duration::from_secs(1);
/// So long a symbol is believed to have its number.
const BELIEVED: Duration = Duration::from_secs(2);

/// Instruments by symbol, and when they were asked for.
struct Listed {
    asked: Instant,
    by_symbol: BTreeMap<String, Arc<InstrumentTold>>,
}

/// The list that a gateway told last.
#[derive(Default)]
pub(crate) struct Symbols {
    listed: RwLock<Option<Listed>>,
    /// When somebody asked on behalf of all.
    renewed: Mutex<Option<Instant>>,
}

impl Symbols {
    /// The instrument of that symbol, if it was asked for when `is_recent` says.
    fn known(&self, symbol: &str, is_recent: impl Fn(Instant) -> bool) -> Option<Arc<InstrumentTold>> {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.as_ref().filter(|listed| is_recent(listed.asked))?.by_symbol.get(symbol).cloned()
    }

    fn is_asked(&self, is_recent: impl Fn(Instant) -> bool) -> bool {
        let listed = self.listed.read().unwrap_or_else(PoisonError::into_inner);
        listed.as_ref().is_some_and(|listed| is_recent(listed.asked))
    }

    fn take(&self, asked: Instant, instruments: &[InstrumentTold]) {
        let of = |one: &InstrumentTold| (one.status.symbol.to_string(), Arc::new(one.clone()));
        let told = Listed { asked, by_symbol: instruments.iter().map(of).collect() };
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        if listed.as_ref().is_none_or(|before| before.asked < asked) {
            *listed = Some(told);
        }
    }

    fn forget(&self) {
        *self.listed.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether this is the one who asks for all, so that nobody who comes has to.
    fn is_to_renew(&self) -> bool {
        if self.is_asked(|asked| asked.elapsed() < FRESH) {
            return false;
        }
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_to_renew = renewed.is_none_or(|renewed| renewed.elapsed() >= FRESH);
        if is_to_renew {
            *renewed = Some(Instant::now());
        }
        is_to_renew
    }
}

impl App {
    /// The number that a symbol's instrument is believed to have, for a request that came then. Nobody waits for it whose symbol is known: one asks anew for all, meanwhile.
    pub(crate) async fn instrument_id(
        self: &Arc<Self>,
        session: &Arc<Session>,
        symbol: &str,
        came: Instant,
    ) -> Result<InstrumentId, Problem> {
        let Some(known) = self.symbols.known(symbol, |asked| asked.elapsed() < BELIEVED) else {
            return Ok(self.look_up(session, symbol, came).await?.status.instrument);
        };
        if self.symbols.is_to_renew() {
            let (app, session) = (Arc::clone(self), Arc::clone(session));
            tokio::spawn(async move { app.instruments(&session).await });
        }
        Ok(known.status.instrument)
    }

    /// The instrument of that symbol.
    pub(crate) async fn instrument(
        &self,
        session: &Session,
        symbol: &str,
    ) -> Result<Arc<InstrumentTold>, Problem> {
        match self.symbols.known(symbol, |asked| asked.elapsed() < FRESH) {
            Some(known) => Ok(known),
            None => self.look_up(session, symbol, Instant::now()).await,
        }
    }

    /// The same as it is told to one who asks no earlier than the request came. The session asks itself, so that no other one's gateway is waited for; of all that it wants to
    /// know at a time, once.
    pub(crate) async fn look_up(
        &self,
        session: &Session,
        symbol: &str,
        came: Instant,
    ) -> Result<Arc<InstrumentTold>, Problem> {
        let asking = async {
            let _one = session.looking_up.lock().await;
            if !self.symbols.is_asked(|asked| asked >= came) {
                self.instruments(session).await?;
            }
            self.symbols.known(symbol, |asked| asked >= came).ok_or_else(refused::unknown_instrument)
        };
        timeout(self.settings.patience, asking).await.unwrap_or_else(|_| Err(refused::no_answer_yet()))
    }

    /// Asks for something of an instrument. If the exchange has none of that number, no number is believed any longer.
    pub(crate) async fn ask_of(&self, session: &Session, request: ClientRequest) -> Result<Answer, Problem> {
        let answer = session.ask(request).await?;
        if matches!(answer, LineTold::Answer(Answer { reason: Reason::UnknownInstrument, .. })) {
            self.symbols.forget();
        }
        committed(answer)
    }

    /// The number of a symbol's instrument, if another one than was believed has it by now. Of an instrument that is gone a gateway knows no order, and refuses nothing.
    pub(crate) async fn renumbered(
        &self,
        session: &Session,
        (symbol, believed): (&str, InstrumentId),
        came: Instant,
    ) -> Result<Option<InstrumentId>, Problem> {
        match session.question(Question::Instrument(believed)).await? {
            LineTold::Instruments(one) if one.is_empty() => {
                self.look_up(session, symbol, came).await.map(|now| Some(now.status.instrument))
            }
            _ => Ok(None),
        }
    }

    /// All instruments, asked for anew.
    pub(crate) async fn instruments(&self, session: &Session) -> Result<Vec<InstrumentTold>, Problem> {
        let asked = Instant::now();
        let LineTold::Instruments(instruments) = session.question(Question::Instruments).await? else {
            return Err(refused::no_answer_yet());
        };
        self.symbols.take(asked, &instruments);
        Ok(instruments)
    }
}

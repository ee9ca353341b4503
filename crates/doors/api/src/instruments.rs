//! Instruments: their rules, how they trade, and which one a symbol is.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Path;
use pares_http::problem::Problem;
use pares_resources::decimal::price_text;
use pares_resources::order_terms::phase_word;
use pares_resources::{InstrumentTold, LineTold, Question};
use pares_types::{Answer, ClientRequest, InstrumentId, Price, Reason};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::{Answered, Call};
use crate::forms::{maybe_price, told_of};
use crate::orders::committed;
use crate::refused;
use crate::session::Session;
use crate::symbols::{BELIEVED, FRESH};

told_of! {
    /// An instrument.
    InstrumentShown(told: &InstrumentTold) {
        /// Its symbol.
        symbol: String = told.status.symbol.to_string(),
        /// Its number.
        #[schema(value_type = u64)]
        instrument: u32 = told.status.instrument.0,
        /// Its shard.
        shard: u16 = told.status.shard.0,
        /// `closed`, `opening_call`, `continuous`, `volatility_call`, `closing_call`, `post_close`, `halted`.
        phase: &'static str = phase_word(told.status.phase),
        /// Whether it takes nothing because the matching engine failed at a request.
        is_quarantined: bool = told.status.quarantined,
        /// The price of the last trade.
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<String> = maybe_price(told.status.last),
        /// What bands and auctions refer to.
        #[serde(skip_serializing_if = "Option::is_none")]
        reference: Option<String> = maybe_price(told.status.reference),
        /// The smallest step of a quantity.
        lot: String = told.status.lot.to_string(),
        /// The largest order, shares.
        quantity_max: String = told.status.quantity_max.to_string(),
        /// The lowest legal limit.
        price_min: String = price_text(told.status.price_min),
        /// The highest legal limit.
        price_max: String = price_text(told.status.price_max),
        /// The steps of prices, the lowest prices first.
        ticks: Vec<TickShown> = told.ticks.iter().map(|tick| TickShown::new(tick, told.status.price_min)).collect(),
    }
}

/// From a price on, the step.
#[derive(Serialize, ToSchema)]
pub(crate) struct TickShown {
    from: String,
    tick: String,
}

impl TickShown {
    /// The first step is of all prices below the next, the lowest legal one and upwards.
    fn new((from, tick): &(Price, Price), lowest: Price) -> Self {
        Self { from: price_text((*from).max(lowest)), tick: price_text(*tick) }
    }
}

/// All instruments.
#[derive(Serialize, ToSchema)]
pub(crate) struct InstrumentsShown {
    instruments: Vec<InstrumentShown>,
}

/// All instruments.
#[utoipa::path(get, path = "/v1/instruments", operation_id = "instruments", tag = "market", responses(
    (status = 200, description = "They", body = InstrumentsShown)))]
pub(crate) async fn list(call: Call) -> Answered {
    let instruments = call.app.instruments(&call.session).await?;
    let instruments = instruments.iter().map(InstrumentShown::from).collect();
    call.ok("instruments", &InstrumentsShown { instruments })
}

/// An instrument.
#[utoipa::path(get, path = "/v1/instruments/{symbol}", operation_id = "instrument", tag = "market", params(("symbol" = String, Path)), responses(
    (status = 200, description = "It, not more than a second old", body = InstrumentShown)))]
pub(crate) async fn one(Path(symbol): Path<String>, call: Call) -> Answered {
    let told = call.app.instrument(&call.session, &symbol).await?;
    call.ok("instrument", &InstrumentShown::from(&*told))
}

impl App {
    /// The number that a symbol's instrument is believed to have, for a request that came then. A request whose symbol is known does not wait for it: one asks again for all, meanwhile.
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

    /// The same as one receives it who asks no earlier than the request came. The session asks itself, so that no other one's gateway is waited for; of all that it wants to
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

    /// All instruments, asked for again.
    pub(crate) async fn instruments(&self, session: &Session) -> Result<Vec<InstrumentTold>, Problem> {
        let asked = Instant::now();
        let LineTold::Instruments(instruments) = session.question(Question::Instruments).await? else {
            return Err(refused::no_answer_yet());
        };
        self.symbols.take(asked, &instruments);
        Ok(instruments)
    }
}

//! Trades for a session that asks (AD): those that were, and those that come.
//!
//! A door keeps no trades: all of a day would be without bound, and the next gateway would not have them. They are in the member's streams, and the gateway
//! sends those again from the oldest number that is kept. Meanwhile what the session was sent before becomes AE and nothing else; what is new
//! becomes the report that it would have been, and AE besides.
//!
//! ```text
//!   AD --AQ--> each shard: Resume from the oldest --AE, AE ...--> all live --AE 912=Y--> over, or with 263=1 what comes
//! ```
//! A gateway sends a shard from one place at a time. So a shard that it sends again for another reason waits for its turn, and one who lacks
//! messages waits until the trades are sent.

use pares_fix::dictionary::tag;
use pares_fix::message::FixMessage;
use pares_types::{OrderKey, ShardId};
use pares_wire::frame::ClientFrame;

use crate::desk::Desk;
use crate::outbound::Told;
use crate::pending::{Place, TradesAsked};
use crate::trades_told::{TradeReport, TradesAnswer, TradesStatus};
use crate::types::Heard;

/// A longer TradeRequestID is refused.
const ID_BYTES_MAX: usize = 64;

/// TradeRequestResult (749).
mod result {
    pub(super) const SUCCESSFUL: u64 = 0;
    pub(super) const NOT_SUPPORTED: u64 = 8;
    pub(super) const OTHER: u64 = 99;
}

type Refused = (u64, &'static str);

impl Desk {
    /// TradeCaptureReportRequest.
    pub(crate) fn on_trades_question(&mut self, message: &FixMessage<'_>) {
        let id = message.text(tag::TRADE_REQUEST_ID).unwrap_or_default();
        let kind = message.text(tag::TRADE_REQUEST_TYPE).unwrap_or_default();
        let done = match message.text(tag::SUBSCRIPTION_REQUEST_TYPE) {
            _ if id.len() > ID_BYTES_MAX => {
                Err((result::OTHER, "TradeRequestID (568) may have at most 64 bytes"))
            }
            Some(b"2") => self.end_trades(id),
            _ if kind != b"0" => Err((result::NOT_SUPPORTED, "TradeRequestType (569) must be 0: all trades")),
            subscription => self.begin_trades(id, subscription == Some(b"1")),
        };
        let (status, (result, text)) = match done {
            Ok(status) => (status, (result::SUCCESSFUL, "")),
            Err(refused) => (TradesStatus::Rejected, refused),
        };
        let request = id[..id.len().min(ID_BYTES_MAX)].to_vec();
        let answer = TradesAnswer { request, kind: kind.to_vec(), total: None, result, status, text };
        self.told.push(Told::Trades(answer));
        self.ask_for_trades();
    }

    fn begin_trades(&mut self, id: &[u8], lasts: bool) -> Result<TradesStatus, Refused> {
        if self.trades.asked.is_some() {
            return Err((result::OTHER, "a session may have only one trade request at a time"));
        }
        let untold = self.streams.next().map(|(shard, _)| (shard, None)).collect();
        self.trades.asked = Some(TradesAsked { id: id.to_vec(), lasts, untold, last: None });
        Ok(TradesStatus::Accepted)
    }

    fn end_trades(&mut self, id: &[u8]) -> Result<TradesStatus, Refused> {
        let ended = self.trades.asked.take_if(|asked| asked.id == id);
        let ended = ended.ok_or((result::OTHER, "no trade request has that TradeRequestID (568)"))?;
        self.told.extend(ended.last.map(Told::Trade));
        Ok(TradesStatus::Completed)
    }

    /// Asks for what was not sent yet, of the shards that are live.
    pub(crate) fn ask_for_trades(&mut self) {
        let Some(asked) = &mut self.trades.asked else { return };
        for (shard, place) in asked.untold.iter_mut().filter(|(_, place)| place.is_none()) {
            if self.streams.begin_trades(*shard) {
                *place = Some(Place { from: 1, next: 1 });
                self.asks.push(ClientFrame::Resume { shard: Some(*shard), next: 1 });
            }
        }
    }

    /// A shard is live from now on. Gives where the gateway is to send it again from, if so.
    pub(crate) fn on_live(&mut self, shard: ShardId, next: u64) -> Option<u64> {
        self.end_shard(shard);
        self.streams.on_live(shard, next)
    }

    /// What was asked for of a shard is kept from that number on only. Gives where to ask again from.
    pub(crate) fn on_trades_not_kept(&mut self, shard: ShardId, oldest: u64) -> Option<u64> {
        let untold = self.trades.asked.as_mut().and_then(|asked| asked.untold.get_mut(&shard)?.as_mut());
        match untold {
            Some(place) if oldest > place.from => {
                place.next = place.next.max(oldest);
                place.from = place.next;
                Some(place.from)
            }
            _ => {
                self.end_shard(shard);
                self.streams.give_up_trades(shard)
            }
        }
    }

    /// If that was under way, the earlier trades of the shard have all been reported; behind the last shard the last trade is.
    fn end_shard(&mut self, shard: ShardId) {
        let Some(asked) = &mut self.trades.asked else { return };
        let was_under_way = asked.untold.get(&shard).is_some_and(Option::is_some);
        if !was_under_way {
            return;
        }
        asked.untold.remove(&shard);
        if !asked.untold.is_empty() {
            return;
        }
        match asked.last.take() {
            Some(mut last) => {
                last.is_last = true;
                self.told.push(Told::Trade(last));
            }
            None => self.told.push(Told::Trades(TradesAnswer {
                request: asked.id.clone(),
                kind: b"0".to_vec(),
                total: Some(0),
                result: result::SUCCESSFUL,
                status: TradesStatus::Completed,
                text: "",
            })),
        }
        if !asked.lasts {
            self.trades.asked = None;
        }
    }

    /// Tells something of a stream as a trade, if it is one that was asked for.
    pub(crate) fn report_trade(&mut self, heard: &Heard, at: (ShardId, u64)) {
        let Some(asked) = self.trades.asked.as_mut() else { return };
        if !asked.wants(at, heard.is_new) {
            return;
        }
        let Some(mut report) = TradeReport::of(&heard.reply, &asked.id) else { return };
        let of_order = || self.orders.by_key(OrderKey::Id(report.order))?.side;
        report.side = report.side.or_else(of_order);
        let report = Box::new(report);
        let told = if asked.untold.is_empty() { Some(report) } else { asked.last.replace(report) };
        self.told.extend(told.map(Told::Trade));
    }
}

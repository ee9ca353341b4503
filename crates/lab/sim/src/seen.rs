//! What happened in a run, counted: structs of counters, each listed once.

/// Structs of counters that are added up over members, subscribers or runs.
macro_rules! counters {
    ($($(#[$of:meta])* $name:ident { $($(#[$is:meta])* $counter:ident,)* })*) => {
        $($(#[$of])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$is])* pub $counter: u64,)*
        }

        impl $name {
            /// Both together. A digest among them is mixed.
            #[must_use]
            pub fn and(self, other: &Self) -> Self {
                Self { $($counter: self.$counter.wrapping_add(other.$counter),)* }
            }
        })*
    };
}

pub(crate) use counters;

counters! {
    /// Cases of the rule book that a run met.
    Seen {
        /// Stop orders triggered.
        triggered,
        /// Pegged orders that moved to another price.
        repriced,
        /// Buy orders that traded in auctions.
        auctioned,
        /// Icebergs that showed more.
        refilled,
        /// Orders that continued in a later step.
        continued,
        /// Opening and closing calls that were extended.
        extended,
        /// Orders cancelled because they met one of the same member.
        self_trades,
        /// Orders whose date passed.
        expired,
        /// Orders cancelled by the kill switch.
        blocked,
        /// Orders cancelled because the session that guarded them had ended.
        session_ended,
        /// Calls because of a price band.
        volatility_calls,
        /// Requests carried out in part.
        unfinished,
    }

    /// What became of matching engines that failed.
    Engines {
        /// Times one failed, whatever the reason.
        failed,
        /// Of those, for no reason in the request.
        by_themselves,
        /// Processes that ended with it.
        deaths,
        /// Shards restored while the others continued.
        restored,
        /// Requests void.
        voids,
        /// Requests refused because their instrument was quarantined.
        quarantined,
    }

    /// What hit disks and clocks in a run.
    FaultCounts {
        /// Moves of shards that came to their end.
        moved,
        /// Disks that were full for a while.
        full,
        /// Requests refused because a gateway's disk was.
        refused_for_room,
        /// Requests refused because nothing was being recorded.
        refused_unrecorded,
        /// Requests refused because their names were forgotten.
        too_old,
        /// Sessions ended because their key was changed or revoked.
        revoked,
        /// Sign-ons refused because of the key.
        wrong_keys,
        /// Operators' requests refused since others went past them, as often as a log took them.
        overtaken,
        /// Disks that were slow for a while.
        slow,
        /// Syncs that failed.
        syncs_failed,
        /// Recorders that came back with an empty disk.
        wiped,
        /// Venues that did.
        venues_wiped,
        /// Publishers that did.
        publishers_wiped,
        /// Gateways that lost their disk.
        gateways_wiped,
        /// Bits that flipped in logs and checkpoints.
        damaged,
        /// Times a host was out of descriptors or threads.
        exhausted,
        /// Recorders that found venues to differ and halted.
        divergences,
        /// Of those, the ones that shut a venue out, and halted nothing.
        shut_out,
        /// Runs in which a venue of another build had other results that nobody contradicted.
        unnoticed,
        /// Half-written records left behind.
        torn,
        /// Clocks set.
        clock_jumps,
    }

    /// What became of market data.
    FeedSeen {
        /// Packets sent on lines.
        packets,
        /// Packets sent again by UDP.
        answers,
        /// Connections to replayers.
        calls,
        /// Calls that failed.
        failed_calls,
        /// Packets that nobody should send.
        forged,
        /// Sessions begun in the record, of all shards.
        sessions,
        /// Messages handed out to subscribers.
        handed_out,
        /// Books replaced by a snapshot.
        resets,
        /// Gaps that nothing filled.
        unfilled,
        /// Claims of packets that publishers said were not true.
        refuted,
        /// Times a subscriber was found current.
        current,
        /// ... at the end of its session.
        over,
        /// ... with messages missing.
        gap,
        /// ... asking what is true.
        recovering,
        /// ... not having heard anything for long.
        stale,
    }

    /// What members that come by FIX met.
    FixSeen {
        /// Logons that were accepted.
        logons,
        /// Logons that were refused.
        refused,
        /// Reports told.
        reports,
        /// Of those, of another member's orders.
        copied,
        /// Of those, told before.
        told_again,
        /// Trades told to who asked for them.
        trades,
        /// Questions for trades that were answered to the end.
        trades_whole,
        /// Questions for trades that a connection's end cut short.
        trades_cut,
        /// Gaps in the exchange's numbers.
        gaps,
        /// Requests sent again with 43=Y.
        sent_again,
        /// TestRequests answered.
        tests,
        /// Sessions whose numbers restarted because what gateways knew of them was lost with a disk.
        anew,
    }

    /// What members that come by OUCH met.
    OuchSeen {
        /// Logins that were accepted.
        logins,
        /// Logins that were rejected.
        rejected,
        /// Packets of the stream.
        packets,
        /// Of those, told before.
        told_again,
        /// What was said beside the stream.
        beside,
        /// Orders and changes sent again under their UserRefNums.
        sent_again,
        /// Orders and changes answered.
        answered,
    }

    /// What members that come by HTTP met.
    WebSeen {
        /// Sign-ons that gateways accepted.
        sign_ons,
        /// Servers that died, with all that they knew.
        deaths,
        /// Requests asked again by clients.
        asked_again,
        /// Requests answered.
        answered,
        /// Of those, by what says that it was done before.
        repeats,
        /// Questions answered.
        questions,
        /// Reports told, to each who follows.
        reports,
        /// Streams that were not told to one who follows: what comes next for him is kept no more.
        not_told,
        /// Times that one who follows was ahead of what the gateway has.
        ahead,
        /// Times that one who was ahead came to be told.
        caught_up,
    }
}

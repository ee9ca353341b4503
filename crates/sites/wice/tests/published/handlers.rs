//! Figure 2 and figures 3a, 3b, 3c, handler by handler, with the places where a repair changes them.

use crate::system::{Certifier, Envelope, Local, Message, State, Tid, Told, Update, Version, Wice};

impl Wice {
    /// Sends to a site, or to nobody: the dead do not receive, and who was declared dead is not listened to.
    pub fn send(&self, state: &mut State, from: usize, to: usize, message: Message) {
        let apart = self.cluster(from) != self.cluster(to);
        if state.sites[to].alive && (!apart || state.clusters[self.cluster(from)].remote) {
            state.post.insert(Envelope { from, to, message });
        }
    }

    fn remote(&self, site: usize) -> usize {
        1 - self.cluster(site)
    }

    fn is_delegate(&self, state: &State, site: usize) -> bool {
        state.clusters[self.cluster(site)].delegate == site
    }

    /// `fifo_u_vscast`, refused to a site no longer in the view. A multicast that is not uniform is delivered at
    /// the sender at once.
    fn multicast(&self, state: &mut State, from: usize, message: Local) {
        if !self.is_delegate(state, from) {
            return;
        }
        state.clusters[self.cluster(from)].sending.push(message.clone());
        if !self.repairs.uniform {
            self.deliver(state, from, message);
        }
    }

    fn send_update(&self, state: &mut State, from: usize, update: Update, reign: u8) {
        let cluster = self.remote(from);
        let to = state.clusters[cluster].delegate;
        if state.clusters[1 - cluster].remote && state.sites[to].alive {
            state.updates.entry((from, to)).or_default().push((update, reign));
        }
    }

    /// 2:21, or with the queue of a certifier that awaits answers.
    pub fn on_certify(&self, state: &mut State, site: usize, from: usize, tid: Tid, snapshot: Version) {
        let Some(certifier) = &mut state.sites[site].certifier else { return };
        if let Some(waiting) = &mut certifier.blocked {
            waiting.push((from, tid, snapshot));
            return;
        }
        if self.repairs.deduplicated && certifier.certified.iter().any(|update| update.tid == tid) {
            return; // its update tells the initiator
        }
        let reign = certifier.reign;
        let newer =
            |version| version > snapshot || !self.repairs.own_snapshot_is_no_conflict && version == snapshot;
        let conflict = |update: &Update| newer(update.version) && self.item(update.tid) == self.item(tid);
        if certifier.certified.iter().any(conflict) {
            return self.send(state, site, from, Message::Abort { tid, reign });
        }
        certifier.gts += 1;
        let update = Update { tid, version: certifier.gts };
        certifier.certified.push(update);
        self.multicast(state, site, Local::Update(update, reign));
        self.send_update(state, site, update, reign);
    }

    pub fn item(&self, tid: Tid) -> u8 {
        self.transactions[usize::from(tid)].item
    }

    /// 2:18
    pub fn on_abort(&self, state: &mut State, tid: Tid, reign: u8) {
        let attempt = &mut state.attempts[usize::from(tid)];
        let outdated = self.repairs.deduplicated && reign < attempt.asked;
        if attempt.told == Told::Nothing && !outdated {
            attempt.told = Told::Aborted;
        }
    }

    /// 2:32
    pub fn on_remote_update(&self, state: &mut State, site: usize, update: Update, reign: u8) {
        if !(self.repairs.fenced && reign < state.sites[site].reign) {
            self.multicast(state, site, Local::Update(update, reign));
        }
    }

    /// A message of the cluster's multicast is delivered at one of its sites.
    pub fn deliver(&self, state: &mut State, site: usize, message: Local) {
        match message {
            Local::Update(_, reign) if self.repairs.fenced && reign < state.sites[site].reign => {}
            Local::Update(update, _) => self.on_local_update(state, site, update),
            Local::Stable(tid) => {
                state.sites[site].stable.insert(tid);
            }
            Local::StableTo(version) => {
                let mark = &mut state.sites[site].stable_to;
                *mark = version.max(*mark);
            }
            Local::Promise { reign, after, to } => {
                state.sites[site].reign = reign;
                state.sites[site].early.clear();
                if self.is_delegate(state, site) {
                    self.answer_certifier(state, site, after, to, reign);
                }
            }
        }
    }

    /// 2:35
    fn on_local_update(&self, state: &mut State, site: usize, update: Update) {
        if !self.repairs.idempotent {
            return self.accept(state, site, update);
        }
        let here = &mut state.sites[site];
        if usize::from(update.version) > here.updated.len() && !here.early.contains(&update) {
            here.early.push(update);
            here.early.sort_unstable();
        }
        while let Some(at) = self.in_turn(state, site) {
            let next = state.sites[site].early.remove(at);
            self.accept(state, site, next);
        }
    }

    fn in_turn(&self, state: &State, site: usize) -> Option<usize> {
        let here = &state.sites[site];
        here.early.iter().position(|update| usize::from(update.version) == here.updated.len() + 1)
    }

    fn accept(&self, state: &mut State, site: usize, update: Update) {
        state.sites[site].updated.push(update);
        if !self.slow.contains(&site) {
            self.install(state, site, update.tid);
        }
        if !self.is_delegate(state, site) {
            return;
        }
        let to = state.clusters[self.remote(site)].delegate;
        if self.repairs.watermarks {
            let delivered = self.delivered(state, site);
            // The later mark says what an earlier one on its way would say.
            let newer = |envelope: &Envelope| {
                !(envelope.from == site && matches!(envelope.message, Message::AckTo { .. }))
            };
            state.post.retain(newer);
            self.send(state, site, to, Message::AckTo { delivered });
            self.announce(state, site);
        } else {
            self.send(state, site, to, Message::Ack { tid: update.tid });
        }
    }

    fn delivered(&self, state: &State, site: usize) -> Version {
        state.sites[site].updated.iter().map(|update| update.version).max().unwrap_or(0)
    }

    /// Watermarks: what all live clusters have delivered is stable.
    fn announce(&self, state: &mut State, site: usize) {
        let theirs =
            if state.clusters[self.cluster(site)].remote { state.sites[site].acked_to } else { Version::MAX };
        let stable = self.delivered(state, site).min(theirs);
        let known = state.clusters[self.cluster(site)].sending.contains(&Local::StableTo(stable));
        if stable > state.sites[site].stable_to && !known {
            self.multicast(state, site, Local::StableTo(stable));
        }
    }

    /// 2:46 and, the condition being the same, 3a:14-20 and 3c:3-7.
    fn acknowledged(&self, state: &mut State, site: usize, tid: Tid) {
        let own = self.cluster(site);
        if !state.clusters[own].remote || state.sites[site].acks.contains(&tid) {
            self.multicast(state, site, Local::Stable(tid));
        }
    }

    pub fn receive(&self, state: &mut State, envelope: Envelope) {
        let Envelope { from, to: site, message } = envelope;
        match message {
            Message::Certify { tid, snapshot } => self.on_certify(state, site, from, tid, snapshot),
            Message::Abort { tid, reign } => self.on_abort(state, tid, reign),
            Message::Ack { tid } => {
                state.sites[site].acks.insert(tid);
                self.acknowledged(state, site, tid);
            }
            Message::AckTo { delivered } => self.on_watermark(state, site, delivered),
            Message::AckSync { upto, reply } => self.on_ack_sync(state, site, from, upto, reply),
            Message::DelegateSync { after } => self.on_delegate_sync(state, site, after),
            Message::CertSyncRequest { after, reign } if self.repairs.fenced => {
                self.multicast(state, site, Local::Promise { reign, after, to: from });
            }
            Message::CertSyncRequest { after, reign } => {
                self.answer_certifier(state, site, after, from, reign)
            }
            Message::CertSyncReply { upto, missing, reign: _ } => self.on_reply(state, site, upto, &missing),
        }
    }

    fn on_watermark(&self, state: &mut State, site: usize, delivered: Version) {
        let mark = &mut state.sites[site].acked_to;
        *mark = delivered.max(*mark);
        self.announce(state, site);
    }

    /// What a site answers or asks by: the paper's `lts`, or with watermarks what it has delivered.
    fn own_mark(&self, state: &State, site: usize) -> Version {
        if self.repairs.watermarks { self.delivered(state, site) } else { state.sites[site].lts }
    }

    /// 3a:1
    fn new_delegate(&self, state: &mut State, site: usize) {
        let upto = self.own_mark(state, site);
        let certifier = state.clusters[self.cluster(site)].certifier;
        if certifier != site {
            self.send(state, site, certifier, Message::DelegateSync { after: upto });
        }
        let remote = state.clusters[self.remote(site)].delegate;
        self.send(state, site, remote, Message::AckSync { upto, reply: true });
    }

    /// 3a:6
    fn on_delegate_sync(&self, state: &mut State, site: usize, after: Version) {
        let Some(Certifier { reign, certified, .. }) = state.sites[site].certifier.clone() else { return };
        for update in certified.into_iter().filter(|update| update.version > after) {
            self.send_update(state, site, update, reign);
        }
    }

    /// 3a:12
    fn on_ack_sync(&self, state: &mut State, site: usize, from: usize, upto: Version, reply: bool) {
        if self.repairs.watermarks {
            self.on_watermark(state, site, upto);
        } else {
            for update in state.sites[site].updated.clone().iter().filter(|update| update.version <= upto) {
                state.sites[site].acks.insert(update.tid);
                self.acknowledged(state, site, update.tid);
            }
        }
        if reply {
            let upto = self.own_mark(state, site);
            self.send(state, site, from, Message::AckSync { upto, reply: false });
        }
    }

    /// 3b:1
    fn new_certifier(&self, state: &mut State, site: usize) {
        let reign = state.clusters.iter().map(|cluster| cluster.reign).max().unwrap_or(0) + 1;
        for cluster in 0..2 {
            if cluster == self.cluster(site) || state.clusters[cluster].remote {
                state.clusters[cluster].certifier = site;
                state.clusters[cluster].reign = reign;
            }
        }
        state.sites[site].reign = reign;
        state.sites[site].certifier =
            Some(Certifier { reign, blocked: Some(vec![]), ..Certifier::default() });
        let after = self.own_mark(state, site);
        let to = state.clusters[self.remote(site)].delegate;
        self.send(state, site, to, Message::CertSyncRequest { after, reign });
        if self.repairs.watermarks && !state.clusters[self.cluster(site)].remote {
            self.on_reply(state, site, Version::MAX, &[]);
        }
    }

    /// 3b:7
    fn answer_certifier(&self, state: &mut State, site: usize, after: Version, to: usize, reign: u8) {
        let upto = self.own_mark(state, site);
        let missing =
            state.sites[site].updated.iter().filter(|update| update.version > after).copied().collect();
        self.send(state, site, to, Message::CertSyncReply { upto, missing, reign });
    }

    /// 3b:14, when it was the last reply (there is one other cluster).
    fn on_reply(&self, state: &mut State, site: usize, theirs: Version, missing: &[Update]) {
        let here = state.sites[site].clone();
        let Some(mut certifier) = here.certifier else { return };
        let mut all = if self.repairs.certified_is_rebuilt { here.updated.clone() } else { vec![] };
        all.extend(missing.iter().filter(|update| !all.contains(update)).copied().collect::<Vec<_>>());
        let own = if self.repairs.counts_from_highest { self.delivered(state, site) } else { here.lts };
        let locally: Vec<_> = all.iter().filter(|update| update.version > own).copied().collect();
        let highest = all.iter().map(|update| update.version).max().unwrap_or(0).max(own);
        certifier.gts =
            if self.repairs.counts_from_highest { highest } else { own + locally.len() as Version };
        certifier.certified = all.clone();
        let reign = certifier.reign;
        let waiting = certifier.blocked.take().unwrap_or_default();
        state.sites[site].certifier = Some(certifier);
        for update in locally {
            self.multicast(state, site, Local::Update(update, reign));
        }
        for update in all.into_iter().filter(|update| update.version > theirs) {
            self.send_update(state, site, update, reign);
        }
        for (from, tid, snapshot) in waiting {
            self.on_certify(state, site, from, tid, snapshot);
        }
    }

    /// 3c, and 3b if the certifier is lost with the other cluster.
    pub fn remote_is_lost(&self, state: &mut State, cluster: usize) {
        state.clusters[cluster].remote = false;
        state.post.retain(|envelope| self.cluster(envelope.from) == self.cluster(envelope.to));
        state.updates.clear();
        let site = state.clusters[cluster].delegate;
        if self.repairs.watermarks {
            self.announce(state, site);
        } else {
            for update in state.sites[site].updated.clone() {
                self.acknowledged(state, site, update.tid);
            }
        }
        if self.cluster(state.clusters[cluster].certifier) != cluster {
            self.new_certifier(state, site);
        }
    }

    /// A view without the old delegate: all survivors have delivered the same.
    pub fn new_view(&self, state: &mut State, cluster: usize) {
        let old = state.clusters[cluster].delegate;
        let new = old + 1;
        state.clusters[cluster].sending.clear();
        state.clusters[cluster].delegate = new;
        self.new_delegate(state, new);
        if state.clusters[cluster].certifier == old {
            self.new_certifier(state, new);
        }
    }
}

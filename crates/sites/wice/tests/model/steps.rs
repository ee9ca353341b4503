//! What can happen, and what comes of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pares_wice::{
    Command, Declaration, LogEntry, Message, Notice, Outcome, Register, Site, SiteId, Snapshot, Term,
    TransactionId, Version, Wanted,
};

use crate::shared::Shared;
use crate::world::{
    Broken, Client, Cluster, Execution, Member, Phase, State, World, attempt_of, number, place, script_of,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client executes its transaction, and asks for it to be committed.
    Execute(usize),
    Submit(usize),
    Receive {
        from: SiteId,
        to: SiteId,
        place: u64,
        again: bool,
    },
    /// The first entry that the leader proposed is committed; the leader is given it at once.
    Commit(usize),
    /// A site is given what its log has committed.
    Apply(SiteId),
    /// A delegate hears that it is none any more.
    Depose(SiteId),
    /// A new delegate, with so many of the entries that the old one had proposed.
    Elect {
        site: SiteId,
        kept: usize,
    },
    /// The log refuses a proposal of its delegate: the last one that is not committed, or one that was refused at once.
    Refuse {
        cluster: usize,
        last: bool,
    },
    Crash(SiteId),
    Restart {
        site: SiteId,
        with_store: bool,
    },
    Lose(usize),
    Return(usize),
    Command(usize),
    /// The witness loses its disk.
    Forget,
    /// It begins another register, as an operator says who has renewed.
    Begin,
    Tick(SiteId),
}

/// Among the commands carried out: the loss of a cluster, and that of the witness's disk.
pub const LOST: u8 = 1 << 7;
pub const FORGOT: u8 = 1 << 6;
pub const ELECTIONS: usize = 0;
pub const CRASHES: usize = 1;
pub const TICKS: usize = 2;
pub const REPEATS: usize = 3;
pub const REFUSALS: usize = 4;

pub const ASSERTED: &str = "no assertion of a site fails";
pub const REPLY_UNSTABLE: &str = "a reply depends on what is not stable (M10)";
pub const STABLE_TWICE: &str = "a stable version has two contents (M1, M7)";
pub const DISCARD_INEXACT: &str =
    "a returning cluster discards something else than what the others lack (M9)";
pub const SITES_DIFFER: &str = "sites of one cluster make different things of its log (M1)";

impl World {
    /// All up, cluster 0's first site certifying, and all know it.
    pub fn initial(&self) -> State {
        let member = |id| Member::of(Site::new(self.settings(id), self.certifier));
        let cluster = |cluster| Cluster::of(self.ids_of(cluster).map(member));
        let client = |script: &crate::world::Script| Client {
            at: script.site,
            phase: Phase::Idle,
            executions: vec![],
            aborted: vec![],
            committed: None,
        };
        let mut state = State {
            clusters: (0..self.sites.len()).map(cluster).collect(),
            post: Default::default(),
            clients: self.scripts.iter().map(client).collect(),
            stable: vec![],
            living: (0..self.sites.len() as u8).map(pares_wice::ClusterId).collect(),
            wrong: Default::default(),
            used: [0; 5],
            commanded: 0,
            register: Some(Register::default()),
            renewing: None,
            split: false,
        };
        for cluster in 0..self.sites.len() {
            self.take_office(&mut state, SiteId::new(cluster as u8, 0));
        }
        self.deliver_some(&mut state);
        state
    }

    /// Delivers what is under way, and what comes of it; not without end.
    pub fn deliver_some(&self, state: &mut State) {
        for _ in 0..200 {
            let Some((&(from, to, place), _)) = state.post.first_key_value() else { return };
            self.receive(state, from, to, place, false);
        }
    }

    /// Gives a site an input, and does what it wants.
    pub fn at<R>(
        &self,
        state: &mut State,
        id: SiteId,
        input: impl FnOnce(&mut Site, &mut Wanted) -> R,
    ) -> Option<R> {
        let mut out = Wanted::default();
        let site = state.member_mut(id).site.take().expect("only a site that is up is given anything");
        let mut site = site.into_inner();
        let given = catch_unwind(AssertUnwindSafe(|| {
            let result = input(&mut site, &mut out);
            site.flush(&mut out);
            result
        }));
        let result = given.ok();
        if result.is_none() {
            state.wrong.insert(ASSERTED); // what it is now counts no more
        }
        let site = Shared::new(site);
        state.member_mut(id).site = Some(site.clone());
        self.look_at_notices(state, id, &out);
        self.look_at_stable(state, &site);
        for proposal in out.proposals {
            self.propose(state, id, proposal);
        }
        for (to, message) in out.messages {
            self.send(state, id, to, message);
        }
        for (transaction, outcome) in out.outcomes {
            self.tell(state, &site, transaction, outcome);
        }
        result
    }

    fn propose(&self, state: &mut State, id: SiteId, proposal: LogEntry) {
        if self.broken == Broken::StreamsAtOnce
            && let LogEntry::Stream { era, entry } = &proposal
            && state.site(id).is_some_and(Site::certifies)
        {
            for to in self.ids().into_iter().filter(|to| to.cluster != id.cluster) {
                let message = Message::Stream { era: *era, entries: vec![Arc::clone(entry)] };
                self.send(state, id, to, message);
            }
        }
        if self.broken == Broken::NeverDiscards && matches!(proposal, LogEntry::Discard { .. }) {
            let LogEntry::Discard { era, .. } = proposal else { unreachable!("it is one") };
            let keep = Version(u64::MAX);
            return self.propose_to_log(state, id, LogEntry::Discard { era, keep });
        }
        self.propose_to_log(state, id, proposal);
    }

    fn propose_to_log(&self, state: &mut State, id: SiteId, proposal: LogEntry) {
        let cluster = &mut state.clusters[number(id.cluster)];
        if cluster.leader == Some(id.number) {
            cluster.log.push(Shared::new(proposal));
        }
    }

    fn send(&self, state: &mut State, from: SiteId, to: SiteId, mut message: Message) {
        if state.site(to).is_none() {
            return;
        }
        if let (Message::Status(status), Broken::AcknowledgesEarly) = (&mut message, self.broken) {
            status.delivered = status.received;
        }
        let message = Shared::new(message);
        state.post.insert((from, to, place(&message)), message);
    }

    pub fn receive(&self, state: &mut State, from: SiteId, to: SiteId, place: u64, again: bool) {
        let message = match again {
            true => state.post.get(&(from, to, place)).cloned(),
            false => state.post.remove(&(from, to, place)),
        };
        let mut message = message.expect("only what is under way arrives").into_inner();
        let Some(site) = state.site(to) else { return };
        self.falsify(site, &mut message);
        self.at(state, to, |site, out| site.receive(from, message, out));
    }

    fn falsify(&self, site: &Site, message: &mut Message) {
        let base = site.base();
        match (self.broken, message) {
            (Broken::BelievesOldEras, Message::Stream { era, entries }) if *era < base.promised => {
                *era = base.promised;
                for entry in entries {
                    Arc::make_mut(entry).era = site.configuration().era;
                }
            }
            (Broken::NumbersAlone, Message::Status(status)) => {
                status.eras = base.eras.iter().map(|(began, it)| (it.era, *began)).collect();
            }
            (Broken::AnswersForOthers, Message::Certify { reign, .. }) if site.certifies() => {
                reign.era = site.configuration().era;
                reign.term = term_of(site);
            }
            _ => {}
        }
    }

    fn look_at_stable(&self, state: &mut State, site: &Site) {
        let history = state.history(site, site.stable());
        let known = state.stable.len().min(history.len());
        if history[..known] != state.stable[..known] {
            state.wrong.insert(STABLE_TWICE);
        }
        if history.len() > state.stable.len() {
            state.stable = history;
            let eras = site.base().eras;
            let begun = eras.iter().rfind(|(began, _)| *began <= site.stable()).expect("an era has begun");
            state.living = begun.1.live;
        }
    }

    fn look_at_notices(&self, state: &mut State, id: SiteId, out: &Wanted) {
        for notice in &out.notices {
            match notice {
                Notice::Split(_) => state.split = true,
                Notice::Discarded(keep) if state.clusters[number(id.cluster)].leader == Some(id.number) => {
                    let own = &state.clusters[number(id.cluster)].history;
                    let others =
                        state.clusters.iter().enumerate().filter(|(other, _)| *other != number(id.cluster));
                    let shared = others.map(|(_, other)| shared(own, &other.history)).max().unwrap_or(0);
                    if keep.0 as usize != shared {
                        state.wrong.insert(DISCARD_INEXACT);
                    }
                }
                _ => {}
            }
        }
    }

    fn tell(&self, state: &mut State, site: &Site, transaction: TransactionId, outcome: Outcome) {
        let script = transaction.client as usize;
        let stable = state.stable.clone();
        let client = &mut state.clients[script];
        if client.phase != Phase::Waiting || client.at != site.id() {
            return; // it asked elsewhere meanwhile
        }
        match outcome {
            Outcome::Aborted(_) => {
                let attempt = client.executions.len() as u32 - 1;
                client.aborted.push(attempt);
                let again = attempt < self.scripts[script].retries;
                client.phase = if again { Phase::Idle } else { Phase::Done };
            }
            Outcome::Committed { version, attempt } => {
                client.phase = Phase::Done;
                client.committed = Some(version);
                let content = stable.get(version.0 as usize - 1).copied().unwrap_or(0);
                let is_attempt = attempt.is_none_or(|attempt| attempt_of(content) == attempt as usize);
                if version > site.stable() || script_of(content) != Some(script) || !is_attempt {
                    state.wrong.insert(REPLY_UNSTABLE);
                }
            }
        }
    }

    fn execute(&self, state: &mut State, script: usize) {
        let at = self.place_of(state, script);
        let site = state.site(at).expect("enabled where the site is up");
        let snapshot = site.snapshot();
        let seen = (0..2).map(|item| state.seen(site, item, snapshot.version)).collect();
        let client = &mut state.clients[script];
        client.at = at;
        client.executions.push(Execution { snapshot: snapshot.version, seen });
        client.phase = Phase::Executing(snapshot);
        if !self.scripts[script].slow {
            self.submit(state, script, snapshot);
        }
    }

    pub fn submit(&self, state: &mut State, script: usize, snapshot: Snapshot) {
        let (at, attempt) = (state.clients[script].at, state.clients[script].executions.len() as u32 - 1);
        state.clients[script].phase = Phase::Waiting;
        let transaction = self.transaction(script, attempt);
        let taken = self.at(state, at, |site, out| site.submit(transaction, snapshot, out));
        if taken.is_some_and(|taken| taken.is_err()) {
            state.clients[script].phase = Phase::Done; // another attempt is under way at this site, or it recalls
        }
    }

    /// Where a client executes: where it did, or if that is down, elsewhere.
    pub fn place_of(&self, state: &State, script: usize) -> SiteId {
        let at = state.clients[script].at;
        if state.site(at).is_some() { at } else { self.scripts[script].elsewhere }
    }

    /// A site is given what has been committed.
    fn catch_up(&self, state: &mut State, id: SiteId) {
        let cluster = &state.clusters[number(id.cluster)];
        let (applied, committed) = (state.member(id).applied, cluster.committed);
        let entries = cluster.log[applied..committed].to_vec();
        state.member_mut(id).applied = committed;
        self.at(state, id, |site, out| {
            for entry in entries {
                site.committed(entry.into_inner(), out);
            }
        });
    }

    fn history_of(state: &State, id: SiteId) -> Vec<u8> {
        let site = state.site(id).expect("it has just been given something");
        state.history(site, site.delivered())
    }

    /// The first to be given a part of the log says what it comes to.
    pub fn catch_up_first(&self, state: &mut State, id: SiteId) {
        self.catch_up(state, id);
        let history = Self::history_of(state, id);
        state.clusters[number(id.cluster)].history = history;
    }

    pub fn catch_up_later(&self, state: &mut State, id: SiteId) {
        self.catch_up(state, id);
        if Self::history_of(state, id) != state.clusters[number(id.cluster)].history {
            state.wrong.insert(SITES_DIFFER);
        }
    }

    pub fn commit(&self, state: &mut State, cluster: usize) {
        state.clusters[cluster].committed += 1;
        let leader = state.leader(cluster).expect("enabled with a leader");
        self.catch_up_first(state, leader);
    }

    /// Tells a cluster's delegate, after the witness if there is one; false if one of them refused.
    pub fn command(&self, state: &mut State, cluster: usize, command: Command) -> bool {
        let Some(leader) = state.leader(cluster) else { return false };
        let Some(command) = self.granted(state, leader, command) else { return false };
        let takeovers = state.site(leader).map_or(0, |site| site.configuration().era.takeovers);
        let is_taken = self.at(state, leader, |site, out| site.command(command, out).is_ok()).unwrap_or(true);
        if is_taken && command == Command::Renew {
            state.renewing = Some((leader.cluster, takeovers));
        }
        is_taken
    }

    fn granted(&self, state: &mut State, leader: SiteId, command: Command) -> Option<Command> {
        if command == Command::Renew && state.register.is_some() {
            return None;
        }
        let (Some(lost), true) = (command.lost(), self.faults.witness) else { return Some(command) };
        if self.broken == Broken::WitnessForgets {
            state.register = Some(Register::default());
        }
        let takeovers = state.site(leader)?.configuration().era.takeovers;
        let declared = Declaration { takeovers, by: leader.cluster, lost };
        state.register.as_mut()?.grant(declared).ok().map(|()| Command::Granted(declared))
    }

    /// The count at which a register may begin: of the newest era, begun by the cluster that was asked to renew, at all that live in it.
    pub fn renewed(&self, state: &State) -> Option<u32> {
        let (by, before) = state.renewing?;
        let of = |cluster: usize| Some(state.site(state.leader(cluster)?)?.configuration());
        let newest = (0..self.sites.len()).filter_map(of).max_by_key(|configuration| configuration.era)?;
        let is_it = newest.era.by == by && newest.era.takeovers > before;
        let all = newest.live.iter().all(|cluster| of(number(cluster)) == Some(newest));
        (is_it && all && state.register.is_none()).then_some(newest.era.takeovers)
    }

    pub fn tick(&self, state: &mut State, id: SiteId) {
        self.at(state, id, |site, out| site.tick(out));
    }

    /// What comes of it; nothing where it turns out to be impossible.
    pub fn step(&self, state: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Execute(script) => self.execute(state, script),
            Action::Submit(script) => {
                let Phase::Executing(snapshot) = state.clients[script].phase else { return None };
                self.submit(state, script, snapshot);
            }
            Action::Receive { from, to, place, again } => {
                state.used[REPEATS] += u8::from(again);
                self.receive(state, from, to, place, again);
            }
            Action::Commit(cluster) => self.commit(state, cluster),
            Action::Apply(site) => self.catch_up_later(state, site),
            Action::Depose(site) => self.depose(state, site),
            Action::Elect { site, kept } => {
                let was_led = state.clusters[number(site.cluster)].leader.is_some();
                state.used[ELECTIONS] += u8::from(was_led);
                self.elect(state, site, kept);
            }
            Action::Refuse { cluster, last } => {
                state.used[REFUSALS] += 1;
                self.refuse(state, cluster, last);
            }
            Action::Crash(site) => {
                state.used[CRASHES] += 1;
                self.crash(state, site);
            }
            Action::Restart { site, with_store } => self.restart(state, site, with_store),
            Action::Lose(cluster) => {
                state.commanded |= LOST;
                self.lose(state, cluster);
            }
            Action::Return(cluster) => self.come_back(state, cluster),
            Action::Command(index) => {
                self.say(state, index)?;
            }
            Action::Forget => {
                state.commanded |= FORGOT;
                state.register = None;
            }
            Action::Begin => {
                state.register = Some(Register::beginning(self.renewed(state)?));
                state.renewing = None;
            }
            Action::Tick(site) => {
                state.used[TICKS] += 1;
                self.tick(state, site);
            }
        }
        Some(())
    }
}

impl World {
    /// Tells a delegate what the operator says; nothing if it refuses and is as it was, for it may be told again.
    fn say(&self, state: &mut State, index: usize) -> Option<()> {
        let (cluster, command) = self.faults.commands[index];
        let delegate = |state: &State| {
            state.leader(number(cluster)).and_then(|leader| state.member(leader).site.clone())
        };
        let before = delegate(state);
        if self.command(state, number(cluster), command) {
            state.commanded |= 1 << index;
            return Some(());
        }
        (delegate(state) != before).then_some(())
    }
}

fn term_of(site: &Site) -> Term {
    site.statuses().find(|status| status.site == site.id()).expect("a certifier has said how it stands").term
}

/// Length of what two histories share from the beginning.
pub fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

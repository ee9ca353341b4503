//! What can happen next.

use stateright::{Model, Property};

use crate::properties;
use crate::system::{Action, Disaster, Message, State, Told, Update, Wice};

impl Wice {
    fn attempts(&self, state: &State, actions: &mut Vec<Action>) {
        for (tid, (script, attempt)) in (0..).zip(self.transactions.iter().zip(&state.attempts)) {
            let cluster = &state.clusters[self.cluster(script.site)];
            if !state.sites[script.site].alive || attempt.told != Told::Nothing {
                continue;
            }
            if attempt.snapshot.is_none() {
                actions.push(Action::Begin(tid));
            } else if attempt.asked < cluster.reign {
                actions.push(Action::Resubmit(tid));
            } else if !self.repairs.outcome_is_awaited {
                actions.push(Action::Kill(tid));
            }
        }
    }

    fn multicasts(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, cluster) in state.clusters.iter().enumerate() {
            if !cluster.sending.is_empty() && state.sites[cluster.delegate].alive {
                actions.push(Action::Deliver(number));
            }
        }
    }

    /// A view changes after the disaster that took the delegate.
    fn views(&self, state: &State, actions: &mut Vec<Action>) {
        let (Disaster::Crash(number) | Disaster::Expulsion(number)) = self.disaster else { return };
        if state.disasters == 1 && state.clusters[number].delegate == self.members(number).start {
            actions.push(Action::Elect(number));
        }
    }

    fn messages(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.post.iter().cloned().map(Action::Receive));
        for &(from, to) in state.updates.keys() {
            actions.push(Action::ReceiveUpdate(from, to));
            if !state.sites[from].alive {
                actions.push(Action::LoseUpdate(from, to));
            }
        }
    }

    fn installs(&self, state: &State, actions: &mut Vec<Action>) {
        for (number, site) in state.sites.iter().enumerate().filter(|(_, site)| site.alive) {
            let next = |update: &&Update| !self.repairs.visible_in_order || update.version == site.lts + 1;
            if !self.slow.contains(&number) {
                continue;
            }
            let open = site.updated.iter().filter(|update| !site.installed.contains(&update.tid));
            actions.extend(open.filter(next).map(|update| Action::Install(number, update.tid)));
        }
    }

    fn disasters(&self, state: &State, actions: &mut Vec<Action>) {
        match self.disaster {
            Disaster::Nothing => {}
            Disaster::SplitBrain => {
                actions.extend((0..2).filter(|&number| state.clusters[number].remote).map(Action::Suspect));
            }
            _ if state.disasters == 0 => actions.push(Action::Strike),
            _ => {}
        }
    }

    /// Whether nothing is left to do but what fate may add.
    pub fn is_at_rest(&self, state: &State) -> bool {
        let mut actions = vec![];
        self.actions(state, &mut actions);
        actions.iter().all(|action| matches!(action, Action::Kill(_) | Action::Strike | Action::Suspect(_)))
    }

    fn begin(&self, state: &mut State, tid: u8) {
        let site = self.transactions[usize::from(tid)].site;
        let attempt = &mut state.attempts[usize::from(tid)];
        let snapshot = *attempt.snapshot.get_or_insert(state.sites[site].lts);
        attempt.asked = state.clusters[self.cluster(site)].reign;
        let to = state.clusters[self.cluster(site)].certifier;
        self.send(state, site, to, Message::Certify { tid, snapshot });
    }

    fn crash(&self, state: &mut State, site: usize) {
        state.sites[site].alive = false;
        state.sites[site].certifier = None;
        state.post.retain(|envelope| envelope.to != site);
        state.updates.retain(|&(_, to), _| to != site);
    }

    fn strike(&self, state: &mut State) {
        state.disasters = 1;
        match self.disaster {
            Disaster::Crash(cluster) => {
                self.crash(state, self.members(cluster).start);
                state.clusters[cluster].sending.clear();
            }
            Disaster::Expulsion(_) => {}
            Disaster::Loss(cluster) => {
                for site in self.members(cluster) {
                    self.crash(state, site);
                }
                state.clusters[cluster].sending.clear();
                self.remote_is_lost(state, 1 - cluster);
            }
            Disaster::Nothing | Disaster::SplitBrain => unreachable!("no such step"),
        }
    }

    /// Delivery, at all sites of a view at once. (The view changes only when all that survive have delivered the
    /// same; in between, who is slower only sees an older database.)
    fn deliver_next(&self, state: &mut State, number: usize) {
        let message = state.clusters[number].sending.remove(0);
        let delegate = state.clusters[number].delegate;
        let first = if self.repairs.uniform { delegate } else { delegate + 1 };
        for site in first..self.members(number).end {
            self.deliver(state, site, message.clone());
        }
    }

    /// 2:57. Without order, what is written is seen before what comes before it.
    pub fn install(&self, state: &mut State, site: usize, tid: u8) {
        let here = &mut state.sites[site];
        here.installed.push(tid);
        let is_next =
            |update: &Update, lts| update.version == lts + 1 && here.installed.contains(&update.tid);
        while here.updated.iter().any(|update| is_next(update, here.lts)) {
            here.lts += 1;
        }
    }

    fn take_update(state: &mut State, from: usize, to: usize, last: bool) -> (Update, u8) {
        let line = state.updates.get_mut(&(from, to)).expect("enabled when there is one");
        let taken = if last { line.pop().expect("not empty") } else { line.remove(0) };
        if line.is_empty() {
            state.updates.remove(&(from, to));
        }
        taken
    }

    /// 2:61: whose transaction is committed here and stable everywhere may be told.
    fn tell(&self, state: &mut State) {
        for (tid, script) in (0..).zip(&self.transactions) {
            let site = &state.sites[script.site];
            let committed = |update: &&Update| update.tid == tid && update.version <= site.lts;
            let Some(update) = site.updated.iter().find(committed) else { continue };
            let stable = site.stable.contains(&tid) || site.stable_to >= update.version;
            let attempt = &mut state.attempts[usize::from(tid)];
            if site.alive && stable && attempt.told == Told::Nothing && site.installed.contains(&tid) {
                attempt.told = Told::Committed;
            }
        }
    }
}

impl Model for Wice {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.initial()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.attempts(state, actions);
        self.multicasts(state, actions);
        self.views(state, actions);
        self.messages(state, actions);
        self.installs(state, actions);
        self.disasters(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Begin(tid) | Action::Resubmit(tid) => self.begin(&mut state, tid),
            Action::Kill(tid) => state.attempts[usize::from(tid)].told = Told::Aborted,
            Action::Deliver(number) => self.deliver_next(&mut state, number),
            Action::Receive(envelope) => {
                state.post.remove(&envelope);
                self.receive(&mut state, envelope);
            }
            Action::ReceiveUpdate(from, to) => {
                let (update, reign) = Self::take_update(&mut state, from, to, false);
                self.on_remote_update(&mut state, to, update, reign);
            }
            Action::LoseUpdate(from, to) => {
                Self::take_update(&mut state, from, to, true);
            }
            Action::Install(site, tid) => self.install(&mut state, site, tid),
            Action::Elect(number) => self.new_view(&mut state, number),
            Action::Strike => self.strike(&mut state),
            Action::Suspect(number) => self.remote_is_lost(&mut state, number),
        }
        self.tell(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

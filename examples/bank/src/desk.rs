//! The operator's desk: carries out orders, and shows what comes of them.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_site::{CallError, Client};
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

use crate::board::{Board, Shared};
use crate::clusters::{CLUSTERS, Clusters, Who};
use crate::order::{ORDERS, Order, parse};
use crate::screen::{Screen, lines};

/// Long enough for anything, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A decision that has had no effect for so long is sent again.
const AGAIN: Duration = Duration::from_secs(3);
const REFRESH: Duration = Duration::from_millis(100);

/// Why the desk is left.
#[derive(Debug)]
pub enum Leave {
    /// It was asked to.
    Quit,
    /// Something cannot be done.
    Failed(String),
}

impl<E: Error> From<E> for Leave {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// See the [module](self).
pub struct Desk {
    /// What is ordered about.
    pub clusters: Clusters,
    /// What the others write down.
    pub board: Shared,
    screen: Screen,
    /// Ctrl-C, or a polite end from outside.
    signalled: Arc<AtomicBool>,
    began: Instant,
    capital: i64,
    /// Sites that ended without having been killed.
    pub ended: u64,
}

impl Desk {
    /// Sits down.
    pub fn new(
        clusters: Clusters,
        board: Shared,
        screen: Screen,
        signalled: Arc<AtomicBool>,
        capital: i64,
    ) -> Self {
        Self { clusters, board, screen, signalled, began: Instant::now(), capital, ended: 0 }
    }

    /// Says what happened.
    pub fn say(&mut self, text: &str) {
        let text = format!("{}  {text}", self.time());
        self.screen.say(&text);
    }

    /// Says something without the time.
    pub fn say_plainly(&mut self, text: &str) {
        self.screen.say(text);
    }

    fn time(&self) -> String {
        let seconds = self.began.elapsed().as_secs();
        format!("{:02}:{:02}", seconds / 60, seconds % 60)
    }

    /// A moment passes. What was typed, if it was a line.
    fn moment(&mut self) -> Result<Option<String>, Leave> {
        let view = lines(&self.board.lock(), &self.clusters, &self.time(), self.capital);
        self.screen.show(&view);
        if let Some((site, words)) = self.clusters.ended() {
            self.ended += 1;
            self.say(&format!("site {} has ended by itself: {words}", name(site)));
        }
        let typed = self.screen.wait(REFRESH);
        let quits = typed.as_ref().is_some_and(|typed| typed.trim() == "q");
        if quits || self.signalled.swap(false, Ordering::Relaxed) {
            return Err(Leave::Quit);
        }
        Ok(typed)
    }

    /// Watches for so long. What is typed meanwhile, but for `q`, is not listened to.
    pub fn watch(&mut self, time: Duration) -> Result<(), Leave> {
        let began = Instant::now();
        while began.elapsed() < time {
            self.moment()?;
        }
        Ok(())
    }

    /// Watches until it is so; says how long that took.
    pub fn until(
        &mut self,
        what: &str,
        mut so: impl FnMut(&Board, &Clusters) -> bool,
    ) -> Result<Duration, Leave> {
        let began = Instant::now();
        while !so(&self.board.lock(), &self.clusters) {
            if began.elapsed() > PATIENCE {
                return Err(Leave::Failed(format!("still not after {} s: {what}", PATIENCE.as_secs())));
            }
            self.moment()?;
        }
        Ok(began.elapsed())
    }

    /// Carries out what is typed, until the end is asked for.
    pub fn listen(&mut self) -> Result<(), Leave> {
        loop {
            let Some(typed) = self.moment()? else { continue };
            match parse(&typed, &self.clusters.sites()) {
                Ok(order) => match self.carry_out(order) {
                    Err(Leave::Failed(why)) => self.say(&why),
                    done => done?,
                },
                Err(why) => self.say(&why),
            }
        }
    }

    /// Carries out an order, and waits until it has had its effect.
    pub fn carry_out(&mut self, order: Order) -> Result<(), Leave> {
        match order {
            Order::Kill(site) => self.kill(site),
            Order::KillCertifier => match self.certifier() {
                Some(site) => self.kill(site),
                None => self.say("nobody certifies at this moment"),
            },
            Order::KillCluster(cluster) => {
                self.clusters.sites_of(cluster).into_iter().for_each(|site| self.kill(site));
            }
            Order::Start(one) => self.start(one)?,
            Order::Lost(cluster) => self.declare_lost(cluster)?,
            Order::Admit(cluster) => {
                let so = move |board: &Board| board.lives(cluster);
                self.decide(Command::Admit(ClusterId(cluster)), "admitted", so)?;
            }
            Order::Move(cluster) => {
                let so = move |board: &Board| board.certifier().is_some_and(|site| site.cluster.0 == cluster);
                self.decide(Command::Migrate(ClusterId(cluster)), "moved", so)?;
            }
            Order::Link => {
                let cut = !self.clusters.is_cut();
                self.clusters.cut(cut);
                self.say(if cut { "link cut" } else { "link healed" });
            }
            Order::Help => self.say_plainly(ORDERS),
            Order::Quit => return Err(Leave::Quit),
        }
        Ok(())
    }

    /// The site that certifies, as far as is known.
    pub fn certifier(&self) -> Option<SiteId> {
        self.board.lock().certifier()
    }

    fn kill(&mut self, site: SiteId) {
        let killed = self.clusters.kill(site);
        let what = if killed { "killed (kill -9)" } else { "is down already" };
        self.say(&format!("site {} {what}", name(site)));
        self.board.lock().sights.remove(&site);
    }

    fn start(&mut self, one: Option<SiteId>) -> Result<(), Leave> {
        for site in one.map_or_else(|| self.clusters.sites(), |site| vec![site]) {
            if !self.clusters.is_up(site) {
                self.clusters.run(site).map_err(|error| Leave::Failed(error.to_string()))?;
                self.say(&format!("site {} started: it reads its log", name(site)));
            }
        }
        Ok(())
    }

    fn declare_lost(&mut self, cluster: u8) -> Result<(), Leave> {
        let others = (0..CLUSTERS).filter(|other| *other != cluster);
        if !others.into_iter().any(|other| self.board.lock().lives(other)) {
            // What the paper leaves to its readers: two operators who declare each other lost make two banks of one.
            self.say("the other cluster counts as lost itself: then two would go on, each without the other");
            return Ok(());
        }
        let lost = Command::DeclareLost(ClusterSet::default().with(ClusterId(cluster)));
        self.decide(lost, "declared lost", move |board| !board.lives(cluster))
    }

    /// Tells the delegates of the living until it is so.
    fn decide(&mut self, command: Command, what: &str, so: impl Fn(&Board) -> bool) -> Result<(), Leave> {
        if so(&self.board.lock()) {
            self.say(&format!("{what} already"));
            return Ok(());
        }
        let (began, mut told, mut why) = (Instant::now(), None::<Instant>, String::new());
        while !so(&self.board.lock()) {
            if began.elapsed() > PATIENCE / 2 {
                return Err(Leave::Failed(format!("not {what}: {why}")));
            }
            if told.is_none_or(|told| told.elapsed() > AGAIN) {
                match self.tell(command) {
                    Ok(()) => told = Some(Instant::now()),
                    Err(refused) => why = refused,
                }
            }
            self.moment()?;
        }
        self.say(&format!("{what}, after {:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    fn tell(&self, command: Command) -> Result<(), String> {
        let mut why = "no cluster that lives has a delegate".to_owned();
        for cluster in 0..CLUSTERS {
            let is_subject =
                matches!(command, Command::DeclareLost(lost) if lost.contains(ClusterId(cluster)));
            let delegate = {
                let board = self.board.lock();
                board.delegate(cluster).filter(|_| !is_subject && board.lives(cluster))
            };
            let Some(delegate) = delegate else { continue };
            let mut client = Client::new(2_000, 0, vec![self.clusters.door(Who::Desk, delegate)]);
            match client.operate(command, Duration::from_secs(1)) {
                Ok(_) => return Ok(()),
                // The one that certifies knows best why not.
                Err(CallError::No { why: text, .. }) if !text.contains("does not certify") => why = text,
                Err(CallError::No { .. }) => {}
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }
}

/// A site's name.
pub fn name(site: SiteId) -> String {
    format!("{}.{}", site.cluster.0, site.number)
}

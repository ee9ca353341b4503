//! The demonstration itself: the system, the load, the director and what is shown of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, Load, ScratchSystem, Venues};
use pares_node::NodeId;

use super::day::Day;
use super::day::plan::{Plan, wall_ns};
use super::director::{Director, Happening};
use super::face::{Face, UserAction};
use super::market::Market;
use super::picture::{Condition, Picture, VenueLine};
use super::race::Race;
use super::verdict::Verdict;
use super::{Args, scene};

/// How long the load runs before anything counts: caches, page tables and the first segments fill.
const WARM_UP: Duration = Duration::from_millis(500);
/// Between two looks at the logs and counters.
const REFRESH: Duration = Duration::from_millis(200);
/// For how long a kill is marked at its venue.
const MARKED: Duration = Duration::from_millis(1_200);
/// Seconds over which the fewest unanswered requests are sought.
const UNANSWERED_SECONDS: usize = 5;

/// A demonstration under way.
pub(crate) struct Stage {
    system: ScratchSystem,
    load: Load,
    load_begun: Instant,
    venues: Venues,
    race: Race,
    director: Director,
    market: Market,
    picture: Picture,
    day: Option<Day>,
    /// The user ended it before its time was over.
    broken_off: bool,
    begun: Instant,
    /// The same, nanoseconds since 1970.
    begun_ns: u64,
    refreshed: Instant,
    market_behind: bool,
    /// The fewest requests in flight, this second (in front) and each of the last ones.
    unanswered: VecDeque<u64>,
}

impl Stage {
    /// Starts the system and the load, and lets it warm up.
    ///
    /// # Errors
    /// If either does not start.
    pub fn set(args: &Args) -> Result<Self, LabError> {
        let plan = args.day.then(|| Plan::new(wall_ns(), args.day_seconds, !args.no_timetable));
        let mut system = scene::start(args, plan.as_ref())?;
        let (load, day) = start_load(args, &system, plan)?;
        let load_begun = Instant::now();
        system.pass(WARM_UP, |_| Ok(()))?;
        let (config, layout) = (system.supervisor.config(), system.supervisor.layout());
        let venues = usize::from(config.venues);
        let mut picture = Picture {
            rate: args.rate(),
            until: match &day {
                Some(day) => Some(Duration::from_nanos(day.end_ns().saturating_sub(wall_ns()))),
                None => args.seconds.map(Duration::from_secs),
            },
            venues: config.venue_ids().map(VenueLine::new).collect(),
            ..Picture::default()
        };
        picture.minute.begin(load.observed());
        load.observed().take_gap_max_ns();
        let mut market = Market::open(config, layout)?;
        if day.is_some() {
            market.log_day();
        }
        Ok(Self {
            venues: Venues::new(layout, config),
            race: Race::new(venues),
            director: Director::new(args.kill_every, args.seed, venues),
            market,
            picture,
            day,
            broken_off: false,
            begun: Instant::now(),
            begun_ns: wall_ns(),
            refreshed: load_begun,
            market_behind: true,
            unanswered: VecDeque::from([u64::MAX]),
            load_begun,
            load,
            system,
        })
    }

    /// Continues until time is over or the user ends it, and until a venue killed last is back.
    ///
    /// # Errors
    /// If the system fails.
    pub fn play(&mut self, face: &mut Face, stop: &AtomicBool) -> Result<(), LabError> {
        loop {
            let wish = self.turn(face)?;
            let over = self.picture.until.is_some_and(|until| self.begun.elapsed() >= until);
            let quit = matches!(wish, Some(UserAction::Quit)) || stop.load(Ordering::Relaxed);
            if over || quit || self.load.is_finished() {
                self.broken_off = quit && !over;
                break;
            }
            match wish {
                Some(UserAction::Kill) => self.director.hurry(),
                Some(UserAction::Pause) => self.director.paused = !self.director.paused,
                Some(UserAction::Quit) | None => {}
            }
        }
        self.director.end();
        while self.director.awaits() && !self.load.is_finished() {
            self.turn(face)?;
        }
        Ok(())
    }

    /// Ends the load, reads the record to its end and says what it all came to.
    ///
    /// # Errors
    /// If the load failed, or the record is damaged.
    pub fn finish(mut self) -> Result<Verdict, LabError> {
        let lasted = self.load_begun.elapsed();
        let observed = self.load.finish()?;
        let unanswered = self.day.as_mut().map_or(Ok(0), Day::end)?;
        self.market.read_all()?;
        let mut verdict = Verdict::new(lasted, &observed, &self.director, self.market.tally());
        verdict.lost += unanswered;
        let day = self.day.as_ref();
        verdict.day = day.and_then(|day| day.verdict(&mut self.market, self.begun_ns, self.broken_off));
        Ok(verdict)
    }

    fn turn(&mut self, face: &mut Face) -> Result<Option<UserAction>, LabError> {
        self.picture.elapsed = self.begun.elapsed();
        self.note_answers();
        for death in self.system.supervisor.tick() {
            if !self.director.on_death(&death) {
                self.tell(face, Happening::Died(death))?;
            }
        }
        let leading = self.race.leading();
        let (supervisor, observed) = (&mut self.system.supervisor, self.load.observed());
        if let Some(happening) = self.director.step(supervisor, &self.venues, observed, leading)? {
            if let Happening::Killed(_) = happening {
                self.picture.minute.note_kill();
                self.race.restart();
            }
            self.tell(face, happening)?;
        }
        self.turn_day(face)?;
        self.refresh()?;
        if self.picture.minute.tick(self.picture.elapsed, self.load.observed()) {
            self.note_second();
            face.second(&self.picture)?;
        }
        face.turn(&self.picture)
    }

    fn tell(&mut self, face: &Face, happening: Happening) -> LabResult {
        self.tell_of(self.picture.elapsed, face, happening)
    }

    fn tell_of(&mut self, when: Duration, face: &Face, happening: Happening) -> LabResult {
        face.happening(when, &happening)?;
        self.picture.tell(when, happening);
        Ok(())
    }

    /// Continues the trading day, if this is one.
    fn turn_day(&mut self, face: &Face) -> LabResult {
        let Some(day) = &mut self.day else { return Ok(()) };
        let told = day.turn(&mut self.market)?;
        self.picture.day = Some(Day::state(&mut self.market));
        for (at_ns, news) in told {
            let when = Duration::from_nanos(at_ns.saturating_sub(self.begun_ns));
            self.tell_of(when, face, Happening::Day(news))?;
        }
        Ok(())
    }

    /// Takes in gaps, and how many requests wait for an answer.
    fn note_answers(&mut self) {
        let observed = self.load.observed();
        let gap_ns = observed.take_gap_max_ns();
        self.picture.minute.note_gap(gap_ns);
        self.director.note_gap(gap_ns);
        // Answers are read first: what is answered meanwhile makes the difference too large, never too small.
        let done = observed.completed.load(Ordering::Acquire) + observed.rejected.load(Ordering::Acquire);
        let waiting = observed.sent.load(Ordering::Acquire).saturating_sub(done);
        self.unanswered[0] = self.unanswered[0].min(waiting);
    }

    fn note_second(&mut self) {
        self.picture.lost_max = self.unanswered.iter().copied().min().unwrap_or_default();
        self.unanswered.push_front(u64::MAX);
        self.unanswered.truncate(UNANSWERED_SECONDS);
    }

    /// Looks at logs and counters, if it is time.
    fn refresh(&mut self) -> Result<(), LabError> {
        let due = self.refreshed.elapsed() >= REFRESH;
        if due || self.market_behind {
            self.market_behind = self.market.read()?;
        }
        if !due {
            return Ok(());
        }
        self.refreshed = Instant::now();
        self.refresh_venues();
        let observed = self.load.observed();
        let tally = self.market.tally();
        let picture = &mut self.picture;
        picture.completed = observed.completed.load(Ordering::Relaxed);
        picture.duplicated = observed.duplicated.load(Ordering::Relaxed);
        picture.trades = tally.trades;
        picture.differing = tally.differing;
        picture.kill_gap_ns = self.director.kill_gap_ns();
        picture.quiet_gap_ns = self.director.quiet_gap_ns;
        picture.paused = self.director.paused;
        picture.tops = self.market.tops();
        Ok(())
    }

    fn refresh_venues(&mut self) {
        let states = self.venues.states();
        self.race.sample(self.market.firsts());
        let (leading, shares) = (self.race.leading(), self.race.shares_percent());
        let farthest = states.iter().map(|state| state.position).max().unwrap_or_default();
        for (index, (line, state)) in self.picture.venues.iter_mut().zip(&states).enumerate() {
            line.condition = match () {
                () if self.director.is_dead(line.id) => Condition::Down,
                () if !self.system.supervisor.is_up(NodeId::Venue(line.id)) => Condition::Down,
                () if state.resync_us == 0 => Condition::Resynchronising,
                () => Condition::Up,
            };
            line.leads = line.id == leading && line.condition == Condition::Up;
            line.position = state.position;
            line.behind = farthest - state.position;
            line.share_percent = shares[index];
            line.resync = Duration::from_micros(state.resync_us);
            line.killed = self.director.killed[index];
            line.just_killed = self.director.last_killed(line.id).is_some_and(|when| when.elapsed() < MARKED);
        }
    }
}

/// Starts what is offered: a flow of its own if there is a day.
fn start_load(
    args: &Args,
    system: &ScratchSystem,
    plan: Option<Plan>,
) -> Result<(Load, Option<Day>), LabError> {
    let load = scene::load(args, system)?;
    let Some(plan) = plan else { return Ok((Load::start(load)?, None)) };
    let (day, flow) = Day::begin(plan, load.addresses[0], &load, scene::story_members())?;
    Ok((Load::start_with(load, Box::new(flow))?, Some(day)))
}

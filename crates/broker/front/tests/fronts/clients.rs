//! Who gives commands: in a session of his own through one front after the other, or by names through any.

use pares_broker::{
    Asked, BrokerReply, CommandName, UserCommand, UserName, Verb, WorkloadLine, number_in_session,
};
use pares_front::CommandOrder;
use pares_random::Random;

/// A command of a client.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) asked: Asked,
    pub(crate) order: CommandOrder,
    /// The number it was executed under, and the reply.
    pub(crate) told: Option<(u64, BrokerReply)>,
    /// To which life of which front it was sent last.
    pub(crate) sent: Option<(usize, u64)>,
}

/// See the [module](self).
pub(crate) struct Client {
    pub(crate) user: UserName,
    /// None: by names, through any front.
    is_in_session: bool,
    session: Option<u64>,
    latest: u64,
    left: u64,
    pub(crate) given: Vec<Given>,
    /// The front it is connected to, and that one's life.
    pub(crate) connected: Option<(usize, u64)>,
}

const LINES: &str = "ADD,{},40.00 BUY,{},S,{}.00 BUY,{},T,{}.00 BUY,{},S,{}.00 COMMIT_BUY,{} COMMIT_BUY,{} CANCEL_BUY,{} \
    SELL,{},S,3.00 COMMIT_SELL,{} SET_BUY_AMOUNT,{},T,9.00 SET_BUY_TRIGGER,{},T,2.00 SET_SELL_AMOUNT,{},S,4.00 \
    SET_SELL_TRIGGER,{},S,2.00 QUOTE,{},T";

impl Client {
    pub(crate) fn of(user: &str, is_in_session: bool, commands: u64) -> Self {
        let user = UserName::new(user).expect("a user's name");
        Self {
            user,
            is_in_session,
            session: None,
            latest: 0,
            left: commands,
            given: Vec::new(),
            connected: None,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.given.iter().all(|given| given.told.is_some())
    }

    /// Whether it has a session, or needs none.
    pub(crate) fn begin(&mut self, open: impl FnOnce() -> Option<u64>) -> bool {
        if self.is_in_session && self.session.is_none() {
            self.session = open();
            self.latest = self.session.map_or(0, |session| number_in_session(session, 0));
        }
        !self.is_in_session || self.session.is_some()
    }

    /// Thinks of another command, the `count`-th of all clients'.
    pub(crate) fn think(&mut self, count: u64, draw: &mut Random) {
        let unanswered = self.given.iter().filter(|given| given.told.is_none()).count();
        if self.left == 0 || unanswered > 6 {
            return;
        }
        self.left -= 1;
        let (line, order) = if self.is_in_session {
            let after = core::mem::replace(&mut self.latest, 0);
            // Ascending, with gaps.
            self.latest = after + 1 + draw.below(3);
            let lines: Vec<&str> = LINES.split(' ').collect();
            let line = lines[draw.below(lines.len() as u64) as usize];
            (line.to_owned(), CommandOrder::Session { number: self.latest, after })
        } else {
            // No other command adds so much: it is known again in the log.
            let name = CommandName::new(&format!("name-{count}"));
            (format!("ADD,{{}},{}.{:02}", 10_000 + count / 100, count % 100), CommandOrder::Arrival { name })
        };
        let line = line.replacen("{}", self.user.as_str(), 1).replace("{}", &(2 + draw.below(9)).to_string());
        let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).expect("a command");
        // As pages ask, who name what they show, or as lines do.
        let of = self.newest_of(&line.command).filter(|_| draw.below(2) == 0);
        let asked = match of {
            Some(number) => Asked::Settle { command: line.command, number },
            None => Asked::Command { command: line.command, fault: line.fault },
        };
        self.given.push(Given { asked, order, told: None, sent: None });
    }

    /// The number of the newest buy or sell that a reply showed him as pending, if this settles one.
    fn newest_of(&self, command: &UserCommand) -> Option<u64> {
        let placed = match command.verb {
            Verb::CommitBuy | Verb::CancelBuy => Verb::Buy,
            Verb::CommitSell | Verb::CancelSell => Verb::Sell,
            _ => return None,
        };
        self.given.iter().rev().find_map(|given| match (&given.asked, &given.told) {
            (Asked::Command { command, .. }, Some((number, BrokerReply::Held { .. }))) => {
                (command.verb == placed).then_some(*number)
            }
            _ => None,
        })
    }

    /// What is to be sent now, and to which front. `lives` are those of the fronts; to connect again it takes `any`.
    pub(crate) fn what_goes(&mut self, any: usize, lives: &[u64]) -> Vec<(usize, usize)> {
        let is_alive = |&(front, life): &(usize, u64)| lives[front] == life;
        if self.connected.as_ref().is_none_or(|connected| !is_alive(connected)) {
            self.connected = Some((any, lives[any]));
            self.given.iter_mut().for_each(|given| given.sent = None);
        }
        let to = if self.is_in_session { self.connected } else { Some((any, lives[any])) };
        let Some(to) = to else { return Vec::new() };
        let mut send = Vec::new();
        for (index, given) in self.given.iter_mut().enumerate().filter(|(_, given)| given.told.is_none()) {
            // By its name a command may be repeated though it is under way.
            let again = !self.is_in_session && to.0 != given.sent.map_or(usize::MAX, |sent| sent.0);
            if again || given.sent.as_ref().is_none_or(|sent| !is_alive(sent)) {
                given.sent = Some(to);
                send.push((index, to.0));
            }
        }
        send
    }

    /// A front says what became of a command, unless the connection is cut. What it says once it says always.
    pub(crate) fn told(
        &mut self,
        index: usize,
        from: (usize, u64),
        is_cut: bool,
        number: u64,
        reply: Option<BrokerReply>,
    ) -> Result<(), String> {
        if is_cut || (self.is_in_session && self.connected != Some(from)) {
            self.connected = None;
            return Ok(());
        }
        let given = &mut self.given[index];
        match (reply, &given.told) {
            (None, _) => self.connected = None,
            (Some(reply), None) => given.told = Some((number, reply)),
            (Some(reply), Some((_, before))) if reply == *before => {}
            (Some(reply), before) => return Err(format!("{before:?} was told, and now {reply:?}")),
        }
        Ok(())
    }
}

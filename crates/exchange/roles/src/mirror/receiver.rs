//! The end that gets a copy.

use std::collections::BTreeMap;
use std::path::Path;

use pares_config::{NodeId, ROLE_MAX, SystemConfig};
use pares_log::{Config, LogMirror, LogReader, Offset, OpenError};
use pares_mirror::{MirrorMessage, SPEAKS, UNDERSTANDS};
use pares_types::HostId;

use super::standing::last_record;
use super::{LogName, MirrorEnded, Scope, files, node_of};
use crate::NodeError;
use crate::whole_file;
use crate::world::{File, Ring, World};

/// Segments are believed to be as long as those of most systems, whatever the settings say now: a log keeps the length it began with.
const SEGMENT_BYTES: u64 = 64 << 20;
/// No log comes to begin beyond this.
const OFFSET_MAX: u64 = 1 << 62;

/// How a mirror stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirrorProgress {
    /// It has all below this.
    pub next: Offset,
    /// Of that, the source calls this durable.
    pub durable: Offset,
    /// The source had so many bytes more when it was last heard of.
    pub lag_bytes: u64,
}

struct Mirroring<M> {
    mirror: M,
    durable: Offset,
}

/// The mirrors of one source.
pub struct MirrorReceiver<W: World> {
    world: W,
    rules: pares_mirror::ReceiverRules,
    mirrors: BTreeMap<LogName, Mirroring<W::Mirror>>,
    scope: Scope,
    /// Who is woken at this host when there is more in a gateway's log, and in a recorder's.
    readers: [Vec<NodeId>; 2],
    ringer: W::Ringer,
    /// The file that comes.
    file: Option<W::File>,
    rounds: u64,
    out: Vec<u8>,
}

impl<W: World> MirrorReceiver<W> {
    /// That has the mirrors that were opened.
    pub fn new(world: &W) -> Self {
        Self {
            world: world.clone(),
            rules: pares_mirror::ReceiverRules::default(),
            mirrors: BTreeMap::new(),
            scope: Scope::Whole,
            readers: [Vec::new(), Vec::new()],
            ringer: world.ringer(),
            file: None,
            rounds: 0,
            out: Vec::new(),
        }
    }

    /// Of what the nodes of host `from` write, for those who read it at `host`.
    #[must_use]
    pub fn of_host(mut self, config: &SystemConfig, from: HostId, host: HostId) -> Self {
        assert_ne!(from, host, "a host copies what other hosts write");
        let here = NodeId::at(config, Some(host));
        let is_witness = !here.iter().any(|node| matches!(node, NodeId::Venue(_)));
        let reads_records = |node: &NodeId| match node {
            NodeId::Gateway(_) | NodeId::Publisher(_) => true,
            // It has everything from the others' recorders.
            NodeId::Recorder(_) => is_witness,
            _ => false,
        };
        self.readers = [vec![NodeId::Orderer(host)], here.into_iter().filter(reads_records).collect()];
        self.within(Scope::of_host(config, from))
    }

    /// Of these logs, and the files that go with them.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// What it takes.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whole copies that came, on all connections.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// How each mirror stands.
    pub fn progress(&self) -> impl Iterator<Item = (LogName, MirrorProgress)> + '_ {
        self.mirrors.iter().map(|(&log, mirroring)| {
            let (next, durable) = (mirroring.mirror.next(), mirroring.durable);
            let lag_bytes = self.rules.marks(log).0.saturating_sub(next.0);
            (log, MirrorProgress { next, durable, lag_bytes })
        })
    }

    /// Begins a connection: says by `send` what there is of the logs `there`.
    ///
    /// # Errors
    /// If one of them is no mirror, or cannot be opened.
    pub fn ask(
        &mut self,
        there: impl IntoIterator<Item = LogName>,
        mut send: impl FnMut(&[u8]),
    ) -> Result<(), MirrorEnded> {
        (self.rules, self.file) = (pares_mirror::ReceiverRules::default(), None);
        self.say(MirrorMessage::Hello { speaks: SPEAKS, understands: UNDERSTANDS }, &mut send);
        for log in there {
            match self.standing(log) {
                Ok(has) => self.say(has, &mut send),
                Err(NodeError::Open(OpenError::Absent { .. })) => {}
                Err(error) if is_damage(&error) => {
                    // What no log continues: the source begins it afresh, and says of which segments.
                    self.mirrors.remove(&log);
                    self.world
                        .complain(&format_args!("{log}: {error}: it is to be set aside and copied again"));
                    let nothing = MirrorMessage::Have { log, segment_bytes: 0, next: 0, last: 0, digest: 0 };
                    self.say(nothing, &mut send);
                }
                Err(error) => return Err(ended(error)),
            }
        }
        let files = files::list(&self.world, self.mirrors.keys().copied(), &self.scope)
            .map_err(MirrorEnded::broken)?;
        for (path, version) in files {
            let files::Version { bytes, digest } = version;
            self.say(MirrorMessage::HaveFile { bytes, digest, path: &path }, &mut send);
        }
        self.say(MirrorMessage::Go, &mut send);
        Ok(())
    }

    fn standing(&mut self, log: LogName) -> Result<MirrorMessage<'static>, NodeError> {
        if !self.mirrors.contains_key(&log) {
            self.open(log, Config::default().existing(), false)?;
        }
        let mut reader = self.world.read_log_from_start(node_of(log))?;
        let (last, digest) = last_record(&mut reader)?;
        let next = self.mirrors[&log].mirror.next().0;
        Ok(MirrorMessage::Have { log, segment_bytes: reader.segment_bytes(), next, last, digest })
    }

    fn open(&mut self, log: LogName, config: Config, afresh: bool) -> Result<(), NodeError> {
        // One writer at a time: what is set aside is let go first.
        self.mirrors.remove(&log);
        let mirror = self.world.mirror_log(node_of(log), config, afresh)?;
        self.mirrors.insert(log, Mirroring { mirror, durable: Offset::START });
        Ok(())
    }

    /// Begins a mirror, if it is none of more than the settings here allow: who sends them may be in error, and this disk is shared.
    fn begin(
        &mut self,
        log: LogName,
        segment_bytes: u64,
        from: u64,
        afresh: bool,
    ) -> Result<(), MirrorEnded> {
        let settings = whole_file::read(&self.world, Path::new("pares.toml"));
        let settings = settings.ok().and_then(|text| SystemConfig::parse(&text).ok()).unwrap_or_default();
        let most = SEGMENT_BYTES.max(settings.segment_mib << 20);
        let (LogName::Gateway(number) | LogName::Recorder(number)) = log;
        if usize::from(number) >= ROLE_MAX || segment_bytes > most || from > OFFSET_MAX {
            return Err(MirrorEnded::broken(format_args!(
                "{log} with segments of {segment_bytes} bytes cannot be of a system with the settings of its source: raise `segment_mib` there, if it was larger once"
            )));
        }
        let config = Config::default().segment_bytes(segment_bytes).mirror_from(Offset(from));
        self.open(log, config, afresh).map_err(ended)
    }

    /// Takes a frame of the source; answers by `send`.
    ///
    /// # Errors
    /// If it is not what a source sends, or cannot be stored: the connection ends. What is stored is whole in any case.
    pub fn on_frame(&mut self, frame: &[u8], mut send: impl FnMut(&[u8])) -> Result<(), MirrorEnded> {
        let message = MirrorMessage::decode(frame)?;
        self.rules.on(&message)?;
        self.check_scope(&message)?;
        match message {
            MirrorMessage::Begins { log, segment_bytes, from, afresh }
                if afresh || !self.mirrors.contains_key(&log) =>
            {
                self.begin(log, segment_bytes, from, afresh)?;
            }
            MirrorMessage::Stretch { log, from, bytes } => self.take(log, Offset(from), bytes)?,
            MirrorMessage::Marks { log, durable, released, .. } => {
                let mirroring = self.mirrors.get_mut(&log).expect("the rules know that it has begun");
                mirroring.durable = mirroring.mirror.publish(Offset(durable));
                mirroring.mirror.release_before(Offset(released));
                self.wake(log);
            }
            MirrorMessage::Piece { at, file: (path, bytes), .. } => {
                self.store(at, path, bytes)
                    .map_err(|error| MirrorEnded::broken(format_args!("{path}: {error}")))?;
            }
            MirrorMessage::Keep { paths } => self.keep(paths).map_err(MirrorEnded::broken)?,
            MirrorMessage::Round { .. } => self.rounds += 1,
            _ => {}
        }
        let (rules, out) = (&mut self.rules, &mut self.out);
        rules.answers(matches!(message, MirrorMessage::Round { .. }), |answer| {
            answer.encode(out);
            send(out);
        });
        Ok(())
    }

    fn take(&mut self, log: LogName, from: Offset, bytes: &[u8]) -> Result<(), MirrorEnded> {
        let mirroring = self.mirrors.get_mut(&log).expect("the rules know that it has begun");
        let taken = mirroring.mirror.take(from, bytes);
        taken.map_err(|error| MirrorEnded::broken(format_args!("{log}: {error}")))?;
        assert!(mirroring.mirror.next() > from, "{log}: a mirror grows by each stretch that it takes");
        mirroring.durable = mirroring.mirror.publish(Offset(self.rules.marks(log).1));
        self.wake(log);
        Ok(())
    }

    /// Refuses what the source has no business to send: its mistake must not reach what others write.
    fn check_scope(&self, message: &MirrorMessage<'_>) -> Result<(), MirrorEnded> {
        let is_in = match message {
            MirrorMessage::Begins { log, .. } => self.scope.has(*log),
            MirrorMessage::Piece { file: (path, _), .. } => self.scope.class_of(path).is_some(),
            _ => true,
        };
        if is_in { Ok(()) } else { Err(MirrorEnded::broken("it sends what is not written there")) }
    }

    fn wake(&mut self, log: LogName) {
        let [of_requests, of_records] = &self.readers;
        let readers = if matches!(log, LogName::Gateway(_)) { of_requests } else { of_records };
        readers.iter().for_each(|&reader| self.ringer.ring(reader));
    }

    /// A file has another name until it is whole.
    fn store(&mut self, at: u64, path: &str, bytes: &[u8]) -> std::io::Result<()> {
        let unfinished = format!("{path}.new");
        if at == 0 {
            assert!(self.file.is_none(), "{path}: one file comes at a time");
            self.file = Some(self.world.create_file(Path::new(&unfinished))?);
        }
        let mut file = self.file.take().expect("the rules know where a file begins");
        file.append(bytes)?;
        if !self.rules.is_file_whole() {
            self.file = Some(file);
            return Ok(());
        }
        file.sync()?;
        self.world.rename(Path::new(&unfinished), Path::new(path))?;
        self.world.sync_dir(Path::new(path).parent().unwrap_or(Path::new("")))
    }

    /// Removes the files that the source has no more.
    fn keep(&mut self, paths: &str) -> std::io::Result<()> {
        for path in files::list(&self.world, self.mirrors.keys().copied(), &self.scope)?.into_keys() {
            if !paths.lines().any(|kept| kept == path) {
                self.world.remove_file(Path::new(&path))?;
            }
        }
        Ok(())
    }

    fn say(&mut self, message: MirrorMessage<'_>, send: &mut impl FnMut(&[u8])) {
        message.encode(&mut self.out);
        send(&self.out);
    }
}

fn is_damage(error: &NodeError) -> bool {
    match error {
        NodeError::Open(error) => error.is_damage(),
        NodeError::Log(error) => error.is_damage(),
        _ => false,
    }
}

/// What cannot be a mirror ends the receiver; a log whose damaged marks do not say what it is, too.
fn ended(error: NodeError) -> MirrorEnded {
    match error {
        NodeError::Open(OpenError::NotAMirror { .. } | OpenError::Locked { .. }) => error.into(),
        error if is_damage(&error) => error.into(),
        error => MirrorEnded::broken(error),
    }
}

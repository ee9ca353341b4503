//! Files are sent in pieces, one file after the other: a checkpoint may be larger than what a receiver may have on its way.

use std::path::Path;

use pares_mirror::{Class, FILE_PIECE_MAX, MirrorMessage, class_of};

use super::{MirrorEnded, MirrorSource, Version};
use crate::world::{File, World};

impl<W: World> MirrorSource<W> {
    /// Sends the next piece of a file of that class that the receiver lacks: whether one went. `None` if it lacks none.
    pub(super) fn send_file(
        &mut self,
        class: Class,
        send: &mut impl FnMut(&[u8]),
    ) -> Result<Option<bool>, MirrorEnded> {
        if self.file.is_none() {
            let lacks = |(path, version): &(&String, &Version)| {
                class_of(path) == Some(class) && self.has_files.get(*path) != Some(*version)
            };
            let Some((path, &version)) = self.files.iter().find(lacks) else { return Ok(None) };
            let path = path.clone();
            self.has_files.insert(path.clone(), version);
            let opened = self.world.open_file(Path::new(&path)).and_then(|file| Ok((file.bytes()?, file)));
            // One that was removed meanwhile is not listed at the next look.
            let Ok((of, file)) = opened else { return Ok(Some(true)) };
            self.file = Some((path, file, 0, of));
        }
        if !self.rules.may_send_file() {
            return Ok(Some(false));
        }
        let (path, file, at, of) = self.file.take().expect("just opened");
        assert!(at <= of, "{path}: a piece begins within its file");
        let mut bytes = vec![0; (of - at).min(FILE_PIECE_MAX as u64) as usize];
        file.fill(&mut bytes, at).map_err(|error| MirrorEnded::broken(format_args!("{path}: {error}")))?;
        self.say(MirrorMessage::Piece { at, of, file: (&path, &bytes) }, send);
        self.rules.on_file_sent(bytes.len() as u64);
        let at = at + bytes.len() as u64;
        self.file = (at < of).then_some((path, file, at, of));
        Ok(Some(true))
    }
}

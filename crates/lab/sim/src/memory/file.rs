//! An open file of a process.

use std::io;

use super::files::Content;
use super::host::Host;

/// An open file of a process.
#[derive(Debug)]
pub(crate) struct File {
    host: Host,
    content: Content,
}

impl File {
    pub(crate) fn new(host: &Host, content: Content) -> Self {
        Self { host: host.clone(), content }
    }
}

impl pares_roles::world::File for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.host.writes()?;
        self.content.lock().now.extend_from_slice(bytes);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.host.writes()?;
        let mut content = self.content.lock();
        let (at, end) = (at as usize, at as usize + bytes.len());
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[at..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        let content = self.content.lock();
        let from = content.now.get(at as usize..).unwrap_or_default();
        let read = from.len().min(bytes.len());
        bytes[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.host.writes()?;
        let mut content = self.content.lock();
        content.synced = content.now.clone();
        Ok(())
    }
}

//! A file whose writer may die in the middle of a piece.

use std::io;
use std::sync::Arc;

use pares_roles::world::File;

use crate::Faults;
use crate::crash::Point;

/// A file of a world that fails where the environment says.
#[derive(Debug)]
pub struct FaultyFile<F> {
    pub(crate) inner: F,
    /// Of a checkpoint that has no name yet; nothing fails at other files.
    pub(crate) faults: Option<Arc<Faults>>,
}

impl<F: File> File for FaultyFile<F> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(faults) = &self.faults {
            faults.crash.after(Point::RecorderStoring, || {
                // It dies now, whether that was written or not.
                let _ = self.inner.append(&bytes[..bytes.len() / 2]);
            });
        }
        self.inner.append(bytes)
    }

    passed_on! {
        fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
        fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize>;
        fn bytes(&self) -> io::Result<u64>;
        fn sync(&mut self) -> io::Result<()>;
    }
}

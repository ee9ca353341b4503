//! The file under redb, which gives every page as it was written, or an error.
//!
//! redb checks its pages when it opens a file, and trusts them from then on. A page that it reads again after months may have
//! changed meanwhile. The checksums of items find a changed value; but a changed key or a changed branch of the tree hides
//! items, and with an item that seems absent a site computes as well. So the checksum of each page is kept in memory from the
//! moment it was first read, which is in that check, or written: 8 bytes for 4 KiB.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};

/// redb's own, in which it reads and writes all but the beginning of the file.
const PAGE_BYTES: u64 = 4096;

#[derive(Debug)]
pub(crate) struct CheckedFile {
    file: FileBackend,
    /// The checksums of the pages, as far as known.
    sums: Mutex<Vec<Option<u32>>>,
}

impl CheckedFile {
    pub(crate) fn new(file: File) -> Result<Self, DatabaseError> {
        Ok(Self { file: FileBackend::new(file)?, sums: Mutex::default() })
    }

    fn sums(&self) -> MutexGuard<'_, Vec<Option<u32>>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole pages that hold `len` bytes from `offset` on; and where these begin in them.
    fn pages(&self, offset: u64, len: usize) -> io::Result<(u64, Vec<u8>, usize)> {
        let from = offset - offset % PAGE_BYTES;
        let end = offset + len as u64;
        // The last page of a file may be shorter.
        let to = end.next_multiple_of(PAGE_BYTES).min(self.file.len()?).max(end);
        let mut bytes = vec![0; (to - from) as usize];
        self.read_pages(from, &mut bytes)?;
        Ok((from, bytes, (offset - from) as usize))
    }

    fn read_pages(&self, from: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read(from, bytes)?;
        let mut sums = self.sums();
        for (page, sum) in sums_of(from, bytes) {
            match entry(&mut sums, page) {
                Some(known) if *known != sum => {
                    let what = format!("page {page} of its file has changed on the disk");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                known => *known = Some(sum),
            }
        }
        Ok(())
    }

    fn written(&self, from: u64, bytes: &[u8]) {
        let mut sums = self.sums();
        for (page, sum) in sums_of(from, bytes) {
            *entry(&mut sums, page) = Some(sum);
        }
    }
}

fn entry(sums: &mut Vec<Option<u32>>, page: u64) -> &mut Option<u32> {
    let page = page as usize;
    if sums.len() <= page {
        sums.resize(page + 1, None);
    }
    &mut sums[page]
}

fn sums_of(from: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, u32)> + '_ {
    (from / PAGE_BYTES..).zip(bytes.chunks(PAGE_BYTES as usize).map(crc32c::crc32c))
}

fn is_whole(offset: u64, len: usize) -> bool {
    offset.is_multiple_of(PAGE_BYTES) && (len as u64).is_multiple_of(PAGE_BYTES)
}

/// Locks of the file, as they are.
macro_rules! locks {
    ($($name:ident -> $given:ty),*) => {$(
        fn $name(&self, start: Bound<u64>, end: Bound<u64>) -> Result<$given, BackendError> {
            self.file.$name(start, end)
        }
    )*};
}

impl StorageBackend for CheckedFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if is_whole(offset, out.len()) {
            return self.read_pages(offset, out);
        }
        let (_, bytes, at) = self.pages(offset, out.len())?;
        out.copy_from_slice(&bytes[at..at + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let kept = len.min(self.file.len()?) / PAGE_BYTES;
        self.sums().truncate(kept as usize);
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if is_whole(offset, data.len()) {
            self.file.write(offset, data)?;
            self.written(offset, data);
            return Ok(());
        }
        let (from, mut bytes, at) = self.pages(offset, data.len())?;
        bytes[at..at + data.len()].copy_from_slice(data);
        self.file.write(offset, data)?;
        self.written(from, &bytes);
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    locks!(try_lock_range -> bool, try_lock_shared_range -> bool, query_lock_range -> bool);
    locks!(lock_range -> (), lock_shared_range -> (), unlock_range -> ());
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn file() -> (File, CheckedFile) {
        let file = tempfile::tempfile().unwrap();
        let checked = CheckedFile::new(file.try_clone().unwrap()).unwrap();
        checked.set_len(3 * PAGE_BYTES + 100).unwrap();
        (file, checked)
    }

    #[test]
    fn what_is_written_is_read_however_it_lies_in_the_pages() {
        let (_, checked) = file();
        let mut expected = vec![0; 3 * PAGE_BYTES as usize + 100];
        for (offset, len) in [(0, 320), (4096, 4096), (4000, 5000), (12_288, 100), (12_300, 3), (0, 8192)] {
            let data = vec![(offset % 251) as u8 + 1; len];
            checked.write(offset as u64, &data).unwrap();
            expected[offset..offset + len].copy_from_slice(&data);
            let mut all = vec![0; expected.len()];
            checked.read(0, &mut all).unwrap();
            assert_eq!(all, expected);
        }
        checked.set_len(4 * PAGE_BYTES).unwrap();
        let mut last = vec![1; PAGE_BYTES as usize];
        checked.read(3 * PAGE_BYTES, &mut last).unwrap();
        assert_eq!(&last[..100], &expected[3 * PAGE_BYTES as usize..]);
    }

    #[test]
    fn a_page_that_changes_is_found_and_a_neighbour_is_not() {
        let (disk, checked) = file();
        checked.write(PAGE_BYTES, &[7; PAGE_BYTES as usize]).unwrap();
        checked.read(0, &mut [0; 100]).unwrap();
        for (at, page) in [(PAGE_BYTES + 9, PAGE_BYTES), (4095, 0)] {
            disk.write_all_at(&[1], at).unwrap();
            let error = checked.read(page + 50, &mut [0; 3]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            checked.read(2 * PAGE_BYTES, &mut [0; PAGE_BYTES as usize]).unwrap();
        }
    }
}

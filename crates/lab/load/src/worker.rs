//! A thread that works until it is stopped, beside whatever is measured or killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::LabError;

/// An active thread. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Worker<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Worker<T> {
    /// Begins, under that name; the work is to look at the flag, and to end once it is set.
    ///
    /// # Errors
    /// If the operating system has no thread for it.
    pub fn start(
        name: &str,
        work: impl FnOnce(&Arc<AtomicBool>) -> T + Send + 'static,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || work(&flag));
        let thread = thread.map_err(LabError::io(format!("starting the thread of {name}")))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl<T> Worker<T> {
    /// Whether it has ended, by itself if nobody told it to.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Tells it to stop, and waits for what it gives.
    ///
    /// # Panics
    /// As the work did.
    pub fn finish(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("taken here alone");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

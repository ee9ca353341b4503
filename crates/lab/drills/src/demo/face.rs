//! How the demonstration is shown: on a screen, in lines, or not at all.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use indicatif::ProgressBar;
use pares_load::{LabError, LabResult};
use pares_text::progress;

use super::Args;
use super::director::Happening;
use super::lines;
use super::picture::Picture;
use super::screen::Screen;

/// Between two looks at everything.
const TURN: Duration = Duration::from_millis(5);

/// What the user at the keyboard wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserAction {
    /// To end.
    Quit,
    /// To see the leading venue die now.
    Kill,
    /// To pause or resume the kills.
    Pause,
}

/// How the demonstration is shown.
pub enum Face {
    /// A dashboard.
    Screen(Screen),
    /// A line per second and happening.
    Lines,
    /// A progress bar, if a terminal shows it.
    Silent(ProgressBar),
}

impl Face {
    /// The face asked for, or fitting.
    ///
    /// # Errors
    /// If the terminal cannot be set up.
    pub fn open(args: &Args) -> Result<Self, LabError> {
        let terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        Ok(match (args.json, args.plain || !terminal) {
            (true, _) => Self::Silent(match args.day.then_some(args.day_seconds).or(args.seconds) {
                Some(seconds) => progress::seconds("trading", seconds),
                None => ProgressBar::hidden(),
            }),
            (false, true) => Self::Lines,
            (false, false) => Self::Screen(Screen::open()?),
        })
    }

    /// Shows what is new and lets a few milliseconds pass. Says what the user at the keyboard wants.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn turn(&mut self, picture: &Picture) -> Result<Option<UserAction>, LabError> {
        match self {
            Self::Screen(screen) => return screen.turn(picture, TURN),
            Self::Silent(bar) => bar.set_position(picture.elapsed.as_millis() as u64),
            Self::Lines => {}
        }
        std::thread::sleep(TURN);
        Ok(None)
    }

    /// A second is over.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn second(&self, picture: &Picture) -> LabResult {
        match self {
            Self::Lines => say(&lines::second(picture)),
            Self::Screen(_) | Self::Silent(_) => Ok(()),
        }
    }

    /// Something happened.
    ///
    /// # Errors
    /// If nobody reads any more.
    pub fn happening(&self, elapsed: Duration, happening: &Happening) -> LabResult {
        match self {
            Self::Lines => say(&lines::happening(elapsed, happening)),
            Self::Screen(_) | Self::Silent(_) => Ok(()),
        }
    }
}

/// Prints a line. A pipe whose reader has gone ends the demonstration, in order.
///
/// # Errors
/// If nobody reads any more.
pub fn say(line: &str) -> LabResult {
    writeln!(std::io::stdout(), "{line}").map_err(LabError::io("printing"))
}

impl Drop for Face {
    fn drop(&mut self) {
        if let Self::Silent(bar) = self {
            bar.finish_and_clear();
        }
    }
}

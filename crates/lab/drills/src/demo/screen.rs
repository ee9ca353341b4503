//! The terminal: taken over for the dashboard, and given back however this ends.

use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use pares_load::LabError;
use pares_os::terminal::is_gone_after;
use ratatui::DefaultTerminal;

use super::face::UserAction;
use super::picture::Picture;
use super::view;

/// Between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// The terminal while the dashboard has it. A panic gives it back too.
pub struct Screen {
    terminal: DefaultTerminal,
    drawn: Option<Instant>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// If it cannot be set up.
    pub fn open() -> Result<Self, LabError> {
        let terminal = ratatui::try_init()
            .map_err(LabError::io("setting up the terminal (--plain does without a dashboard)"))?;
        Ok(Self { terminal, drawn: None })
    }

    /// Draws if it is time, and waits at most `wait`, less than a second, for a key.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn turn(&mut self, picture: &Picture, wait: Duration) -> Result<Option<UserAction>, LabError> {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            self.drawn = Some(Instant::now());
            self.terminal
                .draw(|frame| view::draw(frame, picture))
                .map_err(LabError::io("drawing on the terminal"))?;
        }
        let reading = LabError::io("reading the keyboard");
        if is_gone_after(wait).map_err(LabError::io("waiting for the keyboard"))? {
            return Ok(Some(UserAction::Quit));
        }
        let next = || event::poll(Duration::ZERO)?.then(event::read).transpose();
        Ok(match next().map_err(reading)? {
            Some(Event::Key(key)) if key.kind == KeyEventKind::Press => wish(key),
            Some(Event::Resize(..)) => {
                self.drawn = None;
                None
            }
            _ => None,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that was closed cannot be given back, and nobody is left to be told.
        let _ = ratatui::try_restore();
    }
}

fn wish(key: KeyEvent) -> Option<UserAction> {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => Some(UserAction::Quit),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(UserAction::Quit),
        KeyCode::Char('k') => Some(UserAction::Kill),
        KeyCode::Char('p') => Some(UserAction::Pause),
        _ => None,
    }
}

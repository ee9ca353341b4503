//! Checkpoints arrive in pieces, paced by the venue that took them, so that no block transfer stalls the
//! stream of results between them (paper 2's lesson: chunks with pauses).
//!
//! A checkpoint may be as large as memory allows, so the pieces are not gathered here: this says which of them belong together,
//! and the caller puts them where they go. How long it will be, the venue itself does not know before the last piece.

use pares_types::Position;

/// One checkpoint on its way from one venue.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    /// The position it was taken at, and the bytes so far; `None` between checkpoints.
    under_way: Option<(Position, u64)>,
}

/// How a piece fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceResult {
    /// It begins a checkpoint; what came of another one is of no use any more.
    First,
    /// It goes behind what is there.
    Next,
    /// It goes behind what is there, which is the whole checkpoint then.
    Last,
    /// It goes nowhere.
    Nowhere,
}

impl Assembly {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the piece of `bytes` bytes that starts at `start`; `total` is known with the last piece only.
    /// A piece that does not continue the last one (its venue died and came back, say) starts again
    /// if it is a first piece and goes nowhere otherwise. A checkpoint has at least two pieces.
    pub fn on_piece(
        &mut self,
        position: Position,
        start: u64,
        bytes: u64,
        total: Option<u64>,
    ) -> PieceResult {
        let end = start + bytes;
        if start == 0 && total.is_none() {
            self.under_way = Some((position, end));
            return PieceResult::First;
        }
        let fits = self.under_way == Some((position, start)) && total.is_none_or(|total| total == end);
        self.under_way = match (fits, total) {
            (true, None) => Some((position, end)),
            (true, Some(_)) | (false, _) => None,
        };
        match (fits, total) {
            (true, None) => PieceResult::Next,
            (true, Some(_)) => PieceResult::Last,
            (false, _) => PieceResult::Nowhere,
        }
    }

    /// Gives up the checkpoint under way: further pieces of it go nowhere.
    pub fn give_up(&mut self) {
        self.under_way = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Position = Position(9);

    #[test]
    fn pieces_in_order_make_a_whole() {
        let mut assembly = Assembly::new();
        assert_eq!(assembly.on_piece(AT, 0, 3, None), PieceResult::First);
        assert_eq!(assembly.on_piece(AT, 3, 4, None), PieceResult::Next);
        assert_eq!(assembly.on_piece(AT, 7, 1, Some(8)), PieceResult::Last);
    }

    #[test]
    fn a_piece_out_of_place_ends_it_and_a_first_piece_starts_anew() {
        let mut assembly = Assembly::new();
        assembly.on_piece(AT, 0, 3, None);
        assert_eq!(assembly.on_piece(AT, 4, 1, None), PieceResult::Nowhere);
        assert_eq!(assembly.on_piece(AT, 3, 1, None), PieceResult::Nowhere, "a piece was lost");
        assert_eq!(assembly.on_piece(Position(12), 0, 2, None), PieceResult::First);
        assert_eq!(assembly.on_piece(AT, 2, 2, None), PieceResult::Nowhere, "of another checkpoint");
    }

    #[test]
    fn nothing_follows_the_last_piece() {
        let mut assembly = Assembly::new();
        assembly.on_piece(AT, 0, 3, None);
        assert_eq!(assembly.on_piece(AT, 3, 1, Some(4)), PieceResult::Last);
        assert_eq!(assembly.on_piece(AT, 4, 1, None), PieceResult::Nowhere);
        assert_eq!(assembly.on_piece(AT, 3, 1, Some(4)), PieceResult::Nowhere, "a repeat");
    }

    #[test]
    fn a_total_that_is_not_reached_is_no_whole() {
        let mut assembly = Assembly::new();
        assembly.on_piece(AT, 0, 3, None);
        assert_eq!(assembly.on_piece(AT, 3, 1, Some(5)), PieceResult::Nowhere);
    }

    #[test]
    fn a_checkpoint_given_up_is_never_whole() {
        let mut assembly = Assembly::new();
        assembly.on_piece(AT, 0, 3, None);
        assembly.give_up();
        assert_eq!(assembly.on_piece(AT, 3, 1, Some(4)), PieceResult::Nowhere);
    }
}

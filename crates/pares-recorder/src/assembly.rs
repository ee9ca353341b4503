//! Checkpoints arrive in pieces, paced by the venue that took them, so that no block transfer stalls the
//! stream of results between them (paper 2's lesson: chunks with pauses).

use pares_types::Position;

/// One checkpoint on its way from one venue.
#[derive(Clone, Debug, Default)]
pub struct Assembly {
    position: Position,
    total_bytes: usize,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the piece that starts at `start`. When it completes the checkpoint, gives the whole of it.
    /// A piece that does not continue the last one (its venue died and came back, say) starts anew
    /// if it is a first piece and is dropped otherwise.
    pub fn on_chunk(
        &mut self,
        position: Position,
        total_bytes: usize,
        start: usize,
        piece: &[u8],
    ) -> Option<&[u8]> {
        if start == 0 {
            self.position = position;
            self.total_bytes = total_bytes;
            self.bytes.clear();
        } else if position != self.position || start != self.bytes.len() || total_bytes != self.total_bytes {
            return None;
        }
        self.bytes.extend_from_slice(piece);
        (self.bytes.len() == self.total_bytes).then_some(self.bytes.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_order_make_a_whole() {
        let mut assembly = Assembly::new();
        assert_eq!(assembly.on_chunk(Position(9), 5, 0, b"abc"), None);
        assert_eq!(assembly.on_chunk(Position(9), 5, 3, b"de"), Some(b"abcde".as_slice()));
    }

    #[test]
    fn a_piece_out_of_place_is_dropped_and_a_first_piece_starts_anew() {
        let mut assembly = Assembly::new();
        assembly.on_chunk(Position(9), 5, 0, b"abc");
        assert_eq!(assembly.on_chunk(Position(9), 5, 4, b"e"), None);
        assert_eq!(assembly.on_chunk(Position(12), 2, 0, b"xy"), Some(b"xy".as_slice()));
    }
}

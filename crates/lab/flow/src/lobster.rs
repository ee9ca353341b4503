//! LOBSTER days: a message file and an orderbook file, line by line the event and the book after it.
//!
//! ```text
//!  message:    time,type,order id,size,price,direction       34200.189,1,11885113,21,2238100,1
//!  orderbook:  ask price 1,ask size 1,bid price 1,bid size 1, ask price 2, ...
//! ```
//! Prices are dollars times 10,000, which is [`Price`]'s unit. Unoccupied levels carry size 0 and a price
//! of +-9999999999. Format: the read-me published with the samples at <https://lobsterdata.com>. The samples come zipped:
//! unpack them first (`unzip`).

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::str::FromStr;

use pares_types::{InstrumentId, Price, Quantity, Side};

use crate::recorded::{
    BookChange, Depth, DepthLevel, OrderRef, RecordedEvent, RecordedEvents, RecordedId, SourceError,
};

const MESSAGE: &str = "message";
const ORDERBOOK: &str = "orderbook";

/// A LOBSTER day, read as it is consumed.
#[derive(Debug)]
pub struct LobsterSource<R> {
    instrument: InstrumentId,
    messages: Lines<R>,
    book: Lines<R>,
    /// Levels per side; known from the first row on.
    levels: usize,
    /// The first row, read ahead to learn `levels`.
    first: Option<Depth>,
}

impl LobsterSource<BufReader<File>> {
    /// Opens the two files of a day and says all its events concern `instrument`.
    ///
    /// # Errors
    /// [`SourceError`] if either cannot be opened or the first row is no LOBSTER row.
    pub fn open(messages: &Path, book: &Path, instrument: InstrumentId) -> Result<Self, SourceError> {
        Self::new(open(messages)?, open(book)?, instrument)
    }
}

fn open(path: &Path) -> Result<BufReader<File>, SourceError> {
    let file = File::open(path).map_err(|source| SourceError::Open { path: path.to_owned(), source })?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

impl<R: BufRead> LobsterSource<R> {
    /// A day from any two readers.
    ///
    /// # Errors
    /// [`SourceError`] if there is no first row, it cannot be read, or it is no LOBSTER row.
    pub fn new(messages: R, book: R, instrument: InstrumentId) -> Result<Self, SourceError> {
        let mut source = Self {
            instrument,
            messages: Lines::new(MESSAGE, messages),
            book: Lines::new(ORDERBOOK, book),
            levels: 0,
            first: None,
        };
        if !source.book.advance()? {
            return Err(source.book.ends_early());
        }
        source.levels = count_levels(&source.book)?;
        source.first = Some(parse_row(&source.book, source.levels)?);
        Ok(source)
    }

    fn next_row(&mut self) -> Result<Option<Depth>, SourceError> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        if self.book.advance()? { parse_row(&self.book, self.levels).map(Some) } else { Ok(None) }
    }
}

impl<R: BufRead> RecordedEvents for LobsterSource<R> {
    fn next_event(&mut self) -> Result<Option<RecordedEvent>, SourceError> {
        let has_message = self.messages.advance()?;
        let row = self.next_row()?;
        match (has_message, row) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(self.messages.ends_early()),
            (true, None) => Err(self.book.ends_early()),
            (true, Some(row)) => {
                let (time_ns, change) = parse_message(&self.messages)?;
                Ok(Some(RecordedEvent { time_ns, instrument: self.instrument, change, published: Some(row) }))
            }
        }
    }

    fn published_levels(&self) -> Option<usize> {
        Some(self.levels)
    }
}

/// A file read line by line into one buffer.
#[derive(Debug)]
struct Lines<R> {
    file: &'static str,
    reader: R,
    text: String,
    /// The number of the line in `text`, from 1.
    line: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(file: &'static str, reader: R) -> Self {
        Self { file, reader, text: String::new(), line: 0 }
    }

    /// Moves to the next line; false at the end.
    fn advance(&mut self) -> Result<bool, SourceError> {
        self.text.clear();
        let read = self.reader.read_line(&mut self.text);
        let read = read.map_err(|source| SourceError::Read { read: self.line, source })?;
        self.line += u64::from(read > 0);
        Ok(read > 0)
    }

    fn text(&self) -> &str {
        self.text.trim_end()
    }

    fn ends_early(&self) -> SourceError {
        SourceError::EndsEarly { file: self.file, lines: self.line }
    }

    fn error(&self, what: String) -> SourceError {
        SourceError::Line { file: self.file, line: self.line, what }
    }

    fn parse<T: FromStr>(&self, field: &str, name: &str) -> Result<T, SourceError> {
        field.trim().parse().map_err(|_| self.error(format!("{name} `{field}` is not a number in range")))
    }

    /// Shares: 32 bits, as in the feed the files were made of, so that no sum of them overflows.
    fn quantity(&self, field: &str) -> Result<Quantity, SourceError> {
        self.parse::<u32>(field, "size").map(|shares| Quantity(u64::from(shares)))
    }
}

fn count_levels<R: BufRead>(row: &Lines<R>) -> Result<usize, SourceError> {
    let columns = row.text().split(',').count();
    if columns.is_multiple_of(4) {
        Ok(columns / 4)
    } else {
        Err(row.error(format!("{columns} columns; a row has four per level")))
    }
}

fn parse_row<R: BufRead>(row: &Lines<R>, levels: usize) -> Result<Depth, SourceError> {
    let mut depth = Depth { bids: Vec::with_capacity(levels), asks: Vec::with_capacity(levels) };
    let mut fields = row.text().split(',');
    for _ in 0..levels {
        depth.asks.extend(parse_level(row, &mut fields, levels)?);
        depth.bids.extend(parse_level(row, &mut fields, levels)?);
    }
    if fields.next().is_some() {
        return Err(row.error(format!("more than {} columns", levels * 4)));
    }
    Ok(depth)
}

/// `None` for an unoccupied level.
fn parse_level<'a, R: BufRead>(
    row: &Lines<R>,
    fields: &mut impl Iterator<Item = &'a str>,
    levels: usize,
) -> Result<Option<DepthLevel>, SourceError> {
    let (Some(price), Some(size)) = (fields.next(), fields.next()) else {
        return Err(row.error(format!("fewer than {} columns", levels * 4)));
    };
    let price = Price(row.parse(price, "price")?);
    let quantity = row.quantity(size)?;
    Ok((!quantity.is_zero()).then_some(DepthLevel { price, quantity }))
}

fn parse_message<R: BufRead>(line: &Lines<R>) -> Result<(u64, BookChange), SourceError> {
    let fields = split_message(line)?;
    let time_ns = parse_time_ns(fields[0])
        .ok_or_else(|| line.error(format!("time `{}` is not seconds after midnight", fields[0])))?;
    let change = match fields[1] {
        "5" => BookChange::HiddenExecution,
        "6" | "7" => BookChange::Nothing, // auctions trade beside the visible book; halts only mark it
        kind => parse_change(line, kind, &fields)?,
    };
    Ok((time_ns, change))
}

fn split_message<R: BufRead>(line: &Lines<R>) -> Result<[&str; 6], SourceError> {
    let mut fields = [""; 6];
    let mut columns = 0;
    // Later releases add a seventh column (market participant), which changes nothing here.
    for (field, text) in fields.iter_mut().zip(line.text().split(',')) {
        *field = text;
        columns += 1;
    }
    if columns == fields.len() { Ok(fields) } else { Err(line.error(format!("{columns} columns, not six"))) }
}

fn parse_change<R: BufRead>(
    line: &Lines<R>,
    kind: &str,
    fields: &[&str; 6],
) -> Result<BookChange, SourceError> {
    let id = RecordedId(line.parse(fields[2], "order id")?);
    let quantity = line.quantity(fields[3])?;
    let price = Price(line.parse(fields[4], "price")?);
    let side = match fields[5] {
        "1" => Side::Buy,
        "-1" => Side::Sell,
        other => return Err(line.error(format!("direction `{other}` is neither 1 nor -1"))),
    };
    if quantity.is_zero() {
        return Err(line.error("size is zero".to_owned()));
    }
    let order = OrderRef { id, at: Some((side, price)) };
    Ok(match kind {
        "1" => BookChange::Submit { id, side, price, quantity },
        "2" => BookChange::Reduce { order, quantity },
        "3" => BookChange::Delete { order, quantity: Some(quantity) },
        "4" => BookChange::Execute { order, quantity },
        other => return Err(line.error(format!("type `{other}` is not one of 1 to 7"))),
    })
}

/// `34200.18960767` as nanoseconds; decimals beyond the ninth are cut.
fn parse_time_ns(text: &str) -> Option<u64> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let mut fraction = 0;
    for place in 0..9 {
        let digit = match decimals.as_bytes().get(place) {
            Some(byte @ b'0'..=b'9') => u64::from(byte - b'0'),
            Some(_) => return None,
            None => 0,
        };
        fraction = fraction * 10 + digit;
    }
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(messages: &str, book: &str) -> Result<Vec<RecordedEvent>, SourceError> {
        let mut source = LobsterSource::new(messages.as_bytes(), book.as_bytes(), InstrumentId(1))?;
        let mut events = Vec::new();
        while let Some(event) = source.next_event()? {
            events.push(event);
        }
        Ok(events)
    }

    #[test]
    fn a_submission_and_its_row_are_read_together() {
        let events = read("34200.5,1,77,21,2238100,1\n", "2239500,100,2238100,21\n").unwrap();
        assert_eq!(events[0].time_ns, 34_200_500_000_000);
        let (side, price, quantity) = (Side::Buy, Price(2_238_100), Quantity(21));
        assert_eq!(events[0].change, BookChange::Submit { id: RecordedId(77), side, price, quantity });
        let asks = vec![DepthLevel { price: Price(2_239_500), quantity: Quantity(100) }];
        assert_eq!(events[0].published, Some(Depth { bids: vec![DepthLevel { price, quantity }], asks }));
    }

    #[test]
    fn unoccupied_levels_are_absent() {
        let events = read("1,7,0,0,-1,-1\n", "9999999999,0,-9999999999,0\n").unwrap();
        assert_eq!(events[0].published, Some(Depth::default()));
        assert_eq!(events[0].change, BookChange::Nothing);
    }

    #[test]
    fn an_error_names_file_and_line() {
        let error = read("1,1,7,x,100,1\n", "2,1,1,1\n").unwrap_err().to_string();
        assert_eq!(
            error,
            "message file, line 1: size `x` is not a number in range; is this the LOBSTER message file?"
        );
    }

    #[test]
    fn swapped_files_are_noticed() {
        let error = read("2239500,100,2238100,21\n", "34200.5,1,77,21,2238100,1\n").unwrap_err().to_string();
        assert!(error.starts_with("orderbook file, line 1: 6 columns"), "{error}");
    }

    #[test]
    fn files_of_different_length_do_not_belong_together() {
        let error = read("1,5,0,1,2,1\n1,5,0,1,2,1\n", "2,1,1,1\n").unwrap_err().to_string();
        assert!(error.starts_with("the orderbook file ends after 1 lines"), "{error}");
    }

    #[test]
    fn an_empty_book_file_is_an_error() {
        let error = read("1,5,0,1,2,1\n", "").unwrap_err().to_string();
        assert!(error.starts_with("the orderbook file ends after 0 lines"), "{error}");
    }

    #[test]
    fn time_is_read_to_the_nanosecond() {
        assert_eq!(parse_time_ns("34200.017459617"), Some(34_200_017_459_617));
        assert_eq!(parse_time_ns("34200"), Some(34_200_000_000_000));
        assert_eq!(parse_time_ns("34200.1x"), None);
    }
}

//! Paper 2, figures 4 to 8: a member's servers and their traders.
//!
//! The paper has a workstation for each trader and a line of 10 Mbit/s between them. Here all share a machine, so what a slow trader is made of is
//! time: it takes so many milliseconds for a message, as on a machine of its own.
//!
//! | module | what |
//! |---|---|
//! | `people` | the source and traders, as threads |
//! | `trader` | a trader as a process, to be stopped and killed |
//! | `rates` | figures 4 and 5 |
//! | `disturbed` | figure 6 |
//! | `filling` | figures 7 and 8 |
//! | `one_thread` | a server that gives its state in the paper's ways |

mod disturbed;
mod filling;
mod one_thread;
mod people;
mod rates;
mod trader;

use pares_load::LabError;

pub(crate) use trader::serve as serve_trader;

use super::Context;
use super::report::Report;

/// Charts' files, each with what it shows.
type Charts = Vec<(String, String)>;

const SLOW: &str = "Emitted and received while six of twelve traders are slow, stopped and killed";

/// Runs the experiment.
///
/// # Errors
/// If a system fails.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let rates = rates::run(context)?;
    let mut charts = rates::write(context, &rates)?;
    let states = disturbed::run(context, SLOW)?;
    charts.push(("swx6".into(), SLOW.into()));
    let (filled, shown) = filling::run(context)?;
    charts.extend(shown);
    Ok(Report {
        name: "swx",
        title: "Paper 2, figures 4 to 8: a member's trading system",
        paper: "A source emits messages of 8 KB, a primary passes them on to twelve traders by multicast, who take 5 ms for each (figures 4 to \
                6). It emits all rates asked for, 10 to 100 a second; traders on slow workstations receive no more than 60 a second, lose what is \
                above, and do not disturb the others. A state of 20 MB given to a secondary in one block blacks ten traders out, who get 50 messages a \
                second, and so does one in 640 chunks of 32 KB (figure 7); with pauses of 50 ms between chunks it does not (figure 8).",
        here: "Two servers as they ship, all on one machine, TCP. A slow trader takes 5 ms for a message, or 16.7 ms, which is the paper's 60 a second. \
               It is behind in the log and misses nothing. A delay counts from the instant at which a message was due. In figure 6 the others are \
               processes. In figures 7 and 8 ten traders get 500 messages a second; the paper's three ways of giving a state are those of \
               one thread that does both, since neither link nor processors are short here; the last is the server's that ships: chunks and pauses \
               as long as they take."
            .into(),
        charts,
        grids: vec![rates::table(&rates), disturbed::table(&states), filling::table(&filled)],
        figures: serde_json::json!({ "rates": rates, "others": states, "filled": filled }),
    })
}

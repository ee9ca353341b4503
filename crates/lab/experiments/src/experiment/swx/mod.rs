//! Paper 2, figures 4 to 8: a member's servers and their traders.
//!
//! | module | what |
//! |---|---|
//! | `desk` | two member servers as they ship |
//! | `people` | the source and traders, as threads |
//! | `rates` | figures 4 and 5 |

mod desk;
mod people;
mod rates;

use pares_load::LabError;

use super::Context;
use super::report::Report;

/// Runs the experiment.
///
/// # Errors
/// If a system fails.
pub fn run(context: &Context) -> Result<Report, LabError> {
    let rates = rates::run(context)?;
    let charts = rates::write(context, &rates)?;
    Ok(Report {
        name: "swx",
        title: "Paper 2, figures 4 to 8: a member's trading system",
        paper: "",
        here: String::new(),
        charts,
        grids: vec![rates::table(&rates)],
        figures: serde_json::json!({ "rates": rates }),
    })
}

//! `pares broker audit head`: what the sites keep of written logs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pares_broker::{BrokerRead, LogHead, UserName};
use pares_keys::to_hex;
use pares_site::Client;
use pares_text::{grouped, moment};
use pares_wice::codec::Coded as _;

use crate::error::{BrokerageResult, failed};
use crate::front;
use crate::readers::READER;

/// Sites that say nothing for so long are given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `pares broker audit head`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The broker's directory
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    /// Of the log of this user [default: of everything]
    #[arg(long, value_name = "NAME", value_parser = user_name)]
    user: Option<UserName>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows the head of the log that was written last.
///
/// # Errors
/// If no site answers, or none was written.
pub fn run(args: &Args) -> BrokerageResult {
    let head = kept(&mut sites(&args.dir)?, &BrokerRead::LatestHead { user: args.user.clone() })?;
    let head = head.ok_or_else(|| failed("no such log was written: DUMPLOG and `audit dump` write one"))?;
    if args.json {
        let LogHead { user, digest, elements, time_ms } = &head;
        let user = user.as_ref().map(UserName::as_str);
        let object = serde_json::json!({ "head": to_hex(&digest.0), "elements": elements, "user": user, "written_ms": time_ms });
        pares_text::say!("{object}");
    } else {
        pares_text::say!("{}  {}", to_hex(&head.digest.0), in_words(&head));
    }
    Ok(())
}

fn user_name(text: &str) -> Result<UserName, String> {
    UserName::new(text).ok_or_else(|| "a user's name has 1 to 32 visible characters".into())
}

/// Which log it is of.
pub(super) fn in_words(head: &LogHead) -> String {
    let LogHead { user, elements, time_ms, .. } = head;
    let of = user.as_ref().map_or("everything", UserName::as_str);
    let written = moment::format(time_ms.saturating_mul(1_000_000));
    format!("the log of {of}, {} elements, written {written}", grouped(*elements))
}

/// A client of the sites in `dir`.
pub(super) fn sites(dir: &Path) -> BrokerageResult<Client> {
    let access = front::access(dir)?;
    front::reached(&access, dir)?;
    Ok(Client::new(READER, 0, front::doors(&access)?))
}

/// The head that sites keep, if there is such a one.
pub(super) fn kept(sites: &mut Client, read: &BrokerRead) -> BrokerageResult<Option<LogHead>> {
    let bytes = sites.read_latest(&read.to_bytes(), PATIENCE).map_err(failed)?;
    Option::<LogHead>::from_bytes(&bytes).map_err(failed)
}

//! Databases made, and emptied.

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

use super::idle::{IMPATIENT, lock, make, owner_of};
use super::sessions::{TRIES, Wanted, is_held};
use super::tables::Failure;
use super::{Options, failed};
use crate::error::StoreError;

/// Makes the database that `options` names, if its server has none of that name and lets this user make one.
///
/// # Errors
/// What the server says; [`StoreError::Io`] if it does not answer.
pub fn provide(options: &Options) -> Result<(), StoreError> {
    let config = options.config()?;
    match config.connect(NoTls) {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {}
        Err(error) => return Err(failed(error)),
    }
    let name = name_of(&config);
    let mut client = config.clone().dbname("postgres").connect(NoTls).map_err(failed)?;
    let create = format!("CREATE DATABASE \"{}\"", name.replace('"', "\"\""));
    match client.batch_execute(&create) {
        // Another site was quicker.
        Err(error) if error.code() == Some(&SqlState::DUPLICATE_DATABASE) => Ok(()),
        made => made.map_err(failed),
    }
}

/// Without a name in the URL the database is called as the user is.
fn name_of(config: &Config) -> &str {
    config.get_dbname().or(config.get_user()).unwrap_or_default()
}

/// The name of the database that `options` names, if it is there and its [owner](Options::owned_by)'s: for nobody else anything can be put into it.
#[must_use]
pub fn claimed(options: &Options) -> Option<String> {
    let config = options.config().ok()?;
    let owner = owner_of(&mut config.connect(NoTls).ok()?).ok()??;
    (options.owner.as_ref() == Some(&owner)).then(|| name_of(&config).to_owned())
}

/// Removes a store, which must not be open: its items, its mark, and the rows of the tables that participate. These tables
/// stay as they are, empty, and so does everything else in the database.
///
/// # Errors
/// [`StoreError::InUse`], or what the server says; then nothing has changed.
pub fn clear(options: &Options) -> Result<(), StoreError> {
    let mut client = options.connect()?;
    lock(&mut client)?;
    make(&mut client, options)?;
    client.batch_execute(IMPATIENT).map_err(failed)?;
    let mut held = Vec::new();
    for _ in 0..TRIES {
        match empty(&mut client) {
            Ok(()) => return Ok(()),
            Err(Failure::Store(error)) => return Err(error),
            Err(Failure::Locked) => held = options.sessions.clear(&mut client, Wanted::All, false)?,
        }
    }
    Err(is_held(&held))
}

fn empty(client: &mut Client) -> Result<(), Failure> {
    let mut transaction = client.transaction()?;
    let there = "SELECT name FROM pares_tables WHERE to_regclass(name) IS NOT NULL";
    for row in transaction.query(there, &[])? {
        transaction.batch_execute(&format!("DELETE FROM {}", row.get::<_, String>(0)))?;
    }
    // Not dropped: users' views may show them.
    transaction.batch_execute("TRUNCATE pares_items, pares_applied")?;
    Ok(transaction.commit()?)
}

//! Which host a system's directory belongs to.
//!
//! `pares.toml` is the same at every host. Were the name only an argument, a start with another host's name would have two hosts write one gateway's log. So the first
//! start with a name writes it down, and every later one must agree.

use std::io::ErrorKind;

use pares_config::{Layout, SystemConfig};
use pares_roles::orderer::first_life;
use pares_types::HostId;

use crate::{NodeError, first_operator, keys};

/// Notes that the directory is of the host called `name`.
///
/// # Errors
/// If it is another's, or the note cannot be written.
pub fn claim(layout: &Layout, name: &str) -> Result<(), NodeError> {
    match noted(layout)? {
        Some(other) if other != name => Err(NodeError::Refused(format!(
            "{} belongs to host `{other}`, not `{name}`: each host has a directory of its own",
            layout.root().display()
        ))),
        Some(_) => Ok(()),
        None => std::fs::create_dir_all(layout.root())
            .and_then(|()| pares_os::replace_file(&layout.host(), format!("{name}\n").as_bytes()))
            .map_err(NodeError::io("noting which host this is")),
    }
}

/// The host that the directory belongs to; none if the whole system is there.
///
/// # Errors
/// If the system has hosts and the directory is of none of them, or the other way round.
pub fn here(layout: &Layout, config: &SystemConfig) -> Result<Option<HostId>, NodeError> {
    let refused = |what: String| Err(NodeError::Refused(what));
    let (noted, file) = (noted(layout)?, layout.config());
    match (config.hosts.is_empty(), noted) {
        (true, None) => Ok(None),
        (true, Some(name)) => refused(format!(
            "this is the directory of host `{name}`, and {} names no `hosts`",
            file.display()
        )),
        (false, None) => {
            let names: Vec<&str> = config.hosts.iter().map(|host| host.name.as_str()).collect();
            refused(format!(
                "say which of the hosts this is: `pares up --host NAME`, one of {}",
                names.join(", ")
            ))
        }
        (false, Some(name)) => match config.host_named(&name) {
            Some(host) => Ok(Some(host)),
            None => refused(format!("{} names no host `{name}`", file.display())),
        },
    }
}

/// Makes the directories of the hosts of a new system, in their order: each with the same configuration and first operator, and certificates of one authority. The
/// authority's key stays with the first.
///
/// # Errors
/// If one is there already, or cannot be written.
pub fn make(layouts: &[Layout], config: &SystemConfig) -> Result<(), NodeError> {
    assert_eq!(layouts.len(), config.hosts.len(), "each host has a directory");
    if let Some(there) = layouts.iter().find(|layout| layout.root().exists()) {
        let dir = there.root().display();
        return Err(NodeError::Refused(format!("{dir} is there already: choose another --dir")));
    }
    let (first, others) = layouts.split_first().expect("a system has hosts");
    std::fs::create_dir_all(first.root()).map_err(NodeError::io("making a host's directory"))?;
    let settled = first_operator::settled(config, first)?;
    keys::issue_for_hosts(layouts, &settled)?;
    for ((layout, host), id) in layouts.iter().zip(&config.hosts).zip(config.host_ids()) {
        claim(layout, &host.name)?;
        let (path, text) = first_life(id);
        std::fs::create_dir_all(layout.orders_journal(id))
            .and_then(|()| pares_os::replace_file(&layout.root().join(path), text.as_bytes()))
            .map_err(NodeError::io("noting an orderer's first life"))?;
    }
    for layout in others {
        // Without sign-on there is no operator's key.
        for of in [Layout::config, Layout::operator_key] {
            if of(first).exists() {
                std::fs::copy(of(first), of(layout)).map_err(NodeError::io("copying what all hosts have"))?;
            }
        }
    }
    Ok(())
}

fn noted(layout: &Layout) -> Result<Option<String>, NodeError> {
    match std::fs::read_to_string(layout.host()) {
        Ok(name) => Ok(Some(name.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NodeError::io("reading which host this is")(error)),
    }
}

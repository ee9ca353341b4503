//! `pares certificate`: what a member's program shows a gateway that asks for a certificate.

use std::path::PathBuf;

use pares_node::{Layout, keys};

use crate::error::CommandResult;

/// Arguments of `pares certificate`.
#[derive(clap::Args)]
pub struct Args {
    /// The certificate's name: letters, digits and dashes, such as member-7
    name: String,
    /// Validity, days
    #[arg(long, default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
}

/// Issues the certificate and says what to hand over.
///
/// # Errors
/// If there is no system in the directory, or it cannot be issued.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    // Without a system there, it would make an authority of its own, which no gateway trusts.
    super::stat::configuration(&layout)?;
    let files = keys::issue(&layout, &args.name, args.days)?;
    pares_text::say!("certificate  {}", files.certificate.display());
    pares_text::say!("key          {}", files.key.display());
    pares_text::say!("authority    {}", files.ca.display());
    Ok(())
}

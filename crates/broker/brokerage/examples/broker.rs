//! `pares broker` alone, without the rest of the program: `cargo run -p pares-brokerage --example broker -- broker up`.

use clap::Parser;

#[derive(Parser)]
enum Program {
    /// Day trading
    Broker(pares_brokerage::Args),
}

fn main() -> std::process::ExitCode {
    let Program::Broker(args) = Program::parse();
    match pares_brokerage::run(&args) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            pares_text::tell!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

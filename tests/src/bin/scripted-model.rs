//! A scripted model on loopback, in the real wire formats. Prints its URL on the first line. For each line of
//! input it prints its counts as a line of JSON.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use casebook_tests::model::brain::Brain;
use casebook_tests::model::{Options, Server};
use clap::Parser;

#[derive(Debug, Parser)]
#[command(about = "A scripted model on loopback, in the wire formats of Anthropic and OpenAI")]
struct Arguments {
    /// The port; 0 chooses a free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// What to play: default or benchmark
    #[arg(long, default_value = "default")]
    script: String,
    /// How long a reply takes, in milliseconds
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Store every request and reply in this folder
    #[arg(long)]
    record: Option<PathBuf>,
    /// Rounds until the report
    #[arg(long)]
    rounds: Option<u32>,
    /// Tool calls of an Expert
    #[arg(long)]
    expert_calls: Option<usize>,
    /// Tool calls of a Review
    #[arg(long)]
    critic_calls: Option<usize>,
    /// Findings of an Expert
    #[arg(long)]
    findings: Option<usize>,
    /// The window in tokens
    #[arg(long)]
    window: Option<u64>,
    /// Number of server threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Exit when the input ends; otherwise run until killed
    #[arg(long)]
    end_with_input: bool,
}

fn main() -> ExitCode {
    match serve(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scripted-model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: Arguments) -> Result<(), String> {
    let script = Brain::named(&arguments.script)
        .ok_or_else(|| format!("expected the script default or benchmark, got {:?}", arguments.script))?;
    let script = Brain {
        rounds: arguments.rounds.unwrap_or(script.rounds),
        expert_calls: arguments.expert_calls.unwrap_or(script.expert_calls),
        critic_calls: arguments.critic_calls.unwrap_or(script.critic_calls),
        findings: arguments.findings.unwrap_or(script.findings),
        ..script
    };
    let options = Options {
        port: arguments.port,
        latency: Duration::from_millis(arguments.latency_ms),
        keep: false,
        record: arguments.record,
        window: arguments.window,
        threads: arguments.threads,
        ..Options::default()
    };
    let server = Server::start(script, options).map_err(|e| format!("cannot serve on port {}: {e}", arguments.port))?;
    let mut out = std::io::stdout();
    let say = |out: &mut std::io::Stdout, line: &str| writeln!(out, "{line}").and_then(|()| out.flush());
    say(&mut out, &server.url()).map_err(|e| e.to_string())?;
    for line in std::io::stdin().lock().lines() {
        line.map_err(|e| e.to_string())?;
        let counts = serde_json::to_string(&server.log().counts()).map_err(|e| e.to_string())?;
        say(&mut out, &counts).map_err(|e| e.to_string())?;
    }
    if arguments.end_with_input {
        return Ok(());
    }
    loop {
        std::thread::park();
    }
}

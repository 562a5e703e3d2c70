//! `web`: checks of the pages and the API, one command for each. Prints `ok` with figures, or what is wrong.

use std::process::ExitCode;

use casebook_tests::Result;
use casebook_tests::browser::Browser;
use casebook_tests::web::stage::Stage;
use casebook_tests::web::{
    access, bench, contract, cost, evidence, first, latency, noscript, questions, resume, weight,
};
use clap::Parser;

/// Checks the pages and the API of Casebook in a real browser
#[derive(Debug, Parser)]
#[command(name = "web", version, arg_required_else_help = true, disable_help_subcommand = true)]
enum Web {
    /// From the verdict to the log line of each citation of the demo, by clicks
    Evidence,
    /// Every page and form in a browser that runs no script
    Noscript,
    /// The rules of axe-core in both themes and two widths, and every action with the keyboard alone
    Access,
    /// Requests that schemathesis makes from the description of the API
    Contract {
        /// Requests for each operation and kind of test
        #[arg(long, default_value_t = 50)]
        examples: u32,
    },
    /// One command: paste the alert of the demo, see its verdict
    First,
    /// How long after it was recorded an event is visible, with so many tabs of which one is seen, and in as many windows
    Latency {
        #[arg(long, default_value_t = 8)]
        tabs: usize,
    },
    /// Each event comes once, over broken connections
    Resume {
        #[arg(long, default_value_t = 200)]
        cuts: usize,
    },
    /// Bytes of a first visit of each page
    Weight,
    /// Speed of the pages with many investigations, or with one of many events
    Bench {
        /// Generate so many investigations, and measure the list
        #[arg(long, required_unless_present = "events")]
        investigations: Option<u32>,
        /// Record an investigation of so many events, and measure its pages
        #[arg(long, conflicts_with = "investigations")]
        events: Option<usize>,
    },
    /// What an open page costs an investigation
    Cost {
        #[arg(long, default_value_t = 7)]
        runs: usize,
    },
    /// The answer to each question of a person stands in the first 800 pixels of its page
    Questions,
}

impl Web {
    async fn run(self) -> Result<String> {
        match self {
            Self::Evidence => {
                let (browser, (stage, id)) = (browser().await?, Stage::closed().await?);
                evidence::check(&browser, &stage, &id).await
            }
            Self::Noscript => {
                let (browser, (stage, id)) = (browser().await?, Stage::closed().await?);
                noscript::check(&browser, &stage, &id).await
            }
            Self::Access => {
                let (browser, (stage, id)) = (browser().await?, Stage::closed().await?);
                let axe = access::axe(&browser, &stage, &id).await?;
                Ok(format!("{axe}\n{}", access::keyboard(&browser, &stage, &id).await?))
            }
            Self::Contract { examples } => contract::check(examples).await,
            Self::First => first::check(&browser().await?).await,
            Self::Latency { tabs } => latency::check(&browser().await?, tabs).await,
            Self::Resume { cuts } => resume::check(&browser().await?, cuts).await,
            Self::Weight => {
                let (browser, (stage, id)) = (browser().await?, Stage::closed().await?);
                weight::check(&browser, &stage, &id).await
            }
            Self::Bench { investigations: Some(many), .. } => bench::list::check(many).await,
            Self::Bench { events, .. } => bench::case::check(&browser().await?, events.unwrap_or(10_000)).await,
            Self::Cost { runs } => cost::check(&browser().await?, runs).await,
            Self::Questions => questions::check(&browser().await?).await,
        }
    }
}

async fn browser() -> Result<Browser> {
    Ok(Browser::start().await?.ok_or("this check needs a browser")?)
}

fn main() -> ExitCode {
    let web = Web::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(Into::into);
    match runtime.and_then(|runtime| runtime.block_on(web.run())) {
        Ok(figures) => {
            println!("ok\n{figures}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

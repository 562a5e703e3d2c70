use clap::Args;

use super::{EvidenceArgs, Models};
use casebook_hub::program::Limits;

/// `casebook serve`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  casebook serve
  casebook serve --evidence logs/ --team team/ --open

Open the printed address: it has a key, which the browser then keeps as a session. The server listens on
127.0.0.1 alone. Without --evidence and --team it only shows what is in the data folder.")]
pub struct Serve {
    /// What alerts are investigated with.
    #[command(flatten)]
    pub sources: EvidenceArgs,
    /// Where it listens.
    #[command(flatten)]
    pub place: Place,
    /// Who thinks.
    #[command(flatten)]
    pub models: Models,
    /// What each investigation may cost.
    #[command(flatten)]
    pub budget: Limits,
}

/// Where a server of pages listens.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The port on 127.0.0.1; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 7420)]
    pub port: u16,
    /// Open the pages in the browser
    #[arg(long)]
    pub open: bool,
}

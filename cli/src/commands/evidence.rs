use std::path::Path;
use std::sync::Arc;

use casebook_agent::mcp::serve::{Hints, Served};
use casebook_expert::evidence_server::EvidenceServer;

use crate::args::Evidence;
use crate::embedded;
use crate::failure::{Exit, Failure};
use crate::loading::load;
use crate::mcp;
use crate::stop;

pub(super) async fn run(data: &Path, args: &Evidence) -> Result<Exit, Failure> {
    mcp::checked(args.http)?;
    let mut stop = stop::listen()?;
    let declared = embedded::given(None, args.team.as_deref(), &args.rules)?.declared();
    let catalog = load(&args.evidence, data, None, &declared, &mut stop, &mut |_| {}).await?;
    let server = EvidenceServer::new(&catalog, &args.domains)
        .map_err(|e| Failure::usage(e, "omit --domain, or choose one of these"))?;
    tracing::info!(sources = catalog.sources().len(), "serving evidence");
    let instructions = server.instructions();
    let served = Served { name: "casebook-evidence", instructions, tools: Arc::new(server), hints: |_| Hints::READS };
    mcp::serve("casebook evidence", served, args.http, &mut stop).await
}

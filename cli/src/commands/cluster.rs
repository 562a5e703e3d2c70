use std::collections::BTreeSet;
use std::path::Path;

use casebook_api::program::access_key;
use casebook_evidence::Hint;
use casebook_expert::{analyst, team};
use casebook_hub::archive;
use casebook_protocol::Domain;
use casebook_report::{save, words};
use casebook_runtime::files;
use casebook_runtime::nats::{self, Connection};
use casebook_runtime::service::signals::Stop;

use crate::args::{Cluster, Common};
use crate::cluster::again::Again;
use crate::cluster::process::Process;
use crate::cluster::team::{Nats, Team};
use crate::cluster::{Place, Private, plan, server, users};
use crate::commands::investigate::quoted;
use crate::embedded::{self, team_failure};
use crate::failure::{Exit, Failure};
use crate::loading::{index_folder, whole_path};
use crate::models;
use crate::progress::loaded;
use crate::screen::{BOLD, DIM, Screen, paint};
use crate::stop;

/// The name of the process that serves the pages.
const PAGES: &str = "api";

pub(super) async fn run(common: &Common, args: &Cluster, screen: &mut Screen) -> Result<Exit, Failure> {
    let data = common.data.as_path();
    let alert = args.alert.as_deref().map(super::investigate::read_alert).transpose()?;
    let sources = args.sources.sources()?;
    if sources.rule_set.is_some() {
        let what = "a cluster takes rules from its team folder, since each process reads them";
        return Err(Failure::usage(what, "put them into the folder rules/ of the team folder, and omit --rules"));
    }
    let models = models::file(args.models.as_deref());
    // Check everything before starting a process.
    match &models {
        Some(file) => models::client(&models::of_team(models::config(file)?.0, sources.team.as_deref())?).map(drop)?,
        None => models::without_file(sources.team.as_deref())?,
    }
    if sources.evidence.is_none() && sources.team.is_none() {
        return Err(embedded::nothing());
    }
    let version = server::check(&args.nats_server)?;
    let collector = common.collector()?;
    let (mut stop, mut at_once) = Stop::listen_twice().map_err(stop::failed)?;
    let private = Private::begin();
    let place = Place::open(data)?;
    let hint = alert.as_ref().and_then(|(_, alert)| analyst::when(alert));
    let domains = domains(data, args, sources.team.as_deref(), &place, hint, screen, &mut stop).await?;
    let config = users::prepare(&place, &domains)?;
    let nats = Nats { program: args.nats_server.clone(), folder: place.folder.join("nats"), config };
    let server = nats.start(args.port).await?;
    let url = server.url();
    screen.line(format_args!("{} {version} {url}", paint(BOLD, "NATS server")));
    screen.line(paint(DIM, format_args!("data and logs of all processes: {}", place.folder.display())));
    let shared = plan::Shared {
        place: &place,
        url: &url,
        models: models.as_deref(),
        budget: &args.budget,
        log: common.log,
        otlp: collector.as_deref(),
    };
    let mut team = Team { members: Vec::new(), server, nats, again: Again::default() };
    for member in plan::members(&domains) {
        let log = place.folder.join("logs").join(format!("{}.log", member.name));
        team.members.push(Process::start(&member.name, &mut plan::command(&member, &shared), &log)?);
    }
    if let Some(port) = args.serve {
        let log = place.folder.join("logs").join("api.log");
        team.members.push(Process::start(PAGES, &mut plan::pages(port, &shared), &log)?);
    }
    drop(private);
    let mut asked = stop.clone();
    let done = tokio::select! {
        biased;
        () = asked.wait() => if args.alert.is_none() { Ok(Exit::Done) } else { Err(Failure::unfinished(
            "stopped before the end of the investigation; recorded results are safe",
            "run the same command again to continue",
        )) },
        done = serve(&mut team, &shared, alert.map(|(bytes, _)| bytes), args, screen, &mut stop) => done,
    };
    let stopped = team.stop(&mut at_once).await;
    done.and_then(|exit| stopped.map(|()| exit))
}

async fn serve(
    team: &mut Team,
    shared: &plan::Shared<'_>,
    alert: Option<Vec<u8>>,
    args: &Cluster,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Exit, Failure> {
    team.ready().await?;
    if let Some(address) = team.members.iter().find(|one| one.name == PAGES).and_then(|one| one.serves("pages")) {
        let key =
            access_key(&shared.place.access_key()).map_err(|why| Failure::failed(why, "run the same command again"))?;
        screen.line(format_args!("{}  http://{address}/?k={key}", paint(BOLD, "Open")));
        screen.line(paint(DIM, "the address contains a key; do not share it"));
    }
    let Some(alert) = alert else {
        hints(shared.place, shared.url, screen);
        return Err(team.ended().await);
    };
    tokio::select! {
        biased;
        failure = team.ended() => Err(failure),
        done = investigate(shared, alert, args, screen, stop) => done,
    }
}

async fn investigate(
    shared: &plan::Shared<'_>,
    alert: Vec<u8>,
    args: &Cluster,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Exit, Failure> {
    let publisher = connect(shared, "publisher").await?;
    let id = super::alert::open(&publisher, alert).await?;
    screen.line(paint(DIM, format_args!("investigation {id}")));
    let reader = connect(shared, "reader").await?;
    let exit = super::watch::follow(&reader, &id, screen, stop).await?;
    let env = reader.env();
    let report = archive::report(env.store.as_ref(), &id).await?;
    super::show::conclusion(&report, args.out.as_deref(), env.store.as_ref(), screen).await?;
    screen.line(paint(DIM, format_args!("took {}", words::took(&report))));
    Ok(exit)
}

/// Loads the evidence into the index that all Experts share, and returns its domains.
async fn domains(
    data: &Path,
    args: &Cluster,
    team: Option<&team::TeamFolder>,
    place: &Place,
    hint: Option<Hint>,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Vec<Domain>, Failure> {
    let evidence = args.sources.evidence.as_deref().map(whole_path).transpose()?;
    let catalog = match &evidence {
        Some(evidence) => {
            let declared = team.map_or_else(casebook_expert::rules::declared, |team| team.declared.clone());
            let catalog = loaded(evidence, data, hint, &declared, stop).await?;
            super::investigate::loaded(&catalog, screen);
            Some(catalog)
        }
        None => None,
    };
    let gathered = team::gather(team, catalog.as_ref(), &BTreeSet::new()).await.map_err(|e| team_failure(&e))?;
    super::investigate::gathered(&gathered, screen);
    // Each Expert process starts its own servers.
    gathered.toolbox.close().await;
    let domains: Vec<Domain> = gathered.members.iter().map(|one| one.member.domain.clone()).collect();
    let folder = index_folder(data);
    files::private_folder(&folder).map_err(|e| Failure::write(&folder, &e))?;
    let index = folder.canonicalize().map_err(|e| Failure::write(&folder, &e))?;
    let team = team.map(|team| team.folder.canonicalize().unwrap_or_else(|_| team.folder.clone()));
    let evidence = evidence.as_deref().map(|evidence| (evidence, index.as_path()));
    for domain in &domains {
        save::whole(&place.profile(domain.as_str()), &plan::profile(evidence, team.as_deref(), domain))?;
    }
    Ok(domains)
}

fn hints(place: &Place, url: &str, screen: &mut Screen) {
    let how = |user: &str| format!("--nats {url} --credentials {}", quoted(&place.user(user).display().to_string()));
    screen.line("");
    screen.line(paint(BOLD, "To send an alert and to watch, run in another terminal"));
    screen.line(format_args!("  casebook alert ALERT.json {}", how("publisher")));
    let key = quoted(&place.mac_key().display().to_string());
    screen.line(format_args!("  casebook watch {} --mac-key-file {key}", how("reader")));
    screen.line(paint(DIM, "Ctrl-C stops the team after running tasks finish"));
    screen.line("");
}

async fn connect(shared: &plan::Shared<'_>, user: &str) -> Result<Connection, Failure> {
    let (url, credentials) = (shared.url.to_owned(), Some(shared.place.user(user)));
    let mac_key = Some(shared.place.mac_key());
    let options = nats::Options { url, credentials, user: user.to_owned(), mac_key, ..nats::Options::default() };
    Ok(nats::connect(&options).await?)
}

//! `casebook cluster`

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use casebook_evidence::Hint;
use casebook_expert::{analyst, crew};
use casebook_hub::archive;
use casebook_protocol::{Domain, InvestigationId};
use casebook_runtime::broker::{Broker, Options};
use casebook_runtime::nats::{self, Connection};
use casebook_runtime::service::signals::Stop;
use tokio::sync::mpsc;

use crate::args::{Cluster, Common};
use crate::cluster::board::Board;
use crate::cluster::keeper::{Keeper, Note, Row, State};
use crate::cluster::{Place, broker_failure, clear, plan, server, users};
use crate::commands::investigate::quoted;
use crate::embedded::{self, crew_failure};
use crate::failure::{Exit, Failure};
use crate::home::hub_failure;
use crate::loading::{index_folder, load, whole_path};
use crate::models;
use crate::progress::Bar;
use crate::screen::{BOLD, DIM, Screen, YELLOW, paint, safe};
use crate::stop;
use casebook_report::save;
use casebook_report::{Form, words};

/// After so long without a change, who is waited for is said.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn run(common: &Common, args: &Cluster, screen: &mut Screen) -> Result<Exit, Failure> {
    let data = common.data.as_path();
    let alert = args.alert.as_deref().map(super::investigate::read_alert).transpose()?;
    let ground = args.ground.ground()?;
    let models = models::file(args.models.as_deref());
    // What is wrong is told before anything is started.
    match &models {
        Some(file) => models::client(&models::of_team(models::config(file)?.0, ground.team.as_deref())?).map(drop)?,
        None => models::without_file(ground.team.as_deref())?,
    }
    if ground.evidence.is_none() && ground.team.is_none() {
        return Err(embedded::nothing());
    }
    let (mut stop, mut at_once) = Stop::listen_twice().map_err(stop::failed)?;
    let place = Place::open(data)?;
    let hint = alert.as_ref().and_then(|(_, alert)| analyst::when(alert));
    let domains = domains(data, args, ground.team.as_deref(), &place, hint, screen, &mut stop).await?;
    let server = server().await?;
    let board = Board::stderr(alert.is_none());
    server.notes.iter().for_each(|note| board.say(&paint(DIM, safe(note, 300))));
    clear(&place).await;
    let config = users::prepare(&place, &domains)?;
    let options = Options { program: server.program, folder: place.nats(), config: Some(config), port: args.port };
    let broker = tokio::task::spawn_blocking(|| Broker::start(options)).await.map_err(Failure::defect)?;
    let broker = broker.map_err(|e| broker_failure(&e))?;
    let url = broker.url();
    screen.line(format_args!("{} {} {url}", paint(BOLD, "NATS server"), server.version));
    screen
        .line(paint(DIM, format_args!("everything it keeps, and the log of each process: {}", place.folder.display())));
    let collector = common.collector()?;
    let shared = plan::Shared {
        place: &place,
        url: &url,
        models: models.as_deref(),
        budget: &args.budget,
        log: common.log,
        otlp: collector.as_deref(),
    };
    let members = plan::members(&domains);
    let plans = members.iter().map(|member| Ok((member.name.clone(), plan::plan(member, &shared)?)));
    let plans = plans.collect::<Result<Vec<_>, Failure>>()?;
    let (keeper, notes) = Keeper::start(broker, plans)
        .map_err(|e| Failure::failed(format!("cannot start a thread: {e}"), "free some memory or threads"))?;
    let mut team = Team { keeper, notes, board, rows: Vec::new() };
    let done =
        team.work(&place, &url, alert.as_ref().map(|(bytes, _)| bytes.as_slice()), args, screen, &mut stop).await;
    team.end(&mut at_once).await?;
    done
}

/// The domains of the evidence, whose index is then there for all Experts.
async fn domains(
    data: &Path,
    args: &Cluster,
    team: Option<&crew::Team>,
    place: &Place,
    hint: Option<Hint>,
    screen: &mut Screen,
    stop: &mut Stop,
) -> Result<Vec<Domain>, Failure> {
    let evidence = args.ground.evidence.as_deref().map(whole_path).transpose()?;
    let mut bar = Bar::stderr();
    let catalog = match &evidence {
        Some(evidence) => {
            let catalog = load(evidence, data, hint, stop, &mut |loading| bar.show(loading)).await;
            bar.end();
            let catalog = catalog?;
            super::investigate::loaded(&catalog, screen);
            Some(catalog)
        }
        None => None,
    };
    let crew = crew::gather(team, catalog.as_ref(), &BTreeSet::new()).await.map_err(|e| crew_failure(&e))?;
    super::investigate::gathered(&crew, screen);
    // Each Expert starts servers of its own.
    crew.toolbox.close().await;
    let domains: Vec<Domain> = crew.seats.iter().map(|seat| seat.member.domain.clone()).collect();
    let folder = index_folder(data);
    std::fs::create_dir_all(&folder).map_err(|e| Failure::write(&folder, &e))?;
    let index = folder.canonicalize().map_err(|e| Failure::write(&folder, &e))?;
    let team = team.map(|team| team.folder.canonicalize().unwrap_or_else(|_| team.folder.clone()));
    let evidence = evidence.as_deref().map(|evidence| (evidence, index.as_path()));
    for domain in &domains {
        save::whole(&place.profile(domain.as_str()), &plan::profile(evidence, team.as_deref(), domain))?;
    }
    Ok(domains)
}

/// A team that runs, and what is shown of it.
struct Team {
    keeper: Keeper,
    notes: mpsc::Receiver<Note>,
    board: Board,
    rows: Vec<Row>,
}

impl Team {
    /// Serves until someone asks to stop, or investigates `alert` to its end.
    async fn work(
        &mut self,
        place: &Place,
        url: &str,
        alert: Option<&[u8]>,
        args: &Cluster,
        screen: &mut Screen,
        stop: &mut Stop,
    ) -> Result<Exit, Failure> {
        if !self.until(|rows| rows.iter().all(|row| row.state == State::Ready), stop).await? {
            return if alert.is_some() { Err(not_sent()) } else { Ok(Exit::Done) };
        }
        self.board.whole(&self.rows);
        let Some(alert) = alert else {
            self.board.beside(|| hints(place, url, screen));
            self.until(|_| false, stop).await?;
            return Ok(Exit::Done);
        };
        let connection = connect(place, url, "publisher").await?;
        let id = super::alert::open(&connection, alert.to_vec()).await?;
        screen.line(paint(DIM, format_args!("investigation {id}")));
        let reader = connect(place, url, "reader").await?;
        let mut asked = stop.clone();
        let followed = async {
            let exit = super::watch::follow(&reader, &id, screen, stop).await?;
            conclude(&reader, &id, args, screen).await?;
            Ok(exit)
        };
        tokio::pin!(followed);
        loop {
            tokio::select! {
                biased;
                () = asked.wait() => return Err(unfinished(&id)),
                done = &mut followed => return done,
                note = self.notes.recv() => { self.take(note)?; }
            }
        }
    }

    /// Takes in what is said until the processes are as asked; false when someone asked to stop.
    async fn until(&mut self, fits: impl Fn(&[Row]) -> bool, stop: &mut Stop) -> Result<bool, Failure> {
        loop {
            tokio::select! {
                biased;
                () = stop.wait() => return Ok(false),
                note = self.notes.recv() => self.take(note)?,
                () = tokio::time::sleep(PATIENCE) => self.board.waits(&self.rows),
            }
            if !self.rows.is_empty() && fits(&self.rows) {
                return Ok(true);
            }
        }
    }

    /// Shows what is said.
    fn take(&mut self, note: Option<Note>) -> Result<(), Failure> {
        match note {
            Some(Note::Rows(rows)) => {
                self.board.show(&rows);
                self.rows = rows;
                Ok(())
            }
            Some(Note::Said(text)) => {
                self.board.say(&paint(YELLOW, safe(&text, 600)));
                Ok(())
            }
            Some(Note::Over(Err(failure))) => Err(failure),
            Some(Note::Over(Ok(()))) | None => Err(Failure::defect("the team ended without a reason")),
        }
    }

    /// Stops everything; asked once more, at once.
    async fn end(&mut self, at_once: &mut Stop) -> Result<(), Failure> {
        if self.notes.is_closed() && self.notes.is_empty() {
            return Ok(());
        }
        self.board.say(&paint(DIM, "stops: what is under way is finished first (Ctrl-C again ends it at once)"));
        self.keeper.stop();
        let mut killed = false;
        loop {
            let note = tokio::select! {
                biased;
                () = at_once.wait(), if !killed => {
                    killed = true;
                    self.keeper.kill();
                    continue;
                }
                note = self.notes.recv() => note,
            };
            match note {
                None => return Ok(()),
                Some(Note::Over(over)) => {
                    self.board.end();
                    return over;
                }
                note => self.take(note)?,
            }
        }
    }
}

/// What to type in another terminal.
fn hints(place: &Place, url: &str, screen: &mut Screen) {
    let how = |user: &str| format!("--nats {url} --credentials {}", quoted(&place.user(user).display().to_string()));
    screen.line("");
    screen.line(paint(BOLD, "Send an alert, and watch, from another terminal"));
    screen.line(format_args!("  casebook alert ALERT.json {}", how("publisher")));
    screen.line(format_args!("  casebook watch {}", how("reader")));
    screen.line(paint(DIM, "Ctrl-C stops the team: it finishes what is under way"));
    screen.line("");
}

async fn connect(place: &Place, url: &str, user: &str) -> Result<Connection, Failure> {
    let (url, credentials) = (url.to_owned(), Some(place.user(user)));
    let options = nats::Options { url, credentials, user: user.to_owned(), ..nats::Options::default() };
    nats::connect(&options).await.map_err(|e| crate::nats::failure(&e))
}

fn not_sent() -> Failure {
    Failure {
        exit: Exit::Unfinished,
        what: "stopped before the team was ready: this run did not send the alert".into(),
        advice: "the same command sends it, or goes on with what is recorded of it".into(),
    }
}

fn unfinished(id: &InvestigationId) -> Failure {
    Failure {
        exit: Exit::Unfinished,
        what: format!("stopped; what investigation {id} has recorded is safe"),
        advice: "the same command goes on with it".into(),
    }
}

/// The verdict, what it used, and where the report is.
async fn conclude(
    connection: &Connection,
    id: &InvestigationId,
    args: &Cluster,
    screen: &mut Screen,
) -> Result<(), Failure> {
    let report = archive::report(connection.env().store.as_ref(), id).await.map_err(|e| hub_failure(&e))?;
    super::show::verdict(&report, screen);
    super::show::by_role(&report, screen);
    screen.line("");
    if let Some(folder) = &args.out {
        save::report(folder, &report)?;
        screen.line(format_args!("{} {}", paint(BOLD, "Report"), folder.join(Form::Html.file_name()).display()));
    }
    screen.line(paint(DIM, format_args!("took {}", words::took(&report))));
    Ok(())
}

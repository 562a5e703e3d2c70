pub mod alert;
pub mod backtest;
pub mod check;
pub mod cluster;
pub mod demo;
pub mod doctor;
pub mod evidence;
pub mod export;
pub mod investigate;
pub mod key;
pub mod list;
pub mod mcp;
pub mod rules;
pub mod serve;
pub mod show;
pub mod sources;
pub mod tools;
pub mod verify;
pub mod watch;

use crate::args::{Cli, Command};
use crate::failure::{Exit, Failure};
use crate::home::Home;
use crate::nats::Nats;
use crate::screen::Screen;

pub async fn run(cli: Cli) -> Result<Exit, Failure> {
    let data = &cli.common.data;
    let open = async |nats: &Nats| Home::named(data, nats).await;
    let mut screen = Screen::stdout(cli.common.local);
    let exit = match &cli.command {
        Command::Demo(args) => demo::run(data, args, &mut screen).await,
        Command::Investigate(args) => investigate::run(data, args, &mut screen).await,
        Command::Resume(args) => investigate::resume(data, args, &mut screen).await,
        Command::Cluster(args) => cluster::run(&cli.common, args, &mut screen).await,
        Command::Alert(args) => alert::run(args, &mut screen).await,
        Command::Watch(args) => watch::run(data, args, &mut screen).await,
        Command::List(args) => list::run(&open(&args.nats).await?, args, &mut screen).await,
        Command::Show(args) => show::run(&open(&args.nats).await?, args, &mut screen).await,
        Command::Export(args) => export::run(&open(&args.nats).await?, args, &mut screen).await,
        Command::Verify(args) => verify::run(&open(&args.nats).await?, args, &mut screen).await,
        Command::Key(args) => key::run(args, &mut screen),
        Command::Sources(args) => sources::run(data, args, &mut screen).await,
        Command::Tools(args) => tools::run(args, &mut screen).await,
        Command::Backtest(args) => backtest::run(data, args, &mut screen).await,
        Command::Doctor(args) => doctor::run(args, &mut screen).await,
        Command::Check(args) => check::run(data, args, &mut screen).await,
        Command::Rules(args) => rules::run(data, args, &mut screen).await,
        Command::Evidence(args) => evidence::run(data, args).await,
        Command::Serve(args) => serve::run(data, args, &mut screen).await,
        Command::Mcp(args) => mcp::run(data, args).await,
    }?;
    screen.finish()?;
    Ok(exit)
}

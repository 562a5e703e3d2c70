//! Three servers of which one is lost.

use casebook_runtime::nats::streams::Keeping;

use super::service::{alert, evidence};
use super::*;

#[test]
fn a_cluster_of_three_goes_on_when_it_loses_a_server() {
    process::run(async {
        let mut servers = casebook_tests::nats::cluster().unwrap();
        let nats = servers.remove(0);
        let evidence = evidence(nats.folder());
        let path = nats.folder().join("alert.json");
        std::fs::write(&path, alert("a", "high")).unwrap();
        let again = evidence.clone();
        let embedded = tokio::task::spawn_blocking(move || run::investigate(&path, &again).unwrap()).await.unwrap();
        let hub = nats::connect(&nats.options("hub")).await.unwrap();
        let settings = Settings { keeping: Keeping { replicas: 3, ..Keeping::default() }, ..Settings::default() };
        let service = loop {
            match Service::start(hub.clone(), settings).await {
                Ok(service) => break service,
                // The servers choose a leader first.
                Err(_) => tokio::time::sleep(Duration::from_millis(500)).await,
            }
        };
        let mut team = Team::enter(nats, hub.clone(), service, &evidence).await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            ids.push(open(&hub, &alert(name, "high")).await);
        }
        while hub.env().store.log(&ids[0], 1).await.unwrap().len() < 8 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // The one that the Hub talks to.
        match hub.client().server_info().server_name.as_str() {
            "server-0" => team.nats.broker.kill(),
            "server-1" => servers[0].broker.kill(),
            _ => servers[1].broker.kill(),
        }
        for id in &ids {
            concluded(&hub, id).await;
            assert_eq!(verified(hub.env().store.as_ref(), id).await.unwrap().problems, []);
        }
        assert_eq!(comparable(&concluded(&hub, &ids[0]).await), comparable(&embedded));
    })
    .unwrap();
}

use std::io::Write;

use super::*;

fn options(folder: &Path) -> Options {
    let server = Places::of_environment().find().unwrap();
    Options { program: server.program, folder: folder.to_path_buf(), config: None, port: 0 }
}

/// What the server answers to these lines of its protocol, until it says `+OK` or more.
fn talk(port: u16, lines: &str, until: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(format!("CONNECT {{\"verbose\":false}}\r\n{lines}PING\r\n").as_bytes()).unwrap();
    let (mut said, mut bytes) = (String::new(), [0; 4096]);
    while !said.contains(until) {
        let read = stream.read(&mut bytes).unwrap();
        assert!(read > 0, "the server hung up after {said:?}");
        said.push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap()));
    }
    said
}

/// Asks JetStream.
fn ask(port: u16, subject: &str, body: &str) -> String {
    talk(port, &format!("SUB answer 1\r\nPUB {subject} answer {}\r\n{body}\r\n", body.len()), "}\r\n")
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill_and_a_restart_on_the_same_port() {
    let folder = tempfile::tempdir().unwrap();
    let mut broker = Broker::start(options(folder.path())).unwrap();
    let port = broker.port();
    let made = ask(port, "$JS.API.STREAM.CREATE.KEPT", r#"{"name":"KEPT","subjects":["kept"]}"#);
    assert!(made.contains("\"name\":\"KEPT\""), "{made}");
    assert!(ask(port, "kept", "hello").contains("\"seq\":1"));
    broker.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err(), "it is dead");
    broker.restart().unwrap();
    assert_eq!(broker.port(), port);
    let info = ask(port, "$JS.API.STREAM.INFO.KEPT", "");
    assert!(info.contains("\"messages\":1"), "{info}");
    assert_eq!(broker.url(), format!("nats://127.0.0.1:{port}"));
}

#[test]
fn it_stops_when_asked_and_dies_with_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let mut broker = Broker::start(options(folder.path())).unwrap();
    assert!(broker.ended().unwrap().is_none());
    broker.stop();
    assert!(broker.ended().unwrap().unwrap().success(), "it ended by itself");
    assert!(std::fs::read_to_string(broker.log()).unwrap().contains("Server Exiting"));
    broker.restart().unwrap();
    let port = broker.port();
    drop(broker);
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
}

#[test]
fn a_server_that_cannot_start_is_told_with_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("broken.conf");
    std::fs::write(&config, "jetstream { store_dirr: x }\n").unwrap();
    let error = Broker::start(Options { config: Some(config), ..options(folder.path()) }).unwrap_err();
    assert!(matches!(&error, BrokerError::Ended { log, .. } if log.contains("store_dirr")), "{error}");
    let first = Broker::start(options(&folder.path().join("first"))).unwrap();
    let second = Options { port: first.port(), ..options(&folder.path().join("second")) };
    let error = Broker::start(second).unwrap_err().to_string();
    assert!(error.contains("address already in use"), "{error}");
}

#[test]
fn one_that_was_left_over_is_ended_before_the_next_begins() {
    let folder = tempfile::tempdir().unwrap();
    let left = std::mem::ManuallyDrop::new(Broker::start(options(folder.path())).unwrap());
    let port = left.port();
    let mut next = {
        let reaped = std::thread::spawn({
            let mut left = std::mem::ManuallyDrop::into_inner(left);
            move || drop(left.child.wait())
        });
        end_left_over(folder.path());
        reaped.join().unwrap();
        Broker::start(Options { port, ..options(folder.path()) }).unwrap()
    };
    assert!(next.ended().unwrap().is_none());
    assert_eq!(
        std::fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .filter(|e| e.path().extension().is_some_and(|x| x == "ports"))
            .count(),
        1
    );
}

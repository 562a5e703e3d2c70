//! `--healthy`: asks a running process whether it is ready. For supervisors of containers without a shell.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::health::Answer;

/// The limit for all of it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer.
const MOST: usize = 1024 * 1024;

/// Asks the process that answers health checks at `address`.
///
/// # Errors
/// Why it is not ready, or does not answer within two seconds.
pub fn ask(address: SocketAddr) -> Result<(), String> {
    let answer = answer(address)?;
    if answer.ready { Ok(()) } else { Err(answer.reasons.join("; ")) }
}

/// What the process says of itself.
pub fn answer(address: SocketAddr) -> Result<Answer, String> {
    let address = reachable(address);
    let body = get(address, "/ready").map_err(|e| format!("no answer from http://{address}/ready: {e}"))?;
    let other = |_| format!("what answers at http://{address}/ready is not a process of Casebook");
    serde_json::from_str(&body).map_err(other)
}

/// A process that listens on all addresses answers on the loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The body of an answer, whatever its status.
pub fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let end = Instant::now() + PATIENCE;
    let left = || match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(std::io::Error::from(std::io::ErrorKind::TimedOut)),
        left => Ok(left),
    };
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_write_timeout(Some(left()?))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let (mut all, mut part) = (Vec::new(), [0; 4096]);
    while all.len() < MOST {
        stream.set_read_timeout(Some(left()?))?;
        let read = stream.read(&mut part)?;
        if read == 0 {
            break;
        }
        all.extend(part.iter().take(read));
    }
    let text = String::from_utf8_lossy(&all);
    Ok(text.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::super::{Health, http};
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn answer_is_that_of_the_process() {
        let health = Health::new("hub");
        let address = http::serve("0.0.0.0:0".parse().unwrap(), health.clone()).await.unwrap();
        let asked = async || tokio::task::spawn_blocking(move || ask(address)).await.unwrap();
        assert_eq!(asked().await, Err("not ready yet: starting".into()));
        health.preparing(None);
        assert_eq!(asked().await, Ok(()));
    }

    #[test]
    fn what_is_no_process_of_casebook_is_not_healthy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silent = ask(address).unwrap_err();
        assert!(silent.contains("no answer from http://127.0.0.1:"), "{silent}");
        drop(listener);
        assert!(ask(address).unwrap_err().contains("refused"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let other = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{}").unwrap();
        });
        let why = ask(address).unwrap_err();
        assert!(why.contains("not a process of Casebook"), "{why}");
        other.join().unwrap();
    }
}

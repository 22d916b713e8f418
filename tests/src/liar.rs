//! A registry that lies: it answers as another does, but gives something else under a manifest's digest.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Passes requests on to an honest registry. What it gives for a manifest that is asked for by its digest is one
/// byte longer than what was asked for, and reads the same.
#[derive(Debug)]
pub struct Liar {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Liar {
    /// Starts to lie on behalf of the registry at `honest`, `host:port`, at a free port.
    ///
    /// # Panics
    /// When no port can be bound.
    #[must_use]
    pub fn before(honest: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop_seen, honest) = (stopped.clone(), honest.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stop_seen.load(Ordering::SeqCst) {
                    return;
                }
                let honest = honest.clone();
                // Whoever hangs up in the midst of it asks again.
                std::thread::spawn(move || drop(answer(&client, &honest)));
            }
        });
        Self { address, stopped }
    }

    /// Where it listens, `host:port`.
    #[must_use]
    pub fn name(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// One request, one answer, and the end of the connection.
fn answer(client: &TcpStream, honest: &str) -> std::io::Result<()> {
    let mut head = head_of(&mut BufReader::new(client))?;
    let is_lie = head
        .first()
        .is_some_and(|line| line.contains("/manifests/sha256:"));
    let is_named = |line: &String, name: &str| line.to_ascii_lowercase().starts_with(name);
    head.retain(|line| !is_named(line, "connection:"));
    let mut server = TcpStream::connect(honest)?;
    let asked = format!("{}\r\nConnection: close\r\n\r\n", head.join("\r\n"));
    server.write_all(asked.as_bytes())?;

    let mut reader = BufReader::new(server);
    let mut head = head_of(&mut reader)?;
    let mut body = Vec::new();
    reader.read_to_end(&mut body)?;
    if is_lie && !body.is_empty() {
        body.push(b'\n');
        head.retain(|line| !is_named(line, "content-length:"));
        head.push(format!("Content-Length: {}", body.len()));
    }
    let mut client = client;
    client.write_all(format!("{}\r\n\r\n", head.join("\r\n")).as_bytes())?;
    client.write_all(&body)
}

/// The lines before the empty one.
fn head_of(reader: &mut impl BufRead) -> std::io::Result<Vec<String>> {
    let mut lines = Vec::new();
    for line in reader.lines() {
        let line = line?;
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    Ok(lines)
}

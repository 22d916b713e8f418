//! A TCP proxy on loopback that can be cut and healed: the network between two programs.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Forwards connections to one address until it is cut. A cut line swallows everything and accepts
/// nothing new, as a pulled cable does; it closes no connection.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    cut: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy to `target` on a free port.
    ///
    /// # Panics
    /// When no port can be bound.
    #[must_use]
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let cut = Arc::new(AtomicBool::new(false));
        let stopped = Arc::new(AtomicBool::new(false));
        let (cut_seen, stop_seen) = (cut.clone(), stopped.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stop_seen.load(Ordering::SeqCst) {
                    return;
                }
                if cut_seen.load(Ordering::SeqCst) {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(target) {
                    forward(client, server, &cut_seen);
                }
            }
        });
        Self {
            address,
            cut,
            stopped,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the line.
    pub fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// Heals the line; connections that lost bytes meanwhile are closed.
    pub fn heal(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn forward(client: TcpStream, server: TcpStream, cut: &Arc<AtomicBool>) {
    let pairs = [
        (client.try_clone(), server.try_clone()),
        (server.try_clone(), client.try_clone()),
    ];
    for (from, to) in pairs {
        let (Ok(from), Ok(to)) = (from, to) else {
            return;
        };
        let cut = cut.clone();
        std::thread::spawn(move || copy(from, to, &cut));
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    let mut lost = false;
    let _ = from.set_read_timeout(Some(Duration::from_millis(200)));
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) if cut.load(Ordering::SeqCst) => lost = true,
            // A stream with a hole in it is no stream: close it once the line is back.
            Ok(_) if lost => break,
            Ok(length) => {
                if to.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) =>
            {
                if lost && !cut.load(Ordering::SeqCst) {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

//! A container engine with NVIDIA's runtime, on a machine that has neither driver nor GPU: what the agent says to the
//! engine and hears from it passes unread, but for two things. The engine says that it has the runtime; and a request
//! for GPUs becomes device nodes of these GPUs, which are there and do nothing.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest head of a request, and the longest body that is looked into.
const READ_MAX: usize = 4 << 20;

/// The engine's socket for agents. It goes with the value.
#[derive(Debug)]
pub struct GpuEngine {
    socket: PathBuf,
    stopped: Arc<AtomicBool>,
}

impl GpuEngine {
    /// Listens in `folder`, before the engine that `DOCKER_HOST` names.
    ///
    /// # Panics
    /// When it cannot listen.
    #[must_use]
    pub fn start(folder: &Path) -> Self {
        let socket = folder.join("engine.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let stopped = Arc::new(AtomicBool::new(false));
        let (engine, stop_seen) = (engine_socket(), stopped.clone());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if stop_seen.load(Ordering::SeqCst) {
                    return;
                }
                let engine = engine.clone();
                // What breaks a connection, its two ends see.
                std::thread::spawn(move || drop(pass_one(client, &engine)));
            }
        });
        Self { socket, stopped }
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for GpuEngine {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.socket);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told by scripts where to look"
)]
fn engine_socket() -> PathBuf {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    let socket = host.strip_prefix("unix://");
    socket.unwrap_or("/var/run/docker.sock").into()
}

/// One request and its answer: the engine is told that there will be no other on this connection.
fn pass_one(mut client: UnixStream, engine: &Path) -> std::io::Result<()> {
    let (head, mut rest) = read_head(&mut client)?;
    let mut engine = UnixStream::connect(engine)?;
    let line = head.lines().next().unwrap_or_default().to_owned();
    let is_create = line.starts_with("POST ") && line.contains("/containers/create");
    let is_info = line.starts_with("GET ") && line.split(' ').nth(1).is_some_and(is_info_path);
    if is_create {
        let length = content_length(&head);
        read_up_to(&mut client, &mut rest, length)?;
        let body = with_nodes(&rest);
        engine.write_all(closing(&head, Some(body.len())).as_bytes())?;
        engine.write_all(&body)?;
    } else {
        let head = if is_upgrade(&head) {
            head
        } else {
            closing(&head, None)
        };
        engine.write_all(head.as_bytes())?;
        engine.write_all(&rest)?;
    }
    if is_info {
        let mut answer = Vec::new();
        engine.read_to_end(&mut answer)?;
        return client.write_all(&with_runtime(&answer));
    }
    let (mut from, mut to) = (client.try_clone()?, engine.try_clone()?);
    let up = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut engine, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = engine.shutdown(Shutdown::Both);
    let _ = up.join();
    Ok(())
}

fn is_info_path(path: &str) -> bool {
    path.split('?')
        .next()
        .is_some_and(|path| path.ends_with("/info"))
}

/// The head with its empty line, and what came with it of the body.
fn read_head(client: &mut UnixStream) -> std::io::Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = read.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&read).into_owned(), rest));
        }
        let count = client.read(&mut piece)?;
        if count == 0 || read.len() > READ_MAX {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&piece[..count]);
    }
}

fn read_up_to(client: &mut UnixStream, read: &mut Vec<u8>, length: usize) -> std::io::Result<()> {
    let left = length.saturating_sub(read.len()).min(READ_MAX);
    let mut more = vec![0; left];
    client.read_exact(&mut more)?;
    read.extend_from_slice(&more);
    Ok(())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

fn content_length(head: &str) -> usize {
    let length = header(head, "content-length").and_then(|text| text.parse().ok());
    length.unwrap_or(0)
}

fn is_upgrade(head: &str) -> bool {
    header(head, "upgrade").is_some()
}

/// The head of a request after which the engine closes, and with another length of its body.
fn closing(head: &str, length: Option<usize>) -> String {
    let mut lines: Vec<String> = head.trim_end().lines().map(str::to_owned).collect();
    let is_kept = |line: &String| {
        let name = line.split(':').next().unwrap_or_default();
        let is_length = name.eq_ignore_ascii_case("content-length") && length.is_some();
        !name.eq_ignore_ascii_case("connection") && !is_length
    };
    lines.retain(is_kept);
    lines.push("Connection: close".to_owned());
    lines.extend(length.map(|length| format!("Content-Length: {length}")));
    lines.join("\r\n") + "\r\n\r\n"
}

/// What NVIDIA's runtime would do with the request for GPUs: their nodes, and those that every program of theirs opens.
fn with_nodes(body: &[u8]) -> Vec<u8> {
    let Ok(mut body) = serde_json::from_slice::<Value>(body) else {
        return body.to_vec();
    };
    let requests = body["HostConfig"]["DeviceRequests"].take();
    let asked = requests.as_array().into_iter().flatten();
    let ids: Vec<&str> = asked
        .filter_map(|request| request["DeviceIDs"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !ids.is_empty() {
        let mut names = vec!["nvidiactl".to_owned(), "nvidia-uvm".to_owned()];
        names.extend(ids.iter().map(|id| node(id)));
        names.sort();
        names.dedup();
        let nodes = names.iter().map(|name| {
            json!({
                "PathOnHost": "/dev/null",
                "PathInContainer": format!("/dev/{name}"),
                "CgroupPermissions": "rw",
            })
        });
        body["HostConfig"]["Devices"] = nodes.collect();
    }
    body.to_string().into_bytes()
}

/// The node of a GPU, also of one that a slice is of: stand-ins have their number at the end of their names. Old drivers
/// call a slice `MIG-GPU-…/1/0`.
fn node(id: &str) -> String {
    let id = id.split('/').next().unwrap_or_default();
    let tail = id.rsplit('-').next().unwrap_or_default();
    let number = u64::from_str_radix(tail, 16).unwrap_or(u64::MAX);
    format!("nvidia{number}")
}

/// The engine's description of itself, with one runtime more.
fn with_runtime(answer: &[u8]) -> Vec<u8> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let Some((head, body)) = end.map(|end| answer.split_at(end + 4)) else {
        return answer.to_vec();
    };
    let head = String::from_utf8_lossy(head);
    // A long answer comes in pieces, each with its length before it.
    let is_chunked = header(&head, "transfer-encoding").is_some();
    let body = if is_chunked {
        joined(body)
    } else {
        body.to_vec()
    };
    let Ok(mut info) = serde_json::from_slice::<Value>(&body) else {
        return answer.to_vec();
    };
    info["Runtimes"]["nvidia"] = json!({"path": "nvidia-container-runtime"});
    let body = info.to_string();
    let kept = head.trim_end().lines().filter(|line| {
        let name = line.split(':').next().unwrap_or_default();
        !name.eq_ignore_ascii_case("transfer-encoding")
            && !name.eq_ignore_ascii_case("content-length")
    });
    let head: Vec<&str> = kept.collect();
    format!(
        "{}\r\nContent-Length: {}\r\n\r\n{body}",
        head.join("\r\n"),
        body.len()
    )
    .into_bytes()
}

/// A body of pieces as one.
fn joined(mut pieces: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = pieces.windows(2).position(|two| two == b"\r\n") {
        let length = String::from_utf8_lossy(&pieces[..end]);
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        let from = end + 2;
        if length == 0 || from + length + 2 > pieces.len() {
            break;
        }
        all.extend_from_slice(&pieces[from..from + length]);
        pieces = &pieces[from + length + 2..];
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_gpus_becomes_their_nodes_and_nothing_else_does() {
        let plain = br#"{"HostConfig":{"Memory":1}}"#;
        let said: Value = serde_json::from_slice(&with_nodes(plain)).unwrap();
        assert_eq!(said["HostConfig"]["Devices"], Value::Null);
        assert_eq!(said["HostConfig"]["Memory"], 1);
        let ids = r#"["MIG-00000001-0000-5000-8000-000000000003","GPU-00000000-0000-4000-8000-00000000000a"]"#;
        let body = format!(
            r#"{{"HostConfig":{{"DeviceRequests":[{{"Driver":"nvidia","DeviceIDs":{ids}}}]}}}}"#
        );
        let said: Value = serde_json::from_slice(&with_nodes(body.as_bytes())).unwrap();
        assert_eq!(said["HostConfig"]["DeviceRequests"], Value::Null);
        let nodes = said["HostConfig"]["Devices"].as_array().unwrap();
        let paths: Vec<&Value> = nodes.iter().map(|node| &node["PathInContainer"]).collect();
        let wanted = [
            "/dev/nvidia-uvm",
            "/dev/nvidia10",
            "/dev/nvidia3",
            "/dev/nvidiactl",
        ];
        assert_eq!(paths, wanted);
    }

    #[test]
    fn a_request_is_the_last_of_its_connection() {
        let head =
            "POST /x HTTP/1.1\r\nHost: y\r\nconnection: keep-alive\r\ncontent-length: 3\r\n\r\n";
        assert_eq!(
            closing(head, Some(7)),
            "POST /x HTTP/1.1\r\nHost: y\r\nConnection: close\r\nContent-Length: 7\r\n\r\n"
        );
        assert!(closing(head, None).contains("content-length: 3\r\n"));
    }

    #[test]
    fn the_engine_says_that_it_has_the_runtime() {
        let whole = "{\"Runtimes\":{\"runc\":{}}}";
        let plain = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{whole}",
            whole.len()
        );
        let (first, second) = whole.split_at(5);
        let pieces = format!(
            "5\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            second.len()
        );
        let pieces = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{pieces}");
        for answer in [plain, pieces] {
            let said = String::from_utf8(with_runtime(answer.as_bytes())).unwrap();
            let (head, body) = said.split_once("\r\n\r\n").unwrap();
            assert!(!head.contains("chunked"), "{head}");
            let info: Value = serde_json::from_str(body).unwrap();
            assert_eq!(info["Runtimes"].as_object().unwrap().len(), 2);
            assert_eq!(content_length(head), body.len());
        }
    }
}

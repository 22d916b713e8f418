//! A registry that knows one image, refuses a second and breaks over a third: as much of the distribution
//! API as a client asks before it pulls.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// The manifest of the one image: one layer of 1000 bytes.
const MANIFEST: &str = concat!(
    r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","#,
    r#""config":{"mediaType":"application/vnd.oci.image.config.v1+json","#,
    r#""digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"#,
    r#""layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","#,
    r#""digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":1000}]}"#
);

/// SHA-256 of the manifest, by `sha256sum`.
const DIGEST: &str = "b6e46ea29c39759002fe3c2d860939673306f2153f4c1a70d36522ec8ed90723";

/// A running registry. Its thread ends with the test's process.
#[derive(Debug)]
pub(crate) struct Registry {
    port: u16,
}

impl Registry {
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(&stream);
            }
        });
        Ok(Self { port })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    pub(crate) const fn digest(&self) -> &'static str {
        DIGEST
    }
}

fn answer(stream: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let path = request.split(' ').nth(1).unwrap_or_default();
    let is_demo =
        path == "/v2/demo/manifests/1" || path == format!("/v2/demo/manifests/sha256:{DIGEST}");
    let (status, body) = if path == "/v2/" {
        ("200 OK", "{}")
    } else if is_demo {
        ("200 OK", MANIFEST)
    } else if path.starts_with("/v2/private/") {
        (
            "401 Unauthorized",
            r#"{"errors":[{"code":"UNAUTHORIZED","message":"login"}]}"#,
        )
    } else if path.starts_with("/v2/broken/") {
        ("500 Internal Server Error", "oh")
    } else {
        (
            "404 Not Found",
            r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no"}]}"#,
        )
    };
    let sent = if request.starts_with("HEAD") {
        ""
    } else {
        body
    };
    write!(
        &mut &*stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\n\
         Docker-Content-Digest: sha256:{DIGEST}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{sent}",
        body.len()
    )
}

//! Reads `[REGISTRY/]NAME[:TAG][@sha256:DIGEST]`, with Docker's defaults written out.

use crate::failure::{Code, Failure};
use std::fmt;
use std::net::IpAddr;

/// The registry that a name without one means.
const DOCKER: &str = "docker.io";
/// The tag that a name without tag and digest means.
const LATEST: &str = "latest";

/// An image as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageName {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<[u8; 32]>,
}

impl ImageName {
    /// Reads a name.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |reason: &str| {
            Failure::new(
                Code::BadImageName,
                format!("'{text}' does not name an image: {reason}"),
            )
            .help("[REGISTRY/]NAME[:TAG][@sha256:DIGEST], like debian:12 or ghcr.io/me/train:v7")
        };
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => {
                let bytes = parse_digest(digest)
                    .ok_or_else(|| wrong("a digest is sha256: and 64 hexadecimal digits"))?;
                (name, Some(bytes))
            }
            None => (text, None),
        };
        let (registry, rest) = split_registry(name);
        let (path, tag) = match rest.rsplit_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        if registry.is_some_and(|registry| !is_registry(registry)) {
            return Err(wrong(
                "the registry is not a host name with an optional port",
            ));
        }
        if !path.split('/').all(is_component) {
            return Err(wrong(
                "a name has lower-case letters, digits and . _ - between slashes",
            ));
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("a tag has letters, digits and . _ -, at most 128"));
        }
        let registry = registry.unwrap_or(DOCKER);
        let is_official = registry == DOCKER && !path.contains('/');
        let repository = if is_official {
            format!("library/{path}")
        } else {
            path.to_owned()
        };
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Host name and port of the registry.
    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }

    /// The name within the registry.
    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// Its tag; `latest` when none was typed.
    pub(crate) fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or(LATEST)
    }

    /// Its digest, if one was typed.
    pub(crate) const fn digest(&self) -> Option<[u8; 32]> {
        self.digest
    }

    /// `sha256:…`, if a digest was typed.
    pub(crate) fn digest_text(&self) -> Option<String> {
        self.digest.map(|bytes| {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("sha256:{digits}")
        })
    }

    /// Registry and name.
    pub(crate) fn without_tag(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// Whether the registry is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = match self.registry.rsplit_once(':') {
            Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
            _ => &self.registry,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digest_text() {
            Some(digest) => write!(f, "{}@{digest}", self.without_tag()),
            None => write!(f, "{}:{}", self.without_tag(), self.tag()),
        }
    }
}

/// The bytes of `sha256:` and 64 lower-case hexadecimal digits.
pub(super) fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != 64 || !digits.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// Docker's rule: what stands before the first slash is a registry if it has a dot or a colon, or is
/// `localhost`.
fn split_registry(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
            (Some(first), rest)
        }
        _ => (None, name),
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    !host.is_empty()
        && host.chars().all(is_host)
        && !host.chars().any(|c| c.is_ascii_uppercase())
        && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_component(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends_well = text.starts_with(is_inner) && text.ends_with(is_inner);
    ends_well && text.chars().all(|c| is_inner(c) || "._-".contains(c))
}

fn is_tag(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128
        && text.starts_with(is_word)
        && text.chars().all(|c| is_word(c) || ".-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        ImageName::parse(text).unwrap().to_string()
    }

    #[test]
    fn dockers_defaults_are_written_out() {
        let names = [
            ("debian", "docker.io/library/debian:latest"),
            ("debian:12", "docker.io/library/debian:12"),
            ("me/train:v7", "docker.io/me/train:v7"),
            ("ghcr.io/me/train", "ghcr.io/me/train:latest"),
            ("127.0.0.1:5000/feira-demo:1", "127.0.0.1:5000/feira-demo:1"),
            ("localhost/x", "localhost/x:latest"),
            (
                "docker.io/library/debian",
                "docker.io/library/debian:latest",
            ),
        ];
        for (typed, meant) in names {
            assert_eq!(read(typed), meant);
        }
    }

    #[test]
    fn a_digest_beats_a_tag() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let name = ImageName::parse(&format!("ghcr.io/me/train:v7@{digest}")).unwrap();
        assert_eq!(name.digest(), Some([10; 32]));
        assert_eq!(name.to_string(), format!("ghcr.io/me/train@{digest}"));
    }

    #[test]
    fn what_names_no_image_is_refused() {
        let wrong = [
            "",
            "UPPER",
            "a b",
            "-x",
            "x:",
            "x:a b",
            "x@sha256:12",
            "x@md5:aa",
            "/x",
            "x//y",
            "x/",
            "ghcr.io:port/x",
            "https://ghcr.io/x",
            "x:\u{1b}[2J",
        ];
        for text in wrong {
            let code = ImageName::parse(text).unwrap_err().code();
            assert_eq!(code, Code::BadImageName, "{text}");
        }
    }

    #[test]
    fn registries_on_this_machine_are_known() {
        for local in [
            "127.0.0.1:5000/x",
            "127.9.9.9/x",
            "localhost:5000/x",
            "localhost/x",
        ] {
            assert!(ImageName::parse(local).unwrap().is_loopback(), "{local}");
        }
        for far in [
            "debian",
            "ghcr.io/x",
            "10.0.0.1:5000/x",
            "localhost.example.org/x",
        ] {
            assert!(!ImageName::parse(far).unwrap().is_loopback(), "{far}");
        }
    }
}

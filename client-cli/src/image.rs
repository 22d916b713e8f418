//! From the name of an image as people type it to the digest that is signed.
//!
//! The registry is asked before anything is signed, so that a wrong name costs nothing. What is pulled later
//! is what the digest names, whatever happens to the tag meanwhile.

mod reference;

pub(crate) use reference::ImageName;

use crate::failure::{Code, Failure};
use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use protocol::bounded::Text;
use protocol::job::PinnedImage;
use protocol::units::Bytes;
use std::time::Duration;

const CONNECT: Duration = Duration::from_secs(5);
const READ: Duration = Duration::from_secs(10);
const IN_ALL: Duration = Duration::from_secs(20);

/// An image as it will be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// By digest.
    pub image: PinnedImage,
    /// The tag it was resolved from.
    pub tag: Option<String>,
    /// Its layers as they travel, if the registry said.
    pub size: Option<Bytes>,
    /// What could not be checked.
    pub unchecked: Option<String>,
}

/// Asks the registry. A digest that was typed is taken as it is when the registry does not answer.
pub(crate) async fn resolve(name: &ImageName) -> Result<Resolved, Failure> {
    let answer = match tokio::time::timeout(IN_ALL, ask_registry(name)).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::new(
            Code::RegistryDown,
            format!(
                "the registry {} did not answer within 20 s",
                name.registry()
            ),
        )),
    };
    match (answer, name.digest()) {
        (Ok((digest, size)), _) => Ok(Resolved {
            image: pinned(name, digest)?,
            tag: name.digest().is_none().then(|| name.tag().to_owned()),
            size,
            unchecked: None,
        }),
        (Err(failure), Some(digest)) if failure.code() == Code::RegistryDown => Ok(Resolved {
            image: pinned(name, digest)?,
            tag: None,
            size: None,
            unchecked: Some(failure.what().to_owned()),
        }),
        (Err(failure), _) => Err(failure),
    }
}

fn pinned(name: &ImageName, sha256: [u8; 32]) -> Result<PinnedImage, Failure> {
    Ok(PinnedImage {
        name: Text::new(name.without_tag())?,
        sha256,
    })
}

/// The digest of what the name stands for (of the index, when it is one), and the size of the layers for
/// 64-bit Linux.
async fn ask_registry(name: &ImageName) -> Result<([u8; 32], Option<Bytes>), Failure> {
    let client = Client::new(ClientConfig {
        protocol: protocol_of(name),
        connect_timeout: Some(CONNECT),
        read_timeout: Some(READ),
        platform_resolver: Some(Box::new(oci_client::client::linux_amd64_resolver)),
        ..ClientConfig::default()
    });
    let reference = reference_of(name);
    let pulled = client
        .pull_image_manifest_and_list_digest(&reference, &RegistryAuth::Anonymous)
        .await
        .map_err(|error| of_registry(name, &error))?;
    let (manifest, digest, index) = pulled;
    let digest = index.unwrap_or(digest);
    let sha256 = reference::parse_digest(&digest).ok_or_else(|| {
        let what = format!(
            "the registry {} names the image by '{digest}'",
            name.registry()
        );
        Failure::new(Code::DigestMismatch, what).help("only sha256 digests can be rented")
    })?;
    let layers = manifest
        .layers
        .iter()
        .filter_map(|layer| u64::try_from(layer.size).ok());
    Ok((sha256, Some(Bytes(layers.fold(0, u64::saturating_add)))))
}

/// Registries on this machine speak plain HTTP, as the Docker engine has it.
fn protocol_of(name: &ImageName) -> ClientProtocol {
    if name.is_loopback() {
        return ClientProtocol::HttpsExcept(vec![name.registry().to_owned()]);
    }
    ClientProtocol::Https
}

fn reference_of(name: &ImageName) -> Reference {
    let (registry, repository) = (name.registry().to_owned(), name.repository().to_owned());
    match name.digest_text() {
        Some(digest) => Reference::with_digest(registry, repository, digest),
        None => Reference::with_tag(registry, repository, name.tag().to_owned()),
    }
}

fn of_registry(name: &ImageName, error: &OciDistributionError) -> Failure {
    let (code, registry) = (code_of(error), name.registry());
    let (what, help) = if code == Code::ImageUnknown {
        (
            format!("the registry {registry} does not know {name}"),
            "check its spelling and tag",
        )
    } else if code == Code::ImageRefused {
        let help = "hosts pull without a login: make the image public";
        (
            format!("the registry {registry} wants a login for {name}"),
            help,
        )
    } else if code == Code::DigestMismatch {
        let what = format!("the registry {registry} has something else under {name}");
        (what, "do not use this registry")
    } else {
        let what = format!(
            "the registry {registry} does not answer: {}",
            innermost(error)
        );
        (
            what,
            "try again, or name the image by digest: NAME@sha256:…",
        )
    };
    Failure::new(code, what)
        .help(help)
        .help("nothing was signed, nothing is billed")
}

/// What kind of failure it is. What is not known to be the image's fault is the registry's.
fn code_of(error: &OciDistributionError) -> Code {
    if let OciDistributionError::RegistryError { envelope, .. } = error {
        let is =
            |codes: &[OciErrorCode]| envelope.errors.iter().any(|one| codes.contains(&one.code));
        if is(&[OciErrorCode::Unauthorized, OciErrorCode::Denied]) {
            return Code::ImageRefused;
        }
        let unknown = [
            OciErrorCode::ManifestUnknown,
            OciErrorCode::NameUnknown,
            OciErrorCode::NotFound,
            OciErrorCode::NameInvalid,
        ];
        return if is(&unknown) {
            Code::ImageUnknown
        } else {
            Code::RegistryDown
        };
    }
    if let OciDistributionError::ServerError { code, .. } = error {
        return match code {
            404 => Code::ImageUnknown,
            401 | 403 => Code::ImageRefused,
            _ => Code::RegistryDown,
        };
    }
    let refused = matches!(
        error,
        OciDistributionError::UnauthorizedError { .. }
            | OciDistributionError::AuthenticationFailure(_)
    );
    let unknown = matches!(
        error,
        OciDistributionError::ImageManifestNotFoundError(_)
            | OciDistributionError::ImageIndexParsingNoPlatformResolverError
    );
    match (refused, unknown) {
        (true, _) => Code::ImageRefused,
        (_, true) => Code::ImageUnknown,
        _ if matches!(error, OciDistributionError::DigestError(_)) => Code::DigestMismatch,
        _ => Code::RegistryDown,
    }
}

/// The end of a chain of causes: "connection refused" and the like.
fn innermost(error: &OciDistributionError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

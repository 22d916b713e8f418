//! Asking brokers for verdicts and transcripts. What a broker did not sign, or is not what it was asked for, is not
//! taken.

use crate::context::{Context, unexpected};
use crate::failure::{Code, Failure};
use audit::transcript::TRANSCRIPT_BYTES_MAX;
use protocol::ids::{BrokerId, Digest, HostId, PublicKey};
use protocol::message::{BrokerReply, BrokerRequest};
use protocol::signed::{Signed, Verified};
use protocol::verify::Verdict;

/// The last verdict of each broker on each device of the host. A broker that fails is said and left out, unless all
/// do.
pub(crate) async fn verdicts(
    context: &Context,
    host: HostId,
) -> Result<Vec<(BrokerId, Verified<Verdict>)>, Failure> {
    let session = context.session().await?;
    let (mut known, mut failures) = (Vec::new(), Vec::new());
    let answers = session.ask_all(&BrokerRequest::Verdicts(host)).await;
    let asked = answers.len();
    for (broker, answer) in answers {
        match answer.and_then(|reply| of_answer(broker, host, reply)) {
            Ok(verdicts) => known.extend(verdicts.into_iter().map(|one| (broker, one))),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.len() == asked
        && let Some(failure) = failures.pop()
    {
        return Err(failure);
    }
    for failure in failures {
        context.printer.warn(failure.what());
    }
    Ok(known)
}

fn of_answer(
    broker: BrokerId,
    host: HostId,
    reply: BrokerReply,
) -> Result<Vec<Verified<Verdict>>, Failure> {
    let BrokerReply::Verdicts(verdicts) = reply else {
        return Err(unexpected(broker));
    };
    verdicts
        .iter()
        .map(|signed| {
            let verified = checked(broker, signed)?;
            if verified.body().host != host {
                return Err(wrong("it is of another host"));
            }
            Ok(verified)
        })
        .collect()
}

/// A verdict that this broker signed.
pub(super) fn checked(
    broker: BrokerId,
    signed: &Signed<Verdict>,
) -> Result<Verified<Verdict>, Failure> {
    let verified = signed.verify().map_err(|error| wrong(&error.to_string()))?;
    if verified.signer() != PublicKey::from(broker) {
        return Err(wrong("somebody else than the broker signed it"));
    }
    Ok(verified)
}

pub(super) fn wrong(what: &str) -> Failure {
    let what = format!("the proof of the hardware is not right: {what}");
    Failure::new(Code::EvidenceWrong, what)
}

/// The bytes of a transcript; nothing when the broker does not have it any more.
pub(super) async fn transcript(
    context: &Context,
    broker: BrokerId,
    digest: Digest,
) -> Result<Option<Vec<u8>>, Failure> {
    let session = context.session().await?;
    let mut bytes = Vec::new();
    loop {
        let from = u32::try_from(bytes.len()).map_err(|_| unexpected(broker))?;
        let request = BrokerRequest::Transcript { digest, from };
        let BrokerReply::Transcript(part) = session.ask(broker, &request).await? else {
            return Err(unexpected(broker));
        };
        if part.length == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&part.bytes);
        let length = usize::try_from(part.length).unwrap_or(usize::MAX);
        if bytes.len() >= length {
            break;
        }
        // A broker that has always another part is not believed.
        if part.bytes.is_empty() || length > TRANSCRIPT_BYTES_MAX {
            return Err(unexpected(broker));
        }
    }
    if Digest::of(&bytes) != digest {
        return Err(wrong("the transcript is another than the verdict names"));
    }
    Ok(Some(bytes))
}

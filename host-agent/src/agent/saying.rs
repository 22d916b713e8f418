//! How something is said to a broker: signed, sent, answered, and what an answer means for saying it again.
//! What is said, and when, is in [`super::talk`].

use super::desk::{Desk, millis};
use super::events::{Done, Sent, What};
use super::mood::Mood;
use super::signing::{ANSWER_VALIDITY, sign};
use super::words;
use crate::hardware::Hardware;
use crate::runtime::Runtime;
use protocol::ids::{BrokerId, PublicKey};
use protocol::lease::{Grant, Refusal, Report};
use protocol::message::{self, BrokerReply, BrokerRequest, Rejection};
use protocol::net::Node;
use protocol::signed::{Signed, Statement};
use protocol::units::Millis;
use std::time::Duration;

/// How long a broker may take to answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    /// Heard.
    Noted,
    /// No.
    Refused(Rejection),
    /// Nothing, or nothing that can be read.
    None(String),
}

impl<R: Runtime, H: Hardware> Desk<R, H> {
    /// Signs and sends one statement.
    pub(super) fn say<T: Statement + Said>(&mut self, to: BrokerId, what: What, body: T) {
        let signed = sign(&self.identity, body, PublicKey::from(to), ANSWER_VALIDITY);
        let request = match signed {
            Ok(signed) => T::request(signed),
            Err(error) => {
                tracing::error!(%error, "a statement cannot be signed");
                return;
            }
        };
        let node = self.node.clone();
        self.tasks.spawn(async move {
            let answer = ask(&node, to, &request).await;
            Done::Sent(Box::new(Sent { to, what, answer }))
        });
    }

    /// A broker answered, or did not.
    pub(super) fn answered(&mut self, sent: Sent) {
        let now = self.now();
        let is_noted = matches!(sent.answer, Answer::Noted);
        self.log_answer(&sent);
        let again = now.monotonic.plus(self.pause(sent.to));
        match sent.what {
            What::Offers => {
                if let Some(broker) = self.brokers.get_mut(&sent.to) {
                    broker.announcing = false;
                    if is_noted {
                        broker.offers_noted_at = Some(now.wall);
                    } else {
                        broker.next_announce = again.min(broker.next_announce);
                    }
                }
            }
            What::Grant(lease) => {
                if let Some(talk) = self.talks.leases.get_mut(&lease) {
                    talk.granting = false;
                    talk.next_grant = again;
                    if is_final(&sent.answer) {
                        talk.grant = None;
                        talk.next_report = Millis(0);
                    }
                }
            }
            What::Report(lease) => {
                if let Some(talk) = self.talks.leases.get_mut(&lease) {
                    talk.reporting = false;
                    if !is_final(&sent.answer) {
                        talk.next_report = again.min(talk.next_report);
                    }
                }
            }
            What::Progress(lease) => {
                if let Some(talk) = self.talks.leases.get_mut(&lease) {
                    talk.progressing = false;
                }
            }
            What::Refusal(lease) | What::Unknown(lease) => {
                let period = now.monotonic.plus(millis(self.config.periods.report));
                if let Some(plea) = self.talks.pleas.get_mut(&lease) {
                    plea.saying = false;
                    plea.next = if is_final(&sent.answer) {
                        period
                    } else {
                        again
                    };
                    if matches!(sent.answer, Answer::Refused(Rejection::WrongPhase(_))) {
                        plea.as_gone = true;
                        plea.next = Millis(0);
                    }
                }
            }
        }
    }

    /// How long to wait before something is said again to this broker.
    fn pause(&self, broker: BrokerId) -> Millis {
        let periods = &self.config.periods;
        let (first, longest) = (millis(periods.resend), millis(periods.announce));
        self.brokers
            .get(&broker)
            .map_or(first, |broker| broker.mood.pause(first, longest))
    }

    fn log_answer(&mut self, sent: &Sent) {
        let broker = sent.to.short();
        let what = words::message(sent.what);
        let mood = self.brokers.get_mut(&sent.to).map(|known| &mut known.mood);
        match &sent.answer {
            Answer::Noted => {
                // Progress is not signed, so it says nothing about the clocks.
                let is_signed = !matches!(sent.what, What::Progress(_));
                if is_signed && mood.is_some_and(Mood::noted) {
                    tracing::info!(%broker, "the clocks agree again");
                }
            }
            Answer::Refused(rejection) => {
                let is_news = mood.is_none_or(|mood| mood.refused(rejection));
                self.count("refused_by_broker");
                if !is_news {
                    tracing::debug!(%broker, what, %rejection, "the broker refuses, as before");
                } else if let Rejection::NotNow { now, .. } = rejection {
                    let reason = words::clocks(self.now().wall, *now);
                    tracing::warn!(%broker, reason, "the broker refuses");
                } else {
                    tracing::warn!(%broker, what, %rejection, "the broker refuses");
                }
            }
            Answer::None(reason) => {
                self.count("not_answered_by_broker");
                tracing::debug!(%broker, what, reason, "the broker did not answer");
            }
        }
    }
}

/// Whether saying it again would change nothing.
fn is_final(answer: &Answer) -> bool {
    match answer {
        Answer::Noted => true,
        Answer::Refused(rejection) => !matches!(
            rejection,
            Rejection::Busy | Rejection::ShuttingDown | Rejection::NotNow { .. }
        ),
        Answer::None(_) => false,
    }
}

/// A statement that is sent to a broker.
pub(super) trait Said: Sized {
    fn request(signed: Signed<Self>) -> BrokerRequest;
}

impl Said for Grant {
    fn request(signed: Signed<Self>) -> BrokerRequest {
        BrokerRequest::Grant(signed)
    }
}

impl Said for Refusal {
    fn request(signed: Signed<Self>) -> BrokerRequest {
        BrokerRequest::Refuse(signed)
    }
}

impl Said for Report {
    fn request(signed: Signed<Self>) -> BrokerRequest {
        BrokerRequest::Report(signed)
    }
}

/// Asks a broker for something that it notes or refuses.
pub(super) async fn ask(node: &Node, broker: BrokerId, request: &BrokerRequest) -> Answer {
    let reply = exchange(node, broker, request).await;
    match reply {
        Ok(BrokerReply::Noted) => Answer::Noted,
        Ok(BrokerReply::Refused(rejection)) => Answer::Refused(rejection),
        Ok(
            BrokerReply::Info(_)
            | BrokerReply::Found(_)
            | BrokerReply::Lease(_)
            | BrokerReply::Leases(_)
            | BrokerReply::Balance(_)
            | BrokerReply::Statement(_)
            | BrokerReply::Receipt(_)
            | BrokerReply::Earnings(_)
            | BrokerReply::HostEvidence(_)
            | BrokerReply::Verdicts(_)
            | BrokerReply::Transcript(_),
        ) => Answer::None("it answered something else".to_owned()),
        Err(reason) => Answer::None(reason),
    }
}

/// Sends one request to a broker that is connected.
pub(crate) async fn exchange(
    node: &Node,
    broker: BrokerId,
    request: &BrokerRequest,
) -> Result<BrokerReply, String> {
    let bytes = message::encode(request).map_err(|error| error.to_string())?;
    let answer = node
        .request(PublicKey::from(broker), bytes, DEADLINE)
        .await
        .map_err(|error| error.to_string())?;
    message::decode(&answer).map_err(|error| error.to_string())
}

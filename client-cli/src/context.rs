//! What every command is given: settings and printer at once, key and brokers when it asks for them.

use crate::Input;
use crate::cache::Cache;
use crate::clock;
use crate::failure::{Code, Failure};
use crate::names::{self, Match};
use crate::printer::Printer;
use crate::session::Session;
use crate::settings::Settings;
use crate::view::Held;
use protocol::ids::{BrokerId, MessageId, PublicKey};
use protocol::message::{BrokerReply, BrokerRequest, LeaseScope};
use protocol::net::Identity;
use protocol::signed::{Envelope, Signed, Statement, Verified};
use protocol::units::{Seconds, Timestamp};
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// How long what is signed may be acted on.
const VALIDITY: Seconds = Seconds(120);

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Context {
    /// How it was called.
    pub settings: Settings,
    /// Where answers and talk go.
    pub printer: Printer,
    identity: OnceLock<Identity>,
    session: OnceCell<Session>,
    /// The broker of one lease alone, when it was remembered.
    near: OnceCell<Session>,
    input: Mutex<Option<Input>>,
}

impl Context {
    /// A run with nothing loaded and nothing connected.
    pub(crate) fn new(settings: Settings, printer: Printer, input: Input) -> Self {
        Self {
            settings,
            printer,
            identity: OnceLock::new(),
            session: OnceCell::new(),
            near: OnceCell::new(),
            input: Mutex::new(Some(input)),
        }
    }

    /// Now, by this machine's clock.
    #[expect(
        clippy::unused_self,
        reason = "commands have the time from here, not from the clock"
    )]
    pub(crate) fn now(&self) -> Timestamp {
        clock::now()
    }

    /// The key; read when it is first needed.
    pub(crate) fn identity(&self) -> Result<&Identity, Failure> {
        if let Some(identity) = self.identity.get() {
            return Ok(identity);
        }
        let identity = Identity::load(&self.settings.key)?;
        Ok(self.identity.get_or_init(|| identity))
    }

    /// The brokers; connected when they are first needed.
    pub(crate) async fn session(&self) -> Result<&Session, Failure> {
        let start = || async {
            let brokers = self.settings.brokers()?;
            Session::start(self.identity()?, brokers, &self.printer).await
        };
        self.session.get_or_try_init(start).await
    }

    /// Uses a session that is there already.
    pub(crate) async fn keep(&self, session: Session) {
        if self.session.get().is_none() {
            self.session.get_or_init(|| async { session }).await;
        }
    }

    /// A session with this broker at least.
    pub(crate) async fn session_with(&self, broker: BrokerId) -> Result<&Session, Failure> {
        match self.near.get().filter(|near| near.broker(broker).is_some()) {
            Some(near) => Ok(near),
            None => self.session().await,
        }
    }

    /// Standard input, for the one who reads all of it.
    pub(crate) fn take_input(&self) -> Option<Input> {
        self.input
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// One line of standard input, while nobody has taken it.
    pub(crate) fn read_line(&self) -> std::io::Result<String> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input
            .as_mut()
            .map_or_else(|| Ok(String::new()), Input::read_line)
    }

    /// Whether standard input is a terminal.
    pub(crate) fn input_is_terminal(&self) -> bool {
        let input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.as_ref().is_some_and(Input::is_terminal)
    }

    /// Signs a statement for one reader, to be acted on within two minutes.
    pub(crate) fn sign<T: Statement>(
        &self,
        audience: impl Into<PublicKey>,
        body: T,
    ) -> Result<Verified<T>, Failure> {
        let envelope = Envelope {
            audience: audience.into(),
            message_id: MessageId::from_bytes(rand::random()),
            issued: self.now(),
            validity: VALIDITY,
        };
        Ok(Signed::sign(
            body,
            self.identity()?.signing_key(),
            envelope,
        )?)
    }

    /// All leases that the brokers know, newest first.
    pub(crate) async fn leases(&self, scope: LeaseScope) -> Result<Vec<Held>, Failure> {
        let session = self.session().await?;
        let mut leases = Vec::new();
        let mut failures = Vec::new();
        for (broker, answer) in session.ask_all(&BrokerRequest::Leases(scope)).await {
            match answer {
                Ok(BrokerReply::Leases(views)) => {
                    leases.extend(
                        views
                            .into_vec()
                            .into_iter()
                            .map(|view| Held { broker, view }),
                    );
                }
                Ok(_) => failures.push(unexpected(broker)),
                Err(failure) => failures.push(failure),
            }
        }
        // With every broker failing nothing is known; with some, what the others say is worth showing.
        if failures.len() == session.brokers().len()
            && let Some(first) = failures.pop()
        {
            return Err(first);
        }
        for failure in failures {
            self.printer.warn(failure.what());
        }
        leases.sort_by_key(|held| std::cmp::Reverse(held.view.ordered_at));
        self.cache().remember(&leases);
        Ok(leases)
    }

    /// The lease that was named, also one that is over. With several brokers the one that is remembered to
    /// keep it is asked alone first, so that one that is down does not hold up the way into a container.
    pub(crate) async fn lease(&self, typed: &str) -> Result<Held, Failure> {
        if self.session.get().is_none()
            && self.settings.brokers.len() > 1
            && let Some(held) = self.remembered(typed).await
        {
            return Ok(held);
        }
        Ok(self.lease_and_match(typed).await?.0)
    }

    /// The open lease of exactly this name or id, if its broker is remembered and still says so.
    async fn remembered(&self, typed: &str) -> Option<Held> {
        let broker = self.cache().broker_of(typed)?;
        let known = self
            .settings
            .brokers
            .iter()
            .find(|known| known.id == broker)?;
        let alone = std::slice::from_ref(known);
        let session = Session::try_all(self.identity().ok()?, alone).await.ok()?;
        let near = self.near.get_or_init(|| async { session }).await;
        let reply = near
            .ask(broker, &BrokerRequest::Leases(LeaseScope::Open))
            .await
            .ok()?;
        let BrokerReply::Leases(views) = reply else {
            return None;
        };
        let held: Vec<Held> = views
            .into_vec()
            .into_iter()
            .map(|view| Held { broker, view })
            .collect();
        match names::resolve(typed, &held) {
            Ok((found, Match::Whole)) => Some(found.clone()),
            Ok((_, Match::Beginning)) | Err(_) => None,
        }
    }

    /// What is remembered between runs.
    pub(crate) fn cache(&self) -> Cache {
        Cache::in_folder(&self.settings.folders.cache)
    }

    /// The lease that was named, and how.
    pub(crate) async fn lease_and_match(&self, typed: &str) -> Result<(Held, Match), Failure> {
        let open = self.leases(LeaseScope::Open).await?;
        match names::resolve(typed, &open) {
            Ok((held, how)) => return Ok((held.clone(), how)),
            Err(failure) if failure.code() != Code::NoSuchLease => return Err(failure),
            Err(_) => {}
        }
        let all = self.leases(LeaseScope::All).await?;
        names::resolve(typed, &all).map(|(held, how)| (held.clone(), how))
    }

    /// A lease as it stands now.
    pub(crate) async fn refreshed(&self, held: &Held) -> Result<Held, Failure> {
        let request = BrokerRequest::Lease(held.view.id);
        let reply = self
            .session_with(held.broker)
            .await?
            .ask(held.broker, &request)
            .await?;
        lease_of(held.broker, reply)
    }

    /// Closes what was opened.
    pub(crate) async fn close(&mut self) {
        for session in [self.session.take(), self.near.take()]
            .into_iter()
            .flatten()
        {
            session.close().await;
        }
    }
}

/// The lease in an answer that should be one.
pub(crate) fn lease_of(broker: BrokerId, reply: BrokerReply) -> Result<Held, Failure> {
    let BrokerReply::Lease(view) = reply else {
        return Err(unexpected(broker));
    };
    Ok(Held {
        broker,
        view: *view,
    })
}

/// A broker answered something else than what was asked.
pub(crate) fn unexpected(broker: BrokerId) -> Failure {
    let what = format!(
        "broker {} answered something else than what was asked",
        broker.short()
    );
    Failure::new(Code::BadReply, what).help("compare the versions: feira doctor")
}

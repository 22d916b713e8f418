//! The loop of the market's thread: a batch of inputs, one commit, then the answers.
//!
//! ```text
//! inputs ─▶ desk: decide, record, apply ─▶ pending ─▶ journal's thread: commit, answers, notices
//!              ▲                                                  │
//!              └── goes on with the next batch meanwhile          └─▶ the file comes back: next commit
//! ```
//!
//! One commit is under way at most. Whatever was decided since it began is in the next one, with its answers:
//! what an answer rests on is on disk before the answer leaves.

use crate::core::command::VerifiedAnnouncement;
use crate::core::desk::{Change, Desk};
use crate::core::goal::GoalDraft;
use crate::market::course::Course;
use crate::market::input::{Input, Reply};
use crate::market::proofs;
use crate::market::time::BookTime;
use crate::market::{MarketError, Notice};
use crate::store::{Committed, Store, StoreError};
use protocol::bounded::Text;
use protocol::ids::{HostId, RenterId};
use protocol::message::Rejection;
use protocol::signed::Signed;
use protocol::usage::AccountStatement;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

/// Most inputs to a commit: more would make the first of them wait for the last. As many again are decided while
/// it is made.
const BATCH: usize = 512;
/// How often time passes, as far as leases know.
const TICK: Duration = Duration::from_secs(1);

/// An answer that leaves after the commit.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

pub(super) struct Worker {
    desk: Desk,
    store: Store,
    course: Course,
    time: BookTime,
    notices: broadcast::Sender<Notice>,
    answers: Vec<Answer>,
    /// The commit under way.
    behind: Option<JoinHandle<Committed>>,
    /// Inputs taken since it began.
    taken: usize,
    ending: Option<Reply<()>>,
}

impl Worker {
    pub(super) const fn new(
        desk: Desk,
        store: Store,
        course: Course,
        time: BookTime,
        notices: broadcast::Sender<Notice>,
    ) -> Self {
        Self {
            desk,
            store,
            course,
            time,
            notices,
            answers: Vec::new(),
            behind: None,
            taken: 0,
            ending: None,
        }
    }

    /// Runs until it is told to end, every handle is gone, or the journal fails.
    pub(super) fn run(mut self, inputs: mpsc::Receiver<Input>) -> Result<(), MarketError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .thread_name("journal")
            .build()
            .map_err(MarketError::Thread)?;
        runtime.block_on(self.take_batches(inputs))?;
        self.store.snapshot(self.desk.market())?;
        self.store.close()?;
        tracing::info!("the journal is closed");
        if let Some(reply) = self.ending {
            let _ = reply.send(Ok(()));
        }
        Ok(())
    }

    async fn take_batches(&mut self, mut inputs: mpsc::Receiver<Input>) -> Result<(), StoreError> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let room = BATCH.saturating_sub(self.taken);
            tokio::select! {
                // A flood of inputs must not hold up deadlines, nor what is decided already.
                biased;
                _ = ticks.tick() => {
                    // A tick may have more to say than stays in memory: the file must be here.
                    self.settle().await?;
                    self.tick()?;
                }
                committed = join(&mut self.behind), if self.behind.is_some() => {
                    self.settled(committed?)?;
                }
                received = inputs.recv_many(&mut batch, room), if room > 0 => {
                    if received == 0 {
                        break;
                    }
                    self.taken = self.taken.saturating_add(received);
                    self.handle(&mut batch).await?;
                }
            }
            if self.behind.is_none() {
                self.commit().await?;
            }
            if self.ending.is_some() {
                // What is in the queue is still done; then there is nothing more to receive.
                inputs.close();
            }
        }
        self.settle().await?;
        self.commit().await?;
        self.settle().await
    }

    fn tick(&mut self) -> Result<(), StoreError> {
        self.read_clock();
        let Self {
            desk,
            store,
            course,
            time,
            ..
        } = self;
        desk.tick(time.now(), &mut |event| {
            course.note(event);
            store.append(event)
        })
    }

    async fn handle(&mut self, batch: &mut Vec<Input>) -> Result<(), StoreError> {
        self.read_clock();
        for input in batch.drain(..) {
            if matches!(input, Input::Ledger(..) | Input::Statement(..)) {
                // These read the file.
                self.settle().await?;
            }
            self.take(input)?;
        }
        Ok(())
    }

    fn read_clock(&mut self) {
        self.time.read();
        self.desk.run_ahead(self.time.ahead());
    }

    /// Begins to make durable what was decided, and answers it after that. On failure nothing of it is answered:
    /// its ways back are dropped with the commit. None is under way now.
    async fn commit(&mut self) -> Result<(), StoreError> {
        self.taken = 0;
        self.course.commit();
        let answers = std::mem::take(&mut self.answers);
        let changes = self.desk.take_changes();
        let notices = self.notices.clone();
        let say = move || {
            for answer in answers {
                answer();
            }
            for notice in changes.into_iter().flat_map(notices_of) {
                // Nobody has to listen.
                let _ = notices.send(notice);
            }
        };
        if !self.store.is_pending() {
            say();
            self.course.tell(self.desk.market());
            return Ok(());
        }
        let behind = self.store.commit_behind()?;
        self.behind = Some(spawn_blocking(move || {
            let committed = behind.commit();
            if committed.is_durable() {
                say();
            }
            committed
        }));
        if self.store.wants_snapshot(self.desk.market()) {
            self.settle().await?;
            self.store.snapshot(self.desk.market())?;
        }
        Ok(())
    }

    /// Waits for the commit under way, if there is one.
    async fn settle(&mut self) -> Result<(), StoreError> {
        if self.behind.is_none() {
            return Ok(());
        }
        let committed = join(&mut self.behind).await?;
        self.settled(committed)
    }

    /// A commit has come back.
    fn settled(&mut self, committed: Committed) -> Result<(), StoreError> {
        self.behind = None;
        if let Err(error) = self.store.committed(committed) {
            tracing::error!(%error, "the journal could not be written; the broker stops");
            return Err(error);
        }
        self.course.tell(self.desk.market());
        Ok(())
    }

    /// Keeps an answer until the batch is durable.
    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: Result<T, Rejection>) {
        self.answers.push(Box::new(move || {
            // Whoever asked may have gone.
            let _ = reply.send(answer);
        }));
    }

    fn take(&mut self, input: Input) -> Result<(), StoreError> {
        let now = self.time.now();
        match input {
            Input::Command(command, reply) => {
                let Self {
                    desk,
                    store,
                    course,
                    ..
                } = self;
                let answer = desk.handle(now, command, &mut |event| {
                    course.note(event);
                    store.append(event)
                })?;
                self.answer(reply, answer);
            }
            Input::Announce(host, announced, reply) => self.announce(host, announced, reply)?,
            Input::Progress(host, progress, reply) => {
                let answer = self.desk.progress(now, host, progress);
                self.answer(reply, answer);
            }
            Input::Gone(host) => self.desk.withdraw(host),
            Input::Greet(party, reply) => {
                self.desk.greet(party);
                let counts = self.desk.counts();
                self.answer(reply, Ok(counts));
            }
            Input::Ledger(reply) => {
                let report = self.store.ledger(self.desk.market())?;
                self.answer(reply, Ok(report));
            }
            Input::Statement(renter, after, reply) => {
                let statement = self.statement(renter, after)?;
                self.answer(reply, statement);
            }
            Input::Goal(host, reply) => self.goal(host, reply),
            Input::Proof(asked) => {
                let answer = proofs::answer(&mut self.desk, now, asked);
                self.answers.push(answer);
            }
            Input::Shutdown(reply) => self.ending = Some(reply),
            Input::Search(..)
            | Input::Leases(..)
            | Input::Lease(..)
            | Input::Balance(..)
            | Input::Earnings(..)
            | Input::HostEvidence(..)
            | Input::Receipt(..)
            | Input::Counts(..)
            | Input::Knows(..)
            | Input::Hosts(..)
            | Input::Deposit(..)
            | Input::Accounts(..)
            | Input::AllLeases(..) => self.read(input),
        }
        Ok(())
    }

    /// What only looks.
    fn read(&mut self, input: Input) {
        let (desk, now) = (&mut self.desk, self.time.now());
        let answer = match input {
            Input::Search(search, reply) => later(reply, Ok(desk.search(now, &search))),
            Input::Leases(party, scope, reply) => {
                later(reply, Ok(desk.leases_of(now, party, scope)))
            }
            Input::Lease(party, lease, reply) => {
                later(reply, desk.lease_of(now, party, lease).map(Box::new))
            }
            Input::Balance(renter, reply) => later(reply, Ok(desk.balance(renter))),
            Input::Earnings(host, reply) => later(reply, Ok(desk.earnings(host))),
            Input::HostEvidence(host, after, reply) => {
                later(reply, desk.host_evidence(now, host, after).map(Box::new))
            }
            Input::Receipt(party, lease, reply) => later(reply, desk.receipt(now, party, lease)),
            Input::Counts(reply) => later(reply, Ok(desk.counts())),
            Input::Knows(party, reply) => later(reply, Ok(desk.knows(party))),
            Input::Deposit(id, reply) => later(reply, Ok(desk.market().deposit(&id))),
            Input::Hosts(reply) => later(reply, Ok(desk.hosts(now))),
            Input::Accounts(reply) => later(reply, Ok(desk.accounts())),
            Input::AllLeases(scope, reply) => later(reply, Ok(desk.all_leases(now, scope))),
            // These are taken before they get here.
            Input::Command(..)
            | Input::Announce(..)
            | Input::Progress(..)
            | Input::Gone(..)
            | Input::Greet(..)
            | Input::Statement(..)
            | Input::Goal(..)
            | Input::Proof(..)
            | Input::Ledger(..)
            | Input::Shutdown(..) => return,
        };
        self.answers.push(answer);
    }

    fn announce(
        &mut self,
        host: HostId,
        announced: VerifiedAnnouncement,
        reply: Reply<()>,
    ) -> Result<(), StoreError> {
        let now = self.time.now();
        let heard_before = self.desk.heard_at(host);
        let Self {
            desk,
            store,
            course,
            ..
        } = self;
        let taken = desk.announce(now, host, announced, &mut |event| {
            course.note(event);
            store.append(event)
        })?;
        if let (Some(before), Ok(())) = (heard_before, &taken) {
            let silence = self.desk.wall(now).since(before);
            self.course.happenings().heard_after(silence);
        }
        self.answer(reply, taken.map_err(Rejection::from));
        Ok(())
    }

    fn goal(&mut self, host: HostId, reply: Reply<GoalDraft>) {
        let goal = self.desk.goal(host);
        self.answer(reply, Ok(goal));
    }

    fn statement(
        &mut self,
        renter: RenterId,
        after: u64,
    ) -> Result<Result<Signed<AccountStatement>, Rejection>, StoreError> {
        let statement = self.store.statement(self.desk.market(), renter, after)?;
        let signed = self.desk.sign(self.time.now(), statement);
        Ok(signed.map_err(|error| Rejection::Malformed(Text::cut(&error.to_string()))))
    }
}

/// The end of the commit under way; never, when there is none.
async fn join(behind: &mut Option<JoinHandle<Committed>>) -> Result<Committed, StoreError> {
    match behind {
        Some(commit) => commit.await.map_err(|_| StoreError::Away),
        None => std::future::pending().await,
    }
}

/// Who hears of a change.
fn notices_of(change: Change) -> impl Iterator<Item = Notice> {
    let Change {
        lease,
        revision,
        renter,
        host,
        goal,
    } = change;
    let about = Notice::Lease {
        lease,
        revision,
        renter,
        host,
    };
    let goal = host.filter(|_| goal).map(|host| Notice::Goal { host });
    std::iter::once(about).chain(goal)
}

pub(super) fn later<T: Send + 'static>(
    reply: oneshot::Sender<Result<T, Rejection>>,
    answer: Result<T, Rejection>,
) -> Answer {
    Box::new(move || {
        // Whoever asked may have gone.
        let _ = reply.send(answer);
    })
}

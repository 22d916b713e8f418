//! The process that asks the library: one thread calls it, one reads questions, one writes, one waits for
//! events. It has no deadline of its own; whoever started it has, and kills it.

use crate::fault::Fault;
use crate::library::{Library, Watcher};
use crate::wire::{Answer, Ask, Frame, Request, read, write};
use protocol::bounded::Text;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Where the driver says which device nodes slices have.
pub const MIG_MINORS: &str = "/proc/driver/nvidia-caps/mig-minors";

/// Questions and frames that may wait.
const QUEUE: usize = 64;
/// How long one wait for events lasts: often enough to notice that nobody listens any more.
const WAIT_MS: u32 = 1_000;
/// How long after a broken wait the next begins: at first, and at most.
const BROKEN_WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// What is loaded.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Another file than `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// Another file than [`MIG_MINORS`].
    pub mig_minors: PathBuf,
}

/// Answers until the questions end. `ended` is called on the reading thread as soon as they do, also while
/// the library hangs: a process that nobody speaks with any more should end there.
pub fn serve<R, W>(reader: R, writer: W, settings: &Settings, ended: fn())
where
    R: Read + Send + 'static,
    W: Write + Send + 'static,
{
    let (questions, asked) = sync_channel(QUEUE);
    let (frames, said) = sync_channel(QUEUE);
    let reading = thread::Builder::new()
        .name("questions".to_owned())
        .spawn(move || {
            take(reader, &questions);
            ended();
        });
    let writing = thread::Builder::new()
        .name("frames".to_owned())
        .spawn(move || give(writer, &said));
    // Without its threads the process is of no use; it ends, and that is noticed.
    if let (Ok(_), Ok(writing)) = (reading, writing) {
        Asked::new(settings.clone(), frames).answer(&asked);
        // What was said last still has to leave.
        let _ = writing.join();
    }
}

fn take(mut reader: impl Read, questions: &SyncSender<Request>) {
    while let Ok(request) = read(&mut reader) {
        if questions.send(request).is_err() {
            return;
        }
    }
}

fn give(mut writer: impl Write, said: &Receiver<Frame>) {
    while let Ok(frame) = said.recv() {
        if write(&mut writer, &frame).is_err() {
            return;
        }
    }
}

/// What is loaded and opened so far.
struct Asked {
    settings: Settings,
    frames: SyncSender<Frame>,
    library: Option<Arc<Library>>,
    /// Where the GPU is that was opened.
    pci: Option<Text<32>>,
}

impl Asked {
    fn new(settings: Settings, frames: SyncSender<Frame>) -> Self {
        Self {
            settings,
            frames,
            library: None,
            pci: None,
        }
    }

    fn answer(mut self, asked: &Receiver<Request>) {
        while let Ok(Request { number, ask }) = asked.recv() {
            let result = self.ask(ask);
            if self.frames.send(Frame::Answer { number, result }).is_err() {
                return;
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<Answer, Fault> {
        let library = self.library()?;
        if let Ask::Open(which) = &ask {
            let identity = library.identify(which)?;
            self.pci = Some(identity.pci.clone());
            return Ok(Answer::Opened(identity));
        }
        if ask == Ask::Count {
            return library.count().map(Answer::Count);
        }
        let pci = self.pci.clone().ok_or_else(|| Fault::Refused {
            detail: "no GPU was opened".to_owned(),
        })?;
        match ask {
            Ask::Count | Ask::Open(_) => Err(Fault::Refused {
                detail: "already answered".to_owned(),
            }),
            Ask::Describe => library
                .describe(&pci)
                .map(|found| Answer::Description(Box::new(found))),
            Ask::Sample => library
                .sample(&pci)
                .map(|found| Answer::Reading(Box::new(found))),
            Ask::Watch => self.watch(library, pci),
            Ask::MigMode => library.mig_mode(&pci).map(Answer::MigMode),
            Ask::SetMigMode { divided } => library.set_mig_mode(&pci, divided).map(Answer::MigMode),
            Ask::Profiles => library.profiles(&pci).map(Answer::Profiles),
            Ask::Instances => library.instances(&pci).map(Answer::Instances),
            Ask::CreateInstance { profile, start } => library
                .create_instance(&pci, profile, start)
                .map(|made| Answer::Instance(Box::new(made))),
            Ask::DestroyInstance { gpu_instance } => library
                .destroy_instance(&pci, gpu_instance)
                .map(|()| Answer::Done),
            Ask::ResetFacts => library
                .reset_facts(&pci)
                .map(|found| Answer::ResetFacts(Box::new(found))),
        }
    }

    /// The library, loaded when it is first needed and again when that failed.
    fn library(&mut self) -> Result<Arc<Library>, Fault> {
        if let Some(library) = &self.library {
            return Ok(Arc::clone(library));
        }
        let settings = &self.settings;
        let loaded = Library::load(settings.library.as_deref(), settings.mig_minors.clone())?;
        let loaded = Arc::new(loaded);
        self.library = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// Listens on a thread of its own. The first registration is waited for, so that a GPU without events
    /// is told from one that has none right now.
    fn watch(&self, library: Arc<Library>, pci: Text<32>) -> Result<Answer, Fault> {
        let frames = self.frames.clone();
        let (began, begun) = sync_channel(1);
        thread::Builder::new()
            .name("events".to_owned())
            .spawn(move || listen(&library, &pci, &frames, &began))
            .map_err(|error| Fault::Other {
                detail: error.to_string(),
            })?;
        let crashed = Fault::Other {
            detail: "the thread that waits for events ended".to_owned(),
        };
        begun.recv().unwrap_or(Err(crashed)).map(|()| Answer::Done)
    }
}

/// Listens for as long as anyone reads. A wait that breaks is told, and begins anew.
fn listen(
    library: &Library,
    pci: &str,
    frames: &SyncSender<Frame>,
    began: &SyncSender<Result<(), Fault>>,
) {
    let mut watcher = match Watcher::begin(library, pci) {
        Ok(watcher) => watcher,
        Err(fault) => {
            // The question of it waits; nobody else does.
            let _ = began.send(Err(fault));
            return;
        }
    };
    let _ = began.send(Ok(()));
    let mut pause = BROKEN_WAITS.0;
    loop {
        let fault = match hear(&watcher, frames, &mut pause) {
            Ok(()) => return,
            Err(fault) => fault,
        };
        if frames.send(Frame::EventsBroke { fault }).is_err() {
            return;
        }
        drop(watcher);
        watcher = loop {
            thread::sleep(pause);
            pause = (pause * 2).min(BROKEN_WAITS.1);
            if let Ok(new) = Watcher::begin(library, pci) {
                break new;
            }
        };
    }
}

/// Passes events on until nobody reads them, which is fine, or the wait breaks. A wait that worked makes
/// the pause after the next break short again.
fn hear(
    watcher: &Watcher<'_>,
    frames: &SyncSender<Frame>,
    pause: &mut Duration,
) -> Result<(), Fault> {
    loop {
        let heard = watcher.wait(WAIT_MS)?;
        *pause = BROKEN_WAITS.0;
        let Some(heard) = heard else {
            continue;
        };
        let frame = Frame::Event {
            kind: heard.kind,
            gpu_instance: heard.gpu_instance,
            compute_instance: heard.compute_instance,
        };
        if frames.send(frame).is_err() {
            return Ok(());
        }
    }
}

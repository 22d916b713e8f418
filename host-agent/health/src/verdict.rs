//! The driver's own verdict on a GPU (field 230), which goes before the table: it knows what it can still do with
//! the GPU. It is obeyed with every reading, so that what it says late, or takes back, counts too.

use crate::strike::Awaits;
use crate::turn::{Cause, Turn};
use crate::unit::Until;
use host_nvml::sample::RecoveryAction;
use protocol::lease::FaultClass;
use protocol::offer::ResourceName;

/// `RECOVER_IMEX_DOMAIN`: what joins GPUs of several machines has to be set up anew.
const RECOVER_IMEX_DOMAIN: u32 = 5;

impl Turn {
    /// Does what the driver wanted done at the last reading of this GPU.
    pub(crate) fn obey_verdict(&mut self, gpu: &ResourceName) {
        let unit = self.unit(gpu);
        let Some(verdict) = unit.verdict() else {
            return;
        };
        if unit.reset.running {
            return;
        }
        let is_of_it = |gpu: &ResourceName, awaits: Awaits, of: &ResourceName| {
            awaits == Awaits::Verdict && gpu == of
        };
        self.health
            .waiting
            .retain(|waiting| !is_of_it(&waiting.strike.gpu, waiting.awaits, gpu));
        match verdict {
            RecoveryAction::None => self.nothing_wanted(gpu),
            RecoveryAction::Reset => {
                self.end_all(gpu, "the driver says that the GPU has to be reset");
                self.wants_reset(gpu, "the driver wants it reset");
            }
            RecoveryAction::DrainAndReset => {
                self.wants_reset(gpu, "the driver wants it emptied and reset");
            }
            RecoveryAction::Reboot => {
                let why = "the driver wants the machine booted anew";
                self.end_all(gpu, why);
                let waits = |turn: &mut Self| turn.unit(gpu).wait.as_ref().map(|wait| wait.until);
                let before = waits(self);
                self.raise(gpu, 0, Until::Reboot, why);
                if waits(self) != before {
                    self.alarm(Some(gpu), format!("{why}: do it when it is empty"));
                }
            }
            RecoveryAction::DrainPeers | RecoveryAction::Other(RECOVER_IMEX_DOMAIN) => {
                self.unit(gpu).alone = true;
            }
            RecoveryAction::Other(number) => {
                let why = format!("the driver wants action {number} done, which is not known");
                self.raise(gpu, 0, Until::Checked, &why);
            }
        }
    }

    /// The driver sees nothing to do, and then a reset may not be done: a test of all its memory takes its place.
    fn nothing_wanted(&mut self, gpu: &ResourceName) {
        let unit = self.unit(gpu);
        unit.alone = false;
        if let Some(wait) = &mut unit.wait
            && wait.until == Until::Reset
        {
            wait.until = Until::Tested;
            self.note(
                Some(gpu),
                "the driver wants no reset: it is tested".to_owned(),
            );
        }
    }

    fn wants_reset(&mut self, gpu: &ResourceName, why: &str) {
        let xid = self.recent_cause(gpu).map_or(0, |cause| cause.xid);
        let until = self.after_resets(gpu, xid, Until::Reset);
        self.raise(gpu, xid, until, why);
    }

    fn end_all(&mut self, gpu: &ResourceName, text: &str) {
        let cause = self.recent_cause(gpu).unwrap_or(Cause {
            xid: 0,
            class: FaultClass::Driver,
            text: text.to_owned(),
        });
        let struck = self.struck(gpu, None);
        self.end(gpu, &struck, &cause);
    }
}

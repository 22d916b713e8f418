//! What the hosts of a scenario do: they are heard, serve their goals, and say how their leases stand.

use super::actors::Stands;
use super::city::{Broken, City, Next, Recorder, START};
use crate::core::command::Command;
use crate::core::command::VerifiedAnnouncement;
use protocol::bounded::List;
use protocol::ids::{Digest, HostId, LeaseId};
use protocol::lease::{ContainerState, Grant, Stage, StopReason, Want};
use protocol::units::Seconds;
use std::collections::BTreeSet;

impl City<'_> {
    /// A host is heard: what it offers, and how its leases stand.
    pub(super) fn heartbeat(&mut self, index: usize) -> Result<(), Broken> {
        let (now, broker, notice) = (self.now, self.broker, self.notice);
        let Some(host) = self.hosts.get(index).filter(|host| !host.is_offline(now)) else {
            return Ok(());
        };
        let (id, key) = (host.id, host.key.clone());
        let listed_at = START.after(Seconds(host.spec.listed_at_s).millis());
        let mut offers = Vec::new();
        for offer in host.offers(broker, listed_at, now, notice) {
            offers.push(self.signer.sign(offer, &key, now)?);
        }
        let mut record = Recorder::of(&mut self.shadow, &self.names, &mut self.entries, self.out);
        let announcement = VerifiedAnnouncement {
            offers,
            ..VerifiedAnnouncement::default()
        };
        let announced = self
            .desk
            .announce(now, id, announcement, &mut |event| record.event(event))?;
        if let Err(refusal) = announced {
            return Err(self.broken(format!("a host's offer was refused: {refusal}")));
        }
        self.serve(index)?;
        let leases: Vec<LeaseId> = self.leases_on(id);
        for lease in leases {
            self.report_standing(index, lease)?;
        }
        Ok(())
    }

    pub(super) fn leases_on(&self, host: HostId) -> Vec<LeaseId> {
        let leases = self.desk.market().live_leases_of(host.into());
        leases
            .filter(|lease| lease.contract.host == host)
            .map(|lease| lease.id)
            .collect()
    }

    /// Serves the goals of all hosts that have something else to do now.
    pub(super) fn serve_changes(&mut self) -> Result<(), Broken> {
        loop {
            let changes = self.desk.take_changes();
            let hosts: BTreeSet<HostId> = changes
                .iter()
                .filter(|change| change.goal)
                .filter_map(|change| change.host)
                .collect();
            if hosts.is_empty() {
                return Ok(());
            }
            for index in 0..self.hosts.len() {
                if self
                    .hosts
                    .get(index)
                    .is_some_and(|host| hosts.contains(&host.id))
                {
                    self.serve(index)?;
                }
            }
        }
    }

    /// Does what the broker wants of a host.
    pub(super) fn serve(&mut self, index: usize) -> Result<(), Broken> {
        let now = self.now;
        let Some(host) = self.hosts.get(index).filter(|host| !host.is_offline(now)) else {
            return Ok(());
        };
        let goal = self.desk.goal(host.id);
        for wanted in goal.leases {
            let lease = wanted.lease;
            if self.hosts.get(index).is_some_and(|host| host.withdrawn) {
                self.report(index, lease, ContainerState::Gone)?;
                continue;
            }
            self.grant(index, lease, (wanted.order.digest(), wanted.award.digest()))?;
            self.act(index, lease, wanted.want)?;
        }
        Ok(())
    }

    pub(super) fn grant(
        &mut self,
        index: usize,
        lease: LeaseId,
        (order, award): (Digest, Digest),
    ) -> Result<(), Broken> {
        let Some(host) = self.hosts.get_mut(index) else {
            return Ok(());
        };
        if host.containers.entry(lease).or_default().granted {
            return Ok(());
        }
        let Some(contract) = self.desk.market().lease(lease).map(|lease| &lease.contract) else {
            return Ok(());
        };
        let epoch = host.next_epoch();
        let resources = contract.share.resources.iter();
        let grant = Grant {
            lease,
            order,
            award,
            resources: List::first(resources.map(|name| (name.clone(), epoch))),
        };
        let grant = self.signer.sign(grant, &host.key, self.now)?;
        if self.command(Command::Grant(grant))?.is_ok()
            && let Some(host) = self.hosts.get_mut(index)
        {
            host.containers.entry(lease).or_default().granted = true;
        }
        Ok(())
    }

    pub(super) fn act(&mut self, index: usize, lease: LeaseId, want: Want) -> Result<(), Broken> {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index) else {
            return Ok(());
        };
        let prepare = Seconds(host.spec.prepare_s);
        let container = host.containers.entry(lease).or_default();
        match want {
            Want::Run(run) if container.run < run => {
                container.run = run;
                let ready = now.after(prepare.millis());
                container.state = Stands::Preparing(ready);
                self.queue.insert((ready, Next::Container(index)));
                if prepare > Seconds(0) {
                    let stage = Stage::Pulling;
                    return self.report(index, lease, ContainerState::Preparing(stage));
                }
                self.act(index, lease, want)
            }
            Want::Run(_) => {
                if let Stands::Preparing(ready) = container.state
                    && now >= ready
                {
                    container.state = Stands::Running(now);
                    return self.report(index, lease, ContainerState::Running);
                }
                Ok(())
            }
            Want::Vacate(notice) => {
                if !matches!(container.state, Stands::Running(_)) {
                    return Ok(());
                }
                if now >= notice.by {
                    container.stop(now);
                    let stopped = ContainerState::Stopped(StopReason::Vacated);
                    return self.report(index, lease, stopped);
                }
                self.queue.insert((notice.by, Next::Container(index)));
                Ok(())
            }
            Want::Stop => {
                if matches!(container.state, Stands::Running(_) | Stands::Preparing(_)) {
                    container.stop(now);
                    let stopped = ContainerState::Stopped(StopReason::Asked);
                    return self.report(index, lease, stopped);
                }
                Ok(())
            }
            Want::End => {
                if container.state != Stands::Stopped {
                    container.stop(now);
                }
                self.report(index, lease, ContainerState::Gone)
            }
        }
    }

    /// A host says again how a lease stands.
    pub(super) fn report_standing(&mut self, index: usize, lease: LeaseId) -> Result<(), Broken> {
        let container = self
            .hosts
            .get(index)
            .and_then(|host| host.containers.get(&lease));
        let state = match container.map(|container| container.state) {
            Some(Stands::Running(_)) => ContainerState::Running,
            Some(Stands::Stopped) => ContainerState::Stopped(StopReason::Asked),
            Some(Stands::Preparing(_)) => ContainerState::Preparing(Stage::Pulling),
            Some(Stands::None) | None => return Ok(()),
        };
        self.report(index, lease, state)
    }

    pub(super) fn report(
        &mut self,
        index: usize,
        lease: LeaseId,
        state: ContainerState,
    ) -> Result<(), Broken> {
        let now = self.now;
        let Some(host) = self.hosts.get_mut(index) else {
            return Ok(());
        };
        let is_gone = state == ContainerState::Gone;
        let report = host.report(lease, state, now);
        let report = self.signer.sign(report, &host.key, now)?;
        if is_gone {
            host.containers.remove(&lease);
        }
        // A report of a lease that is over is refused, and nothing is lost by it.
        let _ = self.command(Command::Report(report))?;
        Ok(())
    }
}

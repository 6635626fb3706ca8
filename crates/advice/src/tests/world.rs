//! Makes situations for tests: a condition, its causes, and facts of an invented host.

use crate::{Candidate, Situation, candidates};
use std::collections::BTreeMap;
use tailbound_document::*;
use tailbound_model::*;

/// Everything that a situation borrows.
#[derive(Clone)]
pub struct World {
    pub spec: TrialSpec,
    pub causes: Vec<CauseShare>,
    pub without: Vec<WithoutCause>,
    pub losses: Vec<LossReport>,
    pub cpus: Vec<u32>,
    pub facts: Vec<Fact>,
}

impl World {
    /// A ping-pong with the driver udp over veth, the ping on CPU 0 and the pong on CPU 1, on a host with four CPUs.
    pub fn new() -> World {
        World {
            spec: spec(),
            causes: Vec::new(),
            without: Vec::new(),
            losses: Vec::new(),
            cpus: vec![0, 1, 2, 3],
            facts: Vec::new(),
        }
    }

    /// Adds a cause at the pong that took 10 ms, all of it seen, of the thread `recv` on CPU 1.
    pub fn cause(mut self, cause: CauseWord) -> World {
        let delayed =
            DelayedThread { thread: Some("recv".into()), role: Some("receive".into()), cpu: Some(1), ns: 10_000_000 };
        self.causes.push(CauseShare {
            cause,
            end: Some("pong".into()),
            by: None,
            ns: 10_000_000,
            share: 0.8,
            incidents: 4,
            explains: cause.explains(),
            proven_ns: 10_000_000,
            delayed: vec![delayed],
        });
        self
    }

    /// The last cause has this thread or interrupt, with this policy (empty: not known).
    pub fn by(mut self, name: &str, policy: &str) -> World {
        let by = CausedBy {
            policy: Some(policy.to_owned()).filter(|policy| !policy.is_empty()),
            ..CausedBy::named(name.to_owned())
        };
        self.causes.last_mut().unwrap().by = Some(by);
        self
    }

    /// The last cause kept this thread of the kernel from its work.
    pub fn carrier(mut self, name: &str) -> World {
        self.causes.last_mut().unwrap().by.as_mut().unwrap().carrier = Some(name.into());
        self
    }

    /// Adds 40 lost messages on the way out that were counted.
    pub fn loss(mut self, kind: LossKind) -> World {
        self.losses.push(LossReport {
            place: LossPlace::OnTheWayOut,
            count: 40,
            reason: Some("a reason".into()),
            kind: Some(kind),
            evidence: Evidence::Counted,
        });
        self
    }

    /// The condition with a change.
    pub fn with(mut self, change: impl FnOnce(&mut TrialSpec)) -> World {
        change(&mut self.spec);
        self
    }

    /// The path is existing interfaces with this name.
    pub fn between(self, interface: &str) -> World {
        let side = || ExistingEnd { interface: Some(interface.to_owned()), ..ExistingEnd::default() };
        self.with(|spec| spec.path = PathSpec::Existing { ping: side(), pong: side() })
    }

    /// A fact of the host.
    pub fn fact(mut self, key: &str, value: FactValue) -> World {
        self.facts.push(Fact { key: key.into(), value, source: "made up".into() });
        self
    }

    /// The CPUs that the ends may use.
    pub fn cpus(mut self, cpus: &[u32]) -> World {
        self.cpus = cpus.to_vec();
        self
    }

    /// The candidates of the situation.
    pub fn candidates(&self) -> Vec<Candidate> {
        let facts = HostFacts { host: "bench".into(), boot_id: String::new(), facts: self.facts.clone() };
        candidates(&Situation {
            spec: &self.spec,
            causes: &self.causes,
            without: &self.without,
            losses: &self.losses,
            cpus: &self.cpus,
            facts: Some(&facts),
            q: None,
        })
    }

    /// Keys of the rules that give candidates.
    pub fn rules(&self) -> Vec<&'static str> {
        self.candidates().iter().map(|candidate| candidate.rule.key).collect()
    }

    /// Settings of the candidates, the most promising first.
    pub fn settings(&self) -> Vec<String> {
        self.candidates().iter().map(|candidate| candidate.settings.join(" & ")).collect()
    }
}

pub fn text(value: &str) -> FactValue {
    FactValue::Text(value.to_owned())
}

/// A role with a policy.
pub fn role(policy: &str) -> RoleScheduling {
    RoleScheduling { policy: Some(policy.parse().unwrap()), cpus: None }
}

fn end(cpu: u32) -> EndSpec {
    let scheduling = Scheduling::of_all(None, Some(CpuList::one(cpu)));
    EndSpec { place: PlaceSpec::Netns, scheduling, gates: None, shaping: None, police: None }
}

fn spec() -> TrialSpec {
    let measure = PingPong {
        length: Length::Slots(1000),
        warm_up_slots: 0,
        timeout: Nanos::from_secs(1),
        on_overrun: OnOverrun::CatchUp,
        receive: ReceiveMode::Listener,
        hand_off: HandOff::None,
    };
    TrialSpec {
        measure: Measure::PingPong(measure),
        payload: ByteSize(64),
        rate: Rate::Period(Nanos(1_000_000)),
        stream: None,
        driver: DriverSpec { name: "udp".into(), ..DriverSpec::default() },
        pong_driver: None,
        qos: BTreeMap::new(),
        domain: 77,
        discovery: Discovery::Auto,
        ping: end(0),
        pong: end(1),
        path: PathSpec::Veth { mtu: None, delay: None },
        vlan: None,
        arrangement: None,
        security: None,
        middleware: MiddlewareSettings::default(),
        collect: Collect::After,
        attribution: Attribution::Auto,
        quiet: Quiet::Auto,
        loads: Vec::new(),
        host: Vec::new(),
    }
}

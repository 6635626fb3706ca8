//! Tests that threads get the scheduling of their role when they start. The tests need no privileges: they set only
//! policies that every user may set.

use std::collections::BTreeMap;
use tailbound_driver::ThreadRole;
use tailbound_host::scheduling::read_back;
use tailbound_model::{CpuList, MIDDLEWARE, Policy, RoleScheduling, Scheduling};
use tailbound_run::thread_policy;

fn role(policy: Policy) -> RoleScheduling {
    RoleScheduling { policy: Some(policy), cpus: None }
}

fn of_name(role: &str, name_glob: &str) -> ThreadRole {
    ThreadRole { role: role.into(), name_glob: Some(name_glob.into()), born_in: None, index: None }
}

/// Policy and CPUs of a new thread when its first line runs.
fn found(name: Option<&str>) -> (Policy, CpuList) {
    let builder = std::thread::Builder::new();
    let builder = name.into_iter().fold(builder, |b, name| b.name(name.into()));
    builder.spawn(|| read_back(0).unwrap()).unwrap().join().unwrap()
}

// One test: the rules of a process are set once.
#[test]
fn each_thread_gets_what_its_role_is_to_have() {
    let first = *tailbound_host::allowed_cpus().first().unwrap();
    let (inherited, all) = read_back(0).unwrap();
    let asked = Scheduling {
        policy: None,
        cpus: None,
        roles: BTreeMap::from([
            (MIDDLEWARE.into(), RoleScheduling { policy: Some(Policy::Batch { nice: 3 }), cpus: None }),
            ("receive".into(), RoleScheduling { policy: None, cpus: Some(CpuList::one(first)) }),
            ("event".into(), role(Policy::Idle)),
            ("processing".into(), role(Policy::Other { nice: 7 })),
        ]),
        by_vendor: false,
    };
    let by_place = ThreadRole { role: "event".into(), name_glob: None, born_in: Some("open".into()), index: Some(1) };
    thread_policy::begin(&asked, &[of_name("receive", "recv*"), of_name("event", "tev"), by_place]).unwrap();
    let batch = Policy::Batch { nice: 3 };
    assert_eq!(found(None), (batch, all.clone()), "a thread without a name is the middleware's");
    assert_eq!(found(Some("recvUC")), (batch, CpuList::one(first)), "its own CPUs, the middleware's policy");
    assert_eq!(found(Some("tev")), (Policy::Idle, all.clone()));
    assert_eq!(found(Some("tb-process")).0, Policy::Other { nice: 7 }, "our own threads are no middleware");
    assert_eq!(found(Some("tb-receive")), (inherited, CpuList::one(first)));
    let opening = thread_policy::during(c"open");
    assert_eq!(found(None).0, batch, "the first thread born in open");
    assert_eq!(found(None).0, Policy::Idle, "the second, which the driver's rules name");
    drop(opening);
    let opening = thread_policy::during(c"open");
    let born = [(); 2].map(|()| std::thread::spawn(|| read_back(0).unwrap().0));
    drop(opening);
    let born = born.map(|thread| thread.join().unwrap());
    assert_eq!(born, [batch, Policy::Idle], "the place is that of the making, whenever the thread begins to run");
    // Seconds into the trial.
    assert_eq!(thread_policy::apply_deadlines(&[]), Vec::<String>::new());
    assert_eq!(found(Some("recv")).0, batch);
    assert_eq!(found(None).0, batch);
}

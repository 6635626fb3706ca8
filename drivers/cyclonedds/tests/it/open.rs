//! Tests of opening and closing sessions: the configuration, errors in the configuration, and files or threads that are
//! left behind.

use std::sync::Arc;

use crate::common::{ask, driver, on_lo, open, until};
use tailbound_driver::{Code, DriverError, Endpoint, Kind, Kv, LogLevel, ReceiveMode, Session, Silent};

fn refused(options: &Kv) -> DriverError {
    Session::open(&driver(), options, Arc::new(Silent)).unwrap_err()
}

#[test]
fn the_version_described_is_the_version_linked() {
    let (session, _) = open(&on_lo(101));
    let transport = ask(&session, Endpoint::SESSION, "transport");
    let described = &driver().description().versions["cyclonedds"];
    assert_eq!(transport["library"], format!("CycloneDDS {described}"));
}

#[test]
fn the_effective_configuration_is_what_was_asked() {
    let options = on_lo(102).with("max_message_size", "9000").with("fragment_size", "4000").with("multicast_ttl", "0");
    let (session, _) = open(&options);
    let transport = ask(&session, Endpoint::SESSION, "transport");
    assert_eq!(transport["max_message_size"], "9000 B");
    assert_eq!(transport["fragment_size"], "4000 B");
    assert_eq!(transport["config"]["General/MulticastTimeToLive"], "0");
    assert_eq!(transport["config"]["Discovery/ExternalDomainId"], "102");
    assert!(transport["interfaces"].as_str().unwrap().starts_with("lo "), "{transport}");
    assert!(transport["socket_receive_buffer_bytes"].as_u64().unwrap() > 0);
}

#[test]
fn the_environment_has_no_influence() {
    // SAFETY: only this test sets the variable, always to the same value, and the driver does not read it.
    unsafe { std::env::set_var("CYCLONEDDS_URI", "<Nonsense/>") };
    let (_session, keeper) = open(&on_lo(103));
    assert!(keeper.messages.lock().unwrap().is_empty());
}

#[test]
fn a_faulty_configuration_is_reported_with_the_text_of_cyclone() {
    let xml = "<CycloneDDS><Domain><General><MaxMessageSize>many</MaxMessageSize></General></Domain></CycloneDDS>";
    let fault = refused(&Kv::new().with("domain", "104").with("config", xml));
    assert_eq!(fault.code, Code::EINVAL);
    assert!(fault.text.contains("MaxMessageSize") && fault.text.contains("many"), "{fault}");
    let fault = refused(
        &Kv::new().with("domain", "104").with("config", "<CycloneDDS><Domain><Nonsense/></Domain></CycloneDDS>"),
    );
    assert!(fault.text.contains("Nonsense"), "{fault}");
    let fault = refused(&Kv::new().with("domain", "104").with("config", "file:///nowhere/cdds.xml"));
    assert!(fault.text.contains("/nowhere/cdds.xml"), "{fault}");
    let fault = refused(&on_lo(104).with("interface", "nosuchif0"));
    assert!(fault.text.contains("nosuchif0"), "{fault}");
    assert_eq!(refused(&on_lo(104).with("colour", "red")).code, Code::EINVAL);
    assert_eq!(refused(&on_lo(104).with("discovery_server", "10.0.0.1")).code, Code::EUNSUPPORTED);
}

#[test]
fn a_users_configuration_is_used_and_the_rest_is_named() {
    let xml = r#"<CycloneDDS><Domain Id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces></General></Domain></CycloneDDS>"#;
    let options = Kv::new().with("domain", "105").with("config", xml).with("multicast", "off");
    let (first, keeper) = open(&options);
    let told = keeper.messages.lock().unwrap().clone();
    assert!(told.iter().any(|(level, text)| *level == LogLevel::Warning && text.contains("multicast")), "{told:?}");
    // A second session of the same process joins the instance, unless the session requests another configuration.
    let (second, _) = open(&options);
    let fault = refused(&Kv::new().with("domain", "105").with("config", "<CycloneDDS></CycloneDDS>"));
    assert!(fault.text.contains("domain 105") && fault.text.contains("different configuration"), "{fault}");
    drop((first, second));
    open(&Kv::new().with("domain", "105").with("config", "<CycloneDDS></CycloneDDS>").with("interface", "lo"));
}

#[test]
fn threads_are_reported_with_their_roles() {
    let (session, _) = open(&on_lo(106));
    // A thread sets its name when it first runs.
    until("all are named", || {
        let threads = ask(&session, Endpoint::SESSION, "threads");
        let has = |name: &str, role: &str| {
            let all = threads.as_array().unwrap();
            all.iter().any(|t| t["name"] == name && t["role"] == role && t["tid"].as_u64() > Some(0))
        };
        has("recv", "receive") && has("tev", "event") && has("dq.builtins", "discovery") && has("gc", "other")
    });
}

#[test]
fn faults_of_create_are_reported() {
    let (session, _) = open(&on_lo(107));
    let create =
        |max: u64, key: &str, value: &str| session.create(Kind::Writer, "faults", max, &Kv::new().with(key, value), 0);
    assert_eq!(create(16, "colour", "red").unwrap_err().code, Code::EQOS);
    assert!(create(16, "reliability", "maybe").unwrap_err().text.contains("reliability"));
    assert_eq!(create(1 << 40, "reliability", "reliable").unwrap_err().code, Code::ETOOBIG);
    let ep = create(16, "reliability", "reliable").unwrap();
    assert_eq!(session.send(ep, 1, &[0; 16]), Ok(()));
    assert_eq!(session.send(ep, 2, &[0; 17]), Err(Code::ETOOBIG));
    session.destroy(ep).unwrap();
    assert_eq!(session.send(ep, 3, &[0; 16]), Err(Code::ECLOSED));
    assert_eq!(session.destroy(ep).unwrap_err().code, Code::ECLOSED);
    assert_eq!(session.query(Endpoint(99), "qos").unwrap_err().code, Code::ECLOSED);
    assert_eq!(session.query(ep, "weather").unwrap_err().code, Code::EUNSUPPORTED);
    assert!(session.create(Kind::Reader(ReceiveMode::Spin), "", 16, &Kv::new(), 0).is_err());
}

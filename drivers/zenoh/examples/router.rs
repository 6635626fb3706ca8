//! A router of zenoh for tests: listens on the address of the first argument (tcp/127.0.0.1:7447), prints a line when it does, and
//! ends when its standard input ends. The second and third argument are its certificate and private key, for quic.

use std::io::Read;

use zenoh::{Config, Wait};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let at = arguments.next().expect("the address to listen on");
    let mut config = Config::default();
    for (key, value) in [
        ("mode", r#""router""#.to_owned()),
        ("listen/endpoints", format!("[\"{at}\"]")),
        ("listen/exit_on_failure", "true".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).expect(key);
    }
    if let (Some(certificate), Some(key)) = (arguments.next(), arguments.next()) {
        let files = format!("{{ listen_certificate: \"{certificate}\", listen_private_key: \"{key}\" }}");
        config.insert_json5("transport/link/tls", &files).expect("the certificate");
    }
    let _session = zenoh::open(config).wait().expect("the router");
    println!("listening on {at}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

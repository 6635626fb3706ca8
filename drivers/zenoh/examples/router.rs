//! A router of zenoh for tests: listens on the address of the first argument (tcp/127.0.0.1:7447), prints a line when it does, and
//! ends when its standard input ends.

use std::io::Read;

use zenoh::{Config, Wait};

fn main() {
    let at = std::env::args().nth(1).expect("the address to listen on");
    let mut config = Config::default();
    for (key, value) in [
        ("mode", r#""router""#.to_owned()),
        ("listen/endpoints", format!("[\"{at}\"]")),
        ("listen/exit_on_failure", "true".to_owned()),
        ("scouting/multicast/enabled", "false".to_owned()),
    ] {
        config.insert_json5(key, &value).expect(key);
    }
    let _session = zenoh::open(config).wait().expect("the router");
    println!("listening on {at}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

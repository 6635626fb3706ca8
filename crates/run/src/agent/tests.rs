//! Tests of the agent over a stream within the test process.

use super::*;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs an agent in a thread. Returns the controller's side of its stream, and the thread.
fn agent() -> (Connection, JoinHandle<io::Result<()>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let file = |stream: &UnixStream| File::from(std::os::fd::OwnedFd::from(stream.try_clone().unwrap()));
    let controller = Connection::new(file(&ours), file(&ours));
    let agent = Connection::new(file(&theirs), file(&theirs));
    let thread = std::thread::spawn(move || {
        let (signals, children) = (signals::termination().unwrap(), signals::children().unwrap());
        Agent::new(agent).serve(signals.as_raw_fd(), &children)
    });
    (controller, thread)
}

fn next(controller: &mut Connection) -> Message {
    controller.receive_within(Duration::from_secs(5)).unwrap().expect("the agent has ended")
}

#[test]
fn an_agent_begins_with_hello_answers_and_ends_on_bye() {
    let (mut controller, thread) = agent();
    assert!(matches!(next(&mut controller), Message::Hello(h) if h.protocol_max >= PROTOCOL_MIN));
    controller.send(Message::Ask(Ask::Clock)).unwrap();
    assert!(matches!(next(&mut controller), Message::Answer(Answer::Clock(_))));
    controller.send(Message::Collect).unwrap();
    assert_eq!(next(&mut controller), Message::Collected, "without a trial there is no memory");
    controller.send(Message::Finish).unwrap();
    assert_eq!(next(&mut controller), Message::Finished);
    controller.send(Message::Bye).unwrap();
    assert!(thread.join().unwrap().is_ok());
}

#[test]
fn an_agent_ends_when_the_stream_of_its_controller_ends() {
    let (controller, thread) = agent();
    drop(controller);
    // The agent may notice the end while it writes or while it reads.
    let _ = thread.join().unwrap();
}

#[test]
fn an_agent_ends_with_an_error_on_a_bad_frame() {
    let (mut controller, thread) = agent();
    next(&mut controller);
    controller.send_frame(&Frame::Memory { end: 0, offset: 0, bytes: Vec::new() }).unwrap();
    controller.send(Message::Ask(Ask::Clock)).unwrap();
    assert!(matches!(next(&mut controller), Message::Answer(_)), "sample memory for an agent is ignored");
    controller.send_bytes(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn an_agent_that_receives_nothing_for_its_lease_ends() {
    let (mut controller, thread) = agent();
    let Message::Hello(hello) = next(&mut controller) else { panic!("no hello") };
    controller.send(Message::Hello(Hello { lease_ns: 1_000_000, ..hello })).unwrap();
    assert!(thread.join().unwrap().is_ok());
}

#[test]
fn an_agent_that_answers_for_a_host_sends_its_log_when_it_is_asked() {
    let (mut controller, thread) = agent();
    let Message::Hello(hello) = next(&mut controller) else { panic!("no hello") };
    controller.send(Message::Hello(Hello { lease_ns: 0, capabilities: vec!["log:info".into()], ..hello })).unwrap();
    controller.send(Message::Ask(Ask::Log)).unwrap();
    let Message::Answer(Answer::Log(lines)) = next(&mut controller) else { panic!("no log") };
    assert!(lines.contains("INFO agent begins"), "{lines}");
    controller.send(Message::Bye).unwrap();
    assert!(thread.join().unwrap().is_ok());
}

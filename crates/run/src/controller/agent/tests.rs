//! Tests of faults in the protocol between controller and agent, over streams within the test process.

use super::*;
use tokio::io::{DuplexStream, duplex};

/// Time without received bytes after which an agent of these tests counts as lost.
const SILENCE: Duration = Duration::from_millis(50);

/// Returns the controller's side of a connection, and the two streams of the agent: from the controller, and to the
/// controller.
fn connected() -> (Agent, DuplexStream, DuplexStream) {
    let (input, from_controller) = duplex(1 << 20);
    let (to_controller, output) = duplex(1 << 20);
    (Agent::over("ping", Box::new(input), Box::new(output), SILENCE), from_controller, to_controller)
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

fn bytes(message: Message) -> Vec<u8> {
    encode(&Frame::Message(Box::new(message)))
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn hello_of_agent() -> Hello {
    Hello { clock: "boot-1".into(), ..hello(0) }
}

#[test]
fn hello_is_exchanged() {
    run(async {
        let (mut agent, mut from_controller, mut to_controller) = connected();
        to_controller.write_all(&bytes(Message::Hello(hello_of_agent()))).await.unwrap();
        agent.exchange_hello().await.unwrap();
        assert_eq!(agent.clock, "boot-1");
        let mut received = vec![0; 4096];
        let n = from_controller.read(&mut received).await.unwrap();
        let mut reader = FrameReader::default();
        reader.push(&received[..n]);
        let Ok(Some(Frame::Message(message))) = reader.next_frame() else { panic!("no frame") };
        let words = [crate::log::capability(), SO_FAR.to_owned(), CAUSES.to_owned()];
        assert!(matches!(*message, Message::Hello(h) if h.capabilities == words));
    });
}

#[test]
fn an_agent_with_another_protocol_version_is_refused_with_both_versions() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        let (protocol_min, protocol_max) = (PROTOCOL_MAX + 1, PROTOCOL_MAX + 3);
        let other = Hello { protocol_min, protocol_max, tailbound: "9.0.0".into(), ..hello_of_agent() };
        to_controller.write_all(&bytes(Message::Hello(other))).await.unwrap();
        let lost = agent.exchange_hello().await.unwrap_err();
        assert_eq!(
            lost.to_string(),
            "the agent supports protocol 2 to 4, this release supports 1 to 1: use tailbound 9.0.0 on both sides"
        );
    });
}

#[test]
fn an_agent_that_begins_with_another_message_is_refused() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        to_controller.write_all(&bytes(Message::Finished)).await.unwrap();
        let lost = agent.exchange_hello().await.unwrap_err();
        assert_eq!(lost, Lost::Unexpected { got: "Finished".into(), expected: "hello" });
    });
}

#[test]
fn an_agent_that_closes_its_stream_is_gone() {
    run(async {
        let (mut agent, _from_controller, to_controller) = connected();
        drop(to_controller);
        let lost = agent.message(soon()).await.unwrap_err();
        assert_eq!(lost, Lost::StreamEnded("it closed its stream".into()));
        assert!(lost.is_stream_ended());
    });
}

#[test]
fn an_agent_that_no_longer_reads_is_lost() {
    run(async {
        let (mut agent, from_controller, _to_controller) = connected();
        drop(from_controller);
        assert!(matches!(agent.send(Message::Go).await, Err(Lost::NotReading(_))));
    });
}

#[test]
fn a_frame_cut_by_the_end_of_the_stream_is_an_agent_that_is_gone() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        let whole = bytes(Message::Finished);
        to_controller.write_all(&whole[..whole.len() - 1]).await.unwrap();
        drop(to_controller);
        assert!(agent.message(soon()).await.unwrap_err().is_stream_ended());
    });
}

#[test]
fn bytes_that_are_no_frame_are_a_bad_frame() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        to_controller.write_all(b"bash: line 1: tailbound: command not found\n").await.unwrap();
        let lost = agent.message(soon()).await.unwrap_err();
        assert!(matches!(lost, Lost::BadFrame(WireError::Length(_))), "{lost:?}");
    });
}

/// Test: an unknown message with the name `ended` does not count as the end of the stream, although the text of the
/// error contains the word `ended`.
#[test]
fn an_unknown_message_that_is_called_ended_is_not_the_end_of_the_stream() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        let body = br#"{"ended":{}}"#;
        let mut frame = (body.len() as u32 + 1).to_le_bytes().to_vec();
        frame.push(0);
        frame.extend_from_slice(body);
        to_controller.write_all(&frame).await.unwrap();
        let lost = agent.message(soon()).await.unwrap_err();
        assert!(lost.to_string().contains("ended") && !lost.is_stream_ended(), "{lost:?}");
    });
}

#[test]
fn sample_memory_instead_of_a_message_is_refused() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        to_controller.write_all(&encode(&Frame::Memory { end: 0, offset: 0, bytes: vec![0; 48] })).await.unwrap();
        assert!(matches!(agent.message(soon()).await, Err(Lost::BadMemory(_))));
    });
}

#[test]
fn a_silent_agent_is_lost_before_the_deadline() {
    run(async {
        let (mut agent, _from_controller, _to_controller) = connected();
        assert_eq!(agent.message(soon()).await, Err(Lost::Silent(SILENCE)));
    });
}

#[test]
fn an_agent_that_sends_only_heartbeats_does_not_answer_in_time() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        let heartbeats = async {
            for n in 0.. {
                let heartbeat = Message::Heartbeat(Heartbeat { n, received: 0, spare: None });
                to_controller.write_all(&bytes(heartbeat)).await.unwrap();
                tokio::time::sleep(SILENCE / 10).await;
            }
        };
        tokio::select! {
            lost = agent.message(Instant::now() + 2 * SILENCE) => assert_eq!(lost, Err(Lost::NoAnswer)),
            () = heartbeats => unreachable!(),
        }
    });
}

#[test]
fn an_answer_that_comes_late_is_not_lost() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        assert!(agent.message(Instant::now() + SILENCE / 10).await.is_err());
        to_controller.write_all(&bytes(Message::Finished)).await.unwrap();
        assert_eq!(agent.message(soon()).await, Ok(Message::Finished));
    });
}

#[test]
fn what_an_agent_reports_meanwhile_is_passed_on_with_the_number_of_the_agent() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        let (sender, mut passed_on) = tokio::sync::mpsc::unbounded_channel();
        agent.meanwhile = Some((3, sender));
        let spare = Spare::of((1_000, 2_000), 7);
        for spare in [None, Some(spare)] {
            let heartbeat = bytes(Message::Heartbeat(Heartbeat { n: 1, received: 0, spare }));
            to_controller.write_all(&heartbeat).await.unwrap();
        }
        let so_far = Message::SoFar(SoFar { incidents: 2, late: 30, ..SoFar::default() });
        to_controller.write_all(&bytes(so_far.clone())).await.unwrap();
        to_controller.write_all(&bytes(Message::Done(Box::default()))).await.unwrap();
        assert!(matches!(agent.message(soon()).await, Ok(Message::Done(_))));
        assert_eq!(passed_on.try_recv(), Ok((3, Message::Spare(spare))));
        assert_eq!((passed_on.try_recv(), passed_on.try_recv().is_err()), (Ok((3, so_far)), true));
    });
}

#[test]
fn bytes_between_go_and_done_are_counted_and_those_of_done_are_not() {
    run(async {
        let (mut agent, _from_controller, mut to_controller) = connected();
        agent.silent = true;
        let heartbeat = bytes(Message::Heartbeat(Heartbeat { n: 1, received: 0, spare: None }));
        to_controller.write_all(&heartbeat).await.unwrap();
        to_controller.write_all(&bytes(Message::Done(Box::default()))).await.unwrap();
        assert!(matches!(agent.message(soon()).await, Ok(Message::Done(_))));
        assert_eq!(agent.bytes_while_silent, heartbeat.len() as u64);
    });
}

//! The services of iceoryx2 of a topic: one for messages, and one for events, which wake readers that block.

use iceoryx2::prelude::*;
use iceoryx2::service::builder::publish_subscribe::{
    PublishSubscribeOpenError as Open, PublishSubscribeOpenOrCreateError as Refused,
};
use iceoryx2::service::port_factory::{event, publish_subscribe};
use tailbound_abi::TB_EIO;
use tailbound_abi::TB_EQOS;
use tailbound_abi::side::{Fail, Outcome, fail};

use crate::node::Ipc;
use crate::options::Options;
use crate::qos::Qos;

/// Service for messages: slices of bytes, and the sequence number as user header.
pub type Messages = publish_subscribe::PortFactory<Ipc, [u8], u64>;
/// Service for events.
pub type Wakeups = event::PortFactory<Ipc>;

/// Total size in bytes of the messages that a reader may lend, and the largest number of them.
const LENT_BYTES: u64 = 4 << 20;
const LENT_MOST: u64 = 64;

/// Number of messages that a reader may lend to the loading program at a time.
pub fn lent(max_len: u64) -> usize {
    (LENT_BYTES / max_len.max(1)).clamp(2, LENT_MOST) as usize
}

fn name(topic: &str) -> Outcome<ServiceName> {
    ServiceName::new(topic)
        .map_err(|e| Fail::invalid(format!("topic {topic}: the name is not valid in iceoryx2: {e:?}")))
}

/// Opens the service for the messages of a topic, or creates it with these policies.
///
/// # Errors
/// The service exists with other policies.
pub fn messages(node: &Node<Ipc>, topic: &str, qos: &Qos, max_len: u64, options: &Options) -> Outcome<Messages> {
    let builder = node.service_builder(&name(topic)?).publish_subscribe::<[u8]>().user_header::<u64>();
    let service = builder
        .enable_safe_overflow(!qos.keep_all)
        .subscriber_max_buffer_size(qos.buffer)
        .subscriber_max_borrowed_samples(lent(max_len))
        .history_size(qos.history)
        .max_subscribers(options.max_peers)
        .max_publishers(options.max_peers)
        .max_nodes(2 * options.max_peers + 2)
        .open_or_create()
        .map_err(|e| refused(topic, qos, e))?;
    // An existing service may have larger buffers than asked for.
    let has = service.static_config().subscriber_max_buffer_size();
    if has != qos.buffer {
        let (which, asked) = (if qos.keep_all { "buffer_size" } else { "history.depth" }, qos.buffer);
        return fail(
            TB_EQOS,
            format!("{which}={asked}: topic {topic} exists with {has}; all ends need the same value"),
        );
    }
    Ok(service)
}

fn refused(topic: &str, qos: &Qos, e: Refused) -> Fail {
    let policy = match e {
        Refused::PublishSubscribeOpenError(Open::IncompatibleOverflowBehavior) => "history",
        Refused::PublishSubscribeOpenError(Open::DoesNotSupportRequestedMinBufferSize) if qos.keep_all => "history",
        Refused::PublishSubscribeOpenError(Open::DoesNotSupportRequestedMinBufferSize) => "history.depth",
        Refused::PublishSubscribeOpenError(Open::DoesNotSupportRequestedMinHistorySize) => "durability",
        Refused::PublishSubscribeOpenError(Open::DoesNotSupportRequestedAmountOfSubscribers) => "max_peers",
        _ => return Fail::new(TB_EIO, format!("topic {topic}: iceoryx2: {e:?}")),
    };
    let asked = crate::qos::words(qos);
    let asked =
        asked.get(policy).and_then(|value| value.as_str()).map_or_else(String::new, |value| format!("={value}"));
    let text = format!(
        "{policy}{asked}: topic {topic} exists with another value, and all ends need the same (iceoryx2: {e:?})"
    );
    Fail::new(TB_EQOS, text)
}

/// Opens or creates the service for the events of a topic.
pub fn wakeups(node: &Node<Ipc>, topic: &str, options: &Options) -> Outcome<Wakeups> {
    let builder = node.service_builder(&name(topic)?).event();
    let service = builder
        .max_listeners(options.max_peers)
        .max_notifiers(options.max_peers)
        .max_nodes(2 * options.max_peers + 2)
        .event_id_max_value(1)
        .open_or_create();
    service.map_err(|e| Fail::new(TB_EIO, format!("topic {topic}: the service for events: iceoryx2: {e:?}")))
}

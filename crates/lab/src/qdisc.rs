//! Queue disciplines of interfaces (tc(8)), with options that the netlink library does not know.

use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage};
use rtnetlink::packet_core::{NetlinkPayload, Nla};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use rtnetlink::{Error, Handle};
use tailbound_model::SOCKET_PRIORITIES;

/// Attributes of a message about a queue discipline (linux/rtnetlink.h).
const TCA_OPTIONS: u16 = 2;

/// A queue discipline as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Bytes of its options.
    pub options: Vec<u8>,
    /// Bytes of its size table; empty if it has none.
    pub size_table: Vec<u8>,
}

/// A queue discipline as an interface gets it.
#[derive(Debug, Clone)]
pub(crate) struct Discipline {
    pub kind: &'static str,
    /// The root of the interface, or the class of another queue discipline.
    pub parent: TcHandle,
    /// Its own handle, by which its classes are named; zeros = the kernel chooses one.
    pub handle: TcHandle,
    /// Bytes of its options.
    pub options: Vec<u8>,
    /// Bytes of its size table.
    pub size_table: Option<Vec<u8>>,
}

impl Discipline {
    /// A queue discipline for all packets of an interface.
    pub fn at_root(kind: &'static str, options: Vec<u8>) -> Discipline {
        Discipline { kind, parent: TcHandle::ROOT, handle: TcHandle::default(), options, size_table: None }
    }
}

/// Gives an interface this queue discipline. In its place, the interface must have the kernel's own one.
pub(crate) async fn add(mut handle: Handle, index: u32, added: Discipline) -> Result<(), Error> {
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(index).map_err(|_| Error::RequestFailed)?;
    (message.header.parent, message.header.handle) = (added.parent, added.handle);
    let options = TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, added.options));
    message.attributes = vec![TcAttribute::Kind(added.kind.into()), options];
    message.attributes.extend(added.size_table.map(TcAttribute::Stab));
    let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewQueueDiscipline(message));
    request.header.flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    let mut answers = handle.request(request)?;
    while let Some(answer) = answers.next().await {
        if let NetlinkPayload::Error(error) = answer.payload {
            return if error.code.is_none() { Ok(()) } else { Err(Error::NetlinkError(error)) };
        }
    }
    Ok(())
}

/// Reads the queue discipline of this kind and with this parent of an interface; `None` if the interface has another one there.
pub(crate) async fn found(
    handle: &Handle,
    index: u32,
    (kind, parent): (&str, TcHandle),
) -> Result<Option<Found>, Error> {
    let all: Vec<TcMessage> = handle.qdisc().get().execute().try_collect().await?;
    let is_there = |m: &&TcMessage| u32::try_from(m.header.index) == Ok(index) && m.header.parent == parent;
    let of_kind = |m: &&TcMessage| m.attributes.contains(&TcAttribute::Kind(kind.into()));
    Ok(all.iter().filter(is_there).find(of_kind).map(|message| {
        let mut found = Found::default();
        for attribute in &message.attributes {
            match attribute {
                TcAttribute::Options(all) => found.options = all.first().map(bytes).unwrap_or_default(),
                TcAttribute::Stab(bytes) => found.size_table.clone_from(bytes),
                _ => {}
            }
        }
        found
    }))
}

fn bytes(option: &TcOption) -> Vec<u8> {
    match option {
        TcOption::Other(options) => {
            let mut bytes = vec![0; options.value_len()];
            options.emit_value(&mut bytes);
            bytes
        }
        _ => Vec::new(),
    }
}

/// The classes of the priorities of sockets, and the numbers of transmit queues of the classes, as `struct tc_mqprio_qopt` of
/// linux/pkt_sched.h: number of classes, class of each priority, hw (0), then counts and offsets of queues.
pub(crate) fn priority_map(class_of_priority: [u8; SOCKET_PRIORITIES as usize], queues: &[u16]) -> Vec<u8> {
    let mut map = vec![queues.len() as u8];
    map.extend(class_of_priority);
    map.push(0);
    let padded = |values: Vec<u16>| values.into_iter().chain(std::iter::repeat(0)).take(16).flat_map(u16::to_ne_bytes);
    let offsets = queues.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
    map.extend(padded(queues.to_vec()));
    map.extend(padded(offsets.collect()));
    map
}

/// Appends a netlink attribute, padded to a multiple of four bytes (netlink(7)).
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The netlink attributes in `bytes`: kind and value of each. What is cut off is left out.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Bit of a kind that says that the value consists of attributes (linux/netlink.h).
    const NESTED: u16 = 0x8000;
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1, rest @ ..] = bytes else { return None };
        let (length, kind) = (u16::from_ne_bytes([*l0, *l1]), u16::from_ne_bytes([*k0, *k1]));
        let value = rest.get(..usize::from(length).checked_sub(4)?)?;
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        Some((kind & !NESTED, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written_and_what_is_cut_off_is_left_out() {
        let mut bytes = Vec::new();
        push(&mut bytes, 3, &[1, 2, 3]);
        push(&mut bytes, 0x8004, &[]);
        push(&mut bytes, 5, &[9; 4]);
        let all: Vec<_> = attributes(&bytes).collect();
        assert_eq!(all, [(3, &[1, 2, 3][..]), (4, &[]), (5, &[9; 4])]);
        assert_eq!(attributes(&bytes[..bytes.len() - 1]).count(), 2);
        assert_eq!(attributes(&[2, 0, 1, 0]).count(), 0);
    }
}

//! A known delay: the queueing discipline netem (tc-netem(8)) at the end of an interface that sends.
//!
//! Its options are those of linux/pkt_sched.h: `struct tc_netem_qopt`, and attributes behind it.

use crate::apply::index;
use crate::error::Lack;
use crate::netlink::converse;
use crate::netns::NetNs;
use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage};
use rtnetlink::packet_core::{NetlinkPayload, Nla};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use rtnetlink::{Error, Handle};
use std::io;
use tailbound_model::Nanos;

const KIND: &str = "netem";
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_LATENCY64: u16 = 10;
/// `struct tc_netem_qopt`: latency, limit, loss, gap, duplicate and jitter, 32 bits each.
const QOPT: usize = 24;
/// Packets that wait at the same time: more than any rate brings within the longest delay.
pub(crate) const LIMIT: u32 = 1_000_000;

/// Delays what an interface sends, and reads it back.
pub(crate) async fn put(netns: &NetNs, name: String, delay: Nanos) -> io::Result<()> {
    let job = move |handle: Handle| async move {
        let index = index(&handle, &name).await?;
        add(handle.clone(), index, delay).await?;
        found(&handle, index).await
    };
    match converse(netns, job)?.wait().await?? {
        Some(found) if found == delay => Ok(()),
        Some(found) => Err(io::Error::other(format!("the kernel made {found} of it"))),
        None => Err(io::Error::other("the interface does not have it")),
    }
}

async fn add(mut handle: Handle, index: u32, delay: Nanos) -> Result<(), Error> {
    let mut message = TcMessage::default();
    message.header.index = i32::try_from(index).map_err(|_| Error::RequestFailed)?;
    message.header.parent = TcHandle::ROOT;
    message.attributes =
        vec![TcAttribute::Kind(KIND.into()), TcAttribute::Other(DefaultNla::new(TCA_OPTIONS, options(delay)))];
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

/// The delay of an interface, where it has one.
async fn found(handle: &Handle, index: u32) -> Result<Option<Nanos>, Error> {
    let all: Vec<TcMessage> = handle.qdisc().get().execute().try_collect().await?;
    let own = all.iter().filter(|m| u32::try_from(m.header.index) == Ok(index) && m.header.parent == TcHandle::ROOT);
    Ok(own.filter(|m| m.attributes.contains(&TcAttribute::Kind(KIND.into()))).find_map(|m| {
        m.attributes.iter().find_map(|a| match a {
            TcAttribute::Options(all) => match all.first()? {
                TcOption::Other(options) => {
                    let mut octets = vec![0; options.value_len()];
                    options.emit_value(&mut octets);
                    latency(&octets)
                }
                _ => None,
            },
            _ => None,
        })
    }))
}

fn options(delay: Nanos) -> Vec<u8> {
    let mut octets = vec![0; QOPT];
    octets[4..8].copy_from_slice(&LIMIT.to_ne_bytes());
    octets.extend((4 + size_of::<i64>() as u16).to_ne_bytes());
    octets.extend(TCA_NETEM_LATENCY64.to_ne_bytes());
    octets.extend(delay.0.to_ne_bytes());
    octets
}

fn latency(mut octets: &[u8]) -> Option<Nanos> {
    octets = octets.get(QOPT..)?;
    while let [l0, l1, k0, k1, rest @ ..] = octets {
        let (length, kind) = (u16::from_ne_bytes([*l0, *l1]), u16::from_ne_bytes([*k0, *k1]));
        let value = rest.get(..usize::from(length).checked_sub(4)?)?;
        if kind == TCA_NETEM_LATENCY64 {
            return value.try_into().ok().map(i64::from_ne_bytes).map(Nanos);
        }
        octets = octets.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

/// Whether this kernel can delay packets, tried in a namespace that is gone at once. Where none can be made another lack
/// says so.
pub(crate) fn lack() -> Option<Lack> {
    let tried = NetNs::make().and_then(|netns| {
        // The loopback interface is always the first.
        converse(&netns, |handle| add(handle, 1, Nanos::from_millis(1)))?.join()?
    });
    match tried.err()?.raw_os_error()? {
        libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS => None,
        errno => Some(Lack::new(
            format!(
                "this kernel has no netem, which delays packets ({}): it was built without it (CONFIG_NET_SCH_NETEM), or the \
                 module is not there",
                io::Error::from_raw_os_error(errno)
            ),
            "load it (`modprobe sch_netem`), leave `delay` out, or run the study in a guest that has it (`tailbound guest run`)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(latency(&options(Nanos(20_000_001))), Some(Nanos(20_000_001)));
        assert_eq!(latency(&[0; QOPT]), None);
        assert_eq!(latency(&[]), None);
        // Another attribute before it, as the kernel puts them.
        let mut octets = options(Nanos(7));
        let own = octets.split_off(QOPT);
        octets.extend(8u16.to_ne_bytes().into_iter().chain(1u16.to_ne_bytes()).chain([0; 4]));
        octets.extend(own);
        assert_eq!(latency(&octets), Some(Nanos(7)));
    }
}

//! Delays packets by the queueing discipline netem (tc-netem(8)) at the sending interface.
//!
//! The options of netem are `struct tc_netem_qopt` of linux/pkt_sched.h, followed by attributes.

use crate::error::lack;
use crate::netlink::{converse, index};
use crate::netns::NetNs;
use futures_util::{StreamExt, TryStreamExt};
use rtnetlink::packet_core::{DefaultNla, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage};
use rtnetlink::packet_core::{NetlinkPayload, Nla};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};
use rtnetlink::{Error, Handle};
use std::io;
use tailbound_model::{Nanos, Problem};

const KIND: &str = "netem";
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_LATENCY64: u16 = 10;
/// Length of `struct tc_netem_qopt` in bytes: latency, limit, loss, gap, duplicate and jitter have 32 bits each.
const QOPT: usize = 24;
/// Maximum number of packets that netem delays at the same time, which is more than any rate sends within the longest
/// delay.
pub(crate) const LIMIT: u32 = 1_000_000;

/// Sets the delay of the packets that an interface sends, and reads the delay back.
pub(crate) async fn put(netns: &NetNs, name: String, delay: Nanos) -> io::Result<()> {
    let job = move |handle: Handle| async move {
        let index = index(&handle, &name).await?;
        add(handle.clone(), index, delay).await?;
        found(&handle, index).await
    };
    match converse(netns, job)?.wait().await?? {
        Some(found) if found == delay => Ok(()),
        Some(found) => {
            Err(io::Error::other(format!("the kernel set a delay of {found} instead of the requested delay")))
        }
        None => Err(io::Error::other("the interface has no delay when it is read back")),
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

/// Reads the delay that netem has set for an interface; `None` if the interface has no delay.
async fn found(handle: &Handle, index: u32) -> Result<Option<Nanos>, Error> {
    let all: Vec<TcMessage> = handle.qdisc().get().execute().try_collect().await?;
    let own = all.iter().filter(|m| u32::try_from(m.header.index) == Ok(index) && m.header.parent == TcHandle::ROOT);
    Ok(own.filter(|m| m.attributes.contains(&TcAttribute::Kind(KIND.into()))).find_map(|m| {
        m.attributes.iter().find_map(|a| match a {
            TcAttribute::Options(all) => match all.first()? {
                TcOption::Other(options) => {
                    let mut bytes = vec![0; options.value_len()];
                    options.emit_value(&mut bytes);
                    latency(&bytes)
                }
                _ => None,
            },
            _ => None,
        })
    }))
}

fn options(delay: Nanos) -> Vec<u8> {
    let mut bytes = vec![0; QOPT];
    bytes[4..8].copy_from_slice(&LIMIT.to_ne_bytes());
    bytes.extend((4 + size_of::<i64>() as u16).to_ne_bytes());
    bytes.extend(TCA_NETEM_LATENCY64.to_ne_bytes());
    bytes.extend(delay.0.to_ne_bytes());
    bytes
}

fn latency(mut bytes: &[u8]) -> Option<Nanos> {
    bytes = bytes.get(QOPT..)?;
    while let [l0, l1, k0, k1, rest @ ..] = bytes {
        let (length, kind) = (u16::from_ne_bytes([*l0, *l1]), u16::from_ne_bytes([*k0, *k1]));
        let value = rest.get(..usize::from(length).checked_sub(4)?)?;
        if kind == TCA_NETEM_LATENCY64 {
            return value.try_into().ok().map(i64::from_ne_bytes).map(Nanos);
        }
        bytes = bytes.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

/// Returns a problem if this kernel cannot delay packets, found by an attempt in a temporary network namespace. If no
/// namespace can be made, another check of the lab reports that.
pub(crate) fn problem() -> Option<Problem> {
    let tried = NetNs::make().and_then(|netns| {
        // The loopback interface always has index 1.
        converse(&netns, |handle| add(handle, 1, Nanos::from_millis(1)))?.join()?
    });
    match tried.err()?.raw_os_error()? {
        libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS => None,
        errno => Some(lack(
            format!(
                "this kernel has no netem, which delays packets ({}): it was built without CONFIG_NET_SCH_NETEM, or the \
                 module is missing",
                io::Error::from_raw_os_error(errno)
            ),
            "load the module (`modprobe sch_netem`), remove `delay`, or run the study in a guest whose kernel has netem (`tailbound guest run`)",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed_as_they_were_written() {
        assert_eq!(latency(&options(Nanos(20_000_001))), Some(Nanos(20_000_001)));
        assert_eq!(latency(&[0; QOPT]), None);
        assert_eq!(latency(&[]), None);
        // The kernel puts other attributes before the latency.
        let mut bytes = options(Nanos(7));
        let own = bytes.split_off(QOPT);
        bytes.extend(8u16.to_ne_bytes().into_iter().chain(1u16.to_ne_bytes()).chain([0; 4]));
        bytes.extend(own);
        assert_eq!(latency(&bytes), Some(Nanos(7)));
    }
}

//! A session: contexts with one node each, end points.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use ros2_client::dds::rustdds::qos::HasQoSPolicy;
use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder, TopicDescription};
use ros2_client::{Context, MessageTypeName, Name, Node, NodeOptions};
use tailbound_abi::side::{self, Fail, Host, Outcome, Pair, Waited, Wanted, fail};
use tailbound_abi::{
    TB_EINVAL, TB_EIO, TB_ENOMEM, TB_EQOS, TB_EUNSUPPORTED, TB_LISTENER, TB_READER, TB_WRITER, tb_view,
};

use crate::endpoint::{Endpoint, Entity, Reader};
use crate::events::Events;
use crate::graph::{End, Graph};
use crate::options::Options;
use crate::wait::{self, Flag};
use crate::{describe, qos, query, sample};

/// End points that one session may create in its life.
const MOST_ENDPOINTS: usize = 1024;

/// The failure for an error of the system.
pub fn io(what: &str) -> impl Fn(std::io::Error) -> Fail + '_ {
    move |e| Fail::new(TB_EIO, format!("{what}: {e}"))
}

fn refused(what: &str) -> impl Fn(ros2_client::CreateError) -> Fail + '_ {
    move |e| Fail::new(TB_EIO, format!("{what}: ros2-client: {e}"))
}

/// A participant with a node in it.
fn join(options: &Options, index: usize) -> Outcome<(DomainParticipant, Node)> {
    let mut builder = DomainParticipantBuilder::new(options.domain)
        .same_host_loopback(options.loopback())
        .socket_receive_buffer_size(options.receive_buffer)
        .socket_send_buffer_size(options.send_buffer);
    if let Some(address) = options.address {
        builder = builder.with_only_networks([address]);
    }
    let participant = builder.build().map_err(|e| Fail::new(TB_EIO, format!("RustDDS: {e}")))?;
    let context =
        Context::from_domain_participant(participant.clone()).map_err(refused("cannot create the context"))?;
    let node = context
        .new_node(options.node_of(index)?, NodeOptions::new().enable_rosout(false))
        .map_err(|e| Fail::new(TB_EIO, format!("cannot create the node: ros2-client: {e}")))?;
    Ok((participant, node))
}

/// One participant, or two. Its parts go in the order of their declaration: no event after the thread, no end point without node.
pub struct Session {
    _events: Vec<Events>,
    endpoints: Box<[OnceLock<Endpoint>]>,
    /// One in each participant, and how many end points were made.
    nodes: Mutex<(Vec<Node>, u32)>,
    /// Those of the nodes.
    pub participants: Vec<DomainParticipant>,
    /// Who is matched.
    pub graph: Arc<Graph>,
    /// What was asked for.
    pub options: Options,
    /// Set by `wake`.
    pub woken: Flag,
    /// Set while an end point is being destroyed.
    pub closing: Flag,
    host: Host,
}

impl Session {
    /// An end point that is there, destroyed or not.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        let place = self.endpoints.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.ok_or_else(|| Fail::closed(id))
    }

    /// Those that are not destroyed.
    pub fn alive(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.iter().map_while(OnceLock::get).filter(|e| !e.closed.load(SeqCst))
    }

    fn make(&self, nodes: &mut [Node], id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let name = wanted.topic.trim_start_matches('/');
        let name = Name::parse(&format!("/{name}"))
            .map_err(|e| Fail::invalid(format!("topic {}: no name of ROS 2: {e}", wanted.topic)))?;
        // Where several participants are, the end point says in which it is.
        let (place, policies): (Vec<Pair>, Vec<Pair>) = wanted.qos.iter().partition(|p| p.key == "participant");
        let last = nodes.len() - 1;
        let place = place.first().map_or(Ok(0), |pair| pair.number(TB_EQOS, 0..=last))?;
        let node = &mut nodes[place];
        let profile = qos::parse(&policies)?;
        let topic = node
            .create_topic(&name, MessageTypeName::new("tailbound_msgs", "Sample"), &profile)
            .map_err(refused("cannot create the topic"))?;
        let (guid, entity) = if wanted.kind == TB_WRITER {
            let publisher = node.create_publisher(&topic, None).map_err(refused("cannot create the publisher"))?;
            (publisher.guid(), Entity::Writer(publisher))
        } else {
            let subscription =
                node.create_subscription(&topic, None).map_err(refused("cannot create the subscription"))?;
            (subscription.guid(), Entity::Reader(Reader::new(subscription)?))
        };
        Ok(Endpoint {
            id,
            guid,
            writer: wanted.kind == TB_WRITER,
            topic: topic.name(),
            qos: topic.qos(),
            max_len: wanted.max_len,
            closed: AtomicBool::new(false),
            entity: RwLock::new(Some(entity)),
        })
    }
}

impl side::Session for Session {
    const MAX_PAYLOAD_BYTES: u64 = 4 << 20;

    fn describe() -> &'static CStr {
        describe::describe()
    }

    fn open(options: &[Pair], host: Host) -> Outcome<Session> {
        let options = Options::parse(options)?;
        let graph = Arc::new(Graph::default());
        let (mut events, mut nodes, mut participants) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..options.participants {
            let (participant, node) = join(&options, index)?;
            events.push(Events::start(&participant, graph.clone(), host)?);
            nodes.push(node);
            participants.push(participant);
        }
        Ok(Session {
            _events: events,
            endpoints: (0..MOST_ENDPOINTS).map(|_| OnceLock::new()).collect(),
            nodes: Mutex::new((nodes, 0)),
            participants,
            graph,
            options,
            woken: Flag::new()?,
            closing: Flag::new()?,
            host,
        })
    }

    fn host(&self) -> &Host {
        &self.host
    }

    fn create(&self, wanted: &Wanted) -> Outcome<u32> {
        if wanted.kind == TB_READER && wanted.mode == TB_LISTENER {
            return fail(TB_EUNSUPPORTED, "RustDDS calls nobody when a sample arrives: use block or spin");
        }
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let (nodes, created) = &mut *nodes;
        let Some(place) = self.endpoints.get(*created as usize) else {
            return fail(TB_ENOMEM, format!("a session creates at most {MOST_ENDPOINTS} end points"));
        };
        let mut known = self.graph.lock();
        let endpoint = self.make(nodes, *created + 1, wanted)?;
        known.ends.insert(endpoint.guid, End { tag: wanted.tag, ..End::default() });
        *created += 1;
        let _ = place.set(endpoint);
        Ok(*created)
    }

    fn wait_matched(&self, id: u32, peers: u32, deadline_ns: i64) -> Outcome {
        let e = self.endpoint(id)?;
        self.graph.wait_matched(id, e.guid, &e.topic, peers, deadline_ns)
    }

    #[inline]
    fn send(&self, id: u32, seq: u64, payload: &[u8], _batch: bool) -> Outcome {
        self.endpoint(id)?.send(seq, payload)
    }

    #[inline]
    fn wait(&self, ids: &[u32], deadline_ns: i64) -> Outcome<Waited> {
        wait::wait(self, ids, deadline_ns)
    }

    #[inline]
    fn take(&self, id: u32, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
        self.endpoint(id)?.entity()?.reader()?.take(out)
    }

    /// Works on a destroyed end point too: a view owns its payload.
    #[inline]
    fn release(&self, id: u32, views: &mut [tb_view]) -> Outcome {
        if self.endpoint(id)?.writer {
            return fail(TB_EINVAL, format!("end point {id} is a writer"));
        }
        for view in views {
            // SAFETY: the host promises that `take` handed the view out.
            unsafe { sample::give_back(view) };
        }
        Ok(())
    }

    fn wake(&self) -> Outcome {
        self.woken.set();
        Ok(())
    }

    /// Nothing waits in a batch.
    fn flush(&self, id: u32, _deadline_ns: i64) -> Outcome {
        self.endpoint(id).map(drop)
    }

    fn wait_acked(&self, _id: u32, _deadline_ns: i64) -> Outcome {
        fail(TB_EUNSUPPORTED, "a publisher of ros2-client cannot wait for acknowledgements")
    }

    fn query(&self, id: u32, what: &str) -> Outcome<Vec<u8>> {
        query::answer(self, id, what).map(|answer| answer.to_string().into_bytes())
    }

    /// Ends all waits on an end point, then takes it from the network.
    fn destroy(&self, id: u32) -> Outcome {
        let endpoint = self.endpoint(id)?;
        if endpoint.closed.swap(true, SeqCst) {
            return Err(Fail::closed(id));
        }
        self.graph.forget(&endpoint.guid);
        self.closing.set();
        let entity = endpoint.entity.write().unwrap_or_else(PoisonError::into_inner).take();
        self.closing.take();
        drop(entity);
        Ok(())
    }
}

//! The state of a session: contexts with one node each, and their end points.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, RwLock};

use ros2_client::dds::rustdds::qos::HasQoSPolicy;
use ros2_client::dds::rustdds::{DomainParticipant, DomainParticipantBuilder, TopicDescription};
use ros2_client::{Context, MessageTypeName, Name, Node, NodeOptions};
use tailbound_abi::side::{Endpoints, Fail, Host, Outcome, Pair, Wanted};
use tailbound_abi::{TB_EIO, TB_EQOS, TB_WRITER};

use crate::endpoint::{Endpoint, Entity, Reader};
use crate::events::Events;
use crate::flag::Flag;
use crate::graph::Graph;
use crate::options::Options;
use crate::qos;

fn refused(what: &str) -> impl Fn(ros2_client::CreateError) -> Fail + '_ {
    move |e| Fail::new(TB_EIO, format!("{what}: ros2-client: {e}"))
}

/// Creates a DDS participant with a ROS 2 node.
pub fn join(options: &Options, index: usize) -> Outcome<(DomainParticipant, Node)> {
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
        .map_err(|e| Fail::new(TB_EIO, format!("the node cannot be created: ros2-client: {e}")))?;
    Ok((participant, node))
}

/// One session with one or two participants. The members are dropped in the order of their declaration: first the
/// threads end, so that no event follows, and end points are dropped before their nodes.
pub struct Session {
    /// The threads that read status events, one for each participant.
    pub _events: Vec<Events>,
    /// The end points by number.
    pub endpoints: Endpoints<Endpoint>,
    /// The nodes, one for each participant.
    pub nodes: Mutex<Vec<Node>>,
    /// The DDS participants of the session's ROS 2 nodes.
    pub participants: Vec<DomainParticipant>,
    /// The current matching of the session's end points and their peers.
    pub graph: Arc<Graph>,
    /// The options with which the session was opened.
    pub options: Options,
    /// Whether `wake` was called and no wait has reported it yet.
    pub woken: Flag,
    /// Whether an end point is being destroyed now.
    pub closing: Flag,
    /// The loading program, whose callbacks the session calls.
    pub host: Host,
}

impl Session {
    /// Returns an end point that was created; the end point may be destroyed.
    #[inline]
    pub fn endpoint(&self, id: u32) -> Outcome<&Endpoint> {
        self.endpoints.get(id)
    }

    /// The end points of the session that are not destroyed.
    pub fn alive(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.all().filter(|e| !e.closed.load(SeqCst))
    }

    /// Creates an end point with its ROS 2 entity.
    pub fn make(&self, nodes: &mut [Node], id: u32, wanted: &Wanted) -> Outcome<Endpoint> {
        let name = wanted.topic.trim_start_matches('/');
        let name = Name::parse(&format!("/{name}"))
            .map_err(|e| Fail::invalid(format!("topic {}: the name is not valid in ROS 2: {e}", wanted.topic)))?;
        // If there are several participants, the policy `participant` of the end point chooses its participant.
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

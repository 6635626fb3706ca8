//! Prints the nodes of ROS 2 that other processes announce in a domain, with their end points, for some seconds: what
//! `ros2 node list` is made from. `cargo run --example nodes -- DOMAIN SECONDS`

use std::time::{Duration, Instant};

use ros2_client::builtin_topics::ros_discovery;
use ros2_client::dds::rustdds::{DomainParticipant, QosPolicies, TopicKind};
use ros2_client::entities_info::ParticipantEntitiesInfo;
use ros2_client::{Context, NodeName, NodeOptions, QosProfile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<u16> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let &[domain, seconds] = &numbers[..] else { return Err("nodes DOMAIN SECONDS".into()) };
    let participant = DomainParticipant::new(domain)?;
    let context = Context::from_domain_participant(participant.clone())?;
    let mut node = context.new_node(NodeName::new("/", "tailbound_nodes")?, NodeOptions::new())?;
    let qos: QosPolicies = ros_discovery::QOS_PUB.clone();
    let topic = participant.create_topic(
        ros_discovery::TOPIC_NAME.to_owned(),
        ros_discovery::TYPE_NAME.to_owned(),
        &qos,
        TopicKind::NoKey,
    )?;
    let announced = node.create_subscription::<ParticipantEntitiesInfo>(&topic, Some(QosProfile::from(&qos)))?;
    let end = Instant::now() + Duration::from_secs(seconds.into());
    while Instant::now() < end {
        while let Some((info, _)) = announced.take()? {
            println!("{info:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

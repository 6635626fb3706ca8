//! Names of topics and of the message type in DDS.

/// How the topics and the message type are named in DDS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Naming {
    /// Topics have the given name, and the type is `tailbound::Sample`.
    #[default]
    Dds,
    /// Topics and the type are named as in ROS 2: `rt/<topic>` and `tailbound_msgs::msg::dds_::Sample_`.
    Ros2,
}

impl Naming {
    /// Name in DDS of the topic with the given name.
    pub fn topic(self, name: &str) -> String {
        match self {
            Naming::Dds => name.to_owned(),
            Naming::Ros2 => format!("rt/{}", name.trim_start_matches('/')),
        }
    }
}

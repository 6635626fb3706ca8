//! Types of ROS 2 whose first member is a `std_msgs/msg/Header`, whose first member is a time.

/// Types of sensor_msgs, by the definitions of common_interfaces.
const SENSORS: [&str; 20] = [
    "BatteryState",
    "CameraInfo",
    "CompressedImage",
    "FluidPressure",
    "Illuminance",
    "Image",
    "Imu",
    "JointState",
    "Joy",
    "LaserScan",
    "MagneticField",
    "MultiDOFJointState",
    "MultiEchoLaserScan",
    "NavSatFix",
    "PointCloud",
    "PointCloud2",
    "Range",
    "RelativeHumidity",
    "Temperature",
    "TimeReference",
];
/// Types of nav_msgs, vision_msgs and visualization_msgs.
const OTHERS: [(&str, &[&str]); 3] = [
    ("nav_msgs", &["GridCells", "OccupancyGrid", "Odometry", "Path"]),
    (
        "vision_msgs",
        &["Classification", "Detection2D", "Detection2DArray", "Detection3D", "Detection3DArray", "LabelInfo"],
    ),
    ("visualization_msgs", &["Marker", "ImageMarker", "InteractiveMarker"]),
];

/// Whether a type, by its name on the wire (`sensor_msgs::msg::dds_::Image_`), is known to begin with a header. Of other types it is
/// not known, because no packet has their definition.
pub fn begins(type_name: &str) -> bool {
    let Some((package, name)) = type_name.split_once("::msg::dds_::") else { return false };
    let Some(name) = name.strip_suffix('_') else { return false };
    match package {
        "sensor_msgs" => SENSORS.contains(&name),
        "geometry_msgs" => name.ends_with("Stamped") || name == "PoseArray",
        _ => OTHERS.iter().any(|(of, names)| *of == package && names.contains(&name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_a_header_are_known_by_their_names() {
        for name in [
            "sensor_msgs::msg::dds_::Image_",
            "geometry_msgs::msg::dds_::TwistStamped_",
            "nav_msgs::msg::dds_::Odometry_",
        ] {
            assert!(begins(name), "{name}");
        }
        for name in [
            "std_msgs::msg::dds_::String_",
            "geometry_msgs::msg::dds_::Twist_",
            "sensor_msgs::msg::dds_::Image",
            "Image",
            "",
        ] {
            assert!(!begins(name), "{name}");
        }
    }
}

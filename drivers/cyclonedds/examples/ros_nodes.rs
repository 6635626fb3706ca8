//! Prints the ROS 2 nodes that other programs announce in a domain, as Cyclone DDS receives them: in the topic
//! `ros_discovery_info`, from which `ros2 node list` is made. Usage: `ros_nodes DOMAIN SECONDS`.

use std::ffi::CString;
use std::time::{Duration, Instant};

use cyclors::*;

const CONFIG: &str = "<CycloneDDS><Domain Id=\"any\"><General><Interfaces><NetworkInterface name=\"lo\"/></Interfaces>\
    <AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>\
    <Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery></Domain></CycloneDDS>";

/// The bytes of a message in CDR (little endian), with the position of the next member to be read.
struct Cdr<'a>(&'a [u8], usize);

impl<'a> Cdr<'a> {
    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let from = self.1;
        self.1 += n;
        &self.0[from..self.1]
    }

    fn length(&mut self) -> usize {
        self.1 = self.1.next_multiple_of(4);
        self.bytes(4).iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte))
    }

    fn string(&mut self) -> String {
        let n = self.length();
        String::from_utf8_lossy(self.bytes(n)).trim_end_matches('\0').to_owned()
    }

    fn gid(&mut self) -> String {
        self.bytes(16).iter().map(|b| format!("{b:02x}")).collect()
    }

    fn gids(&mut self) -> Vec<String> {
        (0..self.length()).map(|_| self.gid()).collect()
    }
}

/// Prints a message of the type rmw_dds_common/msg/ParticipantEntitiesInfo: a participant and its nodes, each with its
/// readers and writers.
fn print(message: &[u8]) {
    let mut cdr = Cdr(message, 0);
    let participant = cdr.gid();
    for _ in 0..cdr.length() {
        let (namespace, name) = (cdr.string(), cdr.string());
        println!("{participant} {namespace} {name} readers {:?} writers {:?}", cdr.gids(), cdr.gids());
    }
}

fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let &[domain, seconds] = &numbers[..] else { panic!("ros_nodes DOMAIN SECONDS") };
    let text = |s: &str| CString::new(s).unwrap();
    let (config, topic) = (text(CONFIG), text("ros_discovery_info"));
    let kind = text("rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_");
    // SAFETY: the strings live until the calls return, which copy them; Cyclone checks the handles.
    let reader = unsafe {
        assert!(dds_create_domain(domain, config.as_ptr()) > 0, "dds_create_domain");
        let participant = dds_create_participant(domain, std::ptr::null(), std::ptr::null());
        let topic = cdds_create_blob_topic(participant, topic.into_raw(), kind.into_raw(), true);
        let qos = dds_create_qos();
        dds_qset_reliability(qos, dds_reliability_kind_DDS_RELIABILITY_RELIABLE, 0);
        dds_qset_durability(qos, dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL);
        // Each participant sends one message, and the messages have no key.
        dds_qset_history(qos, dds_history_kind_DDS_HISTORY_KEEP_ALL, 0);
        dds_create_reader(participant, topic, qos, std::ptr::null())
    };
    assert!(reader > 0, "dds_create_reader");
    let end = Instant::now() + Duration::from_secs(seconds.into());
    while Instant::now() < end {
        let mut sample: *mut ddsi_serdata = std::ptr::null_mut();
        let mut info = std::mem::MaybeUninit::<dds_sample_info>::uninit();
        // SAFETY: there is room for one sample and its info.
        let n = unsafe { dds_takecdr(reader, &mut sample, 1, info.as_mut_ptr().cast(), DDS_ANY_STATE) };
        if n <= 0 {
            std::thread::sleep(Duration::from_millis(50));
            continue;
        }
        // SAFETY: one sample was taken and is released below. The first four bytes of the sample are the header.
        unsafe {
            let size = ddsi_serdata_size(sample) as usize;
            let mut whole = ddsrt_iovec_t { iov_base: std::ptr::null_mut(), iov_len: 0 };
            let same = ddsi_serdata_to_ser_ref(sample, 0, size, &mut whole);
            if info.assume_init_ref().valid_data {
                print(&std::slice::from_raw_parts(whole.iov_base.cast::<u8>(), size)[4..]);
            }
            ddsi_serdata_to_ser_unref(same, &whole);
            ddsi_serdata_unref(sample);
        }
    }
}

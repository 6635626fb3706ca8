//! The vocabulary as types: units, plans, rows, outcomes, facts, warnings, exit codes.
//!
//! Every other crate speaks in these types; nothing here measures, reads a file or touches the host.

mod arrangement;
mod budget;
mod container;
mod cpus;
mod discovery;
mod exit;
mod facts;
mod flow;
mod guest;
mod interface;
mod knob;
mod load;
mod metric;
mod node;
mod path;
mod place;
mod plain;
mod plan;
mod pod;
mod proof;
mod rescue;
mod row;
mod scheduling;
mod site;
mod switches;
mod thread;
mod tool;
mod undo;
mod units;
mod view;
mod vlan;
mod vm;
mod warning;

pub use arrangement::Arrangement;
pub use budget::{
    AtMost, BaselineBudget, Budget, COMPARED_STATISTICS, FLOW_STATISTICS, FlowLimit, LOST, Limit, LimitSet, THROUGHPUT,
};
pub use container::{ContainerAccess, ContainerClient, ContainerNetwork, ContainerSpec};
pub use cpus::CpuList;
pub use discovery::{Discovery, DiscoveryFacts};
pub use exit::ExitCode;
pub use facts::{
    Attached, AttachedInterface, ClockOffset, Fact, FactValue, HostFacts, InvalidWindow, PathEnd, PathFacts,
};
pub use flow::*;
pub use guest::*;
pub use interface::{BridgeState, Interface};
pub use knob::{HostSettings, KVM_HALT_POLL, KnobDone, KnobSpec, NicSetting};
pub use load::{LoadDone, LoadKind, LoadPart, LoadSpec, LoadStart, Participant, TopicLoad, UdpStream};
pub use metric::Metric;
pub use node::*;
pub use path::{ExistingEnd, PathSpec, SwitchPorts, XdpMode};
pub use place::{PlaceSpec, SshSpec};
pub use plain::plain;
pub use plan::*;
pub use pod::{NameOrder, NodeChoice, PodMade, PodOrder, PodSpec, PodTold, Pull, ServerOrder};
pub use proof::*;
pub use rescue::RescueSeen;
pub use row::*;
pub use scheduling::{MIDDLEWARE, Policy, RoleScheduling, Scheduling};
pub use site::{Ask, DeviceTold, ProbeMessage, PutBackTold, Told};
pub use switches::{SwitchEvent, SwitchKind, SwitchScope, Switches, Task};
pub use thread::{ThreadLater, ThreadRow, ThreadTable};
pub use tool::*;
pub use undo::{DomainPin, JournalEntry, NetnsId, ProcessId, RUN_TOKEN, Undo};
pub use units::*;
pub use view::{AgainstSpec, HistogramSpec, Pattern, Published, RangeSpec, ReportSpec, TailSpec};
pub use vlan::VlanSpec;
pub use vm::{Accelerator, DomainSpec, KernelChoice, VmChannel, VmSpec};
pub use warning::{Severity, Warning};

//! `tailbound agent`: the measuring side.

use crate::cli::{Agent, AgentSub};
use crate::drivers;
use crate::exit::Outcome;

pub fn agent(args: &Agent) -> Outcome {
    tailbound_host::take_own_name();
    match &args.command {
        Some(AgentSub::Hold(hold)) => return super::hold::hold(hold),
        Some(AgentSub::Relay(relay)) => return super::hold::relay(relay),
        Some(AgentSub::Discovery(args)) => return super::discovery::discovery(args),
        None => {}
    }
    if let Some(cpu) = args.rescue_test {
        return super::doctor::rescue_child(cpu);
    }
    let code = match (args.measure, &args.load) {
        (Some(memories), _) => tailbound_run::agent::measuring_process(memories, drivers::find),
        (None, Some(kind)) => tailbound_run::load::main(kind, drivers::find),
        (None, None) => tailbound_run::agent::main(),
    };
    // No destructor of a middleware runs: what matters has been sent and the process is going.
    std::process::exit(code)
}

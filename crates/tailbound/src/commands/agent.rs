//! Runs `tailbound agent`: the process that measures at one place.

use crate::cli::{Agent, AgentSub};
use crate::drivers;
use crate::failure::CommandResult;

pub fn agent(args: &Agent) -> CommandResult {
    tailbound_host::take_own_name();
    match &args.command {
        Some(AgentSub::Hold(hold)) => return super::agent_holder::hold(hold),
        Some(AgentSub::Relay(relay)) => return super::agent_holder::relay(relay),
        Some(AgentSub::Discovery(args)) => return super::discovery_server::discovery(args),
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
    // Exit without the destructors of the middleware: all results have been sent.
    std::process::exit(code)
}

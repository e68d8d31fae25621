//! The right to bind ports below 1024, for a process that is not root.

use rustix::io;
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};

/// Takes up NET_BIND_SERVICE if the program file brings it, for this thread and those that it starts afterwards.
///
/// The file carries the capability as permitted only. Were it effective at once, the kernel would refuse to start the
/// program at all where the capability is taken away, although a container runtime may allow low ports without it.
pub fn take_up_low_ports() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    let mine = sets.permitted & CapabilitySet::NET_BIND_SERVICE;
    if sets.effective.contains(mine) {
        return Ok(());
    }
    sets.effective |= mine;
    set_capabilities(None, sets)
}

/// Lets the programs that this thread and those after it start have NET_BIND_SERVICE, too, if this one has it.
pub fn hand_on_low_ports() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    if !sets.permitted.contains(CapabilitySet::NET_BIND_SERVICE) {
        return Ok(());
    }
    sets.inheritable |= CapabilitySet::NET_BIND_SERVICE;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::NET_BIND_SERVICE, true)
}

#[cfg(test)]
mod tests {
    use super::{CapabilitySet, capabilities, set_capabilities, take_up_low_ports};

    #[test]
    fn what_is_permitted_becomes_effective_and_nothing_else() {
        let before = capabilities(None).expect("capabilities can be read");
        let mut none = before;
        none.effective = CapabilitySet::empty();
        set_capabilities(None, none).expect("capabilities can be laid down");
        take_up_low_ports().expect("nothing is asked for that is not permitted");
        let now = capabilities(None).expect("capabilities can be read").effective;
        assert_eq!(now, before.permitted & CapabilitySet::NET_BIND_SERVICE);
    }
}

//! Upstreams that snippets name, by the names that they have in the Configuration.

use model::UpstreamId;
use model::snippet::{Piece, Scope, Step, Task, Template};

/// Names of upstreams as snippets write them, and the others that they have in this cluster.
pub(crate) type Renamed = Vec<(UpstreamId, UpstreamId)>;

/// Writes the other names wherever a scope sets the upstream.
pub(crate) fn rename(scope: &mut Scope, renamed: &Renamed) {
    rename_steps(&mut scope.program.steps, renamed);
    for before in scope.limit_except.iter_mut().filter_map(|except| except.before.as_mut()) {
        rename_steps(&mut before.program.steps, renamed);
    }
    for location in &mut scope.locations {
        rename(&mut location.scope, renamed);
    }
}

fn rename_steps(steps: &mut [Step], renamed: &Renamed) {
    for step in steps {
        match &mut step.task {
            Task::If(block) => rename_steps(&mut block.steps, renamed),
            Task::Set(name, value) if snippet::names_upstream(name.text()) => {
                let is_it = |(plain, _): &&(UpstreamId, UpstreamId)| {
                    value.literal() == Some(plain.as_str())
                };
                if let Some((_, id)) = renamed.iter().find(is_it) {
                    *value = Template { pieces: [Piece::Text(id.to_string())].into() };
                }
            }
            Task::Set(..) | Task::Return(_) | Task::Rewrite(_) | Task::Break => {}
        }
    }
}

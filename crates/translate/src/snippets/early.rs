//! What the operator's `location-snippet` asks of a variable before a `configuration-snippet` sets it: in ingress-nginx
//! it stands behind.

use model::snippet::{Comparison, Condition, IfBlock, Name, Piece, Pieces, Program, Step, Task};
use std::collections::BTreeSet;

/// Says which variables are asked for too early, a sentence for each.
pub(super) fn asked(operators: &Program, own: &Program) -> Vec<String> {
    let mut asked = BTreeSet::new();
    operators.steps.iter().for_each(|step| conditions(step, &mut asked));
    let mut set = BTreeSet::new();
    own.steps.iter().for_each(|step| sets(step, &mut set));
    let sentence = |name: &&str| {
        format!(
            "sets ${name}, which a condition of the ConfigMap's location-snippet asks for: that stands before this \
             snippet, not behind it, and finds what the variable was before; have it ask for a variable of \
             http-snippet"
        )
    };
    set.intersection(&asked).map(sentence).collect()
}

fn conditions<'p>(step: &'p Step, asked: &mut BTreeSet<&'p str>) {
    let Task::If(IfBlock { condition: Condition { variable, comparison }, .. }) = &step.task else {
        return;
    };
    let mut see = |piece: &'p Piece| {
        if let Piece::Own(Name(name)) = piece {
            asked.insert(name);
        }
    };
    variable.pieces(&mut see);
    if let Comparison::Equals(other) | Comparison::Differs(other) = comparison {
        other.pieces(&mut see);
    }
}

fn sets<'p>(step: &'p Step, set: &mut BTreeSet<&'p str>) {
    match &step.task {
        Task::Set(Name(name), _) => drop(set.insert(name)),
        Task::If(block) => block.steps.iter().for_each(|step| sets(step, set)),
        Task::Return(_) | Task::Rewrite(_) | Task::Break => {}
    }
}

//! Whatever a snippet says, it is understood or refused with a place; what is printed means it again; its program ends.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Variable;
use model::snippet::Piece;
use snippet::run::{Machine, Next, Owner, Request, State, Tables, run};
use snippet::syntax::{parse, print, same};
use snippet::{Bounds, Other, Context, understand};
use std::borrow::Cow;

struct Asked;

impl Request for Asked {
    fn variable(&self, variable: &Variable) -> Cow<'_, str> {
        Cow::Owned(variable.name())
    }

    fn other(&self, variable: &Other) -> Cow<'_, str> {
        Cow::Owned(variable.name())
    }

    fn looked_through(&self, _: &Piece) -> usize {
        1
    }
}

const CONTEXTS: [Context; 6] =
    [Context::Location, Context::Server, Context::Http, Context::Auth, Context::Main, Context::Stream];

fuzz_target!(|bytes: &[u8]| {
    let [place, text @ ..] = bytes else { return };
    let place = CONTEXTS[usize::from(*place) % CONTEXTS.len()];
    let text = String::from_utf8_lossy(text);
    let Ok(directives) = parse(&text, &Bounds::of(place)) else { return };
    let again = parse(&print(&directives), &Bounds::of(place));
    assert!(again.is_ok_and(|again| same(&again, &directives)));
    let meaning = match understand(place, &text) {
        Ok(meaning) => meaning,
        Err(mistakes) => {
            let lines = 1 + text.matches('\n').count();
            let is_inside =
                |line: u32| (1..=lines).contains(&usize::try_from(line).expect("few lines"));
            assert!(
                !mistakes.is_empty() && mistakes.iter().all(|mistake| is_inside(mistake.at.line))
            );
            return;
        }
    };
    let tables = Tables::new(&[&meaning.http]);
    for owner in [Owner::Server, Owner::Location] {
        let state = State::new("/a/b c", "x=1", true);
        let mut machine = Machine::new(&Asked, state, &tables);
        let mut searches = 0;
        while run(&meaning.scope.program, owner, &mut machine).next == Next::Search {
            searches += 1;
            assert!(searches <= 10, "a request is searched for without end");
        }
        assert!(machine.state.path.len() <= 64 << 10);
    }
});

//! Names of ExternalName Services, with a real name server.

use model::Endpoints;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use stream::{Following, Resolver};
use testkit::eventually;
use testkit::name_server::{NameServer, Says};
use tokio::sync::mpsc;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// A name server, and a resolver that waits for its answers as long as a test may.
async fn bed() -> (NameServer, Arc<Resolver>) {
    let server = NameServer::start().await;
    let resolver = Arc::new(Resolver::from(server.resolver(PATIENCE * 10)));
    (server, resolver)
}

/// A name that is followed, and what is told of it.
struct Told {
    following: Following,
    answers: mpsc::Receiver<Arc<Endpoints>>,
}

impl Told {
    fn of(resolver: &Arc<Resolver>, name: &str) -> Self {
        Self::in_namespace(resolver, "demo", name)
    }

    fn in_namespace(resolver: &Arc<Resolver>, namespace: &str, name: &str) -> Self {
        let (sender, answers) = mpsc::channel(1000);
        let tell = move |endpoints| sender.try_send(endpoints).expect("there is room");
        Self { following: resolver.follow(&namespace.into(), (name.to_owned(), 80), tell), answers }
    }

    /// The addresses of the next answer.
    async fn next(&mut self) -> Vec<IpAddr> {
        let answer = timeout(PATIENCE, self.answers.recv()).await.expect("in time");
        answer.expect("it is followed").ready.iter().map(|address| address.ip()).collect()
    }

    /// Waits for an answer with these addresses.
    async fn until(&mut self, wanted: &[&str]) {
        while self.next().await != ips(wanted) {}
    }
}

fn ips(addresses: &[&str]) -> Vec<IpAddr> {
    addresses.iter().map(|address| address.parse().expect("an address")).collect()
}

fn addresses(addresses: &[&str]) -> Says {
    Says::Addresses(ips(addresses), 1)
}

/// Waits until a name was asked for three times more.
async fn asked_again(server: &NameServer, name: &str) {
    let enough = server.asked(name) + 3;
    let asked = eventually(PATIENCE, || async { (server.asked(name) >= enough).then_some(()) });
    asked.await.expect("asked again");
}

#[tokio::test]
async fn that_there_is_no_such_name_is_said_in_words() {
    let (_server, resolver) = bed().await;
    let found = resolver.addresses(&"demo".into(), "nobody.example", 80).await;
    let error = found.expect_err("there is no such name");
    assert_eq!(error.to_string(), "no name server knows an address of it");
}

#[tokio::test]
async fn a_name_is_looked_up_again_when_its_time_is_over_and_the_last_good_answer_stays() {
    let (server, resolver) = bed().await;
    server.says("db.example", addresses(&["192.0.2.7"]));
    // The search domain makes it db.example.
    let mut told = Told::of(&resolver, "db");
    assert_eq!(told.next().await, ips(&["192.0.2.7"]));
    server.says("db.example", addresses(&["192.0.2.8"]));
    told.until(&["192.0.2.8"]).await;
    server.says("db.example", Says::Unknown);
    asked_again(&server, "db.example").await;
    server.says("db.example", addresses(&["192.0.2.9"]));
    // Nothing was told between these two.
    loop {
        match told.next().await {
            same if same == ips(&["192.0.2.8"]) => {}
            next => break assert_eq!(next, ips(&["192.0.2.9"])),
        }
    }
}

#[tokio::test]
async fn a_name_that_does_not_exist_has_nobody_until_it_does() {
    let (server, resolver) = bed().await;
    let mut told = Told::of(&resolver, "db.example");
    assert_eq!(told.next().await, ips(&[]));
    server.says("db.example", addresses(&["192.0.2.7"]));
    told.until(&["192.0.2.7"]).await;
}

#[tokio::test]
async fn ipv4_comes_before_ipv6() {
    let (server, resolver) = bed().await;
    server.says("both.example", addresses(&["2001:db8::1", "192.0.2.7"]));
    server.says("six.example", addresses(&["2001:db8::1"]));
    assert_eq!(Told::of(&resolver, "both.example").next().await, ips(&["192.0.2.7"]));
    assert_eq!(Told::of(&resolver, "six.example").next().await, ips(&["2001:db8::1"]));
}

#[tokio::test]
async fn a_name_without_an_answer_delays_no_other_one() {
    let (server, resolver) = bed().await;
    server.says("slow.example", Says::Nothing);
    server.says("db.example", addresses(&["192.0.2.7"]));
    let mut slow = Told::of(&resolver, "slow.example");
    let asked = || async { (server.asked("slow.example") > 0).then_some(()) };
    eventually(PATIENCE, asked).await.expect("asked");
    assert_eq!(Told::of(&resolver, "db.example").next().await, ips(&["192.0.2.7"]));
    assert!(slow.answers.try_recv().is_err(), "nothing is known of it yet");
    server.says("slow.example", addresses(&["192.0.2.8"]));
    assert_eq!(slow.next().await, ips(&["192.0.2.8"]));
}

#[tokio::test]
async fn very_many_names_without_an_answer_are_few_questions_and_leave_other_namespaces_theirs() {
    let (server, resolver) = bed().await;
    let names: Vec<_> = (0..200).map(|number| format!("n{number}.slow.example")).collect();
    names.iter().for_each(|name| server.says(name, Says::Nothing));
    server.says("db.example", addresses(&["192.0.2.7"]));
    let follow = |name: &String| Told::in_namespace(&resolver, "evil", name);
    let slow: Vec<_> = names.iter().map(follow).collect();
    let asked = || names.iter().filter(|name| server.asked(name) > 0).count();
    eventually(PATIENCE, || async { (asked() >= 8).then_some(()) }).await.expect("some are asked");
    assert_eq!(Told::of(&resolver, "db.example").next().await, ips(&["192.0.2.7"]));
    assert!(asked() <= 16, "a quarter of 32 at a time: {}", asked());
    drop(slow);
    // Who is not followed any longer is not asked for, and leaves its turn to others.
    server.says("new.example", addresses(&["192.0.2.9"]));
    let mut new = Told::in_namespace(&resolver, "evil", "new.example");
    assert_eq!(new.next().await, ips(&["192.0.2.9"]));
}

#[tokio::test]
async fn nothing_is_told_of_a_name_that_is_not_followed_any_longer() {
    let (server, resolver) = bed().await;
    server.says("db.example", Says::Nothing);
    let Told { following, mut answers } = Told::of(&resolver, "db.example");
    let asked = || async { (server.asked("db.example") > 0).then_some(()) };
    eventually(PATIENCE, asked).await.expect("asked");
    drop(following);
    let end = timeout(PATIENCE, answers.recv()).await.expect("in time");
    assert_eq!(end, None, "whoever would tell is gone");
}

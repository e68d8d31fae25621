//! The webhook under floods from whoever reaches its port: memory stays bounded, and others are answered meanwhile.

use crate::webhook::{Connection, Started, asking, exchange, head, last_answer, review, start};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

const CLASS: &str = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
    spec: {controller: k8s.io/ingress-nginx}\n";
/// What floods may add to the memory of this process, in which clients and webhook are both: the room of large reviews
/// (72 MiB), the one object that is being judged, and the buffers of a few hundred connections on both sides.
const MEMORY: u64 = 320 << 20;

fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number")
        << 10
}

/// Somebody else, at another address, who asks one thing after the other; how often, and the longest wait.
async fn somebody(started: Arc<Started>, stop: Arc<AtomicBool>) -> (u64, Duration) {
    let (mut count, mut longest) = (0, Duration::ZERO);
    let body = asking("other", "other.test");
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let mut tls = started.connect_from(2).await.expect("there is a place for others");
        assert_eq!(exchange(&mut tls, &body).await, Some(200), "others are answered");
        longest = longest.max(begun.elapsed());
        count += 1;
    }
    (count, longest)
}

/// One flood at a time: they share the memory of this process.
static TURN: Mutex<()> = Mutex::const_new(());

/// Floods while somebody else asks.
async fn flooded<F: Future<Output = u64> + Send + 'static>(
    connections: usize,
    flood: impl Fn(Arc<Started>) -> F,
) -> (u64, u64) {
    let _turn = TURN.lock().await;
    let started = Arc::new(start(CLASS).await);
    let before = resident();
    let stop = Arc::new(AtomicBool::new(false));
    let peak = Arc::new(AtomicU64::new(before));
    let watching = tokio::spawn({
        let (stop, peak) = (Arc::clone(&stop), Arc::clone(&peak));
        async move {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            while !stop.load(Ordering::Relaxed) {
                ticks.tick().await;
                peak.fetch_max(resident(), Ordering::Relaxed);
            }
        }
    });
    let other = tokio::spawn(somebody(Arc::clone(&started), Arc::clone(&stop)));
    let mut floods = JoinSet::new();
    for _ in 0..connections {
        floods.spawn(flood(Arc::clone(&started)));
    }
    let refused = floods.join_all().await.into_iter().sum();
    stop.store(true, Ordering::Relaxed);
    watching.await.expect("it does not panic");
    let (answered, longest) = other.await.expect("others are answered");
    assert!(answered > 0);
    // The longest patience that an API server can be given.
    assert!(longest < Duration::from_secs(30), "somebody waited {longest:?}");
    let grown = peak.load(Ordering::Relaxed).saturating_sub(before);
    println!(
        "{refused} refused, {answered} of others answered, {longest:?} at most, {} MiB",
        grown >> 20
    );
    (refused, grown)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_a_hundred_megabytes_are_refused_in_bounded_memory() {
    let flood = async |started: Arc<Started>| {
        let mut tls = started.connect_from(1).await.expect("there is a place");
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        tls.write_all(head.as_bytes()).await.expect("the webhook reads");
        let mut chunk = b"10000\r\n".to_vec();
        chunk.resize(chunk.len() + (64 << 10), b' ');
        chunk.extend_from_slice(b"\r\n");
        let mut sent = 0;
        while sent < 100 << 20 && tls.write_all(&chunk).await.is_ok() {
            sent += 64 << 10;
        }
        assert!(sent < 100 << 20, "it was taken whole");
        // Too large; or too slow, where others had the turns.
        let refused = |(status, _)| status == 413 || status == 408;
        u64::from(last_answer(&mut tls).await.is_none_or(refused))
    };
    let (refused, grown) = flooded(32, flood).await;
    assert_eq!(refused, 32);
    assert!(grown < MEMORY, "{} MiB more", grown >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_requests_of_strangers_leave_a_place_for_others() {
    let flood = async |started: Arc<Started>| {
        let body = asking("stranger", "stranger.test");
        let mut tls = started.connect_from(1).await.expect("there is a place");
        let mut answered = 0;
        for _ in 0..50 {
            answered += u64::from(exchange(&mut tls, &body).await == Some(200));
        }
        answered
    };
    let (answered, grown) = flooded(200, flood).await;
    assert_eq!(answered, 10_000);
    assert!(grown < MEMORY, "{} MiB more", grown >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_would_unfold_in_memory_are_refused() {
    let flood = async |started: Arc<Started>| {
        // Three bytes that become a rule each.
        let rules = format!("[{}{{}}]", "{},".repeat(900_000));
        let body = review("networking.k8s.io", "Ingress", "CREATE", "x", serde_json::json!({}));
        let body = String::from_utf8(body).expect("text");
        let object = format!("{{\"metadata\":{{\"name\":\"x\"}},\"spec\":{{\"rules\":{rules}}}}}");
        let body = body.replace("\"object\":{}", &format!("\"object\":{object}"));
        let mut tls = started.connect_from(1).await.expect("there is a place");
        // Too large; or too slow, where others had the turns.
        let refused = |status| status == 413 || status == 408;
        u64::from(exchange(&mut tls, body.as_bytes()).await.is_none_or(refused))
    };
    let (refused, grown) = flooded(16, flood).await;
    assert_eq!(refused, 16);
    assert!(grown < MEMORY, "{} MiB more", grown >> 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_all_places_loses_the_oldest_to_others_and_keeps_nobody_out() {
    let _turn = TURN.lock().await;
    let started = start(CLASS).await;
    let mut kept = started.connect_from(3).await.expect("there is a place");
    let mut held = Vec::new();
    // Two strangers; each of these would have left the other one a few places when all had a share.
    for stranger in [1, 2].into_iter().cycle().take(520) {
        held.push(started.connect_from(stranger).await.expect("there is a place"));
    }
    for _ in 0..20 {
        let mut tls = started.connect_from(4).await.expect("there is a place for others");
        let body = asking("other", "other.test");
        let answer = exchange(&mut tls, &body);
        let answer = tokio::time::timeout(Duration::from_secs(60), answer).await;
        assert_eq!(answer.expect("at once"), Some(200));
        held.push(tls);
    }
    let kept = exchange(&mut kept, &asking("kept", "kept.test")).await;
    assert_eq!(kept, Some(200), "who holds few keeps them, however old they are");
    let first = exchange(&mut held[0], &asking("stranger", "stranger.test")).await;
    assert_eq!(first, None, "it was the oldest");
    let (_, all, lost) = controller::admission::connections().expect("somebody listens");
    assert!(all == 512 && lost >= 29, "of {all} places {lost} were lost");
}

/// Asks with bodies whose ends come byte by byte, each behind a change of keys, until the connection ends; how often
/// it was answered.
async fn changes_keys(mut tls: Connection) -> usize {
    const CHANGES: usize = 100;
    let body = asking("keys", "keys.test");
    let begun = [head(body.len() + CHANGES, "").into_bytes(), body].concat();
    for answered in 0..10 {
        tls.write_all(&begun).await.expect("the webhook reads");
        for _ in 0..CHANGES {
            tls.get_mut().1.refresh_traffic_keys().expect("it is TLS 1.3");
            if tls.write_all(b" ").await.is_err() {
                return answered;
            }
        }
        let answer = tokio::time::timeout(Duration::from_secs(60), tls.read(&mut [0; 4096])).await;
        if answer.expect("an answer or an end").unwrap_or(0) == 0 {
            return answered;
        }
    }
    10
}

#[tokio::test]
async fn who_changes_keys_without_end_is_ended() {
    let _turn = TURN.lock().await;
    let started = start(CLASS).await;
    let tls = started.connect_from(1).await.expect("there is a place");
    // 256 records without data (docs/limits.md), and one for each 512 bytes of reviews.
    assert_eq!(changes_keys(tls).await, 2);
    let mut other = started.connect_from(2).await.expect("there is a place");
    assert_eq!(exchange(&mut other, &asking("other", "other.test")).await, Some(200));
}

/// A review of an Ingress with an annotation of so many bytes.
fn with_annotation(bytes: usize) -> Vec<u8> {
    let annotations = serde_json::json!({"example.test/text": "x".repeat(bytes)});
    let meta =
        serde_json::json!({"name": "large", "namespace": "demo", "annotations": annotations});
    let object = serde_json::json!({"metadata": meta, "spec": {"ingressClassName": "nginx"}});
    review("networking.k8s.io", "Ingress", "CREATE", "large", object)
}

/// Announces a body and sends a part of it.
async fn stall(tls: &mut Connection, announced: usize, sent: usize) {
    let mut begun = head(announced, "").into_bytes();
    begun.resize(begun.len() + sent, b' ');
    tls.write_all(&begun).await.expect("the webhook reads");
    tls.flush().await.expect("the webhook reads");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_stall_keep_no_large_review_waiting() {
    let _turn = TURN.lock().await;
    let started = start(CLASS).await;
    // Few that announce little, and more than there is room for. Each is of another address: of those that hold as much
    // as others none makes room for the next, in whatever order they are heard.
    for (connections, announced, displaced) in [(8, 100_000, 0), (16, 9_400_000, 1)] {
        let mut stalled = Vec::new();
        for address in 1..=connections {
            let mut tls = started.connect_from(address).await.expect("there is a place");
            stall(&mut tls, announced, 66_000).await;
            stalled.push(tls);
        }
        let mut other = started.connect_from(17).await.expect("there is a place");
        assert_eq!(exchange(&mut other, &asking("other", "other.test")).await, Some(200));
        assert_eq!(exchange(&mut other, &with_annotation(400_000)).await, Some(200));
        let mut answered = 0;
        for tls in &mut stalled {
            let read = tokio::time::timeout(Duration::ZERO, tls.read(&mut [0])).await;
            answered += usize::from(read.is_ok());
        }
        // Whoever waited for their time to be over would find more of them answered.
        assert!(answered <= displaced, "{answered} of {connections}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_reviews_in_a_loop_over_many_connections_has_one_turn_between_those_of_others() {
    const FLOOD: u64 = 16;
    const TIMES: u64 = 10;
    let _turn = TURN.lock().await;
    let started = Arc::new(start(CLASS).await);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let annotations: serde_json::Map<_, _> = (0..1400)
        .map(|n| (format!("nginx.ingress.kubernetes.io/k{n}"), serde_json::json!("v")))
        .collect();
    let meta = serde_json::json!({"name": "x", "namespace": "demo", "annotations": annotations});
    let object = serde_json::json!({"metadata": meta, "spec": {"ingressClassName": "nginx"}});
    let body = Arc::new(review("networking.k8s.io", "Ingress", "CREATE", "x", object));
    assert!((48 << 10..64 << 10).contains(&body.len()), "{}", body.len());
    let mut flood = JoinSet::new();
    for _ in 0..FLOOD {
        let (started, body) = (Arc::clone(&started), Arc::clone(&body));
        let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
        flood.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let mut tls = started.connect_from(1).await.expect("there is a place");
                while exchange(&mut tls, &body).await == Some(200) && !stop.load(Ordering::Relaxed)
                {
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    while answered.load(Ordering::Relaxed) < FLOOD {
        ticks.tick().await;
    }
    let mut other = started.connect_from(2).await.expect("there is a place");
    let before = answered.load(Ordering::Relaxed);
    for _ in 0..TIMES {
        assert_eq!(exchange(&mut other, &asking("other", "other.test")).await, Some(200));
    }
    let meanwhile = answered.load(Ordering::Relaxed) - before;
    stop.store(true, Ordering::Relaxed);
    flood.join_all().await;
    // In the order of arrival it were all of the flood each time.
    assert!(meanwhile < FLOOD * TIMES / 2, "{meanwhile} of the flood for {TIMES} of others");
}

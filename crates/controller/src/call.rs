//! One call to the API server, within its time, and what came of it.

use std::time::Duration;

/// What the API server says, by 403, of what is to be made in a namespace that is being deleted.
const ENDING: &str = "NamespaceTerminating";

/// What the API server made of a call.
#[derive(Debug)]
pub(crate) enum Called<T> {
    /// It was done.
    Good(T),
    /// It was not, or nobody knows.
    Bad {
        /// The status, if there was an answer.
        code: Option<u16>,
        /// Why not, in one line.
        reason: String,
    },
}

/// Waits for a call no longer than this. A call that is given up takes its connection with it.
pub(crate) async fn ask<T>(
    patience: Duration,
    call: impl Future<Output = kube::Result<T>>,
) -> Called<T> {
    match tokio::time::timeout(patience, call).await {
        Ok(Ok(good)) => Called::Good(good),
        Ok(Err(kube::Error::Api(status))) => {
            let message = status.message.lines().next().unwrap_or_default();
            let reason = format!("{} {}: {message}", status.code, status.reason);
            // No right is missing: a moment later the namespace is not there.
            let causes = status.details.iter().flat_map(|details| &details.causes);
            let is_ending =
                status.code == 403 && causes.into_iter().any(|one| one.reason == ENDING);
            Called::Bad { code: Some(if is_ending { 404 } else { status.code }), reason }
        }
        Ok(Err(error)) => Called::Bad { code: None, reason: kubernetes::deepest(&error) },
        Err(_) => {
            let reason = format!("no answer within {:.1} s", patience.as_secs_f64());
            Called::Bad { code: None, reason }
        }
    }
}

/// What to do about a call that failed with this status, which takes these rights; empty where it is not about rights.
pub(crate) fn remedy(code: Option<u16>, takes: &str) -> String {
    match code {
        Some(401) => "; the token of the ServiceAccount does not count".to_owned(),
        Some(403) => format!("; it takes {takes}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::server::{api_server, refusal};
    use k8s_openapi::api::core::v1::Event;
    use kube::Api;
    use kube::api::PostParams;

    #[tokio::test]
    async fn what_a_namespace_that_is_being_deleted_does_not_take_is_no_question_of_rights() {
        for (cause, code) in [(ENDING, 404), ("FieldValueInvalid", 403)] {
            let client = api_server(move |_, _, _| {
                let (code, mut status) = refusal(403, "events \"a\" is forbidden");
                status["details"] =
                    serde_json::json!({"causes": [{"reason": cause, "message": "m"}]});
                (code, status)
            })
            .await;
            let events: Api<Event> = Api::namespaced(client, "ending");
            let (post, event) = (PostParams::default(), Event::default());
            let made = ask(Duration::from_secs(60), events.create(&post, &event)).await;
            let Called::Bad { code: Some(found), reason } = made else { panic!("{made:?}") };
            assert_eq!((found, remedy(Some(found), "rights").is_empty()), (code, code == 404));
            assert!(reason.starts_with("403 Forbidden: events"), "{reason}");
        }
    }
}

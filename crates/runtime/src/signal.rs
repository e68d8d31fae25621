//! Signals: SIGTERM and SIGINT end the process, the first one politely, the second one at once.

use crate::Shutdown;
use std::io;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Lets SIGTERM and SIGINT advance `shutdown` from now on. Must be called within a tokio runtime; the task ends with
/// the second signal. (SIGPIPE is ignored by the standard library already.)
pub fn watch(shutdown: Shutdown) -> io::Result<JoinHandle<()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::spawn(async move {
        for consequence in ["finishing what runs; another signal ends at once", "ending at once"] {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            tracing::info!("{name}: {consequence}");
            shutdown.advance();
        }
    }))
}

/// Answers SIGHUP and SIGUSR2, which reload or replace other servers and would end this one, with a line. Must be
/// called within a tokio runtime.
pub fn ignore_reloads() -> io::Result<JoinHandle<()>> {
    let mut reload = signal(SignalKind::hangup())?;
    let mut replace = signal(SignalKind::user_defined2())?;
    Ok(tokio::spawn(async move {
        loop {
            let name = tokio::select! {
                _ = reload.recv() => "SIGHUP",
                _ = replace.recv() => "SIGUSR2",
            };
            tracing::info!("{name}: nothing to reload: changes are followed");
        }
    }))
}

/// Calls `reopen` for each SIGUSR1, which asks nginx to open its log files again. Must be called within a tokio
/// runtime.
pub fn on_reopen(reopen: impl Fn() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut asked = signal(SignalKind::user_defined1())?;
    Ok(tokio::spawn(async move {
        while asked.recv().await.is_some() {
            tracing::info!("SIGUSR1: files of logs are opened again");
            reopen();
        }
    }))
}

#[cfg(test)]
mod tests {
    use crate::{Shutdown, Stage};
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn two_signals_drain_and_abort() {
        let shutdown = Shutdown::new();
        let task = super::watch(shutdown.clone()).expect("signals can be watched");
        kill_process(getpid(), Signal::TERM).expect("we may signal ourselves");
        shutdown.first().await;
        assert_eq!(shutdown.stage(), Stage::Draining);
        kill_process(getpid(), Signal::INT).expect("we may signal ourselves");
        shutdown.second().await;
        task.await.expect("it does not panic");
    }
}

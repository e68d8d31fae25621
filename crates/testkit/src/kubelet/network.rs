//! The network of the Pods: a bridge, and for each Pod a network namespace with an address on it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

/// The bridge's own address, by which Pods reach what runs beside the control plane.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

/// The bridge's second address.
const GATEWAY_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x244, 0, 0, 0, 0, 0, 1);

/// The bridge of the Node.
#[derive(Debug)]
pub struct Network {
    /// Number of the latest Pod; an address is not given twice, so that a late packet cannot meet the wrong Pod.
    latest: AtomicU16,
    /// Whether Pods get a second address; a kernel may be without IPv6.
    dual: bool,
}

impl Network {
    /// Makes the bridge, in the present network namespace.
    pub async fn create() -> Result<Self> {
        let dual = Path::new("/proc/net/if_inet6").exists();
        let mut orders = format!(
            "link add pods type bridge forward_delay 0 stp_state 0\n\
             addr add {GATEWAY}/16 dev pods\n\
             link set pods up\n"
        );
        if dual {
            orders.push_str(&format!("addr add {GATEWAY_V6}/64 dev pods nodad\n"));
        }
        ip(Command::new("ip"), &orders).await.context("make the bridge for Pods")?;
        // The first 255 are left for addresses that tests choose by themselves.
        Ok(Self { latest: AtomicU16::new(255), dual })
    }

    /// A new network namespace with an address.
    pub(super) async fn sandbox(&self) -> Result<Sandbox> {
        let number = self.latest.fetch_add(1, Ordering::Relaxed) + 1;
        let [high, low] = number.to_be_bytes();
        let address = Ipv4Addr::new(10, 244, high, low);
        let second = Ipv6Addr::new(0xfd00, 0x244, 0, 0, 0, 0, 0, number);
        let second = self.dual.then_some(second);
        let mut sandbox = Sandbox { holder: hold()?, address, second };
        sandbox.wait().await?;
        let link = format!(
            "link add pod{number} type veth peer name eth0 netns {}\n\
             link set pod{number} master pods up\n",
            sandbox.id()?
        );
        ip(Command::new("ip"), &link).await.context("join a Pod to the bridge")?;
        let mut inner = format!(
            "link set lo up\n\
             addr add {address}/16 dev eth0\n\
             link set eth0 up\n\
             route add default via {GATEWAY}\n"
        );
        if let Some(second) = second {
            inner.push_str(&format!("addr add {second}/64 dev eth0 nodad\n"));
        }
        ip(sandbox.command("ip")?, &inner).await.context("give a Pod its address")?;
        Ok(sandbox)
    }
}

/// A Pod's network namespace; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Sandbox {
    /// A process that does nothing but keep the namespace.
    holder: Child,
    pub(super) address: Ipv4Addr,
    second: Option<Ipv6Addr>,
}

impl Sandbox {
    /// `program`, to be run in the namespace.
    pub(super) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.id()?)).arg("--").arg(program);
        Ok(command)
    }

    /// All addresses of the Pod, the first one first.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let second = self.second.map(IpAddr::from);
        std::iter::once(self.address.into()).chain(second).collect()
    }

    fn id(&self) -> Result<u32> {
        self.holder.id().context("the holder of a network namespace has ended")
    }

    async fn wait(&mut self) -> Result<()> {
        let stdout = self.holder.stdout.take().context("the holder's output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await.context("wait for a namespace")?;
        ensure!(line == "up\n", "`unshare --net` made no namespace");
        Ok(())
    }
}

fn hold() -> Result<Child> {
    Command::new("unshare")
        .args(["--net", "sh", "-c", "echo up; exec sleep infinity"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("start `unshare`")
}

/// Runs `ip` with a list of orders.
async fn ip(mut ip: Command, orders: &str) -> Result<()> {
    ip.args(["-batch", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = ip.spawn().context("start `ip`")?;
    let mut stdin = child.stdin.take().context("the input of `ip`")?;
    stdin.write_all(orders.as_bytes()).await.context("give orders to `ip`")?;
    drop(stdin);
    let output = child.wait_with_output().await.context("wait for `ip`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`ip` ended with {}: {said}\n{orders}", output.status);
    Ok(())
}

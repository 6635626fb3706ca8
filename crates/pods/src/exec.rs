//! Carries the standard streams of a process in a pod over the API server.

use crate::explain::{exec_ended, exec_refused};
use crate::pod::Pod;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, SimplexStream, WriteHalf};

/// Size of the buffer between the two ends of a stream, in bytes.
const BUFFER: usize = 256 * 1024;
/// Number of bytes of the process's standard error that are kept for error messages.
const SAID: usize = 4096;

/// The reason why the streams of a process in a pod have ended: the status that the cluster sends, or nothing if the
/// connection was lost.
type Over = Shared<BoxFuture<'static, Option<Status>>>;

impl Pod {
    /// Starts a program in the pod and returns its standard output and input. The connection and the program end when
    /// the standard output ([`ExecOutput`]) is dropped.
    ///
    /// # Errors
    /// The API server does not answer or refuses; the pod does not run. If the program cannot be started or fails,
    /// reading returns the error.
    pub async fn exec(&self, command: &[String]) -> io::Result<(ExecOutput, ExecInput)> {
        let params = AttachParams::default()
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .container("tailbound")
            .max_stdin_buf_size(BUFFER)
            .max_stdout_buf_size(BUFFER)
            .max_stderr_buf_size(SAID);
        let failed = format!("{} cannot be started in the pod {}", command.join(" "), self.name);
        let pods = self.cluster.pods();
        let attached = async { Ok(pods.exec(&self.name, command, &params).await) };
        let attached = self.cluster.ask(self.cluster.asked("get", "pods/exec"), &failed, attached).await;
        let mut process = attached
            .map_err(|e| io::Error::other(e.to_string()))?
            .map_err(|e| exec_refused(e, &self.cluster.asked("get", "pods/exec"), &failed))?;
        let over = process.take_status().expect("nobody has taken it").boxed().shared();
        let input = ExecInput { stream: process.stdin().expect("it was asked for"), over: over.clone() };
        let (stdout, stderr) =
            (process.stdout().expect("it was asked for"), process.stderr().expect("it was asked for"));
        let what = format!("{} in the pod {}", command.first().map_or("", String::as_str), self.name);
        Ok((ExecOutput { stdout, stderr, said: Vec::new(), over, what, _process: process }, input))
    }
}

/// Standard output of a process in a pod. If this value is dropped, the connection and the process end.
pub struct ExecOutput {
    stdout: ReadHalf<SimplexStream>,
    stderr: ReadHalf<SimplexStream>,
    /// The last bytes that the process in the pod wrote to its standard error.
    said: Vec<u8>,
    over: Over,
    what: String,
    /// The connection to the process in the pod, which ends when this value is dropped.
    _process: AttachedProcess,
}

/// Standard input of a process in a pod. If this value is shut down, the process reads the end of its input.
pub struct ExecInput {
    stream: WriteHalf<SimplexStream>,
    over: Over,
}

impl ExecOutput {
    fn listen_to_errors(&mut self, context: &mut Context<'_>) {
        let mut bytes = [0; SAID];
        let mut buffer = ReadBuf::new(&mut bytes);
        while let Poll::Ready(Ok(())) = Pin::new(&mut self.stderr).poll_read(context, &mut buffer) {
            if buffer.filled().is_empty() {
                break;
            }
            self.said.extend_from_slice(buffer.filled());
            let surplus = self.said.len().saturating_sub(SAID);
            self.said.drain(..surplus);
            buffer.clear();
        }
    }

    /// Reads from the standard output of the process in the pod; returns whether something was read.
    fn take(&mut self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> io::Result<bool> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stdout).poll_read(context, buffer) {
            Poll::Ready(read) => read.map(|()| buffer.filled().len() > before || buffer.remaining() == 0),
            Poll::Pending => Ok(false),
        }
    }
}

impl AsyncRead for ExecOutput {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let me = self.get_mut();
        me.listen_to_errors(context);
        if me.take(context, buffer)? {
            return Poll::Ready(Ok(()));
        }
        // The end of the stream does not show whether the connection was lost, but the end of the exchange does.
        let over = ready!(me.over.poll_unpin(context));
        me.listen_to_errors(context);
        if me.take(context, buffer)? {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(exec_ended(over.as_ref(), &me.what, &String::from_utf8_lossy(&me.said)))
    }
}

impl AsyncWrite for ExecInput {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let me = self.get_mut();
        // The process does not read any more, and no other error would report this.
        if me.over.poll_unpin(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut me.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

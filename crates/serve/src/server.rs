//! The socket and its connections.

use crate::answer::{Answer, Pages};
use crate::guard;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Connections at one time; more wait.
const CONNECTIONS: usize = 32;

/// A head that takes longer to arrive ends the connection.
const HEAD: Duration = Duration::from_secs(10);

/// Compares two records: a whole page, in which whatever a user named is escaped; or why they cannot be compared.
pub type Compare = fn(&Path, &Path) -> Result<String, String>;

/// What is served.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of records.
    pub folder: PathBuf,
    /// Names, beside addresses and `localhost`, under which this server may be asked.
    pub names: Vec<String>,
    /// Compares two records; `None` = the list offers no comparison.
    pub compare: Option<Compare>,
}

/// A server that listens and has not begun to answer.
pub struct Server {
    listener: TcpListener,
    pages: Arc<Pages>,
}

impl Server {
    /// Listens on `at`; port 0 is any that is free.
    ///
    /// # Errors
    /// The address is not this host's, or the port is taken.
    pub fn bind(at: SocketAddr, options: Options) -> io::Result<Server> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, pages: Arc::new(Pages::new(options)) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the process ends.
    ///
    /// # Errors
    /// There is no runtime, or the socket cannot be used.
    pub fn run(self) -> io::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.accept())
    }

    async fn accept(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let turn = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            let Ok((stream, _)) = listener.accept().await else {
                // Too many open files, or a peer that is gone already: neither ends the server.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let pages = self.pages.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| respond(pages.clone(), request));
                let mut connection = http1::Builder::new();
                connection.timer(TokioTimer::new()).header_read_timeout(HEAD);
                // A connection that breaks off concerns nobody but its peer.
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                drop(turn);
            });
        }
    }
}

async fn respond(pages: Arc<Pages>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let answer = match guard::check(request.method(), request.headers(), pages.names()) {
        Err(refusal) => Answer::refused(refusal.status, &refusal.text),
        Ok(()) => {
            let target = request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
            // A report takes up to seconds; others are answered meanwhile.
            let made = tokio::task::spawn_blocking(move || pages.answer(&target)).await;
            made.unwrap_or_else(|_| Answer::refused(StatusCode::INTERNAL_SERVER_ERROR, "the report could not be made"))
        }
    };
    Ok(response(answer, request.method() == Method::HEAD))
}

fn response(answer: Answer, head_only: bool) -> Response<Full<Bytes>> {
    let length = answer.text.len();
    let body = if head_only { Bytes::new() } else { Bytes::from(answer.text) };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    headers.insert(header::CONTENT_LENGTH, length.into());
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    if answer.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

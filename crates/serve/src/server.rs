//! The HTTP server: its socket and its connections.

use crate::answer::{Answer, Pages};
use crate::guard;
use crate::options::Options;
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
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Largest number of connections that are served at the same time; further connections wait.
const CONNECTIONS: usize = 32;

/// Time limit for the arrival of the head of a request. If the limit is exceeded, the connection is closed.
const HEAD: Duration = Duration::from_secs(10);

/// A server that listens on its address and has not begun to answer requests.
pub struct Server {
    listener: TcpListener,
    pages: Arc<Pages>,
}

impl Server {
    /// Listens on the address `at`. If the port is 0, the kernel chooses a free port.
    ///
    /// # Errors
    /// The address does not belong to this host, or the port is in use.
    pub fn bind(at: SocketAddr, options: Options) -> io::Result<Server> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, pages: Arc::new(Pages::new(options)) })
    }

    /// Returns the address on which the server listens.
    ///
    /// # Errors
    /// The kernel does not report the address of the socket.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers requests until the process ends.
    ///
    /// # Errors
    /// The asynchronous runtime cannot be created, or the socket cannot be used.
    pub fn run(self) -> io::Result<()> {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.accept())
    }

    async fn accept(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let turn = room.clone().acquire_owned().await.map_err(io::Error::other)?;
            let Ok((stream, _)) = listener.accept().await else {
                // The process has too many open files, or the peer has closed the connection already. Neither error
                // ends the server.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let pages = self.pages.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| respond(pages.clone(), request));
                let mut connection = http1::Builder::new();
                connection.timer(TokioTimer::new()).header_read_timeout(HEAD);
                // If a connection breaks off, only its peer is affected.
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
            // Computing a report takes up to several seconds; other requests are answered in the meantime.
            let made = tokio::task::spawn_blocking(move || pages.answer(&target)).await;
            made.unwrap_or_else(|_| {
                Answer::refused(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the server failed while it \
                computed the report",
                )
            })
        }
    };
    Ok(response(answer, request.method() == Method::HEAD))
}

fn response(answer: Answer, head_only: bool) -> Response<Full<Bytes>> {
    let length = answer.content.len();
    let body = if head_only { Bytes::new() } else { Bytes::from(answer.content) };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.kind));
    headers.insert(header::CONTENT_LENGTH, length.into());
    if let Some(Ok(name)) = answer.file.map(|name| HeaderValue::try_from(format!("attachment; filename=\"{name}\""))) {
        headers.insert(header::CONTENT_DISPOSITION, name);
    }
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

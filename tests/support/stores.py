"""Servers that tests read from and write to: S3 by moto, and a plain web server; both may fail."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

INTERNAL = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code>'
    b"<Message>We encountered an internal error.</Message></Error>"
)


@dataclass
class Faults:
    """What an S3 server does wrong, by a seed.

    Attributes:
        errors: Share of requests that are answered by 500.
        cuts: Share of bodies of objects that end half-way.
        requests: Method and path of what was asked for.
        failed: How many requests were made to fail.
    """

    errors: float = 0.0
    cuts: float = 0.0
    seed: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    failed: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lock = threading.Lock()

    def restart(self) -> None:
        """Do nothing wrong again, and forget what was asked for."""
        self.errors = self.cuts = 0.0
        self.failed = 0
        self.requests.clear()
        self._random = random.Random(self.seed)

    def draw(self, method: str, path: str) -> str:
        """Return what becomes of a request: ``""``, ``"error"`` or ``"cut"``."""
        with self._lock:
            self.requests.append((method, path))
            value = self._random.random()
            found = "error" if value < self.errors else ""
            if not found and method == "GET" and value < self.errors + self.cuts:
                found = "cut"
            self.failed += bool(found)
            return found


def faulty(app: Application, faults: Faults) -> Application:
    """Return an application that fails as it is told."""

    def call(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        fate = faults.draw(environ["REQUEST_METHOD"], environ["PATH_INFO"])
        if fate == "error":
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start_response("500 Internal Server Error", [("Content-Type", "application/xml")])
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [INTERNAL]
        body = app(environ, start_response)
        if fate != "cut":
            return body
        whole = b"".join(body)
        return [whole[: len(whole) // 2]]

    return call


@contextmanager
def s3_server(faults: Faults) -> Iterator[str]:
    """Run moto's S3 and yield its address."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        def log(self, *args: Any) -> None:
            pass

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    app = faulty(DomainDispatcherApplication(create_backend_app), faults)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Handler)
    with _serving(server) as address:
        yield address


@contextmanager
def _serving(server: Any) -> Iterator[str]:
    """Let a server answer in a thread of its own, and yield its address."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Site:
    """What a web server gives out, and how.

    Attributes:
        files: Bytes by path.
        ranges: Whether parts are given out.
        sizes: Whether lengths are told beforehand.
        cut: How many bodies still end half-way.
        tags: ETags that are told one after the other, the last for ever; none if empty.
        status: What every request is answered by, if not 0.
        asked: Methods, paths and ranges of all requests.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    sizes: bool = True
    cut: int = 0
    tags: list[str] = field(default_factory=list)
    status: int = 0
    asked: list[tuple[str, str, str]] = field(default_factory=list)


@contextmanager
def web_server(site: Site) -> Iterator[str]:
    """Run a web server and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            wanted = self.headers.get("Range", "")
            path = self.path.partition("?")[0]
            site.asked.append((self.command, path, wanted))
            body = site.files.get(path)
            if site.status or body is None:
                self.send_response(site.status or 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.give(body, wanted if site.ranges else "", with_body)

        def give(self, body: bytes, wanted: str, with_body: bool) -> None:
            part = body
            if wanted:
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                part = body[int(first) : int(last) + 1 if last else None]
                self.send_response(206)
                end = int(first) + len(part) - 1
                self.send_header("Content-Range", f"bytes {first}-{end}/{len(body)}")
            else:
                self.send_response(200)
            if site.tags:
                tag = site.tags.pop(0) if len(site.tags) > 1 else site.tags[0]
                self.send_header("ETag", f'"{tag}"')
            if site.sizes:
                self.send_header("Content-Length", str(len(part)))
            else:
                self.send_header("Connection", "close")
            self.end_headers()
            if not with_body:
                return
            if site.cut:
                site.cut -= 1
                part = part[: len(part) // 2]
                self.close_connection = True
            self.wfile.write(part)
            if not site.sizes:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with _serving(server) as address:
        yield address

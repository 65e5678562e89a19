"""Stores a file or web page under ``docs/``, and records its origin in SOURCES.md.

This is the only place that fetches pages, and only when the user asks for one. Redirects from a
public address to a local one are refused, and size and time are limited.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kbtui import __version__
from kbtui.clock import local_day
from kbtui.documents.documents import (
    MAX_BYTES,
    WEB_PICTURES,
    Documents,
    can_read,
    document_name,
    is_address,
    is_keepable,
    kind_of,
    missing,
    place_for,
)
from kbtui.errors import NotFoundError, RemoteError, UnreadableError, UsageError
from kbtui.text import clean_line, shorten, slugify
from kbtui.workspace import files
from kbtui.workspace.durable import FileBatch, storage_errors
from kbtui.workspace.layout import Workspace

SOURCES = "docs/SOURCES.md"
_HEADING = "# Where these documents are from\n\n"
_MAX_FETCHED_BYTES = 50 << 20
_MAX_REDIRECTS = 5
_PAUSE_SECONDS = 15.0
_SECONDS = 90.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_SAFE = "%/:=&?~#+!$,;'@()*[]"
_ENDINGS = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
}
_PAGES = frozenset({"text/html", "application/xhtml+xml"})


@dataclass(frozen=True, slots=True)
class KeptDocument:
    """A stored document: its workspace path, its source, and whether it wasn't there before."""

    path: str
    source: str
    new: bool = True


def keep_document(workspace: Workspace, source: str) -> KeptDocument:
    """Store a file, or the resource at an ``http(s)`` URL.

    Raises:
        NotFoundError: There is no such file.
        UnreadableError: It isn't a known kind of document, is too large, or a page without text.
        UsageError: The URL has another scheme.
        RemoteError: The URL can't be fetched.
        StorageError: The workspace can't be written.
    """
    if is_address(source):
        return _store_url(workspace, source)
    file = Path(source).expanduser()
    if not file.is_file():
        raise NotFoundError(f"There is no file {file}.", "Give the path of a document.")
    if not is_keepable(file):
        raise UnreadableError(f"{file} is no document, text or picture that kbtui knows.")
    if file.stat().st_size > MAX_BYTES:
        raise UnreadableError(f"{file} is larger than {MAX_BYTES >> 20} MB.")
    with storage_errors(f"Can't read {file}"):
        data = file.read_bytes()
    return _write(workspace, "docs", file.name, data, str(file.resolve()))


def _store_url(workspace: Workspace, address: str) -> KeptDocument:
    final, kind, data = fetch(address)
    if kind in _PAGES or (not kind and b"<html" in data[:1024].lower()):
        return _store_page(workspace, address, data)
    name = _document_name(address, final, kind, data)
    return _write(workspace, "docs/web", name, data, address)


def _document_name(address: str, final: str, kind: str, data: bytes) -> str:
    """Return the file name of a fetched document; its ending says what it is.

    Raises:
        UnreadableError: It is of no kind that is kept.
    """
    name = unquote(urlsplit(final).path).rpartition("/")[2]
    if kind_of(name) or name.lower().endswith(WEB_PICTURES):
        return name
    ending = ".pdf" if data.startswith(b"%PDF-") else _ENDINGS.get(kind, "")
    if not ending:
        raise UnreadableError(
            f"{address} is {clean_line(kind) or 'of no known kind'}: no page and no document.",
            "kbtui keeps web pages, PDF, Office and EPUB files, texts and pictures.",
        )
    return name if name.lower().endswith(ending) else f"{name or 'document'}{ending}"


def _store_page(workspace: Workspace, address: str, data: bytes) -> KeptDocument:
    """Store the text of a page as Markdown, without navigation and scripts."""
    if not can_read("page"):
        raise UnreadableError(f"{address} can't be kept: {missing()}.")
    with tempfile.TemporaryDirectory(prefix="kbtui-") as folder, Documents(workspace) as documents:
        page = Path(folder, "page.html")
        page.write_bytes(data)
        text = documents.convert(page, "page")
    if not text.parts:
        raise UnreadableError(f"{address} can't be kept: {text.problem}.")
    title = shorten(text.title or urlsplit(address).hostname or "page", 120)
    quoted = title.replace("\\", "").replace('"', "'")
    head = f'---\ntitle: "{quoted}"\nsource: {quote(address, _SAFE)}\n---\n\n'
    body = f"{head}{text.whole.rstrip()}\n"
    return _write(workspace, "docs/web", f"{slugify(title)}.md", body.encode(), address)


def _write(workspace: Workspace, folder: str, name: str, data: bytes, source: str) -> KeptDocument:
    name = document_name(name)
    path, is_new = place_for(workspace, folder, name, data)
    if not is_new:
        return KeptDocument(path, source, new=False)
    known = b"" if files.is_gone(workspace, SOURCES) else files.read_bytes(workspace, SOURCES)
    shown = quote(path.removeprefix("docs/"), "/")
    line = f"- [{name}]({shown}): {clean_line(source)}, {local_day()}\n"
    with storage_errors(f"Can't write {workspace.file(path)}"), FileBatch(workspace) as batch:
        batch.write(path, data)
        batch.write(SOURCES, (known or _HEADING.encode()) + line.encode())
        batch.sync()
    return KeptDocument(path, source)


# Fetching --------------------------------------------------------------------------------------


def fetch(address: str) -> tuple[str, str, bytes]:
    """Fetch a URL; return the final URL, the media type and the content.

    A local address is fetched if it was given explicitly; redirects to one are refused unless they
    stay on the same host.

    Raises:
        UsageError: It isn't an ``http`` or ``https`` URL.
        RemoteError: The server can't be reached or refuses, or its answer is too large or slow.
    """
    deadline = time.monotonic() + _SECONDS
    parts = given = _parse_url(address)
    own = given.hostname if _is_local(given) else None
    for _ in range(_MAX_REDIRECTS + 1):
        status, headers, data = _get(parts, deadline, may_be_local=parts.hostname == own)
        if status in _REDIRECTS and headers.get("location"):
            parts = _parse_url(urljoin(parts.geturl(), headers["location"]))
            continue
        if status != _OK:
            raise RemoteError(f"{address} can't be fetched: the server answered {status}.")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return parts.geturl(), kind, data
    raise RemoteError(f"{address} leads from one address to the next, too often.")


def _parse_url(address: str) -> SplitResult:
    try:
        parts = urlsplit(quote(clean_line(address), _SAFE))
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise UsageError(
            f"{clean_line(address)} is no address of a page.", "It has to begin with https:// ."
        )
    if parts.username is not None or parts.password is not None:
        raise UsageError("A name and a password in an address aren't sent.", "Leave them out.")
    return parts


def _get(
    parts: SplitResult, deadline: float, *, may_be_local: bool
) -> tuple[int, Mapping[str, str], bytes]:
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"User-Agent": f"kbtui/{__version__}", "Accept-Encoding": "identity"}
    try:
        with _connected(parts, deadline, may_be_local=may_be_local) as connection:
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            data = b"" if answer.status in _REDIRECTS else _body(answer, found)
        if time.monotonic() > deadline:
            raise TimeoutError(f"it takes longer than {_SECONDS:.0f} seconds")
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        message = f"{parts.hostname or ''} can't be reached: {clean_line(str(why))}."
        raise RemoteError(message) from error
    return answer.status, found, data


@contextlib.contextmanager
def _connected(
    parts: SplitResult, deadline: float, *, may_be_local: bool
) -> Iterator[http.client.HTTPConnection]:
    """Connect to a URL's host; the connection is cut at the deadline."""
    host, is_safe = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_safe else 80)
    kind = http.client.HTTPSConnection if is_safe else http.client.HTTPConnection
    connection = kind(host, port, timeout=_PAUSE_SECONDS)
    timer = threading.Timer(max(0.0, deadline - time.monotonic()), lambda: _disconnect(connection))
    timer.daemon = True
    try:
        # Connect to the address just checked, rather than resolving the name again.
        place = _resolve(host, port, may_be_local=may_be_local)
        connection.sock = socket.create_connection(place, _PAUSE_SECONDS)
        timer.start()
        if is_safe:
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(connection.sock, server_hostname=host)
        yield connection
    finally:
        timer.cancel()
        connection.close()


def _disconnect(connection: http.client.HTTPConnection) -> None:
    with contextlib.suppress(OSError):
        connection.sock.shutdown(socket.SHUT_RDWR)


def _is_local(parts: SplitResult) -> bool:
    """Return whether a URL's host is on this machine or network."""
    try:
        _resolve(parts.hostname or "", 80, may_be_local=False)
    except RemoteError:
        return True
    except (OSError, UnicodeError):
        return False  # reported when it is fetched
    return False


def _is_public(address: str) -> bool:
    place = ipaddress.ip_address(address.partition("%")[0])
    return (getattr(place, "ipv4_mapped", None) or place).is_global


def _resolve(host: str, port: int, *, may_be_local: bool) -> tuple[str, int]:
    """Resolve a host; refuse local addresses unless `may_be_local`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    places = [str(each[4][0]) for each in found]
    if not may_be_local and not all(map(_is_public, places)):
        raise RemoteError(f"It leads to {host}, which is on this machine or network: not followed.")
    return places[0], port


def _body(answer: http.client.HTTPResponse, headers: Mapping[str, str]) -> bytes:
    packed = headers.get("content-encoding", "identity").strip().lower()
    if packed not in {"identity", "", "gzip"}:
        raise http.client.HTTPException(f"it answers in {clean_line(packed)[:20]}")
    unpacker = zlib.decompressobj(31) if packed == "gzip" else None
    data = bytearray()
    while piece := answer.read1(1 << 16):
        if unpacker is not None:
            try:
                piece = unpacker.decompress(piece, _MAX_FETCHED_BYTES + 1)
            except zlib.error as error:
                raise http.client.HTTPException("its answer is damaged") from error
        data += piece
        if len(data) > _MAX_FETCHED_BYTES:
            raise http.client.HTTPException(
                f"it answers with more than {_MAX_FETCHED_BYTES >> 20} MB"
            )
    return bytes(data)

"""Files and pages are kept with their source; what an address may not do."""

from __future__ import annotations

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from kbtui.documents import keeping
from kbtui.documents.documents import Documents, place_for
from kbtui.documents.keeping import KeptDocument, keep_document
from kbtui.errors import KbtuiError, NotFoundError, RemoteError, UnreadableError, UsageError
from kbtui.workspace import files
from kbtui.workspace.layout import Workspace
from tests.documents import make

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ARTICLE = """<html><head><title>On kestrels</title><script>steal()</script></head><body>
<nav><a href="/">Home</a> <a href="/all">All articles</a></nav><article><h1>On kestrels</h1>
<p>The kestrel nests in the old mill above Tarn, where it has been seen every spring.</p>
<p>It hovers over the meadow for a long time, until it sees a vole, and then it dives.</p>
<script>document.write("scripted")</script></article><footer>Imprint</footer></body></html>"""
ANSWERS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/kestrels": (200, {"Content-Type": "text/html"}, ARTICLE.encode()),
    "/packed": (200, {"Content-Encoding": "gzip", "Content-Type": "text/html"},
                gzip.compress(ARTICLE.encode())),
    "/report%20a.pdf": (200, {"Content-Type": "application/pdf"}, make.pdf()),
    "/download": (200, {"Content-Type": "application/octet-stream"}, make.pdf()),
    "/moved": (302, {"Location": "/kestrels"}, b""),
    "/inside": (302, {"Location": "http://localhost:9/admin"}, b""),
    "/file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/round": (302, {"Location": "/round"}, b""),
    "/large": (200, {"Content-Type": "text/html"}, b"x" * 3000),
    "/bomb": (200, {"Content-Encoding": "gzip"}, gzip.compress(bytes(500_000))),
    "/video": (200, {"Content-Type": "video/mp4"}, b"\0\0"),
    "/bare": (200, {"Content-Type": "text/html"}, b"<html><script>1</script></html>"),
}  # fmt: skip


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, headers, data = ANSWERS.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[str]:
    with served() as url:
        yield url


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "kb").mkdir()
    return Workspace(tmp_path / "kb")


def test_a_file_is_copied_once_with_a_line_of_where_it_is_from(
    workspace: Workspace, tmp_path: Path
) -> None:
    file = tmp_path / "My report: 2026.pdf"
    file.write_bytes(make.pdf())
    kept = keep_document(workspace, str(file))
    assert kept == KeptDocument("docs/My report- 2026.pdf", str(file))
    assert workspace.place(kept.path).read_bytes() == file.read_bytes()
    sources = (workspace.docs / "SOURCES.md").read_text()
    assert f"- [My report- 2026.pdf](My%20report-%202026.pdf): {file}, " in sources
    assert keep_document(workspace, str(file)) == KeptDocument(kept.path, str(file), new=False)
    file.write_bytes(make.pdf([["Another"]]))
    assert keep_document(workspace, str(file)).path == "docs/My report- 2026-2.pdf"
    assert (workspace.docs / "SOURCES.md").read_text().startswith(sources)


def test_what_is_no_document_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\1")
    with pytest.raises(UnreadableError):
        keep_document(workspace, str(tmp_path / "a.bin"))
    with pytest.raises(NotFoundError):
        keep_document(workspace, str(tmp_path / "gone.pdf"))
    assert not workspace.docs.exists()


def test_a_page_is_kept_as_its_article_without_what_runs(workspace: Workspace, site: str) -> None:
    kept = [keep_document(workspace, f"{site}/{name}") for name in ("kestrels", "moved", "packed")]
    assert [each.path for each in kept] == [
        "docs/web/on-kestrels.md",
        "docs/web/on-kestrels-2.md",
        "docs/web/on-kestrels-3.md",
    ]
    text = workspace.place(kept[0].path).read_text()
    assert text.startswith(f'---\ntitle: "On kestrels"\nsource: {site}/kestrels\n---\n')
    assert "The kestrel nests in the old mill above Tarn" in text
    assert not any(word in text for word in ("steal", "scripted", "All articles", "Imprint"))
    assert not keep_document(workspace, f"{site}/kestrels").new


def test_a_document_at_an_address_is_kept_as_it_is(workspace: Workspace, site: str) -> None:
    paths = [
        keep_document(workspace, f"{site}/{name}").path for name in ("report a.pdf", "download")
    ]
    assert paths == ["docs/web/report a.pdf", "docs/web/download.pdf"]
    with Documents(workspace) as documents:
        assert documents.read(paths[1]).parts[0][0] == "page 1"


@pytest.mark.parametrize(
    ("name", "error", "why"),
    [
        ("inside", RemoteError, "leads to localhost, which is on this machine or network"),
        ("file", UsageError, "file:///etc/passwd is no address of a page"),
        ("round", RemoteError, "leads from one address to the next"),
        ("nothing", RemoteError, "the server answered 404"),
        ("large", RemoteError, "answers with more than 0 MB"),
        ("bomb", RemoteError, "answers with more than 0 MB"),
        ("video", UnreadableError, "is video/mp4: no page and no document"),
    ],
)
def test_an_address_that_misbehaves_is_refused_with_the_reason(
    workspace: Workspace, site: str, monkeypatch: pytest.MonkeyPatch,
    name: str, error: type[KbtuiError], why: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(keeping, "_MAX_FETCHED_BYTES", 2000)
    with pytest.raises(error, match=why):
        keep_document(workspace, f"{site}/{name}")
    assert not workspace.docs.exists()


def test_a_page_without_text_is_not_kept(workspace: Workspace, site: str) -> None:
    with pytest.raises(UnreadableError, match="there is no text in it"):
        keep_document(workspace, f"{site}/bare")


def test_an_answer_that_never_ends_is_given_up(
    workspace: Workspace, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_SECONDS", 0.0)
    with pytest.raises(RemoteError, match="can't be reached"):
        keep_document(workspace, f"{site}/kestrels")


def test_a_public_address_never_leads_to_this_machine(
    workspace: Workspace, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_is_local", lambda _: False)  # as its name said at first
    with pytest.raises(RemoteError, match="on this machine or network"):
        keep_document(workspace, f"{site}/kestrels")


@pytest.mark.parametrize(
    "address",
    ["file:///etc/passwd", "ftp://example.org/a", "http://", "http://user:pass@example.org/",
     "http://[::1", "http://example.org:0/"],
)  # fmt: skip
def test_other_addresses_are_refused_without_asking_anybody(
    workspace: Workspace, address: str
) -> None:
    with pytest.raises(UsageError):
        keep_document(workspace, address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fe80::1%eth0"],
)
def test_private_addresses_are_known(address: str) -> None:
    assert not keeping._is_public(address)
    assert keeping._is_public("93.184.216.34")


def test_a_document_is_found_by_its_content_however_large(workspace: Workspace) -> None:
    data = bytes(files.READ_LIMIT + 1)
    workspace.docs.mkdir()
    (workspace.docs / "a.bin").mkdir()
    (workspace.docs / "a-2.bin").write_bytes(data)
    assert place_for(workspace, "docs", "a.bin", data) == ("docs/a-2.bin", False)
    assert place_for(workspace, "docs", "a.bin", b"b") == ("docs/a-3.bin", True)

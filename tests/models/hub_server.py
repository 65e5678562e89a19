"""A hub of models on loopback, as sentence-transformers' own answers, and as it may fail.

Used in a test::

    with Hub({"moon/tiny": folder}) as hub:
        hub.cut["model.safetensors"] = 1000  # the connection breaks there, once
        monkeypatch.setenv("HF_ENDPOINT", hub.origin)
"""

from __future__ import annotations

import hashlib
import json
import random
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

LARGE = 10_000
"""From this size a file is known by its SHA-256, as with Git LFS."""
_BLOCK = 1 << 16


class Hub:
    """A hub with the models of some folders.

    Attributes:
        cut: Where the connection breaks, once, by the names of files.
        status: The status with which everything is refused, if any; `code` is its X-Error-Code.
        changed: Files whose content isn't the one that is listed, by their names.
        slow: Holds up what comes after the first block of a large file, until it is set.
        asked: The methods, paths and ranges of all requests.
    """

    def __init__(self, models: Mapping[str, Path]) -> None:
        self._models = {
            name: {
                file.relative_to(folder).as_posix(): file.read_bytes()
                for file in sorted(folder.rglob("*"))
                if file.is_file()
            }
            for name, folder in models.items()
        }
        self.cut: dict[str, int] = {}
        self.status, self.code = 0, ""
        self.changed: dict[str, bytes] = {}
        self.slow = threading.Event()
        self.slow.set()
        self.asked: list[tuple[str, str, str]] = []
        self._http = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self})
        )
        self._http.daemon_threads = True
        self._http.block_on_close = False

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.slow.set()
        self._http.shutdown()
        self._http.server_close()

    def fetched(self, name: str) -> list[str]:
        """The ranges with which a file was asked for, empty for all of it."""
        return [
            r for method, path, r in self.asked if method == "GET" and path.endswith(f"/{name}")
        ]

    def files(self, name: str) -> dict[str, bytes]:
        return self._models[name]

    def revision(self, name: str) -> str:
        return hashlib.sha1(b"".join(self.files(name).values())).hexdigest()

    def listing(self, name: str) -> list[dict[str, Any]]:
        listed = []
        for path, data in self.files(name).items():
            blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            row: dict[str, Any] = {"size": len(data), "blobId": blob, "path": path}
            if len(data) >= LARGE:
                sha = hashlib.sha256(data).hexdigest()
                row["lfs"] = {"sha256": sha, "size": len(data), "pointerSize": 134}
            listed.append(row)
        return listed


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Stay quiet."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((self.command, path, self.headers.get("Range") or ""))
        with suppress(BrokenPipeError, ConnectionResetError):
            if self.hub.status:
                self._send(self.hub.status, b"{}", {"X-Error-Code": self.hub.code})
            elif path.startswith("/api/models/"):
                self._list(path.removeprefix("/api/models/"))
            else:
                self._file(path.removeprefix("/"))

    def _list(self, path: str) -> None:
        name, _, rest = path.partition("/tree/")
        name = name.partition("/revision/")[0]
        if name not in self.hub._models:
            self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            return
        rows = self.hub.listing(name)
        if rest:
            answer: Any = [{"type": "file", "oid": r["blobId"], **r} | _as_in_tree(r) for r in rows]
        else:
            siblings = [{"rfilename": r["path"], **r} for r in rows]
            answer = {"id": name, "sha": self.hub.revision(name), "siblings": siblings}
        self._send(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})

    def _file(self, path: str) -> None:
        name, _, rest = path.partition("/resolve/")
        file = rest.partition("/")[2]
        if file not in self.hub._models.get(name, {}):
            self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            return
        row = next(each for each in self.hub.listing(name) if each["path"] == file)
        data = self.hub.changed.get(file, self.hub.files(name)[file])
        tag = row["lfs"]["sha256"] if "lfs" in row else row["blobId"]
        headers = {"ETag": f'"{tag}"', "X-Repo-Commit": self.hub.revision(name)}
        start = self.headers.get("Range", "").removeprefix("bytes=").partition("-")[0]
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._send(206, data[int(start) :], headers, file)
        else:
            self._send(200, data, headers, file)

    def _send(self, status: int, data: bytes, headers: Mapping[str, str], file: str = "") -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if file in self.hub.cut:
            self.wfile.write(data[: self.hub.cut.pop(file)])
            self.close_connection = True
            return
        self.wfile.write(data[:_BLOCK])
        if len(data) > _BLOCK:
            self.wfile.flush()
            self.hub.slow.wait(300)
            self.wfile.write(data[_BLOCK:])


def _as_in_tree(row: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a row that the listing of a tree words otherwise."""
    lfs = row.get("lfs")
    return {"lfs": {**lfs, "oid": lfs["sha256"]}} if lfs else {}


WEIGHTS = "model.safetensors"
UNWANTED = ("pytorch_model.bin", "onnx/model.onnx", "openvino/config.json", "README.md", "train.py")


def write_model(folder: Path) -> Path:
    """Write what a model's folder has at the hub, copies for other programs as well."""
    modules = [
        {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ]
    texts = {
        "config.json": json.dumps({"model_type": "bert"}),
        "modules.json": json.dumps(modules),
        "1_Pooling/config.json": json.dumps({"pooling_mode": "mean"}),
        "tokenizer.json": json.dumps({"vocab": "x" * 20_000}),
        **dict.fromkeys(UNWANTED, "not wanted"),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / WEIGHTS).write_bytes(random.Random(1).randbytes(300_000))
    return folder


@contextmanager
def serving(
    models: Mapping[str, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hub]:
    """A hub that the program asks during the block, with an empty cache in `home`."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(home))
    with Hub(models) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.origin)
        yield hub

"""Fetching from and pushing to another repository with dulwich: a folder, https, ssh, git.

Every failure is reported as one sentence. Fetched objects are quarantined until they are inspected
(see `inspection`); a push is accepted by the other end completely or not at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from kbtui.errors import KbtuiError, RefusedHistoryError, RemoteError
from kbtui.history.door import MovedError
from kbtui.history.objects.branch import NAME
from kbtui.history.objects.pack_folder import INCOMING, PackFolder
from kbtui.history.objects.repository import Repository, as_unpacked
from kbtui.history.sync.compatibility import check_id, other_ids, shallow
from kbtui.history.sync.credentials import Credential, look_up
from kbtui.history.sync.git_settings import read_settings, ssh_command
from kbtui.history.sync.inspection import Inspection, MissingPartError, check_pack
from kbtui.history.sync.purge import PurgedTipError
from kbtui.history.sync.remote import (
    ConnectionTracker,
    DuplexStream,
    UnauthorizedError,
    parse_ssh_short,
    remote_error,
)
from kbtui.history.sync.shared_folder import UNVERSIONED, SharedFolder
from kbtui.text import clean_line
from kbtui.workspace.durable import make_folder, storage_errors, temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from dulwich.client import FetchPackResult, GitClient

    from kbtui.history.objects.pack_folder import PackRecord
    from kbtui.history.sync.remote import Address, SyncWatcher

MAX_PACK = 4 << 30
SECONDS = 60.0
"""The timeout in seconds while the other end is silent."""
_PROGRESS = re.compile(r"(?:remote: )?([^:]{1,60}): +\d+% \((\d{1,12})/(\d{1,12})\)")
"""git's format of progress."""
_REF = NAME.encode()
Result = TypeVar("Result")
_SHALLOW = b"shallow"
_SHA_1 = "sha1"


class Incoming:
    """Fetched objects in quarantine."""

    def __init__(self, repository: Repository, watcher: SyncWatcher) -> None:
        from dulwich.object_store import DiskObjectStore

        self._home = repository
        self._watcher = watcher
        self._folder = repository.folder / temporary_name(INCOMING)
        objects = self._folder / "objects"
        repository.confirm()
        make_folder(repository.folder, f"{self._folder.name}/objects/pack")
        (objects / "info").mkdir()
        (objects / "info" / "alternates").write_text(
            f"{(repository.folder / 'objects').resolve()}\n"
        )
        self.repository = Repository(self._folder)
        self._store = DiskObjectStore(objects, fsync_object_files=True)
        self.file, self._commit, self._abort = self._store.add_pack()
        self._size = 0

    def write(self, data: bytes) -> int:
        """Write a piece of the pack."""
        self._size += len(data)
        if self._size > MAX_PACK:
            raise RemoteError("The other history is larger than 4 GB; that can't be right.")
        return self.file.write(data)

    def admit(self, tip: str, purged: frozenset[str]) -> None:
        """Inspect everything, then install it in the repository."""
        large = self.inspect(tip, purged)
        self._home.confirm()
        self._home.note_large(large)
        PackFolder(self._home.folder).install(self._folder / "objects")

    def inspect(
        self,
        tip: str,
        purged: frozenset[str] = frozenset(),
        *,
        contents: bool = True,
        alone: bool = False,
    ) -> set[str]:
        """Inspect everything, and return the blobs that are too large for a workspace's files.

        Without `contents`, blobs may be missing; with `alone`, older commits may be.

        Raises:
            RefusedHistoryError: Something in it isn't valid git data.
            RemoteError: What was received isn't a pack.
            PurgedTipError: It is based on a purged commit.
        """
        if self._size:
            self.file.flush()
            check_pack(self.file, partial(self._watcher.count, "Unpacking what came"))
            try:
                self._commit()
            except _damage() as error:
                raise RemoteError("What the other side sent is damaged.", "Try again.") from error
        inspection = Inspection(self.repository, self._home, purged, contents=contents)
        watch = partial(self._watcher.count, "Looking through what came")
        inspection.check(tip, watch, alone=alone)
        return inspection.large

    def close(self) -> None:
        """Remove the quarantine."""
        if not self.file.closed:
            with contextlib.suppress(OSError):
                self._abort()
        self._store.close()
        self.repository.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Transport:
    """The connection to one address."""

    def __init__(
        self,
        address: Address,
        repository: Repository,
        watcher: SyncWatcher,
        branch: bytes = _REF,
    ) -> None:
        self._address = address
        self._folder = SharedFolder(address.folder, address.shown) if address.folder else None
        self._repository = repository
        self._watcher = watcher
        self._resources = contextlib.ExitStack()  # resources of the current connection
        self._branch = branch
        self._is_shallow = False  # whether a server said so
        self._credential: Credential | None = None

    @property
    def is_folder(self) -> bool:
        """Whether the other side is a local folder."""
        return self._folder is not None

    def prepare(self, *, is_known: bool) -> None:
        """Check a folder, or create a repository in it unless one `is_known` to have been there.

        Raises:
            RemoteError: It can't be used.
        """
        if self._folder is not None:
            self._folder.prepare(is_known=is_known)

    def fetch(self, have: Sequence[str], purged: frozenset[str]) -> str | None:
        """Fetch what the other side has, inspect it and install it.

        Args:
            have: Our newest commits.
            purged: Commits that must not come back.

        Returns:
            Their newest commit; None if there is none.

        Raises:
            RemoteError: The connection or the other end doesn't work.
            RefusedHistoryError: Their history can't be part of a workspace.
            PurgedTipError: It is based on a purged commit.
        """
        with self.fetched(have, self._repository, purged) as (tip, incoming):
            if tip is not None and tip not in self._repository:
                self._watcher.tell("Looking through what came")
                try:
                    incoming.admit(tip, purged)
                except MissingPartError as error:
                    raise self._incomplete() or error from error
        return tip

    @contextlib.contextmanager
    def fetched(
        self,
        have: Sequence[str],
        known: Container[str],
        purged: frozenset[str] = frozenset(),
        *,
        alone: bool = False,
    ) -> Iterator[tuple[str | None, Incoming]]:
        """Fetch what the other side has, and keep it in quarantine for the block.

        `known` are the commits that are completely here; `alone` asks for the newest commit without
        its ancestors. Raises the same errors as `fetch`.
        """
        self.prepare(is_known=self._address.known)
        with storage_errors("Can't keep what was fetched"):
            incoming = Incoming(self._repository, self._watcher)
        try:
            depth = 1 if alone else None
            yield self._let_in(self._fetch_into, incoming, have, known, purged, depth), incoming
        finally:
            incoming.close()

    def push(
        self,
        new: str,
        expected: str | None,
        pack: Callable[[], tuple[int, Iterator[PackRecord]]],
    ) -> None:
        """Send commits and move their branch to `new`.

        Args:
            new: The commit.
            expected: The commit that their branch must point to now.
            pack: Returns the number of objects they lack, and these.

        Raises:
            MovedError: It points elsewhere by now.
            RemoteError: The connection or the other end doesn't work.
        """
        if self._address.push is not None:
            pushing = Transport(self._address.push, self._repository, self._watcher, self._branch)
            pushing.prepare(is_known=self._address.known)
            pushing.push(new, expected, pack)
            return

        def update(refs: dict[Any, Any]) -> dict[Any, Any]:
            self._check_ids(refs)
            if refs.get(self._branch) != (expected.encode() if expected else None):
                raise MovedError("The other side has moved on.")
            return {self._branch: new.encode()}

        def data(*_: Any, **__: Any) -> tuple[int, Iterator[Any]]:
            count, records = pack()
            return count, as_unpacked(self._with_progress(count, records))

        if self._folder is not None and self._folder.is_checked_out(self._branch):
            raise self._checked_out()
        self._let_in(self._send, update, data)

    def _send(self, update: Callable[..., Any], data: Callable[..., Any]) -> None:
        with self._connected() as (client, path):
            result = client.send_pack(path, update, data, progress=self._progress)
            for refusal in (result.ref_status or {}).values():
                if refusal:
                    self._reject(str(refusal))
            if self._folder is not None:
                self._folder.settle()
                with contextlib.suppress(KbtuiError, OSError):  # a later sync may do it
                    self._folder.join_packs()

    def _let_in(self, exchange: Callable[..., Result], *arguments: Any) -> Result:
        """Exchange data, and once more with what git's helpers know if the server asks who it is.

        No data is lost on the way: a server asks before anything is sent.
        """
        try:
            return exchange(*arguments)
        except UnauthorizedError:
            found = None if self._credential else look_up(self._address.url, self._watcher.check)
            if found is None:
                raise
        self._credential = found
        try:
            done = exchange(*arguments)
        except UnauthorizedError:
            found.report("reject")
            raise
        found.report("approve")
        return done

    def prune(self, purged: frozenset[str]) -> str:
        """Delete what a folder still keeps of commits that a purge has replaced.

        Returns:
            A sentence that says why it may remain, empty if it doesn't.
        """
        if self._address.push is not None:
            return Transport(self._address.push, self._repository, self._watcher).prune(purged)
        if self._folder is None or not purged:
            return ""
        with storage_errors(f"Can't tidy up {self._address.shown}"), self._folder.writing():
            return self._folder.prune(purged)

    def _reject(self, why: str) -> None:
        if any(word in why for word in ("unable to set", "fetch first", "stale", "lock")):
            raise MovedError("The other side has moved on.")
        if "currently checked out" in why:
            raise self._checked_out()
        raise RemoteError(
            f"{self._address.shown} doesn't take the changes: {clean_line(why)}.",
            "Your own history is as it was. Look whether the branch is protected there.",
        )

    def _checked_out(self) -> RemoteError:
        return RemoteError(
            f"{self._address.shown} has the branch to send to checked out: its files would stay"
            " behind, and the next commit there would take back what was sent.",
            "Nothing was sent. Sync with a bare repository (git clone --bare), or check out another"
            " branch there.",
        )

    def _check_ids(self, refs: Mapping[Any, Any]) -> None:
        for identifier in refs.values():
            if identifier == _SHALLOW:  # dulwich takes the line for a ref
                self._is_shallow = True
            elif identifier is not None:
                check_id(identifier, self._address.shown)

    def _incomplete(self) -> KbtuiError | None:
        """Return the error for a history that says itself that it isn't whole, else None."""
        if self._folder is not None:
            return self._folder.incomplete()
        return shallow(self._address.shown) if self._is_shallow else None

    def _with_progress(self, count: int, records: Iterator[PackRecord]) -> Iterator[PackRecord]:
        for number, record in enumerate(records):
            if number % 500 == 0:
                self._watcher.count("Sending", number, count)
            yield record

    def _fetch_into(
        self,
        incoming: Incoming,
        have: Sequence[str],
        known: Container[str],
        purged: frozenset[str],
        depth: int | None,
    ) -> str | None:
        from dulwich.errors import GitProtocolError
        from dulwich.object_store import ObjectStoreGraphWalker

        found: list[str] = []

        def wants(refs: Mapping[Any, Any], depth: int | None = None) -> list[Any]:  # noqa: ARG001
            self._check_ids(refs)
            if self._branch != UNVERSIONED:
                self._branch = _branch_of(refs, self._address.shown)
            tip = refs.get(self._branch)
            if tip is not None:
                found.append(tip.decode())
                if found[0] in purged:
                    raise PurgedTipError(found[0])
            return [] if tip is None or found[0] in known else [tip]

        def parents(identifier: bytes) -> list[Any]:
            before = self._repository.read_commit(identifier.decode()).parents
            return [each.encode() for each in before if each in self._repository]

        size = 0

        def take(data: bytes) -> int:
            nonlocal size
            if size >> 20 != (size + len(data)) >> 20:
                self._watcher.tell(f"Receiving, {(size + len(data)) >> 20:,} MB so far")
            self._watcher.check()
            size += len(data)
            return incoming.write(data)

        heads: list[Any] = [each.encode() for each in have]
        walker = ObjectStoreGraphWalker(heads, parents)
        with self._connected() as (client, path):
            fetch = partial(client.fetch_pack, path, wants, walker, take, self._progress)
            try:
                self._note(fetch(depth=depth), depth)
            except GitProtocolError as error:
                if depth is None or "shallow" not in str(error):
                    raise
                found.clear()
                self._note(fetch(), None)  # the server doesn't support shallow fetches
        return found[0] if found else None

    def _note(self, result: FetchPackResult, depth: int | None) -> None:
        """Note what a fetch tells about the repository; an empty one tells its ids only so."""
        if result.object_format not in (None, _SHA_1):
            raise other_ids(self._address.shown)
        self._is_shallow |= depth is None and bool(result.new_shallow)

    def _progress(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace").replace("\r", "\n").strip().rpartition("\n")[2]
        if (counted := _PROGRESS.match(text)) is not None:
            self._watcher.count(counted[1], int(counted[2]), int(counted[3]))
        elif text:
            self._watcher.tell(text)

    def _client(self) -> tuple[GitClient, str]:
        from dulwich.client import SSHGitClient, default_urllib3_manager, get_transport_and_path

        text = self._address.url
        if self._folder is not None:
            return _folder_client(), text
        if text.startswith("git:"):
            return self._git_client(text)
        if (short := parse_ssh_short(text)) is not None:
            user, host, port, path = short
            ssh = SSHGitClient(
                host, port, user, ssh_command=ssh_command(), thin_packs=False, quiet=True
            )
            self._add_timeout(ssh)
            return ssh, path
        pool = None
        if text.startswith("http"):
            pool = default_urllib3_manager(
                read_settings(),
                proxy_manager_cls=_proxied,  # type: ignore[arg-type]
                base_url=text,
                timeout=SECONDS,
            )
            self._resources.enter_context(ConnectionTracker(pool).cut_when_stopped(self._watcher))
        client, path = get_transport_and_path(
            text,
            thin_packs=False,
            quiet=True,
            username=self._credential.user if self._credential else None,
            password=self._credential.password if self._credential else None,
            ssh_command=ssh_command(),
            pool_manager=pool,  # type: ignore[arg-type]
        )
        if isinstance(client, SSHGitClient):
            self._add_timeout(client)
        return client, path

    def _add_timeout(self, client: Any) -> None:
        """Make an ssh client wait only as long as the timeout."""
        run, connect = client.ssh_vendor.run_command, client._connect  # noqa: SLF001 — no other way
        lines: list[DuplexStream] = []

        def run_command(*arguments: Any, **more: Any) -> Any:
            connection = run(*arguments, **more)
            process = connection.proc
            readable, writable = process.stdout.fileno(), process.stdin.fileno()
            line = DuplexStream(readable, writable, self._watcher, SECONDS)
            line.on_end(process.kill)
            line.kept = connection.read  # its file would close the descriptor when freed
            connection.read, connection.write = line.read_fully, line.send
            lines.append(line)
            return connection

        def connected(*arguments: Any, **more: Any) -> Any:
            made = connect(*arguments, **more)
            lines[-1].on_end(made[0].close)
            return made

        client.ssh_vendor.run_command = run_command
        client._connect = connected  # noqa: SLF001

    def _git_client(self, text: str) -> tuple[GitClient, str]:
        """Return a client for git:// that waits only as long as the timeout."""
        from dulwich.client import TCPGitClient
        from dulwich.protocol import Protocol

        parts = urlsplit(text)
        watcher = self._watcher

        class PatientClient(TCPGitClient):
            def _connect(
                self, cmd: bytes, path: str | bytes, protocol_version: int | None = None
            ) -> Any:
                connected = socket.create_connection((self._host, self._port), SECONDS)
                number = connected.fileno()
                line = DuplexStream(number, number, watcher, SECONDS)
                protocol = Protocol(line.read_fully, line.send, connected.close)
                line.on_end(protocol.close)
                wanted = 2 if protocol_version is None else protocol_version
                self.protocol_version = wanted if cmd == b"upload-pack" else 0
                version = b"\0\0version=%d\0" % wanted if self.protocol_version == 2 else b""
                place = path if isinstance(path, bytes) else path.encode()
                place = place[1:] if place.startswith(b"/~") else place
                host = b"host=" + self._host.encode("idna")
                protocol.send_cmd(b"git-" + cmd, place, host + version)
                return protocol, line.has_data, None

        client = PatientClient(parts.hostname or "", parts.port, thin_packs=False, quiet=True)
        return client, parts.path

    @contextlib.contextmanager
    def _connected(self) -> Iterator[tuple[GitClient, Any]]:
        """Open a client for the block, and translate its errors."""
        self._watcher.tell(f"Connecting to {self._address.shown}")
        try:
            with contextlib.ExitStack() as self._resources:
                if self._folder is not None:
                    self._resources.enter_context(self._folder.writing())
                client, path = self._client()
                with contextlib.closing(client):
                    yield client, path
        except (KbtuiError, PurgedTipError):
            raise
        except Exception as error:
            self._watcher.check()
            is_cut = self._folder is not None and isinstance(error, KeyError)
            known = (self._incomplete() if is_cut else None) or remote_error(error, self._address)
            if known is None:
                raise
            raise known from error


def _branch_of(refs: Mapping[bytes, Any], place: str) -> bytes:
    """Return the branch to sync with: ours, else the other side's current one.

    Raises:
        RefusedHistoryError: It has several, and none is current.
    """
    others = sorted(
        name for name in refs if name.startswith(b"refs/heads/") and name != UNVERSIONED
    )
    if _REF in refs or not others:
        return _REF
    in_use = [name for name in others if refs[name] == refs.get(b"HEAD")]
    if len(others) > 1 and len(in_use) != 1:
        names = ", ".join(clean_line(name[11:].decode("utf-8", "replace")) for name in others[:5])
        raise RefusedHistoryError(
            f"{place} has no branch `main`, but several others: {names}.",
            "Nothing was changed. Call the one that is meant `main` there: `git branch -m NAME"
            " main`.",
        )
    return (in_use or others)[0]


def _proxied(proxy: str, *, proxy_headers: Any, **more: Any) -> Any:
    """Return a pool manager for a proxy as git's settings name it: none if empty, or HOST:PORT."""
    from urllib3 import PoolManager, ProxyManager

    if not proxy:
        return PoolManager(**more)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    return ProxyManager(proxy, proxy_headers=proxy_headers, **more)


def _folder_client() -> GitClient:
    """Return a client for folders that traverses commits without git's bitmaps.

    dulwich expects one for every pack, but after ``git gc`` only one pack has one, and after the
    next push every fetch would fail.
    """
    from dulwich.client import LocalGitClient
    from dulwich.repo import Repo

    class FolderClient(LocalGitClient):
        @classmethod
        def _open_repo(cls, path: str | bytes) -> contextlib.closing[Repo]:
            opened = Repo(os.fsdecode(path))
            store: Any = opened.object_store
            walk = store.get_reachability_provider
            store.get_reachability_provider = partial(walk, prefer_bitmaps=False)
            return contextlib.closing(opened)

    return FolderClient(thin_packs=False)


def _damage() -> tuple[type[Exception], ...]:
    import zlib

    from dulwich.errors import ApplyDeltaError, ChecksumMismatch, FileFormatException
    from dulwich.pack import UnresolvedDeltas

    return (
        ApplyDeltaError,
        ChecksumMismatch,
        FileFormatException,
        UnresolvedDeltas,
        zlib.error,
        AssertionError,
        KeyError,
        ValueError,
    )

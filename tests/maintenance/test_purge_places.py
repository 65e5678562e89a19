"""A secret in every place that there is: after a purge no byte of it is left, and nothing broke."""

from __future__ import annotations

import base64
import bz2
import gzip
import hashlib
import html
import io
import json
import lzma
import os
import sqlite3
import subprocess
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import platformdirs
import pytest

from kbtui.errors import UsageError
from kbtui.history.change import Actor
from kbtui.history.history import History
from kbtui.history.sync.sync import parse_address
from kbtui.knowledge_base import KnowledgeBase
from kbtui.logs import log_file
from kbtui.maintenance.purge import Purging
from kbtui.memory.background.service import Inbox
from kbtui.redaction.secret import MARKER, Secret
from kbtui.sessions.log_records import Mask
from kbtui.workspace.opening import create_workspace
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from kbtui.workspace.layout import Workspace

SECRET = 'hunter "2" sk-äöü/\'+line'
SLUG = "hunter-2-sk-aou-line"
NESTED = json.dumps({"title": "x", "body": f"it is {SECRET}"})
DECOMPOSED = unicodedata.normalize("NFD", SECRET)

IN_FILES: dict[str, bytes] = {
    # the entries
    "knowledge/topics/body.md": SECRET.encode(),
    "knowledge/topics/title.md": f"---\ntitle: {json.dumps(SECRET)}\n---\nx\n".encode(),
    "knowledge/topics/tags.md": f"---\ntags: [a, {json.dumps(SECRET)}]\n---\nx\n".encode(),
    "knowledge/topics/single.md": "---\ntitle: '{}'\n---\n".format(
        SECRET.replace("'", "''")
    ).encode(),
    "knowledge/topics/link.md": f"See [[topics/{SLUG}]] and [x]({SLUG}.md).\n".encode(),
    f"knowledge/topics/{SLUG}.md": b"named so\n",
    f"knowledge/projects/about-{SLUG}/in-folder.md": b"in a folder that is named so\n",
    "knowledge/topics/decomposed.md": DECOMPOSED.encode(),
    "knowledge/topics/windows.md": SECRET.encode("cp1252"),
    "knowledge/topics/body.conflict-20260101T000000.md": SECRET.encode(),
    "knowledge/topics/.body.md.swp": SECRET.encode(),
    "knowledge/topics/body.md.bak": SECRET.encode(),
    # what it knows of people and itself
    **{f"{name}.md": f"- {SECRET}\n".encode() for name in ("SOUL", "USER", "AGENTS", "TOOLS")},
    "memory/MEMORY.md": SECRET.encode(),
    "memory/2026-01-01.md": SECRET.encode(),
    "memory/HISTORY.md": SECRET.encode(),
    "memory/history.jsonl": json.dumps({"cursor": 1, "content": SECRET}).encode() + b"\n",
    "skills/odd/SKILL.md": SECRET.encode(),
    # documents
    "docs/a/plain.txt": SECRET.encode(),
    "docs/a/little.txt": SECRET.encode("utf-16-le"),
    "docs/a/big.txt": SECRET.encode("utf-16-be"),
    "docs/a/based.txt": base64.b64encode(b"--" + SECRET.encode() + b"--"),
    "docs/a/mail.txt": base64.urlsafe_b64encode(b"-" + SECRET.encode() + b"--"),
    "docs/a/hex.txt": SECRET.encode().hex().encode(),
    "docs/a/HEX.txt": SECRET.encode().hex().upper().encode(),
    "docs/a/quoted.txt": quote(SECRET, safe="").encode(),
    "docs/a/page.html": html.escape(SECRET).encode(),
    "docs/a/value.json": json.dumps({"a": [1, {"b": SECRET}]}, indent=1).encode(),
    "docs/a/key.json": json.dumps({f"of {SECRET}": 1}).encode(),
    "docs/a/ascii.json": json.dumps([SECRET], ensure_ascii=True).encode(),
    "docs/a/torn.json": b'{"a": "' + SECRET.encode(),
    f"docs/{SLUG}/plan.txt": b"in a folder that is named so",
    f"docs/a/{SLUG}.txt": b"named so",
    f"docs/a/{SLUG.replace('-', '_')}.csv": b"named so",
    # conversations
    "sessions/told.jsonl": json.dumps(
        {"kind": "message", "role": "user", "content": SECRET}
    ).encode(),
    "sessions/tool.jsonl": json.dumps(
        {"role": "assistant", "tool_calls": [{"id": "c", "name": "x", "arguments": NESTED}]}
    ).encode(),
    "sessions/titled.jsonl": json.dumps({"kind": "title", "title": SECRET}).encode() + b"\n",
    "sessions/told.jsonl.torn-20260101T000000-1": b'{"content": "' + SECRET.encode(),
    # the machine's own
    ".kbtui/inbox/ab12.json": json.dumps({"edits": [{"text": SECRET}]}).encode(),
    ".kbtui/taken-over.md": SECRET.encode(),
    "kbtui.toml": b"# " + SECRET.encode() + b"\n",
}
BESIDE = {
    "log": "kbtui.log",
    "older log": "kbtui.log.3",
    "draft": "0123456789abcdef/draft.md",
    "input": "0123456789abcdef/input.jsonl",
    "remotes": "remotes.json",
    "token": "mcp-token",
}


def forms() -> list[bytes]:
    """Every form that is planted; worked out apart from the code under test."""
    plain = SECRET.encode()
    nested = json.dumps(NESTED)
    start = nested.index("hunter")
    return [
        plain,
        SLUG.encode(),
        SLUG.replace("-", "_").encode(),
        json.dumps(SECRET)[1:-1].encode(),
        json.dumps(SECRET, ensure_ascii=False)[1:-1].encode(),
        nested[start : nested.index("line", start)].encode(),
        SECRET.replace("'", "''").encode(),
        SECRET.encode("utf-16-le"),
        SECRET.encode("utf-16-be"),
        SECRET.encode("cp1252"),
        DECOMPOSED.encode(),
        base64.b64encode(plain)[:-4],
        base64.b64encode(b"x" + plain)[4:-4],
        base64.b64encode(b"xy" + plain)[4:-4],
        base64.urlsafe_b64encode(b"x" + plain)[4:-4],
        plain.hex().encode(),
        plain.hex().upper().encode(),
        quote(SECRET, safe="").encode(),
        html.escape(SECRET).encode(),
    ]


def roots(workspace: Workspace) -> list[Path]:
    state = platformdirs.user_state_path("kbtui", appauthor=False)
    return [workspace.root, platformdirs.user_cache_path("kbtui"), state, log_file().parent]


def everything(folders: list[Path]) -> dict[str, bytes]:
    """All bytes: names, targets of links, files, what is compressed in them, tables."""
    found: dict[str, bytes] = {}
    for folder in folders:
        for file in [folder, *folder.rglob("*")]:
            found[f"name of {file}"] = os.fsencode(file.name)
            if file.is_symlink():
                found[f"target of {file}"] = os.fsencode(file.readlink())
            elif (file / "objects").is_dir():
                found |= objects(file)
            elif file.is_file():
                data = found[str(file)] = file.read_bytes()
                if data[:1] == b"\x78":
                    found[f"inside {file}"] = zlib.decompress(data)
                if data.startswith(b"SQLite"):
                    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as opened:
                        found[f"tables of {file}"] = "\n".join(opened.iterdump()).encode()
                    opened.close()
    return found


def objects(repository: Path) -> dict[str, bytes]:
    """Every object, in a pack or not, reachable or not."""
    git = ["git", "--git-dir", str(repository), "cat-file", "--batch-all-objects"]
    run = subprocess.run([*git, "--batch"], capture_output=True, check=True)
    refs = subprocess.run(
        ["git", "--git-dir", str(repository), "for-each-ref"], capture_output=True, check=True
    )
    return {f"objects of {repository}": run.stdout, f"refs of {repository}": refs.stdout}


def leaks(folders: list[Path]) -> set[str]:
    known = forms()
    return {
        name for name, data in everything(folders).items() if any(form in data for form in known)
    }


def history_of(workspace: Workspace) -> History:
    history = History(workspace, Scanner(workspace))
    history.open()
    return history


def plant_history(workspace: Workspace, history: History) -> list[str]:
    """Earlier versions, deleted notes, reasons, proposals, and what git programs leave."""

    def write(path: str, text: str | None, reason: str = "why") -> str:
        with history.change(Actor.YOU, reason) as change:
            change.delete(path) if text is None else change.write(path, text)
        assert change.result is not None
        return change.result.id

    write("knowledge/topics/first.md", "clean\n")
    write("knowledge/facts/gone.md", f"{SECRET}\n")
    write("knowledge/facts/gone.md", None)
    write(f"knowledge/facts/{SLUG}.md", "clean\n")
    write(f"knowledge/facts/{SLUG}.md", None)
    write("knowledge/facts/edited.md", f"{SECRET}\n")
    write("knowledge/facts/edited.md", "clean\n", f"took out {SECRET}")
    history.undo(write("knowledge/facts/edited.md", f"clean\n{SECRET}\n"))
    history.tidy()
    inbox = Inbox(workspace, history)
    inbox.add(Actor.MCP, f"found {SECRET}", {"knowledge/topics/first.md": f"clean\n{SECRET}\n"})
    inbox.reject(inbox.add(Actor.DREAM, "no", {"knowledge/topics/first.md": f"{SECRET}\n"}).id)
    inbox.accept(inbox.add(Actor.DREAM, "yes", {"knowledge/topics/new.md": f"{SECRET}\n"}).id)

    def git(*arguments: str, text: str = "") -> str:
        command = ["git", "--git-dir", str(workspace.repository), *arguments]
        env = os.environ | {
            f"GIT_{who}_{what}": f"{SECRET}@x"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        return subprocess.run(
            command, input=text, capture_output=True, text=True, check=True, env=env
        ).stdout.strip()

    git("hash-object", "-w", "--stdin", text=f"unreachable {SECRET}")
    git("tag", "-a", "v1", "-m", SECRET, "main")
    git("update-ref", f"refs/heads/{SLUG}", "main")
    tree = git("rev-parse", "main^{tree}")
    git("update-ref", "refs/stash", git("commit-tree", tree, "-p", "main", "-m", SECRET))
    foreign = git("commit-tree", tree, "-p", "main", "-m", "by a person")
    git("update-ref", "--create-reflog", "-m", SECRET, "refs/heads/main", foreign)
    return [
        "deleted",
        "name",
        "edited",
        "reason",
        "undone",
        "packed",
        "waits",
        "rejected",
        "accepted",
        "loose",
        "tag",
        "branch",
        "stash",
        "author",
        "reflog",
    ]


def plant(workspace: Workspace) -> int:
    """Put it everywhere; gives in how many places."""
    with KnowledgeBase.open(
        workspace.root, create=True, overrides={"search": {"semantic": False}}
    ) as kb:
        history_places = plant_history(workspace, kb.history)
    for name, data in IN_FILES.items():
        file = workspace.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (workspace.docs / "link").symlink_to(f"/nowhere/{SLUG}")
    (workspace.docs / f"{SLUG}-link").symlink_to("/nowhere")
    log, state = log_file().parent, platformdirs.user_state_path("kbtui", appauthor=False)
    for what, name in BESIDE.items():
        file = (log if "log" in what else state) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(SECRET) if file.suffix.startswith(".json") else SECRET
        file.write_text(text if what != "remotes" else json.dumps({"/x": f"https://u:{SECRET}@h"}))
    other = platformdirs.user_cache_path("kbtui") / "fedcba9876543210" / "index.bin"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"\0\1" + SECRET.encode())
    scratch = Path(tempfile.gettempdir()) / "kbtui-abcd_123.md"
    scratch.write_text(SECRET)
    for killed in ("kbtui-search-abcd_123", "kbtui-0123456789abcdef-abcd_123"):
        index = Path(tempfile.gettempdir()) / killed / "index.bin"
        index.parent.mkdir()
        index.write_bytes(b"\0\1" + SECRET.encode())
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        kb.history.adopt(settle=0)
        kb.library.refresh()
        kb.library.flush()
        kb.search.sync()
    caches = ["words index", "chunks", "catalogue", "another's cache"]
    return len(IN_FILES) + len(BESIDE) + len(history_places) + len([*caches, "links", "scratch"])


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return create_workspace(tmp_path / "notes")


@pytest.mark.slow
def test_no_byte_of_it_is_left_in_any_place(workspace: Workspace, tmp_path: Path) -> None:
    assert plant(workspace) >= 60
    looked = [*roots(workspace), tmp_path / "tmp", tmp_path / "remote.git"]
    address = parse_address(str(tmp_path / "remote.git"))
    history = history_of(workspace)
    history.sync(address)
    assert len(leaks(looked)) > len(IN_FILES)
    assert any("remote.git" in each for each in leaks(looked))
    done = Purging(workspace, history).run(Secret(SECRET))
    assert done.left == ()
    history = history_of(workspace)
    assert history.sync(address).replaced
    assert leaks(looked) == set()
    for repository in (workspace.repository, tmp_path / "remote.git"):
        git = ["git", "--git-dir", str(repository), "fsck", "--full", "--strict"]
        run = subprocess.run(git, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout + run.stderr) == (0, "")
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        kb.library.refresh()
        kb.search.sync()
        assert kb.history.adopt(settle=0) is None
        assert (
            kb.library.find("topics/link").text == "See [[topics/removed]] and [x](removed.md).\n"
        )
        assert kb.library.find("topics/removed").text == "named so\n"
        assert kb.library.find("topics/title").title == MARKER
        assert list(kb.library.find("topics/tags").tags) == ["a", MARKER]
        assert kb.sessions.open("told").messages[0].content == MARKER
    assert leaks(looked) == set()
    assert (workspace.docs / "removed/plan.txt").is_file()
    assert json.loads((workspace.docs / "a/key.json").read_text()) == {f"of {MARKER}": 1}


def test_a_folder_that_was_pruned_still_takes_and_gives(
    workspace: Workspace, tmp_path: Path
) -> None:
    address = parse_address(str(tmp_path / "remote.git"))
    (workspace.knowledge / "topics").mkdir(exist_ok=True)
    (workspace.knowledge / "topics/a.md").write_text(f"a\n{SECRET}\n")
    history = history_of(workspace)
    history.adopt(settle=0)
    history.sync(address)
    Purging(workspace, history).run(Secret(SECRET))
    history = history_of(workspace)
    history.sync(address)
    other = history_of(create_workspace(tmp_path / "other"))
    other.sync(address)
    with other.change(Actor.YOU, "why") as change:
        change.write("knowledge/topics/b.md", "new\n")
    other.sync(address)
    assert history.sync(address).received == 1
    assert (workspace.knowledge / "topics/b.md").read_text() == "new\n"


def test_a_prune_that_was_cut_off_is_made_by_the_next_sync(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = parse_address(str(tmp_path / "remote.git"))
    (workspace.root / "USER.md").write_text(SECRET)
    history = history_of(workspace)
    history.adopt(settle=0)
    history.sync(address)
    Purging(workspace, history).run(Secret(SECRET))
    with monkeypatch.context() as patch:
        patch.setattr("kbtui.history.sync.sync.Sync._prune", lambda _self, _transport, done: done)
        history.sync(address)
    assert leaks([tmp_path / "remote.git"])
    history.sync(address)
    assert not leaks([tmp_path / "remote.git"])


@pytest.mark.parametrize("moment", [1, 2, 3])
def test_a_prune_that_died_is_finished_by_the_next_sync(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    address, remote = parse_address(str(tmp_path / "remote.git")), tmp_path / "remote.git"
    history = history_of(workspace)
    for text in ("first", SECRET, "last"):
        (workspace.root / "USER.md").write_text(text)
        history.adopt(settle=0)
        history.sync(address)
    loose = ["git", "--git-dir", remote, "hash-object", "-w", "--stdin"]
    subprocess.run(loose, input=f"loose {SECRET}".encode(), check=True, capture_output=True)
    Purging(workspace, history).run(Secret(SECRET))
    history, seen, unlink = history_of(workspace), 0, Path.unlink

    def die(file: Path, *, missing_ok: bool = False) -> None:
        nonlocal seen
        is_object = "/objects/" in str(file) and "remote.git" in str(file)
        seen += is_object
        if is_object and seen == moment:
            raise SystemExit
        unlink(file, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", die)
        with pytest.raises(SystemExit):
            history.sync(address)
    assert leaks([remote])
    history.sync(address)
    assert not leaks([remote])
    assert not list(remote.glob("kbtui-*"))


def test_a_folder_with_other_branches_is_left_and_said(
    workspace: Workspace, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    (workspace.root / "USER.md").write_text(SECRET)
    history = history_of(workspace)
    history.adopt(settle=0)
    history.sync(parse_address(str(remote)))
    subprocess.run(["git", "--git-dir", remote, "branch", "mine", "main"], check=True)
    Purging(workspace, history).run(Secret(SECRET))
    (note,) = history_of(workspace).sync(parse_address(str(remote))).notes
    assert "mine" in note
    assert "may keep what was purged" in note


# What a purge must not touch -----------------------------------------------------------------


def packed(kind: str) -> bytes:
    """A file of a program's own, with the secret where no search of its bytes would see it."""
    if kind == "pdf":
        body = zlib.compress(b"BT (" + SECRET.encode() + b") Tj ET")
        return b"%PDF-1.7\n1 0 obj\n<</Filter/FlateDecode>>\nstream\n" + body + b"\nendstream\n"
    if kind in PACKERS:
        return PACKERS[kind](SECRET.encode())
    inner = packed("docx") if kind == "zip" else f"<w:t>{html.escape(SECRET)}</w:t>".encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", inner)
    return stream.getvalue()


PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("kind", ["pdf", "docx", "zip", *PACKERS])
@pytest.mark.parametrize("folder", ["docs", "knowledge/topics"])
def test_what_is_compressed_is_found_listed_and_deleted_when_asked(
    workspace: Workspace, kind: str, folder: str
) -> None:
    file = workspace.root / folder / f"paper.{kind}"
    data = packed(kind)
    file.write_bytes(data)
    history = history_of(workspace)
    left = Purging(workspace, history).run(Secret(SECRET)).left[0]
    assert f"paper.{kind}" in left
    assert "--delete-binaries" in left
    assert file.read_bytes() == data
    assert Purging(workspace, history).run(Secret(SECRET), delete_binaries=True).left == ()
    assert not file.exists()
    kept = history_of(workspace).find_secret(Secret(SECRET))
    assert kept == []


def test_pictures_documents_and_databases_keep_every_byte(workspace: Workspace) -> None:
    (workspace.root / "USER.md").write_text(SECRET)
    files = {
        workspace.docs / f"f{n}.bin": begin + b"\0\1\2" + SECRET.encode()
        for n, begin in enumerate(
            [
                b"PK\3\4",
                b"%PDF-",
                b"\x89PNG",
                b"\xff\xd8\xff",
                b"GIF89a",
                b"RIFF",
                b"SQLite format 3\0",
            ]
        )
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(SECRET.encode())
        archive.addfile(member, io.BytesIO(SECRET.encode()))
    files[workspace.docs / "a.tar"] = stream.getvalue()
    for file, data in files.items():
        file.write_bytes(data)
    Purging(workspace, history_of(workspace)).run(Secret(SECRET))
    assert {file: file.read_bytes() for file in files} == files


@pytest.mark.parametrize("word", ["content", "assistant", "message", "session", "tool_calls"])
def test_a_word_of_the_format_of_conversations_breaks_none(workspace: Workspace, word: str) -> None:
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        session = kb.sessions.create("test")
        session.append("user", f"my {word}", turn="t0123456789")
        session.append("assistant", f"your {word}", turn="t0123456789")
        was = [(each.id, each.role, each.turn, each.time) for each in session.messages]
        identifier = session.id
    Purging(workspace, history_of(workspace)).run(Secret(word))
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        session = kb.sessions.open(identifier)
        assert [(each.id, each.role, each.turn, each.time) for each in session.messages] == was
        assert [each.content for each in session.messages] == [f"my {MARKER}", f"your {MARKER}"]


def test_a_secret_that_is_a_part_of_an_id_is_left_there_and_said(workspace: Workspace) -> None:
    history = history_of(workspace)
    log = workspace.sessions / "tui_20261122-223000-ab12.jsonl"
    log.parent.mkdir(exist_ok=True)
    record = {"role": "user", "content": "it is 223000", "turn": "t2230000000", "id": 2230001}
    log.write_text(json.dumps(record) + "\n")
    (left,) = Purging(workspace, history).run(Secret("223000")).left
    assert "tui_20261122-223000-ab12" in left
    assert "part of an id" in left
    assert json.loads(log.read_text()) == record | {"content": f"it is {MARKER}"}


def test_words_that_were_forgotten_stay_so(workspace: Workspace) -> None:
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        session = kb.sessions.create("test")
        text = f"the key {SECRET} and the walrus sings"
        session.append("user", text)
        start = text.index("walrus")
        kb.sessions.mask(session.id, [Mask(1, ((start, start + 6),))])
        identifier = session.id
    Purging(workspace, history_of(workspace)).run(Secret(SECRET))
    with KnowledgeBase.open(workspace.root, overrides={"search": {"semantic": False}}) as kb:
        (message,) = kb.sessions.open(identifier).messages
        assert "walrus" not in message.content
        assert "the [forgotten] sings" in message.content
    assert SECRET not in (workspace.sessions / f"{identifier}.jsonl").read_text()


def test_a_common_word_is_refused_until_its_count_is_said(workspace: Workspace) -> None:
    file = workspace.docs / "long.txt"
    file.write_text("the password of the day\n" * 30)
    purging = Purging(workspace, history_of(workspace))
    with pytest.raises(UsageError, match="30 times in 1 files") as refused:
        purging.run(Secret("password"))
    assert "--count 30" in refused.value.hint
    with pytest.raises(UsageError):
        purging.run(Secret("password"), confirmed=29)
    assert "password" in file.read_text()
    purging.run(Secret("password"), confirmed=30)
    assert "password" not in file.read_text()


def test_a_key_that_stands_often_is_no_word(workspace: Workspace) -> None:
    (workspace.docs / "long.txt").write_text("sk-0123456789abcdef\n" * 60)
    assert Purging(workspace, history_of(workspace)).run(Secret("sk-0123456789abcdef")).left == ()


def test_repositories_and_workspaces_inside_are_left_alone_and_said(workspace: Workspace) -> None:
    own = workspace.docs / "code"
    subprocess.run(["git", "init", "-q", own], check=True)
    (own / ".git" / "description").write_text(SECRET)
    subprocess.run(["git", "init", "-q", "--bare", workspace.docs / "bare.git"], check=True)
    (workspace.docs / "bare.git/description").write_text(SECRET)
    create_workspace(workspace.docs / "inner")
    digest = hashlib.sha256((own / ".git/config").read_bytes()).digest()
    left = Purging(workspace, history_of(workspace)).run(Secret(SECRET)).left
    for place in ("docs/code/.git", "docs/bare.git", "docs/inner"):
        assert sum(place in each and "not looked at" in each for each in left) == 1
    assert (own / ".git/description").read_text() == SECRET
    assert hashlib.sha256((own / ".git/config").read_bytes()).digest() == digest


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_said(workspace: Workspace) -> None:
    file = workspace.docs / "closed.txt"
    file.write_text(SECRET)
    file.chmod(0)
    (left,) = Purging(workspace, history_of(workspace)).run(Secret(SECRET)).left
    assert "closed.txt" in left


def test_in_a_vault_in_place_only_notes_and_ours_are_written(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / f"About {SLUG}").mkdir(parents=True)
    for name in ("a.md", f"About {SLUG}/b.md", "a.conflict-20260101T000000.md"):
        (vault / name).write_text(f"x {SECRET}\n")
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian/workspace.json").write_text(json.dumps({"query": SECRET}))
    workspace = create_workspace(vault)
    assert workspace.in_place
    history = history_of(workspace)
    history.adopt(settle=0)
    (left,) = Purging(workspace, history).run(Secret(SECRET)).left
    assert ".obsidian/workspace.json: a file of your own" in left
    assert (vault / "a.md").read_text() == f"x {MARKER}\n"
    assert (vault / "About removed/b.md").is_file()
    assert SECRET not in (vault / "a.conflict-20260101T000000.md").read_text()
    assert history_of(workspace).adopt(settle=0) is None


def test_a_purge_keeps_what_machines_are_called_and_how_changes_hang_together(
    workspace: Workspace,
) -> None:
    history = history_of(workspace)
    with history.change(Actor.DREAM, "kbtui dream tidied") as change:
        change.write("knowledge/topics/a.md", "dream on\nand kbtui dream\n")
    Purging(workspace, history).run(Secret("kbtui dream"))
    commits = list(history_of(workspace).log())
    assert [commit.actor for commit in commits][-1] is Actor.DREAM
    assert commits[-1].who == "dream"
    raw = subprocess.run(
        ["git", "--git-dir", workspace.repository, "log", "--format=%an %ae"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "kbtui dream dream@kbtui.invalid" in raw

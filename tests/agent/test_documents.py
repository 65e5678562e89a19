"""Documents in a turn: searched, read, cited with their page, and attached."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING

from kbtui.agent.context import assemble
from kbtui.agent.events import NoticeGiven
from kbtui.models.port import OfflineModel
from kbtui.tui.notes.documents import load_document
from tests.agent.conftest import QUICK, ask, model_at
from tests.agent.test_tools import Tools
from tests.documents import make
from tests.scripted_server import Reply, ScriptedServer

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.sessions.store import Session

MILL = "The kestrel nests in the old mill above Tarn."


def test_a_document_that_was_found_or_read_is_cited_with_its_page(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.workspace.docs.mkdir(exist_ok=True)
    (kb.workspace.docs / "a.pdf").write_bytes(make.pdf())
    tools = Tools(kb, session)
    assert "[1] docs/a.pdf (page 2, lines 5-6, score" in tools.ok("search", query="nests tarn")
    assert "[2] docs/a.pdf (page 1, lines 1-" in tools.ok("read", path="docs/a.pdf")
    cited = tools.context.sources.cited_in(f"{MILL} [1] [2]")
    assert [(each.first, each.place) for each in cited] == [(6, "page 2"), (6, "page 2")]
    shown = load_document(kb, "docs/a.pdf")
    assert MILL in shown.text.split("\n")[cited[0].first - 1]
    assert not shown.editable


def test_a_document_that_cannot_be_read_is_refused_with_the_reason(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.workspace.docs.mkdir(exist_ok=True)
    (kb.workspace.docs / "locked.pdf").write_bytes(make.pdf(encrypted=True))
    error = Tools(kb, session).error("read", path="docs/locked.pdf")
    assert "docs/locked.pdf can't be read: it is protected by a password." in error
    assert load_document(kb, "docs/locked.pdf").reason.startswith("It can't be read: it is prot")


def test_documents_are_attached_by_their_text(kb: KnowledgeBase) -> None:
    kb.workspace.docs.mkdir(exist_ok=True)
    (kb.workspace.docs / "a b.pdf").write_bytes(make.pdf())
    (kb.workspace.docs / "locked.pdf").write_bytes(make.pdf(encrypted=True))
    text = 'Compare @"docs/a b.pdf" with @docs/locked.pdf.'
    prompt = assemble(kb, None, text, model=OfflineModel())
    assert [(each.path, MILL in each.text, each.note) for each in prompt.attachments] == [
        ("docs/a b.pdf", True, ""),
        ("docs/locked.pdf", False, "it is protected by a password"),
    ]


PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def test_a_picture_goes_to_a_model_that_takes_pictures(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.workspace.docs.mkdir(exist_ok=True)
    (kb.workspace.docs / "a.png").write_bytes(PNG)
    with ScriptedServer([Reply("A mill."), Reply("A mill, as I said.")]) as server:
        model = model_at(server, replace(QUICK, vision=True))
        told = await ask(kb, session, "What is on @docs/a.png?", model)
        await ask(kb, session, "Sure?", model)
        text, picture = server.prompts[0].messages[-1]["content"]
        later = json.dumps(server.prompts[1].messages)
    assert '<attachment path="docs/a.png" note="shown below"></attachment>' in text["text"]
    assert picture["image_url"]["url"] == f"data:image/png;base64,{b64encode(PNG).decode()}"
    assert not [event for event in told.events if isinstance(event, NoticeGiven)]
    assert "base64" not in later


async def test_what_a_model_is_not_shown_is_said_to_both(
    kb: KnowledgeBase, session: Session
) -> None:
    kb.workspace.docs.mkdir(exist_ok=True)
    (kb.workspace.docs / "a.png").write_bytes(PNG)
    (kb.workspace.docs / "b.png").write_bytes(b"MZ")
    with ScriptedServer([Reply("I can't see it.")]) as server:
        told = await ask(kb, session, "What is on @docs/a.png and @docs/b.png?", model_at(server))
        sent = server.prompts[0].messages[-1]["content"]
    notices = [event.text for event in told.events if isinstance(event, NoticeGiven)]
    assert notices[0].startswith("docs/a.png isn't shown to the model: it is a picture, and this")
    assert notices[1] == (
        "docs/b.png isn't shown to the model: it is no picture of the kind image/png."
    )
    assert isinstance(sent, str)
    assert "it is a picture, and this model is not known to take any" in sent

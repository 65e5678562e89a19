"""Documents in a turn: searched, read, cited with their page, and attached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.agent.context import assemble
from kbtui.models.offline import OfflineModel
from kbtui.tui.notes.documents import load_document
from tests.agent.test_tools import Tools
from tests.documents import make

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
    assert "[1] docs/a.pdf (page 2, lines 5-6, score" in tools.ok(
        "vector_search", query="nests tarn"
    )
    assert "[2] docs/a.pdf (page 1, lines 1-" in tools.ok("read_file", path="docs/a.pdf")
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
    error = Tools(kb, session).error("read_file", path="docs/locked.pdf")
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

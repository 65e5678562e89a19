"""One export of each newer layout, made here, with all the parts that the layout knows.

Every text that a person wrote or was shown is there once, so that what became of it can be counted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.importers import exports
from tests.importers.exports import written
from tests.importers.sources import (
    test_aider,
    test_codex,
    test_continue_dev,
    test_cursor,
    test_gemini,
    test_joplin,
    test_keep,
    test_librechat,
    test_logseq,
    test_open_webui,
    test_roam,
    test_slack,
    test_telegram,
    test_whatsapp,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _claude(place: Path) -> None:
    def tool(**made: str) -> dict[str, object]:
        return {"type": "tool_use", "name": "artifacts", "input": {"id": "a", **made}}

    asked = exports.claude_message(
        1,
        "Please read the lease",
        attachments=[{"file_name": "lease of the flat.txt", "extracted_content": "Rent is due"}],
        files=[{"file_name": "photo of the roof.png"}],
    )
    blocks = [
        {"type": "thinking", "thinking": "First the rent"},
        tool(command="create", title="Letter to him", content="Dear Mr Pell"),
        tool(command="update", old_str="Dear Mr Pell", new_str="Dear Konrad Pell"),
        {"type": "tool_use", "name": "create_file", "input": {"path": "a.py", "file_text": "x = 1 # one"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "File was written"}]},
        {"type": "text", "text": "Here it is"},
    ]  # fmt: skip
    answer = exports.claude_message(2, "Here it is", content=blocks)
    talk = exports.claude("c1", name="The lease again", chat_messages=[asked, answer])
    design = {
        "uuid": "d1", "title": "Drawing a boat", "created_at": "2026-05-01T09:00:00Z",
        "messages": [{"uuid": "m", "role": "user", "content": {"content": "Draw a boat"}}],
    }  # fmt: skip
    project = {
        "uuid": "p1", "name": "Garden of ours", "description": "Beds and trees",
        "prompt_template": "Answer in short", "creator": {"uuid": "u", "full_name": "Ada Byron"},
        "docs": [{"uuid": "d", "filename": "plan of beds.md", "content": "Tomatoes go south"}],
    }  # fmt: skip
    written(place / "conversations-000.json", [talk])
    written(place / "projects/p1.json", project)
    written(place / "design_chats/d1.json", design)
    written(place / "memories.json", [{"conversations_memory": "She is a cook"}])
    written(place / "users.json", [{"uuid": "u", "full_name": "Ada Byron"}])


def _chatgpt(place: Path) -> None:
    told = {
        "content_type": "user_editable_context",
        "user_profile": "I am a cook",
        "user_instructions": "Be very brief",
    }
    kept = {"content_type": "model_editable_context", "model_set_context": "Likes leek soup"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Aa1"}
    spoken = {"content_type": "audio_transcription", "text": "Said it aloud"}
    canvas = json.dumps({"name": "Plan of work", "content": "Beans come first"})
    nodes = (
        exports.node("a", None, "user", content=told),
        exports.node("b", "a", "assistant", content=kept),
        exports.node("c", "b", "user", content={"content_type": "multimodal_text", "parts": [picture, "Look at it"]}),
        exports.node("d", "c", "user", content={"content_type": "multimodal_text", "parts": [spoken]}),
        exports.node("e", "d", "assistant", content={"content_type": "code", "text": canvas}, recipient="canmore.create_textdoc"),
        exports.node("f", "e", "assistant", content={"content_type": "thoughts", "thoughts": [{"summary": "Weighing the beans"}]}),
        exports.node("g", "f", "assistant", "It is done"),
    )  # fmt: skip
    talk = exports.chatgpt("g1", *nodes, title="Beans and peas", gizmo_id="g-p-1")
    written(place / "conversations-000.json", [talk])
    (place / "file-Aa1-garden.png").write_bytes(b"\x89PNG")


def _gemini(place: Path) -> None:
    act = test_gemini.act(
        "How long boil leeks", "<p>Ten minutes <b>at most</b></p>", "2026-01-05T10:00:00Z"
    )
    canvas = {
        **test_gemini.act("", "", "2026-01-05T10:01:00Z"),
        "title": "Created Gemini Canvas titled Menu of today",
        "subtitles": [{"name": "Soup and bread"}],
        "safeHtmlItem": [],
    }  # fmt: skip
    written(place / "My Activity.json", [canvas, {**act, "attachedFiles": ["pot of soup.png"]}])
    (place / "pot of soup.png").write_bytes(b"\x89PNG")


def _gemini_page(place: Path) -> None:
    place.mkdir(parents=True)
    cell = test_gemini._cell(
        "How long boil leeks", "Jan 5, 2026, 10:00:00 AM CET", "<p>Ten minutes at most</p>"
    )
    test_gemini._page(place / "MyActivity.html", cell)  # fmt: skip


def _open_webui(place: Path) -> None:
    asked = test_open_webui.message(
        "m1", None, "user", "What about soup", files=[{"type": "file", "name": "list of soups.pdf"}]
    )
    answer = test_open_webui.message("m2", "m1", "assistant", "Boil the leeks")
    written(place / "chat-export.json", [test_open_webui.chat("o1", asked, answer)])


def _librechat(place: Path) -> None:
    messages = (
        test_librechat.message("m1", test_librechat.ROOT, "Leek soup today?", mine=True),
        test_librechat.message("m3", "m1", "Boil them well"),
    )
    written(place / "soup.json", test_librechat.talk(*messages))


def _keep(place: Path) -> None:
    note = test_keep.note(title="Soup of leeks", textContent="Boil them well", textContentHtml="")
    link = {"source": "WEBLINK", "title": "Recipe of hers", "url": "https://x.org/a"}
    things = [{"text": "Buy some leeks", "isChecked": False}]
    todo = test_keep.note(title="Things to buy", listContent=things, textContentHtml="")
    del todo["textContent"]
    written(
        place / "Keep/a.json",
        {**note, "labels": [{"name": "Food and drink"}], "annotations": [link]},
    )
    written(place / "Keep/b.json", todo)  # fmt: skip


def _roam(place: Path) -> None:
    inner = test_roam.block("b2", "and salt them")
    written(place / "roam.json", [test_roam.page("Soup of leeks", test_roam.block("b1", "Boil them well", inner))])  # fmt: skip


def _logseq(place: Path) -> None:
    inner = test_logseq.block("b2", "and salt them")
    page = test_logseq.page("Soup of leeks", test_logseq.block("b1", "Boil them well", inner))
    written(place / "logseq.json", test_logseq.graph(page))


def _telegram(place: Path) -> None:
    said = (
        test_telegram.message(1, test_telegram.ANNA, "Is there soup?"),
        test_telegram.message(2, test_telegram.ME, ["See ", {"type": "bold", "text": "the leeks"}]),
        test_telegram.message(3, test_telegram.ANNA, "", photo="photos/a.jpg"),
    )
    written(place / "result.json", test_telegram.every(test_telegram.chat(*said)))


def _slack(place: Path) -> None:
    test_slack.workspace(place)
    file = {"name": "list of soups.pdf", "title": "All our soups"}
    said = [
        test_slack.message("U1", "Is there soup?"),
        test_slack.message("U2", "Yes there is", files=[file]),
    ]
    written(place / "garden/2023-11-14.json", said)  # fmt: skip


def _whatsapp(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "WhatsApp Chat with Anna.txt").write_text(test_whatsapp.ANDROID, "utf-8")


def _joplin(place: Path) -> None:
    for name, data in test_joplin.MEMBERS:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)


def _cursor(place: Path) -> None:
    test_cursor.database(place / "state.vscdb", test_cursor.SPLIT)


def _continue(place: Path) -> None:
    written(place / "sessions/c-1.json", test_continue_dev.SESSION)


def _aider(place: Path) -> None:
    place.mkdir(parents=True)
    (place / ".aider.chat.history.md").write_text(test_aider.HISTORY, "utf-8")


def _codex(place: Path) -> None:
    lines = [
        test_codex.META,
        test_codex.event("user_message", "Fix the soup"),
        test_codex.event("agent_reasoning", "Leeks are missing"),
        test_codex.event("agent_message", "Done with it"),
    ]
    place.mkdir(parents=True)
    (place / "rollout-1.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))


TWINS: dict[str, Callable[[Path], None]] = {
    "Claude, 2026": _claude,
    "ChatGPT, 2026": _chatgpt,
    "Gemini": _gemini,
    "Gemini, web page": _gemini_page,
    "Open WebUI": _open_webui,
    "LibreChat": _librechat,
    "Google Keep": _keep,
    "Roam": _roam,
    "Logseq": _logseq,
    "Telegram": _telegram,
    "Slack": _slack,
    "WhatsApp": _whatsapp,
    "Joplin": _joplin,
    "Cursor": _cursor,
    "Continue": _continue,
    "aider": _aider,
    "Codex CLI": _codex,
}
"""Each writes its export into a folder that isn't there yet."""

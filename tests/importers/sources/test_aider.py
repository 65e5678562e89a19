"""Aider's chat history, a file of Markdown in which every run goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.importers.port import ImportedConversation, Skipped
from kbtui.importers.sources.aider import SOURCE

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

HISTORY = """
# aider chat started at 2025-06-19 14:32:16

> /usr/bin/aider --model sonnet
> Git repo: .git with 12 files

#### /add app.py
> Added app.py to the chat

#### Why does the kestrel hover?
#### And where?

It faces the wind:

```python
#### no question
> no notice
print("hover")
```

#### /ask Is that all?

Yes.

> Tokens: 2.1k sent, 120 received.

# aider chat started at 2025-06-20 09:00:00

> Git repo: .git with 12 files

# aider chat started at 2025-06-21 09:00:00

#### Thanks.
"""


def of(file: Path, text: str, read: Any) -> tuple[list[ImportedConversation], list[Skipped]]:
    file.write_text(text)
    items = read(SOURCE, file)
    talks = [each for each in items if isinstance(each, ImportedConversation)]
    return talks, [each for each in items if isinstance(each, Skipped)]


def test_each_run_is_a_conversation_with_what_was_typed_and_answered(
    tmp_path: Path, read: Any
) -> None:
    (first, last), skipped = of(tmp_path / ".aider.chat.history.md", HISTORY, read)
    assert [(each.role, each.text) for each in first.messages] == [
        ("user", "Why does the kestrel hover?\nAnd where?"),
        (
            "assistant",
            'It faces the wind:\n\n```python\n#### no question\n> no notice\nprint("hover")\n```',
        ),
        ("user", "Is that all?"),
        ("assistant", "Yes."),
    ]
    assert dict(first.named) == {"notice of the program": 4, "command to the program": 1}
    assert first.title.startswith("Why does the kestrel")
    assert [each.text for each in last.messages] == ["Thanks."]
    assert "1 of the runs" in skipped[0].why


def test_a_grown_history_gives_the_same_conversations_and_the_new_one(
    tmp_path: Path, read: Any
) -> None:
    before, _ = of(tmp_path / "a.md", HISTORY, read)
    more = "\n\nYou are welcome.\n\n# aider chat started at 2025-06-22 09:00:00\n\n#### New\n"
    after, _ = of(tmp_path / "b.md", HISTORY + more, read)
    assert [each.id for each in after][:2] == [each.id for each in before]
    assert [each.text for each in after[1].messages] == ["Thanks.", "You are welcome."]
    assert len(after) == 3


def test_a_block_of_code_that_never_ends_swallows_no_question(tmp_path: Path, read: Any) -> None:
    start = "# aider chat started at 2025-06-19 14:32:16\n\n"
    text = start + "#### One?\n\n```\ncut\n\n> Tokens: 1k sent\n\n#### Two?\n\nYes.\n"
    (talk,), _ = of(tmp_path / "a.md", text, read)
    assert [each.text for each in talk.messages] == ["One?", "```\ncut", "Two?", "Yes."]


def test_it_is_found_in_the_folder_of_a_project(tmp_path: Path, read: Any) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "README.md").write_text("# Mine\n")
    talks, _ = of(project / ".aider.chat.history.md", HISTORY, read)
    found = [each for each in read(SOURCE, project) if isinstance(each, ImportedConversation)]
    assert [each.id for each in found] == [each.id for each in talks]


def test_a_quote_in_an_answer_is_no_notice_of_a_program_that_ends_its_lines(
    tmp_path: Path, read: Any
) -> None:
    said = "It is said:\n\n> It faces\n> the wind.\n\nSo it is."
    text = f"\n# aider chat started at 2025-06-19 14:32:16\n\n> Aider v0.90  \n\n#### Why?  \n\n{said}\n"
    (talk,), _ = of(tmp_path / "a.md", f"{text}\n> Tokens: 2k sent.  \n> Applied edit  \n", read)
    assert [each.text for each in talk.messages] == ["Why?", said]
    assert dict(talk.named) == {"notice of the program": 3}

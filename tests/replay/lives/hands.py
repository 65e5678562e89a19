"""Lives in which a person edits files by hand, as any editor does, and the program follows."""

from __future__ import annotations

from tests.replay.lives.life import life
from tests.replay.stage import Stage


@life
def notes_by_hand(stage: Stage) -> None:
    """Notes are written, changed, moved and deleted by hand; changes are undone one by one."""
    desk = stage.machine("desk", user="Ada Quill")
    desk.kbtui("init", desk.notes)
    desk.write(
        "knowledge/topics/composting.md",
        "---\ntype: topic\ntags: [garden]\n---\n# Composting\n\nTurn the heap every week.\n"
        "It likes straw.\n\n## Worms\n\nRed wigglers, not earthworms.\n",
    )
    desk.write("knowledge/people/tilda.md", "# Tilda\n\nKeeps bees. See [[topics/composting]].\n")
    desk.kbtui("list", "--json")
    desk.edit("knowledge/topics/composting.md", "every week", "every ten days")
    desk.append("knowledge/people/tilda.md", "Her hives stand by the mill.\n")
    desk.kbtui("log", "--json")
    stage.pass_(hours=5)
    desk.edit("knowledge/topics/composting.md", "It likes straw.", "It likes straw and leaves.")
    desk.kbtui("why", "topics/composting:7")
    desk.move("knowledge/topics/composting.md", "knowledge/topics/compost.md")
    desk.kbtui("links", "compost", "--json")
    desk.kbtui("log", "--json", "compost")
    changes = desk.json("log", "knowledge/people/tilda.md")
    desk.kbtui("undo", changes[0]["commit"])
    desk.kbtui("undo", status=2)  # what was edited outside is taken back only where it is named
    desk.remove("knowledge/people/tilda.md")
    desk.kbtui("list", "--json")
    desk.kbtui("restore", "knowledge/people/tilda.md", "--at", "HEAD~1")
    desk.kbtui("edit", "tilda", **desk.edits_with('echo "- Sells honey" >> "$1"'))
    desk.kbtui("undo", "--json")


@life
def what_looks_like_a_heading(stage: Stage) -> None:
    """Fences, comments, quotes and tables hold what looks like headings, links, tags and tasks."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    desk.kbtui("new", "topic", "Signals", "--body", "Green means go.")
    desk.kbtui("new", "person", "Rosa", "--body", "Lights the lamps.")
    desk.write(
        "knowledge/topics/marks.md",
        "# Marks\n\nSee [[Signals]], `[[Signals]]` and [[signals#Green|the green one]].\n\n"
        "```md\n# No heading\n[[Signals]] #notag\n- [ ] no task\n```\n\n"
        "~~~~\n```\n[[Signals]]\n~~~~\n\n"
        "- a bullet\n  ```\n  [[Signals]]\n  ```\n- [ ] a task for [[Rosa]] #lamps\n"
        "- [x] done on 2026-02-01\n\n"
        "> quoted [[Signals]]\n> ## In a quote\n\n"
        "<!-- [[Signals]] #hidden\n- [ ] no task -->\n\n"
        "| what | who |\n| --- | --- |\n| [[Signals\\|lights]] | [Rosa](../people/rosa.md) |\n\n"
        "    # indented code [[Signals]]\n\nTitle below\n===========\n\n[^1]: [[Signals]] says so.\n\n"
        "%% [[Signals]] %%\n\n$$\n[[Signals]]\n$$\n\n## Open fence\n\n```\n[[Signals]]\n",
    )
    desk.write(
        "knowledge/topics/quoted fence.md", "# Q\n\n> ```\n> [[Signals]]\n\nafter [[Rosa]]\n"
    )
    desk.write("knowledge/topics/item fence.md", "- ```\n  [[Signals]]\n- item [[Rosa]] #lamps\n")
    desk.kbtui("links", "signals", "--json")
    desk.kbtui("links", "marks", "--json")
    desk.kbtui("list", "--tag", "lamps", "--json")
    desk.kbtui("search", "--json", "tag:lamps task")
    desk.kbtui("rename", "Signals", "Signal lights", "--json")
    desk.kbtui("links", "signal-lights", "--json")
    desk.kbtui("delete", "rosa", "--json")
    desk.kbtui("undo")
    desk.kbtui("undo")
    desk.kbtui("rename", "rosa", "people/Rosa of the lamps")


@life
def odd_files(stage: Stage) -> None:
    """Line ends, marks of byte order, broken properties, huge lines and odd names."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    files: dict[str, str | bytes] = {
        "topics/crlf.md": "---\r\ntype: topic\r\n---\r\n# Crlf\r\n\r\nOne.\r\nTwo [[plain]].\r\n",
        "topics/bom.md": "\ufeff---\ntype: topic\ntags: [odd]\n---\n# Bom\n\nWith a mark [[plain]].\n",
        "topics/cr.md": "# Cr\r\rOld Mac [[plain]].\r",
        "topics/mixed.md": "# Mixed\r\n\none\ntwo\r\nthree\u2028four\x0cfive\x85six\n",
        "topics/utf16.md": "# Sixteen\n\n[[plain]]\n".encode("utf-16"),
        "topics/broken.md": "---\ntype: topic\ntags: [a, b\nprivate: no\n---\n# Broken\n\n[[plain]]\n",
        "topics/no end.md": "---\ntype: topic\ntitle: It never ends\n\n[[plain]]\n",
        "topics/nul.md": b"# Nul\n\n\0\0 [[plain]]\n",
        "topics/long.md": "# Long\n\n" + "word [[plain]] " * 4000 + "\n",
        "topics/empty.md": "",
        "topics/no newline.md": "# No newline\n\n[[plain]] at the end",
        "topics/deep.md": "# Deep\n\n" + "".join(f"{'  ' * n}- level {n}\n" for n in range(60)),
        "topics/inline.md": "status:: growing\n# Inline\n\nprivate:: false [[plain]]\n",
        "topics/plain.md": "# Plain\n\nThe one that others name.\n",
        "topics/Ünï & co (1).md": "# Odd name\n\n[p](plain.md) [q](<Plain.md>)\n",
        "facts/anchors.md": "---\na: &x [1]\nb: *x\ntags: odd, even\naliases: Anker\n---\n# Anchors\n",
    }
    for name, text in files.items():
        desk.write(f"knowledge/{name}", text)
    desk.kbtui("list", "--json")
    desk.kbtui("check", "--json", status=(0, 1))
    desk.kbtui("rename", "plain", "Simple", "--json", status=range(6))
    desk.kbtui("show", "crlf")
    desk.kbtui("edit", "crlf", **desk.edits_with('printf "Three.\\r\\n" >> "$1"'))
    desk.kbtui("edit", "mixed", **desk.edits_with('sed -i "s/^two/TWO/" "$1"'))
    desk.kbtui("undo")
    desk.kbtui("links", "simple", "--json", status=range(6))
    desk.kbtui("search", "--json", "four five six", status=(0, 1))
    desk.kbtui("undo")
    desk.kbtui("undo")


@life
def deleting_much(stage: Stage) -> None:
    """Many notes vanish at once, which waits for a person; folders are moved; all is brought back."""
    desk = stage.machine("desk")
    desk.kbtui("init", desk.notes)
    for n in range(1, 9):
        desk.write(
            f"knowledge/references/paper-{n}.md",
            f"---\ntype: reference\ntags: [paper]\n---\n# Paper {n}\n\n"
            f"It measures {n * 7} tides. See [[paper-{n % 8 + 1}]].\n",
        )
    desk.kbtui("list")
    for n in (2, 3, 4, 5, 6):
        desk.remove(f"knowledge/references/paper-{n}.md")
    desk.kbtui("list")
    desk.kbtui("log", "--json")
    desk.kbtui("check", status=(0, 1))
    desk.kbtui("restore", "references/paper-2", "--at", "HEAD", status=range(6))
    desk.kbtui("list", "--at", "HEAD")
    desk.move("knowledge/references", "knowledge/library/papers")
    desk.kbtui("list", "--json")
    desk.kbtui("delete", "paper-8")
    desk.kbtui("links", "paper-7", "--json", status=range(6))
    desk.kbtui("restore", "--to-before", "HEAD", "--dry-run")
    desk.kbtui("restore", "--to-before", "HEAD")
    stage.pass_(days=3)
    desk.kbtui("list", "--at", "2026-03-02", "--json")

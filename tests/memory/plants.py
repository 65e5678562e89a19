"""Inventions in every kind of Markdown, to be planted by whatever writes; ``{}`` is the invention.

What surrounds one was said, or is kbtui's own, so that the invention alone decides.
"""

from __future__ import annotations

SAID = "Remember this: Alice owns the analytics database, written down at https://example.org/spec"
LINE = "Alice owns the analytics database"
INVENTION = "banks with Evilbank"
WORD = "evilbank"

# Lines that say something by themselves.
BLOCKS = {
    "paragraph": "{}",
    "bullet": "- {}",
    "numbered item": "1. {}",
    "nested item": f"- {LINE}\n  - {{}}",
    "second line of an item": f"- {LINE}\n  {{}}",
    "task": "- [ ] {}",
    "done task": "- [x] {}",
    "title": "# {}",
    "heading": f"## {{}}\n\n{LINE}",
    "closed heading": f"### {{}} ###\n\n{LINE}",
    "setext title": f"{{}}\n===\n\n{LINE}",
    "setext heading": f"{{}}\n---\n\n{LINE}",
    "heading in an item": f"- ## {{}}\n- {LINE}",
    "heading in a quote": f"> ## {{}}\n>\n> {LINE}",
    "table header": "| {} | Alice |\n|---|---|\n| owns | database |",
    "table cell": "| Alice | database |\n|---|---|\n| owns | {} |",
    "table without outer pipes": "Alice | database\n---|---\nowns | {}",
    "fence": "```\n{}\n```",
    "tilde fence": "~~~\n{}\n~~~",
    "fence that never ends": f"{LINE}\n\n```\n{{}}",
    "comment in a fence": "```python\n# {}\n```",
    "fence on a bullet's line": "- ```\n  {}\n  ```",
    "fence on a numbered line": "1. ~~~\n   {}\n   ~~~",
    "fence in a quote": "> ```\n> {}\n> ```",
    "behind a fence that a quote ended": f"> ```\n> {LINE}\n\n## {{}}\n\n{LINE}",
    "behind a fence that an item ended": f"- ```\n  {LINE}\n\n## {{}}\n\n{LINE}",
    "what a fence begins with": f"```{{}}\n{LINE}\n```",
    "indented code": "\n    {}",
    "formula": "$$\n{}\n$$",
    "quote": "> {}",
    "lazy line of a quote": f"> {LINE}\n{{}}",
    "callout": "> [!note]\n> {}",
    "title of a callout": f"> [!note] {{}}\n> {LINE}",
    "folded callout": f"> [!tip]- {{}}\n> {LINE}",
    "footnote": f"{LINE}[^1]\n\n[^1]: {{}}",
    "Obsidian's comment": "%% {} %%",
    "Obsidian's comment of several lines": "%%\n{}\n%%",
    "comment": "<!-- {} -->",
    "comment of several lines": "<!--\n{}\n-->",
    "HTML": "<div>\n{}\n</div>",
    "HTML heading": "<h2>{}</h2>",
    "definition of a term": f"{LINE}\n: {{}}",
    "properties in the text": "---\nnote: {}\n---",
}
# A word in a line of which the rest was said.
INLINE = {
    "inline code": f"{LINE} `{{}}`",
    "tag": f"{LINE} #{{}}",
    "nested tag": f"{LINE} #alice/{{}}",
    "text of a link": f"{LINE}, [{{}}](https://example.org/spec)",
    "target of a link": f"{LINE}, [spec](https://example.org/{{}})",
    "title of a link": f'{LINE}, [spec](https://example.org/spec "{{}}")',
    "relative target": f"{LINE}, [spec]({{}}.md)",
    "wikilink": f"{LINE} [[{{}}]]",
    "label of a wikilink": f"{LINE} [[alice|{{}}]]",
    "heading of a wikilink": f"{LINE} [[alice#{{}}]]",
    "embed": f"{LINE} ![[{{}}.png]]",
    "alt text": f"{LINE} ![{{}}](https://example.org/spec)",
    "target of a picture": f"{LINE} ![spec](https://example.org/{{}}.png)",
    "link by reference": f"{LINE} [spec][{{}}]",
    "definition of a link": f"{LINE} [spec]\n\n[spec]: https://example.org/{{}}",
    "title of a definition": f'{LINE} [spec]\n\n[spec]: https://example.org/spec "{{}}"',
    "autolink": f"{LINE} <https://{{}}.example.org/spec>",
    "name of a footnote": f"{LINE}[^{{}}]\n\n[^{{}}]: {LINE}",
    "inline footnote": f"{LINE}^[{{}}]",
    "name of a block": f"{LINE} ^{{}}",
    "comment within a line": f"{LINE} %%{{}}%%",
    "HTML comment within a line": f"{LINE} <!-- {{}} -->",
    "attribute": f'<b title="{{}}">{LINE}</b>',
    "picture in HTML": f'{LINE} <img alt="{{}}">',
    "inline formula": f"{LINE} ${{}}$",
    "inline property": f"{LINE}\n{{}}:: Alice",
    "kind of a callout": f"> [!{{}}]\n> {LINE}",
    "cell": "| Alice | owns |\n|---|---|\n| analytics | {} |",
}
BODIES = {
    **{kind: text.replace("{}", INVENTION) for kind, text in BLOCKS.items()},
    **{kind: text.replace("{}", WORD) for kind, text in INLINE.items()},
}

"""Parsing of the links in a document, with their positions.

There are three kinds: ``related`` lists in frontmatter, ``[[wikilinks]]`` (with heading, block,
alias, and embedded with ``!``; in the body and in any frontmatter value, as in Obsidian), and
relative Markdown links, including reference definitions, HTML's ``<a href>`` and tags of sites'
generators. A link may stand in the text of another. Links in code are ignored.

Dendron writes the label of a wikilink first: ``[[label|note]]``. Only the existing notes tell which
order was meant, so links are parsed in Obsidian's order, and `Link.turned` swaps the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from kbtui.knowledge.format.document import read_body
from kbtui.knowledge.format.yaml_edit import LISTS_OF_WORDS, Node
from kbtui.text import holds_any

LinkKind = Literal["related", "wiki", "markdown"]

_WIKI = re.compile(
    r"(?:!(?<!\\!)\[\[|\[(?<!\\\[)\[)(?P<target>[^\[\]|#\n]*)(?P<heading>#[^\[\]|\n]*)?"
    r"(?:\\?\|(?P<alias>(?:[^\[\]\n]|\[[^\[\]\n]*\](?=\()"
    r"|\[\[[^\[\]\n]*\]\])*))?\]\]"
)
_LABEL = r"[^\[\]\\\n]|\n(?![ \t>]*\n)|\\."
"""A character of a label, which may go on in the next line of its paragraph."""
_GAP = r"[ \t]*(?:\n[ \t>]*)?"
_MARKDOWN = re.compile(
    rf"(?<!\\)!?\[(?P<alias>(?:{_LABEL}|\[(?:[^\[\]\n]|\[[^\[\]\n]*\])*\])*)\]\({_GAP}"
    r"(?:<(?P<angle>[^<>\n]*)>|(?P<bare>[^\s()<>]+(?:\([^\s()<>]*\)[^\s()<>]*)*))"
    rf"(?:(?=\s){_GAP}(?:\"[^\"\n]*\"|'[^'\n]*'|\([^()\n]*\)))?{_GAP}\)"
)
_ANCHOR = re.compile(
    r"<a\b[^<>]*?\bhref[ \t]*=[ \t]*(?:\"(?P<angle>[^\"<>\n]*)\"|'(?P<bare>[^'<>\n]*)')[^<>]*>"
    r"(?P<alias>.{0,2000}?)</a[ \t]*>",
    re.IGNORECASE | re.DOTALL,
)
_DEFINITION = re.compile(
    r"^ {0,3}\[(?P<alias>[^\[\]\n]+)\]:[ \t]*(?P<gap>\n[ \t]*)?"
    r"(?:<(?P<angle>[^<>\n]*)>|(?P<bare>[^\s<>]+))(?(gap)(?!\S)(?=[ \t]*(?:[\"'(]|$)))",
    re.MULTILINE,
)
_TAG = (
    r"(?:\{\{[<%][ \t]*(?:(?:rel)?ref|include|embed)[ \t]+(?:path=)?"
    r"(?:\"(?P<angle>[^\"\n]*)\"|(?P<bare>[^\s\"`=>%]+))[^>%{\n]*[>%]\}\}"
    r"|\{%-?[ \t]*link[ \t]+(?P<liquid>[^%{}\n]*[^%{}\s-])[ \t]*-?%\})"
)
_SHORTCODE = re.compile(rf"(?<!\\)\[(?P<alias>(?:{_LABEL})*)\]\([ \t]*{_TAG}[^\s()]*[ \t]*\)")
_SHORTCODE_ALONE = re.compile(rf"(?<!\()(?<!\([ \t])(?P<alias>){_TAG}")
"""Tags of sites' generators that name a page: ``[Leek]({{< ref "garden/leek" >}})``, as Hugo and
Quarto write it, ``{% link leek.md %}``, as Jekyll does, and such a tag by itself."""
IN_VAULT = "dendron://"
"""The prefix of a Dendron link that names both a vault and a note."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")


_MARKDOWN_FORMS = (
    (("](",), _MARKDOWN),
    (("]:",), _DEFINITION),
    (("</",), _ANCHOR),
    (("{{", "{%"), _SHORTCODE),
    (("{{", "{%"), _SHORTCODE_ALONE),
)
"""What one of a text holds that may have links of a form, and how these look."""


_SIGNS = ("[[", "](")


@dataclass(frozen=True, slots=True)
class Link:
    """A link as written; `line` is 1-based, `heading` is what follows ``#``.

    `turned_round` means that the label (`alias`) is written before the target.
    """

    target: str
    kind: LinkKind
    line: int
    alias: str | None = None
    heading: str | None = None
    turned_round: bool = False

    def turned(self) -> Link:
        """Return the link with the parts before and after ``|`` swapped."""
        target, _, heading = (self.alias or "").partition("#")
        label = f"{self.target}#{self.heading}" if self.heading else self.target
        heading = heading.strip()
        turned = not self.turned_round
        return Link(target.strip(), self.kind, self.line, label, heading or None, turned)


def pack_links(links: Iterable[Link]) -> str:
    """Serialize links for the cache."""
    return json.dumps(
        [[link.target, link.kind, link.line, link.alias, link.heading] for link in links],
        ensure_ascii=False,
    )


def unpack_links(packed: str) -> tuple[Link, ...]:
    """Deserialize the links written by `pack_links`."""
    return tuple([Link(*fields) for fields in json.loads(packed)])


@dataclass(frozen=True, slots=True)
class PlacedLink:
    """A link in a body with the offsets of the link, target, heading and a definition's label.

    `quoted` means that its target stands in quotes, in HTML that it is in single ones; `raw` that
    none of its characters is percent-encoded.
    """

    link: Link
    start: int
    end: int
    target_start: int
    target_end: int
    text: str
    definition: bool = False
    heading_start: int = -1
    label_start: int = -1
    quoted: bool = False
    raw: bool = False

    def turned(self) -> PlacedLink:
        """Return the wikilink with the parts before and after ``|`` swapped."""
        link = self.link.turned()
        written = self.link.alias or ""
        start = self.end - len("]]") - len(written.lstrip())
        end = start + len(link.target)
        heading = -1
        if link.heading:
            heading = start + written.lstrip().index(link.heading, len(link.target))
        return replace(
            self,
            link=link,
            target_start=start,
            target_end=end,
            text=link.alias or self.text,
            heading_start=heading,
        )


def target_first(body: str, first_line: int, read: Callable[[Link], Link]) -> str:
    """Rewrite Dendron's wikilinks in Obsidian's order for display; line numbers don't change.

    A leading label is moved behind the target, and a link to a note in a vault without a label is
    labelled with the note's name. `read` returns a link with its intended order.
    """
    within = len(body)
    for placed in reversed(links_in_body(body, first_line)):
        if placed.end > within:
            continue  # another stands in its text
        within = placed.start
        link = read(placed.link)
        if link.kind == "wiki" and link.target.startswith(IN_VAULT) and not link.alias:
            link = replace(link, alias=link.target.rpartition("/")[2], turned_round=True)
        if link.turned_round:
            heading = f"#{link.heading}" if link.heading else ""
            mark = "!" if body[placed.start] == "!" else ""
            new = f"{mark}[[{link.target}{heading}|{link.alias}]]"
            body = body[: placed.start] + new + body[placed.end :]
    return body


def links_in_body(text: str, first_line: int = 1) -> list[PlacedLink]:
    """Return the links of a Markdown body whose first line has the number `first_line`."""
    if "[" not in text and "<" not in text and not holds_any(text, ("{{", "{%")):
        return []
    found = [*_wiki_links(text), *_markdown_links(text)]
    code = read_body(text).code if found else ()
    placed: list[PlacedLink] = []
    line, at = first_line, 0
    for match, link in sorted(found, key=lambda pair: pair[0].start()):
        if match.start() in code:
            continue
        line += text.count("\n", at, match.start())
        at = match.start()
        found_at = _placed(match, link, line)
        if found_at.target_start not in code:  # a code span begins in its label
            placed.append(found_at)
    return placed


def links_in_frontmatter(head: str, tree: Node) -> Iterator[Link]:
    """Yield the links in a frontmatter tree parsed from `head`, which starts on line 2."""
    for key, value in tree.pairs():
        for node in value.walk():
            is_bare = node.is_bracketed and key.value not in LISTS_OF_WORDS
            text = head[node.start : node.end] if is_bare else node.value
            if node.is_alias or (node.kind != "scalar" and not is_bare):
                continue
            if key.value == "related" and text.strip():
                yield related_link(text, 2 + head.count("\n", 0, node.start))
            elif holds_any(text, _SIGNS):
                line = 2 + head.count("\n", 0, node.start)
                yield from (placed.link for placed in links_in_value(text, line))


def links_in_text_of(head: str) -> Iterator[Link]:
    """Yield the links in a frontmatter that can't be read, which starts on line 2."""
    if holds_any(head, _SIGNS):
        for number, line in enumerate(head.split("\n"), 2):
            yield from (placed.link for placed in links_in_value(line, number))


def links_in_value(value: str, line: int = 1) -> Iterator[PlacedLink]:
    """Yield the links in one frontmatter value: wikilinks, and Markdown's to a note's file."""
    for match, link in _wiki_links(value):
        yield _placed(match, link, line)
    for match, link in _markdown_links(value) if "](" in value else ():
        if match.re is _MARKDOWN and link.target.lower().endswith(".md"):
            yield _placed(match, link, line)


def in_table_row(body: str, offset: int) -> bool:
    """Return whether an offset is in a table row, where ``|`` ends a cell."""
    return body[body.rfind("\n", 0, offset) + 1 : offset].lstrip(" \t>").startswith("|")


def related_link(value: str, line: int = 1) -> Link:
    """Parse one item of a ``related`` list: a path or name, optionally in double brackets."""
    match = _WIKI.fullmatch(value.strip())
    if match is None:
        target, _, heading = value.strip().partition("#")
        return Link(target.strip(), "related", line, None, heading or None)
    heading = (match["heading"] or "").removeprefix("#").strip()
    return Link(match["target"].strip(), "related", line, match["alias"], heading or None)


def _matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern, each followed by those in its label."""
    for match in pattern.finditer(text):
        yield match
        if match["alias"] and pattern is not _DEFINITION:
            yield from pattern.finditer(text, *match.span("alias"))


def _wiki_links(text: str) -> Iterator[tuple[re.Match[str], Link]]:
    for match in _matches(_WIKI, text):
        target = match["target"].removesuffix("\\").strip()
        heading = (match["heading"] or "").removeprefix("#").removesuffix("\\").strip() or None
        if target or heading:
            yield match, Link(target, "wiki", 0, match["alias"], heading)


def _markdown_links(text: str) -> Iterator[tuple[re.Match[str], Link]]:
    for signs, pattern in _MARKDOWN_FORMS:
        for match in _matches(pattern, text) if holds_any(text, signs) else ():
            written = match[_target_of(match)]
            target, _, heading = written.partition("#")
            # Footnote definitions look like link definitions; plain anchors stay in the file.
            if target and not _SCHEME.match(target) and not match["alias"].startswith("^"):
                yield match, Link(target, "markdown", 0, match["alias"] or None, heading or None)


def _is_quoted(match: re.Match[str]) -> bool:
    if match.re is _ANCHOR:
        return match["angle"] is None
    return match.re in (_SHORTCODE, _SHORTCODE_ALONE) and match["bare"] is None


def _target_of(match: re.Match[str]) -> str:
    """Return the name of the group with the target of a link in one of Markdown's forms."""
    return next(
        name for name in ("angle", "bare", "liquid") if match.groupdict().get(name) is not None
    )


def _placed(match: re.Match[str], link: Link, line: int) -> PlacedLink:
    link = Link(link.target, link.kind, line, link.alias, link.heading)
    if link.kind == "wiki":
        low = match.start("target")
        blank = len(match["target"]) - len(match["target"].lstrip())
        text = link.alias or link.target or link.heading or ""
        heading = -1
        if link.heading:
            heading = match.start("heading") + match["heading"].index(link.heading)
        return PlacedLink(
            link,
            match.start(),
            match.end(),
            low + blank,
            low + blank + len(link.target),
            text,
            heading_start=heading,
        )
    is_raw = match.re in (_SHORTCODE, _SHORTCODE_ALONE)
    low = match.start(_target_of(match))
    return PlacedLink(
        link,
        match.start(),
        match.end(),
        low,
        low + len(link.target),
        match["alias"],
        definition=match.re is _DEFINITION,
        heading_start=low + len(link.target) + 1 if link.heading else -1,
        label_start=match.start("alias"),
        quoted=_is_quoted(match),
        raw=is_raw,
    )

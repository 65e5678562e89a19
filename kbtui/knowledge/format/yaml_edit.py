"""A hardened YAML reader for frontmatter, and in-place edits that preserve everything else.

The reader returns a tree of nodes with their offsets, so that a single value can be edited in
place. Scalars stay strings: ``no`` is the text ``no``, a date is its digits. Input that could grow
without bound or run code is refused: more than 64 KB, more than 20 levels, aliases that stand for
more than 10,000 values, and tags; so are duplicate keys, of which only one could be kept.

Each change edits the smallest possible span: a scalar keeps its quotes and trailing comment, a list
keeps its unchanged items. The result is parsed again and compared with the request; on a difference
nothing is changed and `FrontmatterError` is raised. The package yaml-edit loses quotes, comments
after items and the brackets of lists it changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

import yaml

MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
_MAX_VALUES = 10_000
_MAX_KEPT = 100  # characters of a text that is remembered as plain
_CAUSES = (
    (
        re.compile(r"^[\w \-]+:[\u00a0\u2000-\u200b\u202f\u3000\ufeff]"),
        "a no-break space or the like follows the colon, where YAML wants a blank",
    ),
    (
        re.compile(r"^ *[\u00a0\u2000-\u200b\u202f\u3000]"),
        "it begins with a no-break space or the like",
    ),
    (re.compile(r"^ *\t"), "it is indented by a tab, where YAML wants blanks"),
    (
        re.compile(r"^[\w \-]+: *[\u201c\u201d\u201e].*: "),
        "it is in typographic quotes, which quote nothing",
    ),
    (
        re.compile(r"^[\w \-]+: *\[\[[^\]]*\]\] *[^ #\]]"),
        "more follows a `[[link]]`, which YAML takes for a list: put the value in quotes",
    ),
)
"""What people can't see or know, and what to call it."""
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class FrontmatterError(ValueError):
    """Raised if frontmatter can't be parsed or edited; the message is for the user."""


@dataclass(slots=True)
class Node:
    """One value of the tree; `start` and `end` are offsets into the parsed text.

    `style` is the quote or block indicator of a scalar (empty when plain), and ``flow`` or
    ``block`` for a collection. `children` has the items of a list, or alternating keys and values.
    `lead` is the length of the anchor in front of it. An alias has the value of its
    anchor, and the ``*name`` as its text, of which no part can be changed. `size` is the number of
    values in it.
    """

    kind: Literal["scalar", "list", "mapping"]
    start: int
    end: int
    style: str
    value: str = ""
    children: list[Node] = field(default_factory=list)
    anchor: str = ""
    lead: int = 0
    is_alias: bool = False
    size: int = field(default=1, compare=False)

    @property
    def outer(self) -> int:
        """The offset of the value or of the anchor in front of it."""
        return self.start - self.lead

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield the keys and values of a mapping in the order written."""
        return zip(self.children[::2], self.children[1::2], strict=True)

    def plain(self) -> Any:
        """Return the plain Python value: str, list or dict."""
        if self.kind == "scalar":
            return self.value
        if self.kind == "list":
            return [item.plain() for item in self.children]
        return {key.value: value.plain() for key, value in self.pairs()}

    def content_end(self) -> int:
        """Return the offset after the value's last character; a block's own end is too far."""
        if self.kind != "scalar" and self.style == "block" and self.children and not self.is_alias:
            return self.children[-1].content_end()
        return self.end

    def keys(self) -> Iterator[Node]:
        """Yield every key in this subtree that is written there."""
        if self.is_alias:
            return
        for number, child in enumerate(self.children):
            if self.kind == "mapping" and number % 2 == 0:
                yield child
            else:
                yield from child.keys()

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it that are written there, except keys."""
        yield self
        step = 2 if self.kind == "mapping" else 1
        for child in () if self.is_alias else self.children[step - 1 :: step]:
            yield from child.walk()

    @property
    def is_bracketed(self) -> bool:
        """Whether it is a list in a list, which is how YAML reads a bare ``[[link]]``."""
        inner = self.children[0] if self.kind == "list" and len(self.children) == 1 else self
        is_double = inner is not self and inner.kind == "list" and inner.start == self.start + 1
        return is_double and inner.end == self.end - 1 and not self.is_alias

    def scalars(self) -> Iterator[Node]:
        """Yield every scalar in this subtree that is written there, except keys."""
        if self.is_alias:
            return
        if self.kind == "scalar":
            yield self
            return
        step = 2 if self.kind == "mapping" else 1
        for child in self.children[step - 1 :: step]:
            yield from child.scalars()


# What was changed is read to verify it, and then by whoever asks what it says.
@lru_cache(maxsize=512)
def read_tree(text: str) -> Node:
    """Parse the text between the two ``---`` lines; empty text is an empty mapping.

    Raises:
        FrontmatterError: it isn't YAML, isn't a mapping, or contains something refused.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise FrontmatterError(f"it is longer than {MAX_BYTES // 1024} KB")
    try:
        root = _read_plainly(text) or _build(text)
    except yaml.MarkedYAMLError as error:
        raise FrontmatterError(_error_text(error, text)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise FrontmatterError("it holds characters that YAML doesn't allow") from error
    if root is None:
        return Node("mapping", 0, 0, "block")
    if root.kind != "mapping":
        raise FrontmatterError("it isn't made of `key: value` lines")
    return root


# A line that all readers of YAML take for the same: a key, and behind it nothing, a word or more, a
# list of such in one line, or a text in quotes without escapes.
_PRINTED = r"\w !$%&()*+,./;<=>?@\[\]^{|}~`\-"
_ITEM = re.compile(r"[^\W_](?:[\w ./()+;=$^~-]*[\w./()+;=$^~-])?")
_PLAIN_LINE = re.compile(
    r"(?P<key>[A-Za-z][\w-]{0,60}):(?: +(?:"
    rf"(?P<plain>[^\W_](?:[{_PRINTED}'\"\\]|:(?=[^ \n])|(?<! )\#)*)"
    rf"|(?P<list>\[(?: *{_ITEM.pattern} *(?:, *{_ITEM.pattern} *)*)?\])"
    rf"|\"(?P<double>[{_PRINTED}:#']*)\"|'(?P<single>[{_PRINTED}:#\"\\]*)'))? *\n"
)


def _read_plainly(text: str) -> Node | None:
    """Return the tree of a text of plain lines only, in a third of a parser's time."""
    children: list[Node] = []
    keys: set[str] = set()
    at = 0
    while at < len(text):
        line = _PLAIN_LINE.match(text, at)
        if line is None or line["key"] in keys:
            return None
        keys.add(line["key"])
        children += Node("scalar", at, line.end("key"), "", line["key"]), _plain_value(text, line)
        at = line.end()
    return Node("mapping", 0, at, "block", "", children) if children else None


def _plain_value(text: str, line: re.Match[str]) -> Node:
    kind = line.lastgroup or ""
    if kind == "key":
        return Node("scalar", line.end("key") + 1, line.end("key") + 1, "")
    start, end = line.span(kind)
    if kind == "plain":
        value = line[kind].rstrip(" ")
        return Node("scalar", start, start + len(value), "", value)
    if kind == "list":
        items = _ITEM.finditer(text, start, end)
        found = [Node("scalar", *each.span(), "", each[0]) for each in items]
        return Node("list", start, end, "flow", "", found)
    return Node("scalar", start - 1, end + 1, text[end], line[kind])


def _error_text(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark or error.context_mark
    lines = text.split("\n")[: mark.line + 1 if mark else None]
    for number, line in enumerate(lines, 2):
        for pattern, cause in _CAUSES:
            if pattern.search(line):
                return f"line {number}: {cause}"
    where = f"line {mark.line + 2}: " if mark else ""
    return f"{where}{error.problem or error.context or 'not valid YAML'}"


def _node(event: Any, anchors: Mapping[str, Node]) -> Node | None:
    """Return the node an event starts, or None if it starts none."""
    kind = type(event)  # `match` with classes takes three times as long
    if kind is yaml.ScalarEvent:
        return Node("scalar", *_span(event), event.style or "", event.value)
    if kind is yaml.MappingStartEvent:
        return Node("mapping", *_span(event), "flow" if event.flow_style else "block")
    if kind is yaml.SequenceStartEvent:
        return Node("list", *_span(event), "flow" if event.flow_style else "block")
    if kind is yaml.AliasEvent:
        return _alias(event, anchors.get(event.anchor))
    return None


def _alias(event: Any, of: Node | None) -> Node:
    if of is None:
        raise FrontmatterError(f"{_line(event)}: no `&{event.anchor}` stands in front of it")
    if of.end < of.start:
        raise FrontmatterError(f"{_line(event)}: `*{event.anchor}` would hold itself")
    start, end = _span(event)
    return replace(of, start=start, end=end, style="", anchor="", lead=0, is_alias=True)


def _build(text: str) -> Node | None:
    root: Node | None = None
    open_nodes: list[Node] = []
    anchors: dict[str, Node] = {}
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    event: Any
    for event in events:
        if isinstance(event, yaml.CollectionEndEvent):
            _close(open_nodes.pop(), event, has_aliases=bool(anchors))
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise FrontmatterError(f"{_line(event)}: it holds a second YAML document")
        node = _node(event, anchors)
        if node is None:
            continue
        if not node.is_alias:
            _refuse_tags(event)
            if event.anchor is not None:
                _anchor(node, event, text)
                anchors[event.anchor] = node
        if open_nodes:
            open_nodes[-1].children.append(node)
        else:
            root = node
        if node.kind != "scalar" and not node.is_alias:
            node.end = -1  # until it is closed
            open_nodes.append(node)
            if len(open_nodes) > MAX_DEPTH:
                raise FrontmatterError(f"{_line(event)}: it is nested over {MAX_DEPTH} levels")
    return root


def _span(event: Any) -> tuple[int, int]:
    return event.start_mark.index, event.end_mark.index


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 2}"


def _anchor(node: Node, event: Any, text: str) -> None:
    """Note a node's anchor, and that the node begins behind it."""
    node.anchor = event.anchor
    behind = _ANCHOR.match(text, node.start)
    if behind:
        node.lead = min(behind.end(), node.end) - node.start
        node.start += node.lead


def _refuse_tags(event: Any) -> None:
    # Only explicit tags arrive here; the base loader resolves none itself.
    if event.tag is not None:
        raise FrontmatterError(f"{_line(event)}: YAML tags (`!name`) aren't read")


def _close(node: Node, event: Any, *, has_aliases: bool) -> None:
    node.end = _span(event)[1]
    node.size = 1 + sum(each.size for each in node.children)
    if node.size > _MAX_VALUES and has_aliases:
        raise FrontmatterError(f"{_line(event)}: its aliases stand for over {_MAX_VALUES:,} values")
    if node.kind != "mapping":
        return
    seen: set[str] = set()
    for key, _value in node.pairs():
        if key.kind != "scalar":
            raise FrontmatterError("a key must be a word, not a list or a mapping")
        if key.value in seen:
            raise FrontmatterError(f"the key `{key.value}` stands in it twice")
        seen.add(key.value)


_ANCHOR = re.compile(r"&[^\s,\[\]{}]+(?:\s+#[^\n]*(?=\n))*\s*")
# The existing key after which a new key is inserted; others go to the end.
_INSERT_AFTER = {"updated": "created", "created": "type"}
_TEXTS = frozenset(  # properties that hold text
    {"title", "summary", "description", "aliases", "alias", "tags", "tag", "related"}
)
LISTS_OF_WORDS = frozenset({"aliases", "alias", "tags", "tag", "related"})
"""Properties in which lists in lists are words."""
_DASH = re.compile(r"^[ \t]*-", re.MULTILINE)

Edit = tuple[int, int, str]
Piece = tuple[int | None, str]  # the number of the item it replaces, and its text
_PLAIN_START = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=[^\s,\[\]{}])")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# Characters YAML considers unprintable, and its additional line breaks.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]"
)
# What YAML 1.1, 1.2, Hugo's reader or Ruby's takes for a number, a truth, nothing or a symbol.
_OTHERWISE = re.compile(
    r"(?i:y|n|yes|no|on|off|true|false|null|~|<<|=)|:.*|[-+]?(?:\.(?i:inf|nan)|0x[\da-fA-F_]+"
    r"|0[oO][0-7_]+|0b[01_]+|(?=.*\d)(?:\d[\d_,]*)?(?:\.[\d_]*)?(?:[eE][-+]?\d+)?"
    r"|\d[\d_]*(?::[0-5]?\d)+(?:\.\d*)?)"
)
_RESOLVER: Any = yaml.resolver.Resolver()


def edit_keys(text: str, root: Node, changes: Mapping[str, Any], newline: str) -> str:
    """Set the keys of `changes`, removing those whose value is None; `root` is the text's tree.

    Raises:
        FrontmatterError: the text can't be edited without touching other keys.
    """
    before = root.plain()
    wanted = {key: as_loaded(value) for key, value in changes.items() if value is not None}
    removed = {key for key, value in changes.items() if value is None}
    expected = {key: value for key, value in before.items() if key not in removed} | wanted
    if expected == before:
        return text
    editor = _FlowEditor(text, root) if root.style == "flow" else _BlockEditor(text, root, newline)
    for key, value in changes.items():
        if value is None or before.get(key) != wanted[key]:
            editor.change(key, value)
    try:
        return _verified(_apply(text, editor.finish()), expected)
    except FrontmatterError:
        spelled_out = _spelled_out(text, root, changes)
        if spelled_out == text:
            raise
        return edit_keys(spelled_out, read_tree(spelled_out), changes, newline)


def _spelled_out(text: str, root: Node, keys: Collection[str]) -> str:
    """Return the text with each alias of what stands under some keys replaced by what it says."""
    anchored: dict[str, Node] = {}
    edits: list[Edit] = []
    for key, value in root.pairs():
        for node in (key, *value.walk()):
            name = text[node.start + 1 : node.end] if node.is_alias else ""
            if name in anchored:
                of = anchored[name]
                raw = text[of.start : of.end]
                is_short = of.kind == "scalar" and of.style not in {"|", ">"} and "\n" not in raw
                edits.append((node.start, node.end, raw if is_short else value_text(node.plain())))
            elif node.anchor and key.value in keys:
                anchored[node.anchor] = node
            else:
                anchored.pop(node.anchor, None)
    return _apply(text, edits)


def edit_scalars(text: str, root: Node, replace: Callable[[str, str], str | None]) -> str:
    """Replace every scalar by ``replace(top_level_key, value)``; None leaves it unchanged.

    `replace` is also called with a scalar as written, so that what it changes there is all that
    changes: quotes, escapes, indentation and line breaks stay. A bare ``[[link]]`` counts as one.

    Raises:
        FrontmatterError: a value can't be replaced without touching others.
    """
    bare = _with_bare_links(text, root, replace)
    if bare != text:
        text, root = bare, read_tree(bare)
    wanted: list[tuple[Node, str, str]] = []
    written: list[Edit] = []
    for key, value in root.pairs():
        for node in value.scalars():
            new = replace(key.value, node.value)
            if new is not None and new != node.value:
                raw = text[node.start : node.end]
                as_written = replace(key.value, raw)
                wanted.append((node, new, "flow" if "flow" in {value.style, root.style} else ""))
                written.append((node.start, node.end, raw if as_written is None else as_written))
    if not wanted:
        return text
    new_values = {id(node): new for node, new, _ in wanted}
    expected = [new_values.get(id(node), node.value) for node in root.scalars()]
    changed = _apply(text, written)
    if _has_scalars(changed, root, expected):
        return changed
    edits = [_scalar_edit(text, root, *each) for each in wanted]
    changed = _apply(text, edits)
    if not _has_scalars(changed, root, expected):
        raise FrontmatterError("a value can't be changed without touching others")
    return changed


def _with_bare_links(text: str, root: Node, replace: Callable[[str, str], str | None]) -> str:
    """Replace every bare ``[[link]]``, which is no scalar."""
    edits: list[Edit] = []
    inner: dict[int, list[str]] = {}
    for key, value in root.pairs():
        for node in value.walk() if key.value not in LISTS_OF_WORDS else ():
            raw = text[node.start : node.end]
            new = replace(key.value, raw) if node.is_bracketed else None
            if new is not None and new != raw:
                edits.append((node.start, node.end, new))
                scalars = [*node.scalars()]
                inner |= {id(each): [] for each in scalars}
                inner[id(scalars[0])] = [each.value for each in read_tree(f"x: {new}\n").scalars()]
    if not edits:
        return text
    expected = [new for each in root.scalars() for new in inner.get(id(each), [each.value])]
    changed = _apply(text, edits)
    if not _has_scalars(changed, root, expected):
        raise FrontmatterError("a link without quotes can't be changed without touching others")
    return changed


def _has_scalars(text: str, root: Node, expected: list[str]) -> bool:
    """Return whether a text is read as the same tree, with `expected` as its values."""
    try:
        found = read_tree(text)
    except FrontmatterError:
        return False
    is_same = [each.value for each in found.keys()] == [each.value for each in root.keys()]  # noqa: SIM118
    return is_same and [each.value for each in found.scalars()] == expected


def _same_start(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _scalar_edit(text: str, root: Node, node: Node, new: str, flow: str) -> Edit:
    """Return the edit of one scalar: of the part that differs, else of the whole."""
    raw, old = text[node.start : node.end], node.value
    low = _same_start(old, new)
    high = _same_start(old[low:][::-1], new[low:][::-1])
    before, after = old[low : len(old) - high], new[low : len(new) - high]
    while low and raw.count(before) != 1:  # as much in front of it as makes it the only one
        low -= 1
        before, after = old[low] + before, old[low] + after
    if before and raw.count(before) == 1:
        edit = (node.start, node.end, raw.replace(before, after))
        expected = [new if each is node else each.value for each in root.scalars()]
        if _has_scalars(_apply(text, [edit]), root, expected):
            return edit
    if node.style in {"|", ">"}:
        raise FrontmatterError("a link in a text of several lines can't be changed in place")
    return node.start, node.end, scalar_text(new, node.style, flow=bool(flow))


def _apply(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _verified(text: str, expected: dict[str, Any]) -> str:
    if read_tree(text).plain() != expected:
        raise FrontmatterError("this form of YAML can't be changed without touching other keys")
    return text


class _BlockEditor:
    """An editor for a mapping written as one ``key: value`` per line."""

    def __init__(self, text: str, root: Node, newline: str) -> None:
        self._text = text
        self._pairs = {key.value: (key, value) for key, value in root.pairs()}
        self._newline = newline
        self._edits: list[Edit] = []
        self._new: dict[int, list[str]] = {}
        first = root.children[0].outer if root.children else 0
        self._indent = " " * (first - self._line_start(first))

    def change(self, key: str, value: Any) -> None:
        pair = self._pairs.get(key)
        if pair is None:
            if value is not None:
                self._add(key, value)
        elif value is None:
            start = self._line_start(pair[0].start)
            self._edits.append((start, self._line_end(self._value_end(pair[1])), ""))
        else:
            self._replace(*pair, value)

    def finish(self) -> list[Edit]:
        return self._edits + [(at, at, "".join(lines)) for at, lines in self._new.items()]

    def _add(self, key: str, value: Any) -> None:
        line = f"{self._indent}{scalar_text(key)}: {property_text(key, value)}{self._newline}"
        previous = self._pairs.get(_INSERT_AFTER.get(key, ""))
        at = len(self._text) if previous is None else self._line_end(self._value_end(previous[1]))
        self._new.setdefault(at, []).append(line)

    def _replace(self, key: Node, node: Node, value: Any) -> None:
        if isinstance(value, list | tuple):
            if node.kind == "list" and node.children and value and not node.is_alias:
                self._edits += self._list_edits(key, node, value)
                return
        elif node.kind == "scalar" and node.style not in {"|", ">"} and node.end > node.start:
            new = property_text(key.value, value, node.style)
            self._edits.append((node.start, node.end, new))
            return
        before = self._text.index(":", key.end) + 1
        if node.anchor:
            before = node.outer + len(f"&{node.anchor}")
        end = self._value_end(node)
        self._edits.append((before, max(before, end), f" {property_text(key.value, value)}"))

    def _list_edits(self, key: Node, node: Node, value: list[Any] | tuple[Any, ...]) -> list[Edit]:
        if node.style == "flow":
            return flow_list_edits(self._text, node, list(value), is_text=key.value in _TEXTS)
        return self._block_list_edits(key, node, list(value))

    def _block_list_edits(self, key: Node, node: Node, value: list[Any]) -> list[Edit]:
        after, is_text = key.end, key.value in _TEXTS
        starts: list[int] = []
        for item in node.children:
            found = _DASH.search(self._text, after, item.start + 1)
            if found is None:
                raise FrontmatterError("this form of list can't be changed in place")
            starts.append(found.start())
            after = item.content_end()
        starts.append(self._line_end(self._value_end(node)))
        dash = self._text.index("-", starts[0])
        indent = self._text[starts[0] : dash]

        def lines(items: list[Any]) -> str:
            texts = (value_text(item, is_text=is_text) for item in items)
            return "".join(f"{indent}- {text}{self._newline}" for text in texts)

        edits: list[Edit] = []
        for tag, low, high, new_low, new_high in _opcodes(node, value):
            old, new = node.children[low:high], value[new_low:new_high]
            if tag == "replace" and _one_to_one(old, new):
                edits += _in_place(old, new, is_text=is_text)
            else:
                edits.append((starts[low], starts[high], lines(new)))
        return edits

    def _value_end(self, node: Node) -> int:
        """Return the end of a value, without the blank lines a block scalar includes."""
        end = node.content_end()
        return len(self._text[:end].rstrip("\r\n")) if end > node.start else end

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        found = self._text.find("\n", at)
        return len(self._text) if found < 0 else found + 1


class _FlowEditor:
    """An editor for a mapping written in braces."""

    def __init__(self, text: str, root: Node) -> None:
        self._text = text
        self._root = root
        self._pairs = {key.value: (key, value) for key, value in root.pairs()}
        numbers = {key: number for number, key in enumerate(self._pairs)}
        self._pieces: dict[str, Piece] = {
            key: (numbers[key], text[pair[0].outer : pair[1].end])
            for key, pair in self._pairs.items()
        }

    def change(self, key: str, value: Any) -> None:
        if value is None:
            self._pieces.pop(key, None)
        elif key not in self._pairs:
            new = f"{scalar_text(key, flow=True)}: {property_text(key, value, flow=True)}"
            self._pieces[key] = (None, new)
        else:
            old_key, old = self._pairs[key]
            style = old.style if old.kind == "scalar" else ""
            head = self._text[old_key.outer : old.outer].rstrip()
            if not head.endswith(":"):
                head += ":"
            number, new = self._pieces[key][0], property_text(key, value, style, flow=True)
            self._pieces[key] = (number, f"{head} {_anchored(old, new)}")

    def finish(self) -> list[Edit]:
        spans = [(key.outer, value.end) for key, value in self._root.pairs()]
        return [_rebuilt(self._text, self._root, spans, list(self._pieces.values()))]


def _anchored(node: Node, text: str) -> str:
    return f"&{node.anchor} {text}" if node.anchor else text


def flow_list_edits(
    text: str, node: Node, value: list[Any], *, is_text: bool = False
) -> list[Edit]:
    """Return the edits that turn a bracketed list into `value`, keeping unchanged items."""
    pieces: list[Piece] = []
    at = 0
    for tag, low, high, new_low, new_high in _opcodes(node, value):
        pieces += [_kept_piece(text, node, number) for number in range(at, low)]
        at = high
        new = value[new_low:new_high]
        if tag == "replace" and _one_to_one(node.children[low:high], new):
            edits = _in_place(node.children[low:high], new, flow=True, is_text=is_text)
            pieces += [
                (number, _anchored(node.children[number], edit[2]))
                for number, edit in enumerate(edits, low)
            ]
        else:
            pieces += [(None, value_text(item, flow=True, is_text=is_text)) for item in new]
    pieces += [_kept_piece(text, node, number) for number in range(at, len(node.children))]
    return [_rebuilt(text, node, [(item.outer, item.end) for item in node.children], pieces)]


def _kept_piece(text: str, node: Node, number: int) -> Piece:
    item = node.children[number]
    return number, text[item.outer : item.end]


def _opcodes(node: Node, value: list[Any]) -> list[tuple[str, int, int, int, int]]:
    old = [repr(item.plain()) for item in node.children]
    new = [repr(as_loaded(item)) for item in value]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [code for code in matcher.get_opcodes() if code[0] != "equal"]


def _one_to_one(nodes: list[Node], values: list[Any]) -> bool:
    """Return whether each value can replace one node in place, keeping its quotes."""
    return (
        len(nodes) == len(values)
        and all(node.kind == "scalar" and node.style not in {"|", ">"} for node in nodes)
        and all(node.end > node.start for node in nodes)
        and not any(isinstance(item, list | tuple | dict) for item in values)
    )


def _in_place(
    nodes: list[Node], values: list[Any], *, flow: bool = False, is_text: bool = False
) -> list[Edit]:
    return [
        (node.start, node.end, value_text(value, node.style, flow=flow, is_text=is_text))
        for node, value in zip(nodes, values, strict=True)
    ]


def _rebuilt(text: str, node: Node, spans: list[tuple[int, int]], pieces: list[Piece]) -> Edit:
    """Return the edit that rewrites a bracketed list; kept pieces keep their separator."""
    close = node.end - 1
    before = [spans[i - 1][1] if i else node.start + 1 for i in range(len(spans))]
    leads = [text[low : span[0]] for low, span in zip(before, spans, strict=True)]
    usual = next((lead for lead in leads[1:] if "#" not in lead), ", ")
    parts: list[str] = []
    for position, (number, body) in enumerate(pieces):
        own = leads[number] if number else usual
        parts.append((own if position else leads[0] if leads else "") + body)
    tail = text[spans[-1][1] : close] if spans else ""
    return (node.start + 1, close, "".join(parts) + (tail if pieces else ""))


def as_loaded(value: Any) -> Any:
    """Return the value as the hardened reader reads it back: strings throughout."""
    if isinstance(value, Mapping):
        return {str(key): as_loaded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_loaded(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(sep="T")
    return value.isoformat() if isinstance(value, date) else str(value)


def value_text(value: Any, style: str = "", *, flow: bool = False, is_text: bool = False) -> str:
    """Format any value on one line; `style` is the scalar's previous quote.

    A text that reads as a date is one, unless the value `is_text`, a list of such texts, too.
    """
    if isinstance(value, Mapping):
        pairs = (
            f"{scalar_text(str(key), flow=True)}: {value_text(item, flow=True)}"
            for key, item in value.items()
        )
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list | tuple):
        items = (value_text(item, flow=True, is_text=is_text) for item in value)
        return "[" + ", ".join(items) + "]"
    if isinstance(value, str):
        is_quoted = is_text and not style and _is_timestamp(value)
        return scalar_text(value, '"' if is_quoted else style, flow=flow)
    # Numbers, dates and booleans are meant as such, unless they were quoted before.
    text = str(as_loaded(value))
    return scalar_text(text, style, flow=flow) if style in {"'", '"'} else text


def property_text(key: str, value: Any, style: str = "", *, flow: bool = False) -> str:
    """Format the value of a property on one line; a date in one that holds text is quoted."""
    return value_text(value, style, flow=flow, is_text=key in _TEXTS)


def scalar_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """Format a text in its previous quotes, or plain where that is safe."""
    if style == "'" and not re.search(r"[\n\r]", value) and not _UNPRINTABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and _may_be_plain(value, flow=flow):
        return value
    escaped = "".join(_ESCAPES.get(char, char) for char in value)
    return '"' + _UNPRINTABLE.sub(_escape, escaped) + '"'


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found.group()):04x}"


def _may_be_plain(value: str, *, flow: bool) -> bool:
    is_short = len(value) <= _MAX_KEPT
    return _is_plain(value, flow) if is_short else _is_plain.__wrapped__(value, flow)


# The heads of an import's notes have the same few types, tags and dates.
@lru_cache(maxsize=1024)
def _is_plain(value: str, flow: bool) -> bool:  # noqa: FBT001 — a key of the cache
    if not _PLAIN_START.match(value) or value != value.strip() or value.startswith(("---", "...")):
        return False
    if re.search(r"[\n\r\t]|: | #|:$", value) or _UNPRINTABLE.search(value):
        return False
    # Parsers disagree about `?` and `:` inside brackets.
    if flow and re.search(r"[,\[\]{}?:]", value):
        return False
    if _OTHERWISE.fullmatch(value):
        return False
    # What another parser would read as a number or boolean is quoted; a date is meant as one.
    if _is_timestamp(value):
        return _is_date(value)
    return _tag_of(value) == "tag:yaml.org,2002:str"


def _tag_of(value: str) -> str:
    """Return what other parsers take a plain scalar for."""
    return str(_RESOLVER.resolve(yaml.ScalarNode, value, (True, False)))


def _is_timestamp(value: str) -> bool:
    return value[:4].isdigit() and _tag_of(value) == "tag:yaml.org,2002:timestamp"


def _is_date(value: str) -> bool:
    """Return whether a date-like text is valid; other parsers fail on 2026-02-31."""
    try:
        yaml.safe_load(value)
    except ValueError:
        return False
    return True

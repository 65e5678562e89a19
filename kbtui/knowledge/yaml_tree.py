"""A hardened reader of the YAML that frontmatter is written in.

It answers with a tree of nodes that know where in the text they stand, so that a single value
can be changed in place. Scalars stay as they are written: ``no`` is the text ``no``, a date is
its digits. What could grow without bound or run code is refused: more than 64 KB, more than 20
levels, anchors, aliases and tags; so are duplicate keys, of which only one could be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 64 * 1024
MAX_DEPTH = 20
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class FrontmatterError(ValueError):
    """Why a piece of frontmatter can't be read or changed, in words for a person."""


@dataclass(slots=True)
class Node:
    """One value of the tree; `start` and `end` are offsets into the text it was read from.

    `style` is the quote or block indicator of a scalar (empty when plain) and ``flow`` or
    ``block`` of a collection. `children` holds the items of a list, or key and value in turn.
    """

    kind: Literal["scalar", "list", "mapping"]
    start: int
    end: int
    style: str
    value: str = ""
    children: list[Node] = field(default_factory=list)

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Give the keys and values of a mapping, in the order they are written."""
        return zip(self.children[::2], self.children[1::2], strict=True)

    def plain(self) -> Any:
        """Make the ordinary Python value: text, list or dict."""
        if self.kind == "scalar":
            return self.value
        if self.kind == "list":
            return [item.plain() for item in self.children]
        return {key.value: value.plain() for key, value in self.pairs()}

    def content_end(self) -> int:
        """Where the last character of the value stands; a block's own end mark is too far."""
        if self.kind != "scalar" and self.style == "block" and self.children:
            return self.children[-1].content_end()
        return self.end

    def scalars(self) -> Iterator[Node]:
        """Give every scalar below, keys left out."""
        if self.kind == "scalar":
            yield self
            return
        step = 2 if self.kind == "mapping" else 1
        for child in self.children[step - 1 :: step]:
            yield from child.scalars()


def read_tree(text: str) -> Node:
    """Read the text between the two ``---`` lines; nothing written is an empty mapping.

    Raises:
        FrontmatterError: it isn't YAML, isn't a mapping, or holds what is refused.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise FrontmatterError(f"it is longer than {MAX_BYTES // 1024} KB")
    try:
        root = _build(text)
    except yaml.MarkedYAMLError as error:
        raise FrontmatterError(_described(error)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise FrontmatterError("it holds characters that YAML doesn't allow") from error
    if root is None:
        return Node("mapping", 0, 0, "block")
    if root.kind != "mapping":
        raise FrontmatterError("it isn't made of `key: value` lines")
    return root


def _described(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 2}: " if mark else ""
    return f"{where}{error.problem or error.context or 'not valid YAML'}"


def _build(text: str) -> Node | None:
    root: Node | None = None
    open_nodes: list[Node] = []
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    event: Any
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            node = Node("scalar", *_span(event), event.style or "", event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            kind: Literal["list", "mapping"] = (
                "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
            )
            node = Node(kind, *_span(event), "flow" if event.flow_style else "block")
        elif isinstance(event, yaml.CollectionEndEvent):
            _close(open_nodes.pop(), _span(event)[1])
            continue
        elif isinstance(event, yaml.AliasEvent):
            raise FrontmatterError(f"{_line(event)}: YAML aliases (`*name`) aren't read")
        elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise FrontmatterError(f"{_line(event)}: it holds a second YAML document")
        else:
            continue
        _refuse_marks(event)
        if open_nodes:
            open_nodes[-1].children.append(node)
        else:
            root = node
        if node.kind != "scalar":
            open_nodes.append(node)
            if len(open_nodes) > MAX_DEPTH:
                raise FrontmatterError(f"{_line(event)}: it is nested over {MAX_DEPTH} levels")
    return root


def _span(event: Any) -> tuple[int, int]:
    return event.start_mark.index, event.end_mark.index


def _line(event: Any) -> str:
    return f"line {event.start_mark.line + 2}"


def _refuse_marks(event: Any) -> None:
    if event.anchor is not None:
        raise FrontmatterError(f"{_line(event)}: YAML anchors (`&name`) aren't read")
    # Only an explicit tag arrives here; the base loader resolves none itself.
    if event.tag is not None:
        raise FrontmatterError(f"{_line(event)}: YAML tags (`!name`) aren't read")


def _close(node: Node, end: int) -> None:
    node.end = end
    if node.kind != "mapping":
        return
    seen: set[str] = set()
    for key, _value in node.pairs():
        if key.kind != "scalar":
            raise FrontmatterError("a key must be a word, not a list or a mapping")
        if key.value in seen:
            raise FrontmatterError(f"the key `{key.value}` stands in it twice")
        seen.add(key.value)

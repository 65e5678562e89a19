"""HTML to Markdown in one pass, without building a tree.

An element is rendered at its end tag, when its siblings are known, which decide what white space is
significant. Unclosed elements end with their parent. The rules reproduce markdownify, which was
used before, so that notes imported then are recognised as unchanged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import ClassVar

_HIDDEN_TAGS = frozenset(
    (
        *("script", "style", "head", "template", "noscript", "svg"),
        *("button", "select", "link", "meta"),
    )
)
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "keygen", "link", "menuitem"),
        *("meta", "param", "source", "track", "wbr", "basefont", "bgsound", "command", "frame"),
        *("image", "isindex", "nextid", "spacer"),
    )
)
_BLOCKS = frozenset(
    (
        *("p", "blockquote", "article", "div", "section", "ol", "ul", "li", "dl", "dt", "dd"),
        *("table", "thead", "tbody", "tfoot", "tr", "td", "th"),
    )
)
_MORE_BLOCKS = ("details", "summary", "textarea", "address", "fieldset", "legend")
_SILENT_TAGS = frozenset(("script", "style", "head", "template", "link", "meta"))
"""Hidden tags that hold nothing a person would read."""
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_MARKS |= {"mark": "=="}
_PLACES = {"sub": "sub", "sup": "sup"}
_DRAWN = "katex-html"
"""The class of a formula's pieces as they are drawn, beside the formula itself."""
_FORMULAS = {"msup": ("<sup>", "</sup>"), "msub": ("<sub>", "</sub>"), "mfrac": ("/", "")}
_STYLES = (
    (re.compile(r"font-weight\s*:\s*(?:bold|bolder|[6-9]00)", re.IGNORECASE), "**"),
    (re.compile(r"font-style\s*:\s*(?:italic|oblique)", re.IGNORECASE), "*"),
    (re.compile(r"text-decoration[^:;]*:[^;]*line-through", re.IGNORECASE), "~~"),
    (re.compile(r"vertical-align\s*:\s*super", re.IGNORECASE), "sup"),
    (re.compile(r"vertical-align\s*:\s*sub(?!\w)", re.IGNORECASE), "sub"),
    (re.compile(r"-(?:en|evernote)-highlight\s*:\s*(?!none)", re.IGNORECASE), "=="),
)
"""What a style says that a mark says as well."""
_PLAIN_STYLES = {
    "**": re.compile(r"font-weight\s*:\s*(?:normal|lighter|[1-5]00)", re.IGNORECASE),
    "*": re.compile(r"font-style\s*:\s*normal", re.IGNORECASE),
}
"""Styles by which a tag means nothing: programs wrap whole texts in ``<b>`` without weight."""
_STYLED = ("span", "font", "a", "p", "div", "li", "td")
_CLASSED = re.compile(r"\.([\w-]{1,60})\s*\{([^{}]{1,2000})\}")
_STYLE_SHEET = re.compile(r"<style\b[^<>]*>(.*?)</style", re.IGNORECASE | re.DOTALL)
_TYPED = frozenset(("", "text", "search", "email", "url", "tel", "number", "date", "time"))
"""Kinds of fields whose value a person reads."""
_EMBEDDED = ("iframe", "embed", "video", "audio", "source", "object")
"""Tags that show what is at an address."""
_SOURCES = ("src", "data-src", "data-original", "data-lazy-src")
"""Where a picture's address stands, in pages that load it late."""
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]")
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_VERBATIM = _CODE | {"pre"}
_HEADINGS = frozenset(f"h{number}" for number in range(10))
_LISTS = ("ul", "ol")
_GROUPS = ("thead", "tbody", "tfoot")
_ENDS = {
    **dict.fromkeys(("td", "th"), ("td", "th")),
    "tr": ("td", "th", "tr"),
    **dict.fromkeys(_GROUPS, ("td", "th", "tr", *_GROUPS)),
    "li": ("li",),
    **dict.fromkeys(("dt", "dd"), ("dt", "dd")),
}
"""The parts of a table or list that end where another begins."""
_WHOLES = {"li": ("table", *_LISTS), **dict.fromkeys(("dt", "dd"), ("table", "dl"))}
"""In what those of a list are; those of a table are in a table."""
_PAD, _RULE = "\x01", "\x02"
"""Where a row is filled up, and the line below a head is drawn, once a table's width is known."""
_SIGNS = str.maketrans("", "", _PAD + _RULE)
_ONE_LINE = ("td", "th", "h1", "h2", "h3", "h4", "h5", "h6")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:language|lang)-([\w+#\-]{1,30})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_SAFE = re.compile(r"(https?|mailto|ftp|tel|evernote):", re.IGNORECASE)
_CHECKED, _UNCHECKED = "[x] ", "[ ] "
_UNSAFE_CHARACTER = re.compile(r"[\s()<>]")
_CONTROL = re.compile(r"[\x00-\x20]+")
_SPACES = re.compile(r"[\t ]+")
_LINE_END = re.compile(r"[\t \r\n]*[\r\n][\t \r\n]*")
_ANY_SPACE = re.compile(r"[\t \r\n]+")
_EDGES = re.compile(r"(\n*)((?:.*[^\n])?)(\n*)", re.DOTALL)
_LINE = re.compile(r"^(.*)", re.MULTILINE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_WORD = re.compile(r"[^\W_]")
_PIPE = re.compile(r"(?<!\\)\|")
_FILL = re.compile(f"{_PAD}(\\d+){_PAD}")
_MARK_SIGNS = frozenset(("**", "*", "~~", "=="))
_TICKS = re.compile(r"`+")
_PRE_BEGIN, _PRE_END = re.compile(r"\A[ \n]*\n"), re.compile(r"[ \n]*\Z")
_COMMENT = re.compile("<!--")
_COMMENT_END = re.compile(r"--\s*>")
_SECTION = re.compile(r"<!\[(?!(?:if|else|endif)\b)", re.IGNORECASE)
_SECTION_END = re.compile(r"\]\s*\]\s*>")
_CONDITION = re.compile(r"<!\[")  # Word writes one for each list item
_CONDITION_END = re.compile(r"\]\s*>")
_MAX_SPAN = 1000
_MAX_DEPTH = 300
"""Maximum nesting depth; of deeper elements only the text is kept."""
Attributes = dict[str, str]


def markdown_of(
    html: str, rewrite_link: Callable[[str], str] = str, dropped: Counter[str] | None = None
) -> str:
    """Convert the visible content of HTML, a fragment or malformed, to Markdown.

    `rewrite_link` maps the address of each link to a new one; `dropped` counts hidden elements with
    words, by their tag.
    """
    html = escape_unclosed(html).translate(_SIGNS)
    found: Counter[str] = Counter()
    try:
        text = _Writer(rewrite_link, found).convert(html)
    except AssertionError:  # html.parser rejects an unknown marked section
        found.clear()
        text = _Writer(rewrite_link, found).convert(html.replace("<![", "&lt;!["))
    if dropped is not None:
        dropped += found
    return text


def escape_unclosed(html: str) -> str:
    """Escape unterminated comments, sections and tags, so that they are read as text.

    `html.parser` would scan the whole rest of the document for each of them.
    """
    for begin, end in (
        (_COMMENT, _COMMENT_END),
        (_SECTION, _SECTION_END),
        (_CONDITION, _CONDITION_END),
    ):
        rest = max((match.end() for match in end.finditer(html)), default=0)
        html = html[:rest] + begin.sub(lambda found: f"&lt;{found[0][1:]}", html[rest:])
    rest = html.rfind(">") + 1
    return html[:rest] + html[rest:].replace("<", "&lt;")


class _Element:
    """An open element; `parts` are (tag, Markdown) pairs, with an empty tag for its own text."""

    __slots__ = (
        *("attributes", "below", "cells", "is_hidden", "items", "name", "parts", "shown", "span"),
        *("words",),
    )

    def __init__(self, name: str, attributes: Attributes, *, is_hidden: bool = False) -> None:
        self.name = name
        self.attributes = attributes
        self.parts: list[tuple[str, str]] = []
        self.items = 0  # so far, of a list; rows of a table
        self.cells: list[str] = []  # tags of the cells of a row
        self.span = 0  # columns of a row, and of the widest row of a table
        self.below: dict[int, int] = {}  # rows that a cell of a table reaches down, by column
        self.words = False  # whether it is hidden and holds some
        self.is_hidden = is_hidden  # hidden, with its content
        self.shown = True  # False: its content belongs to its parent


class _Writer(HTMLParser):
    def __init__(self, rewrite_link: Callable[[str], str], dropped: Counter[str]) -> None:
        super().__init__(convert_charrefs=True)
        self._dropped = dropped
        self._rewrite_link = rewrite_link
        self._classes: dict[str, str] = {}
        self._stack = [_Element("", {})]
        self._names: dict[str, int] = {}
        self._text: list[str] = []

    def convert(self, html: str) -> str:
        self._classes = _meaning_classes(html)
        self.feed(html)
        self.close()
        self._flush()
        while len(self._stack) > 1:
            self._pop()
        root = self._stack[0]
        return _at_width(self._joined(root), root.span).strip("\n")  # rows without a table

    # Events --------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._flush()
        if tag in _ENDS:
            self._end_before(tag)
        attributes = {name: value or "" for name, value in attrs}
        style = attributes.get("style")
        is_hidden_tag = (
            tag in _HIDDEN_TAGS
            or attributes.get("class") == _DRAWN
            or (style is not None and bool(_HIDDEN_STYLE.search(style)))
        )
        if is_hidden_tag and tag in _VOID:
            return
        if tag in _EMBEDDED and not is_hidden_tag:
            self._embed(tag, attributes)
        if tag in _VOID:
            self._empty(tag, attributes)
        elif is_hidden_tag or len(self._stack) < _MAX_DEPTH:
            if self._classes and tag in _STYLED and (names := attributes.get("class")):
                own = [self._classes.get(name, "") for name in names.split()]
                attributes["style"] = ";".join(filter(None, [style, *own]))
            self._push(tag, attributes, is_hidden=is_hidden_tag)

    def handle_endtag(self, tag: str) -> None:
        """Close an element and everything still open in it."""
        if not self._names.get(tag):
            return
        self._flush()
        while self._stack[-1].name != tag:
            self._pop()
        self._pop()

    def _end_before(self, tag: str) -> None:
        """Close what the start of a part of a table or list ends; its end tag may be left out."""
        for number in range(len(self._stack) - 1, 0, -1):
            name = self._stack[number].name
            if name in _WHOLES.get(tag, ("table",)):
                return
            if name in _ENDS[tag]:
                while len(self._stack) > number:
                    self._pop()

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        self._flush()

    def handle_decl(self, decl: str) -> None:
        self.handle_comment(decl)

    handle_pi = unknown_decl = handle_comment

    def updatepos(self, i: int, j: int) -> int:  # noqa: ARG002
        """Skip counting lines: positions of elements aren't used."""
        return j

    # Parts ---------------------------------------------------------------------------------

    def _push(self, tag: str, attributes: Attributes, *, is_hidden: bool) -> None:
        element = _Element(tag, attributes, is_hidden=is_hidden)
        if tag == "a":
            attributes["href"] = _address(self._rewrite_link(attributes.get("href", "")))
            element.shown = attributes["href"] != ""
        if tag == "code":  # may name the language of the enclosing block
            for each in self._stack:
                if each.name == "pre":
                    each.attributes.setdefault("code-class", attributes.get("class", ""))
        self._stack.append(element)
        self._names[tag] = self._names.get(tag, 0) + 1

    def _embed(self, tag: str, attributes: Attributes) -> None:
        """Add a link to what a player or frame shows, or what stands in the frame itself."""
        if page := attributes.get("srcdoc"):
            text = _Writer(self._rewrite_link, self._dropped).convert(escape_unclosed(page))
            self._stack[-1].parts.append((tag, text if self._is_inline else f"\n\n{text}\n\n"))
            return
        address = _address(self._rewrite_link(attributes.get("src") or attributes.get("data", "")))
        if address:
            title = attributes.get("title", "").strip()
            link = f"[{title}]({address})" if title else f"<{address}>"
            link = f"[{address}]({address})" if not (title or _SAFE.match(address)) else link
            self._stack[-1].parts.append(
                (tag, f" {link} " if self._is_inline else f"\n\n{link}\n\n")
            )

    def _empty(self, tag: str, attributes: Attributes) -> None:
        parts = self._stack[-1].parts
        if tag == "img":
            parts.append(self._picture(attributes))
        elif tag == "input" and attributes.get("type") == "checkbox":
            parts.append(("", _CHECKED if "checked" in attributes else _UNCHECKED))
        elif tag == "br":
            end = "\n" if self._names.get("pre") else "\\\n"
            parts.append((tag, " " if self._is_inline else end))
        elif tag == "input" and attributes.get("type", "").lower() in _TYPED:
            parts.append(("", attributes.get("value", "")))
        elif tag not in _EMBEDDED and (tag != "input" or self._stack[-1].name != "form"):
            parts.append((tag, "\n\n---\n\n" if tag == "hr" else ""))

    def _picture(self, attributes: Attributes) -> tuple[str, str]:
        found = (_address(attributes.get(name, "")) for name in _SOURCES)
        address, alt = next(filter(None, found), ""), attributes.get("alt", "")
        is_kept = not self._is_inline or self._parent.name in ("td", "th", "a")
        return ("img" if address else "", f"![{alt}]({address})" if address and is_kept else alt)

    def _flush(self) -> None:
        """Add the text gathered since the last tag to the open element."""
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            if not text.strip("\t\n\f\r ") and not self._names.get("pre"):
                text = "\n" if "\n" in text else " "
            parts = self._stack[-1].parts
            is_boxed = bool(parts) and parts[-1][1] in (_CHECKED, _UNCHECKED)
            parts.append(("", text.lstrip(" ") if is_boxed else text))

    @property
    def _is_inline(self) -> bool:
        """Whether a heading or a table cell is open, which have to stay on one line."""
        names = self._names
        return any(names.get(name) for name in _ONE_LINE)

    @property
    def _parent(self) -> _Element:
        """The innermost open element that is rendered."""
        return next(each for each in reversed(self._stack) if each.shown)

    def _pop(self) -> None:
        element = self._stack.pop()
        name = element.name
        self._names[name] -= 1
        if element.is_hidden:
            has_words = element.words or any(_WORD.search(text) for _, text in element.parts)
            is_said = name in _SILENT_TAGS or element.attributes.get("class") == _DRAWN
            if has_words and not is_said:
                if any(each.is_hidden for each in self._stack):
                    self._stack[-1].words = True
                else:
                    self._dropped[name] += 1
            return
        if not element.shown:
            self._stack[-1].parts += element.parts
            return
        self._stack.append(element)  # its own text counts as inside it
        self._names[name] += 1
        text = self._joined(element)
        self._stack.pop()
        self._names[name] -= 1
        self._stack[-1].parts.append((name, self._rendered(element, text)))

    def _joined(self, element: _Element) -> str:
        """Join the parts of an element, keeping only significant white space."""
        texts = filter(None, self._texts(element))
        if self._names.get("pre"):
            return "".join(texts)
        joined = [""]
        for text in texts:
            found = _EDGES.fullmatch(text)
            begin, content, end = found.groups() if found else ("", text, "")
            if joined[-1] and begin:
                begin = "\n" * min(2, max(len(joined.pop()), len(begin)))
            joined += [begin, content, end]
        return "".join(joined)

    def _texts(self, element: _Element) -> Iterator[str]:
        """Yield the parts of an element, without white space next to block elements."""
        parts = element.parts
        edge = element.name if element.name in _BLOCKS or _is_heading(element.name) else ""
        kinds = [edge, *(kind for kind, _ in parts), edge]
        in_list = self._names.get("li") or element.name in _LISTS
        for number, (kind, text) in enumerate(parts):
            if kind:
                is_apart = kind in _LISTS and not in_list and _is_before_text(parts, number)
                yield f"{text}\n" if is_apart else text
            else:
                yield self._own_text(text, _is_block(kinds[number]), _is_block(kinds[number + 2]))

    def _own_text(self, text: str, after_block: bool, before_block: bool) -> str:  # noqa: FBT001
        """Collapse the white space of an element's own text, given its neighbours."""
        if (after_block or before_block) and not text.strip():
            return ""
        collapsed = text if self._names.get("pre") else _collapsed(text)
        collapsed = collapsed.lstrip(" \t\r\n") if after_block else collapsed
        return collapsed.rstrip() if before_block else collapsed

    def _rendered(self, element: _Element, text: str) -> str:
        if _is_heading(element.name):
            return self._heading(element, text)
        if element.name in _STYLED and element.attributes.get("style"):
            text = self._styled(element, text)
        rule = self._rules.get(element.name)
        return rule(self, element, text) if rule else text

    def _styled(self, element: _Element, text: str) -> str:
        """Mark a text as its style does, if it is of one paragraph."""
        words = text.strip()
        is_code = any(self._names.get(name) for name in _VERBATIM)
        if not words or is_code or "\n\n" in words or "|" in words:
            return text
        before, after = text.partition(words)[0], text.rpartition(words)[2]
        style = element.attributes["style"]
        for pattern, mark in _STYLES:
            if pattern.search(style) and not (mark in _MARK_SIGNS and words.startswith(mark)):
                is_sign = mark in _MARK_SIGNS
                words = f"{mark}{words}{mark}" if is_sign else f"<{mark}>{words}</{mark}>"
        return f"{before}{words}{after}"

    # Rules ---------------------------------------------------------------------------------

    def _inline(self, element: _Element, text: str) -> str:
        """Render inline markup, moving white space at its ends outside of it."""
        words = text.strip()
        if any(self._names.get(name) for name in _VERBATIM):
            return text
        if not words:
            return ""
        before = " " if text[0] == " " else ""
        after = " " if text[-1] == " " else ""
        return f"{before}{_marked(element, words)}{after}"

    def _paragraph(self, element: _Element, text: str) -> str:
        text = text.strip(" \t\r\n" if element.name == "p" else None)
        if text == "\\" and any(kind == "br" for kind, _ in element.parts):
            text = ""  # how editors write an empty line
        if self._is_inline:
            return f" {text} "
        return f"\n\n{text}\n\n" if text else ""

    def _heading(self, element: _Element, text: str) -> str:
        if self._is_inline:
            return text
        level = max(1, min(6, int(element.name[1:])))
        return f"\n\n{'#' * level} {_ANY_SPACE.sub(' ', text.strip())}\n\n"

    def _list(self, _element: _Element, text: str) -> str:
        outer = self._parent.name
        # Right in a list, it is below the item before; one without items is there for its looks.
        if outer in _LISTS and _ITEM.match(text.lstrip("\n")):
            return f"{_indented(text.strip(chr(10)), 2 if outer == 'ul' else 3)}\n"
        return f"\n{text.rstrip()}" if self._names.get("li") else f"\n\n{text}"

    def _quote(self, _element: _Element, text: str) -> str:
        text = text.strip(" \t\r\n")
        if self._is_inline:
            return f" {text} "
        return f"\n{_LINE.sub(_quoted, text)}\n\n" if text else "\n"

    def _definition(self, element: _Element, text: str) -> str:
        text = text.strip()
        is_term = element.name == "dt"
        text = _ANY_SPACE.sub(" ", text) if is_term else text
        if self._is_inline:
            return f" {text} "
        if not text:
            return "\n"
        return f"\n\n{text}\n" if is_term else f":{_indented(text, 4)[1:]}\n"

    def _alone(self, element: _Element, text: str) -> str:
        return f"{'' if element.name == 'caption' else chr(10) * 2}{text.strip()}\n\n"

    def _item(self, _element: _Element, text: str) -> str:
        text = text.strip()
        parent = self._parent
        parent.items += 1
        if not text:
            return "\n"
        bullet = "- "
        if parent.name == "ol":
            bullet = f"{_parse_number(parent.attributes.get('start', '')) + parent.items - 1}. "
        return f"{bullet}{_indented(text, len(bullet))[len(bullet) :]}\n"

    def _code(self, element: _Element, text: str) -> str:
        if not text:
            return ""
        classes = [element.attributes.get("class", ""), element.attributes.get("code-class", "")]
        language = next((found[1] for each in classes if (found := _LANGUAGE.search(each))), "")
        text = _PRE_END.sub("", _PRE_BEGIN.sub("", text))
        return f"\n\n```{language}\n{text}\n```\n\n"

    def _formula(self, element: _Element, text: str) -> str:
        """Render a power, an index or a fraction of a formula, which have two parts."""
        parts = [part for kind, part in element.parts if kind]
        if len(parts) != 2:
            return text
        base, other = (part.strip() for part in parts)
        before, after = _FORMULAS[element.name]
        return f"{base}{before}{other}{after}"

    def _semantics(self, element: _Element, text: str) -> str:
        """Render a formula as it was written, if that stands beside it."""
        written = [part for kind, part in element.parts if kind == "annotation"]
        return f"${written[0].strip()}$" if written and written[0].strip() else text

    def _cell(self, element: _Element, text: str) -> str:
        span = max(1, min(_MAX_SPAN, _parse_number(element.attributes.get("colspan", ""))))
        row = next((each for each in reversed(self._stack) if each.name == "tr"), None)
        words = text.strip().replace("\n", " ")
        if row is None:
            return f" {words}{' |' * span}"
        row.cells.append(element.name)
        if self._is_nested(row):  # a table in a cell is a list there
            row.span += 1
            return f"{', ' if row.span > 1 else ''}{words}"
        before = self._reached_down(row)
        rows = max(1, min(_MAX_SPAN, _parse_number(element.attributes.get("rowspan", ""))))
        if rows > 1:
            below = self._table.below
            below.update(dict.fromkeys(range(row.span, row.span + span), rows))
        row.span += span
        return f"{before} {_PIPE.sub(_escaped_pipe, words)}{' |' * span}"

    @property
    def _table(self) -> _Element:
        """The innermost open table, or what a row without one is in."""
        return next((each for each in reversed(self._stack) if each.name == "table"), self._parent)

    def _is_nested(self, row: _Element) -> bool:
        """Return whether a row is in the cell of another."""
        outer = self._stack[: self._stack.index(row)] if row in self._stack else self._stack
        return any(each.name in ("td", "th") for each in outer)

    def _reached_down(self, row: _Element) -> str:
        """Return empty cells for the columns that cells of earlier rows fill."""
        below, cells = self._table.below, ""
        while below.get(row.span, 0) > 1:
            below[row.span] -= 1
            row.span += 1
            cells += "  |"
        return cells

    def _row(self, element: _Element, text: str) -> str:
        table = self._table
        if self._is_nested(element):
            return f"{text.strip()}; "
        text += self._reached_down(element)
        if not text.strip():
            return ""
        table.span = max(table.span, element.span)
        row = f"|{text}{_PAD}{element.span}{_PAD}\n"
        table.items += 1
        return row if table.items > 1 else f"{row}{_RULE}\n"

    def _whole_table(self, element: _Element, text: str) -> str:
        """Give all rows the width of the widest, as one that is wider would lose its cells."""
        if any(self._names.get(name) for name in ("td", "th")):
            return f" {text.strip().rstrip(';')} "
        return self._alone(element, _at_width(text, element.span))

    _rules: ClassVar[dict[str, Callable[[_Writer, _Element, str], str]]] = {
        **dict.fromkeys((*_MARKS, *_PLACES, *_CODE, "a"), _inline),
        **dict.fromkeys(("p", "div", "article", "section", "dl", *_MORE_BLOCKS), _paragraph),
        **dict.fromkeys(("msup", "msub", "mfrac"), _formula),
        "semantics": _semantics,
        **dict.fromkeys(_LISTS, _list),
        **dict.fromkeys(("dt", "dd"), _definition),
        **dict.fromkeys(("td", "th"), _cell),
        **dict.fromkeys(("caption", "figcaption"), _alone),
        "table": _whole_table,
        "li": _item,
        "pre": _code,
        "tr": _row,
        "blockquote": _quote,
        "q": lambda _self, _element, text: f'"{text}"',
    }


def _meaning_classes(html: str) -> dict[str, str]:
    """Return what a page's own style sheets say of classes that marks say as well, by class."""
    found: dict[str, str] = {}
    if "<style" not in html and "<STYLE" not in html:
        return found
    for sheet in _STYLE_SHEET.finditer(html):
        for name, style in _CLASSED.findall(sheet[1]):
            told = [match[0] for pattern, _ in _STYLES if (match := pattern.search(style))]
            if told:
                found[name] = ";".join([found[name], *told] if name in found else told)
    return found


def _parse_number(text: str) -> int:
    """Parse a numeric attribute; 1 if it is missing, invalid or absurdly large."""
    return int(text) if _NUMBER.fullmatch(text) else 1


def _collapsed(text: str) -> str:
    """Collapse each run of white space to one space, or one line feed."""
    if "\n" in text or "\r" in text:
        text = _LINE_END.sub("\n", text)
    return _SPACES.sub(" ", text) if "  " in text or "\t" in text else text


def _is_heading(name: str) -> bool:
    return name in _HEADINGS


def _is_block(name: str) -> bool:
    """Return whether white space next to such an element is insignificant."""
    return name in _BLOCKS or name in _MORE_BLOCKS or name == "pre" or _is_heading(name)


def _is_before_text(parts: list[tuple[str, str]], number: int) -> bool:
    """Return whether a list is followed by anything but another list."""
    after = (kind for kind, text in parts[number + 1 :] if kind or text.strip())
    return next(after, "ul") not in _LISTS


def _marked(element: _Element, words: str) -> str:
    mark = _MARKS.get(element.name)
    if mark is not None:
        plain = _PLAIN_STYLES.get(mark)
        is_plain = plain is not None and plain.search(element.attributes.get("style", ""))
        return words if is_plain else f"{mark}{words}{mark}"
    if element.name in _PLACES:
        return f"<{element.name}>{words}</{element.name}>"
    if element.name in _CODE:
        longest = max(map(len, _TICKS.findall(words)), default=0)
        ticks = "`" * (longest + 1)
        return f"{ticks} {words} {ticks}" if longest else f"{ticks}{words}{ticks}"
    address = element.attributes["href"]
    return f"<{address}>" if words == address else f"[{words}]({address})"


def _address(text: str) -> str:
    """Return the escaped address of a link or picture, or "" if its scheme isn't allowed."""
    address = _CONTROL.sub(" ", text).strip()
    bare = address.replace(" ", "")
    if not address or (_SCHEME.match(bare) and not _SAFE.match(bare)):
        return ""
    return _UNSAFE_CHARACTER.sub(lambda found: f"%{ord(found[0]):02X}", address)


def _at_width(text: str, span: int) -> str:
    """Fill up the rows of a table to `span` columns, and draw the line below its head."""
    text = _FILL.sub(lambda found: "  |" * (span - int(found[1])), text)
    return text.replace(_RULE, f"| {' | '.join(['---'] * span)} |")


def _escaped_pipe(found: re.Match[str]) -> str:
    return f"\\{found[0]}"


def _indented(text: str, width: int) -> str:
    return _LINE.sub(lambda found: f"{' ' * width}{found[1]}" if found[1] else "", text)


def _quoted(found: re.Match[str]) -> str:
    return f"> {found[1]}" if found[1] else ">"

"""HTML as Markdown, in one pass and without a tree.

An element's text is made when it ends, of what it holds: then all its neighbours are known, which
say what white space counts. What nobody closed ends with what is around it. The rules are those of
markdownify, which made this Markdown before: what was imported then is known again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import ClassVar

_UNSEEN = frozenset(
    (
        *("script", "style", "head", "template", "noscript", "iframe", "object", "embed", "svg"),
        *("button", "select", "textarea", "link", "meta"),
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
_MARKS = {"b": "**", "strong": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}
_MARKS |= {"sub": "", "sup": ""}
_CODE = frozenset(("code", "kbd", "samp"))
_AS_IS = _CODE | {"pre"}
_HEADINGS = frozenset(f"h{number}" for number in range(10))
_LISTS = ("ul", "ol")
_ONE_LINE = ("td", "th", "h1", "h2", "h3", "h4", "h5", "h6")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:language|lang)-([\w+#\-]{1,30})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*:", re.IGNORECASE)
_SAFE = re.compile(r"(https?|mailto|ftp|tel|evernote):", re.IGNORECASE)
_ODD = re.compile(r"[\s()<>]")
_CONTROL = re.compile(r"[\x00-\x20]+")
_SPACES = re.compile(r"[\t ]+")
_LINE_END = re.compile(r"[\t \r\n]*[\r\n][\t \r\n]*")
_ANY_SPACE = re.compile(r"[\t \r\n]+")
_ENDS = re.compile(r"(\n*)((?:.*[^\n])?)(\n*)", re.DOTALL)
_LINE = re.compile(r"^(.*)", re.MULTILINE)
_NUMBER = re.compile(r"[0-9]{1,9}")
_TICKS = re.compile(r"`+")
_PRE_BEGIN, _PRE_END = re.compile(r"\A[ \n]*\n"), re.compile(r"[ \n]*\Z")
_COMMENT = re.compile("<!--")
_COMMENT_END = re.compile(r"--\s*>")
_SECTION = re.compile(r"<!\[(?!(?:if|else|endif)\b)", re.IGNORECASE)
_SECTION_END = re.compile(r"\]\s*\]\s*>")
_CONDITION = re.compile(r"<!\[")  # as Word writes for each item of a list
_CONDITION_END = re.compile(r"\]\s*>")
_MOST_SPAN = 1000
_DEEPEST = 300
"""Elements that may be open; of what is deeper only the words are taken."""
Attributes = dict[str, str]


def markdown_of(html: str, lead: Callable[[str], str] = str) -> str:
    """What is shown of HTML, or a part of it, broken in any way, as Markdown.

    `lead` may lead the address of a link elsewhere.
    """
    html = tamed(html)
    try:
        return _Writer(lead).written(html)
    except AssertionError:  # a section that is marked as nothing HTML knows
        return _Writer(lead).written(html.replace("<![", "&lt;!["))


def tamed(html: str) -> str:
    """HTML in which what nobody ends is words.

    For each such comment, section or tag `html.parser` would look through all that follows.
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
    """An element that hasn't ended; of its `parts` those without a name are its own text."""

    __slots__ = ("attributes", "cells", "items", "name", "parts", "shown", "span", "unseen")

    def __init__(self, name: str, attributes: Attributes, *, unseen: bool = False) -> None:
        self.name = name
        self.attributes = attributes
        self.parts: list[tuple[str, str]] = []
        self.items = 0  # of a list
        self.cells: list[str] = []  # of a row
        self.span = 0
        self.unseen = unseen  # with all that it holds
        self.shown = True  # False: what it holds belongs to what is around it


class _Writer(HTMLParser):
    def __init__(self, lead: Callable[[str], str]) -> None:
        super().__init__(convert_charrefs=True)
        self._lead = lead
        self._open = [_Element("", {})]
        self._names: dict[str, int] = {}
        self._text: list[str] = []

    def written(self, html: str) -> str:
        """The Markdown of a whole text."""
        self.feed(html)
        self.close()
        self._flush()
        while len(self._open) > 1:
            self._end()
        return self._joined(self._open[0]).strip("\n")

    # Events --------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        self._flush()
        attributes = {name: value or "" for name, value in attrs}
        style = attributes.get("style")
        is_unseen = tag in _UNSEEN or (style is not None and bool(_HIDDEN.search(style)))
        if is_unseen and tag in _VOID:
            return
        if tag in _VOID:
            self._empty(tag, attributes)
        elif is_unseen or len(self._open) < _DEEPEST:
            self._begin(tag, attributes, unseen=is_unseen)

    def handle_endtag(self, tag: str) -> None:
        """End an element, with all that is open in it."""
        if not self._names.get(tag):
            return
        self._flush()
        while self._open[-1].name != tag:
            self._end()
        self._end()

    def handle_data(self, data: str) -> None:
        """Take in text."""
        self._text.append(data)

    def handle_comment(self, data: str) -> None:  # noqa: ARG002
        """Pass over what nobody sees."""
        self._flush()

    def handle_decl(self, decl: str) -> None:
        """Pass over a doctype."""
        self.handle_comment(decl)

    handle_pi = unknown_decl = handle_comment

    def updatepos(self, i: int, j: int) -> int:  # noqa: ARG002
        """Count no lines: nobody asks where an element stood."""
        return j

    # Parts ---------------------------------------------------------------------------------

    def _begin(self, tag: str, attributes: Attributes, *, unseen: bool) -> None:
        element = _Element(tag, attributes, unseen=unseen)
        if tag == "a":
            attributes["href"] = _address(self._lead(attributes.get("href", "")))
            element.shown = attributes["href"] != ""
        if tag == "code":  # the language of the block around it may stand there
            for each in self._open:
                if each.name == "pre":
                    each.attributes.setdefault("code-class", attributes.get("class", ""))
        self._open.append(element)
        self._names[tag] = self._names.get(tag, 0) + 1

    def _empty(self, tag: str, attributes: Attributes) -> None:
        """Take in an element that holds nothing."""
        parts = self._open[-1].parts
        if tag == "img":
            parts.append(self._picture(attributes))
        elif tag == "input" and attributes.get("type") == "checkbox":
            parts.append(("", "[x] " if "checked" in attributes else "[ ] "))
        elif tag == "br":
            parts.append((tag, " " if self._is_inline else "\\\n"))
        elif tag != "input" or self._open[-1].name != "form":
            parts.append((tag, "\n\n---\n\n" if tag == "hr" else ""))

    def _picture(self, attributes: Attributes) -> tuple[str, str]:
        address, alt = _address(attributes.get("src", "")), attributes.get("alt", "")
        is_kept = not self._is_inline or self._around.name in ("td", "th", "a")
        return ("img" if address else "", f"![{alt}]({address})" if address and is_kept else alt)

    def _flush(self) -> None:
        """The text since the last sign is a part of what is open."""
        if self._text:
            text = "".join(self._text)
            self._text.clear()
            if not text.strip("\t\n\f\r ") and not self._names.get("pre"):
                text = "\n" if "\n" in text else " "
            self._open[-1].parts.append(("", text))

    @property
    def _is_inline(self) -> bool:
        """True in a heading or a cell, which are one line."""
        names = self._names
        return any(names.get(name) for name in _ONE_LINE)

    @property
    def _around(self) -> _Element:
        """The innermost element that is shown."""
        return next(each for each in reversed(self._open) if each.shown)

    def _end(self) -> None:
        """End the innermost element."""
        element = self._open.pop()
        name = element.name
        self._names[name] -= 1
        if element.unseen:
            return
        if not element.shown:
            self._open[-1].parts += element.parts
            return
        self._open.append(element)  # its own text is in it
        self._names[name] += 1
        text = self._joined(element)
        self._open.pop()
        self._names[name] -= 1
        self._open[-1].parts.append((name, self._converted(element, text)))

    def _joined(self, element: _Element) -> str:
        """What an element holds, with the white space that counts."""
        texts = filter(None, self._texts(element))
        if self._names.get("pre"):
            return "".join(texts)
        joined = [""]
        for text in texts:
            found = _ENDS.fullmatch(text)
            begin, content, end = found.groups() if found else ("", text, "")
            if joined[-1] and begin:
                begin = "\n" * min(2, max(len(joined.pop()), len(begin)))
            joined += [begin, content, end]
        return "".join(joined)

    def _texts(self, element: _Element) -> Iterator[str]:
        """The parts of an element; white space beside blocks doesn't count."""
        parts = element.parts
        edge = element.name if element.name in _BLOCKS or _is_heading(element.name) else ""
        kinds = [edge, *(kind for kind, _ in parts), edge]
        in_list = self._names.get("li")
        for number, (kind, text) in enumerate(parts):
            if kind:
                is_apart = kind in _LISTS and not in_list and _is_before_more(parts, number)
                yield f"{text}\n" if is_apart else text
            else:
                yield self._own(text, _is_block(kinds[number]), _is_block(kinds[number + 2]))

    def _own(self, text: str, after_block: bool, before_block: bool) -> str:  # noqa: FBT001
        """A text of an element's own, between what stands beside it."""
        if (after_block or before_block) and not text.strip():
            return ""
        told = text if self._names.get("pre") else _plain(text)
        told = told.lstrip(" \t\r\n") if after_block else told
        return told.rstrip() if before_block else told

    def _converted(self, element: _Element, text: str) -> str:
        """An element as Markdown; `text` is what it holds."""
        if _is_heading(element.name):
            return self._heading(element, text)
        rule = self._rules.get(element.name)
        return rule(self, element, text) if rule else text

    # Rules ---------------------------------------------------------------------------------

    def _inline(self, element: _Element, text: str) -> str:
        """A mark around words, the white space at their ends outside of it."""
        words = text.strip()
        if any(self._names.get(name) for name in _AS_IS):
            return text
        if not words:
            return ""
        before = " " if text[0] == " " else ""
        after = " " if text[-1] == " " else ""
        return f"{before}{_marked(element, words)}{after}"

    def _paragraph(self, element: _Element, text: str) -> str:
        text = text.strip(" \t\r\n" if element.name == "p" else None)
        if self._is_inline:
            return f" {text} "
        return f"\n\n{text}\n\n" if text else ""

    def _heading(self, element: _Element, text: str) -> str:
        if self._is_inline:
            return text
        level = max(1, min(6, int(element.name[1:])))
        return f"\n\n{'#' * level} {_ANY_SPACE.sub(' ', text.strip())}\n\n"

    def _list(self, _element: _Element, text: str) -> str:
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
        around = self._around
        around.items += 1
        if not text:
            return "\n"
        bullet = "- "
        if around.name == "ol":
            bullet = f"{_number(around.attributes.get('start', '')) + around.items - 1}. "
        return f"{bullet}{_indented(text, len(bullet))[len(bullet) :]}\n"

    def _code(self, element: _Element, text: str) -> str:
        if not text:
            return ""
        said = [element.attributes.get("class", ""), element.attributes.get("code-class", "")]
        language = next((found[1] for each in said if (found := _LANGUAGE.search(each))), "")
        text = _PRE_END.sub("", _PRE_BEGIN.sub("", text))
        return f"\n\n```{language}\n{text}\n```\n\n"

    def _cell(self, element: _Element, text: str) -> str:
        span = max(1, min(_MOST_SPAN, _number(element.attributes.get("colspan", ""))))
        for each in self._open:
            if each.name == "tr":
                each.cells.append(element.name)
                each.span += span
        return f" {text.strip().replace(chr(10), ' ')}{' |' * span}"

    def _row(self, element: _Element, text: str) -> str:
        around = self._around
        row = f"|{text}\n"
        if any(kind for kind, _ in around.parts):
            return row
        rule = f"| {' | '.join(['---'] * element.span)} |\n"
        table = next((each for each in reversed(self._open) if each.name == "table"), around)
        has_head = any(kind == "thead" for kind, _ in table.parts)
        if all(cell == "th" for cell in element.cells) or around.name != "tbody" or not has_head:
            return row + rule
        return row

    _rules: ClassVar[dict[str, Callable[[_Writer, _Element, str], str]]] = {
        **dict.fromkeys((*_MARKS, *_CODE, "a"), _inline),
        **dict.fromkeys(("p", "div", "article", "section", "dl"), _paragraph),
        **dict.fromkeys(_LISTS, _list),
        **dict.fromkeys(("dt", "dd"), _definition),
        **dict.fromkeys(("td", "th"), _cell),
        **dict.fromkeys(("table", "caption", "figcaption"), _alone),
        "li": _item,
        "pre": _code,
        "tr": _row,
        "blockquote": _quote,
        "q": lambda _self, _element, text: f'"{text}"',
    }


def _number(written: str) -> int:
    """The number that an attribute says; 1 where it says none, or one that nobody means."""
    return int(written) if _NUMBER.fullmatch(written) else 1


def _plain(text: str) -> str:
    """A text with one blank, or one line end, for all white space in a row."""
    if "\n" in text or "\r" in text:
        text = _LINE_END.sub("\n", text)
    return _SPACES.sub(" ", text) if "  " in text or "\t" in text else text


def _is_heading(name: str) -> bool:
    return name in _HEADINGS


def _is_block(name: str) -> bool:
    """True if white space beside such an element doesn't count."""
    return name in _BLOCKS or name == "pre" or _is_heading(name)


def _is_before_more(parts: list[tuple[str, str]], number: int) -> bool:
    """True of a list that something else than a list follows."""
    after = (kind for kind, text in parts[number + 1 :] if kind or text.strip())
    return next(after, "ul") not in _LISTS


def _marked(element: _Element, words: str) -> str:
    mark = _MARKS.get(element.name)
    if mark is not None:
        return f"{mark}{words}{mark}"
    if element.name in _CODE:
        most = max(map(len, _TICKS.findall(words)), default=0)
        ticks = "`" * (most + 1)
        return f"{ticks} {words} {ticks}" if most else f"{ticks}{words}{ticks}"
    address = element.attributes["href"]
    return f"<{address}>" if words == address else f"[{words}]({address})"


def _address(text: str) -> str:
    """Where a link or a picture may lead; nothing where it may not."""
    address = _CONTROL.sub(" ", text).strip()
    bare = address.replace(" ", "")
    if not address or (_SCHEME.match(bare) and not _SAFE.match(bare)):
        return ""
    return _ODD.sub(lambda found: f"%{ord(found[0]):02X}", address)


def _indented(text: str, width: int) -> str:
    return _LINE.sub(lambda found: f"{' ' * width}{found[1]}" if found[1] else "", text)


def _quoted(found: re.Match[str]) -> str:
    return f"> {found[1]}" if found[1] else ">"

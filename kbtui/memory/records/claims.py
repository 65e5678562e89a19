"""Claims: what a text states to whoever looks at it, one by one, whatever Markdown it stands in.

Every visible line is a claim. What its markup sets apart (a tag, a name, a cell, the text or target
of a link, code in backticks) is one as well, as it is read on its own and mustn't hide among words
that were said. Guards judge claims and know nothing of Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from kbtui.knowledge.entries.entry import ENTRY_TYPES, EVOLUTION, section_names
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.document import Document, VisibleLine, read, read_body
from kbtui.knowledge.format.facts import normalise, without_facts

_OWN_NAMES = (
    *ENTRY_TYPES,
    *ENTRY_TYPES.values(),
    *[name for kind in ENTRY_TYPES for name in section_names(kind)],
    *(EVOLUTION, "Facts", "Memory", "Noted", "Style", "User Preferences", "Skills"),
    *("title", "type", "created", "updated", "related", "tag", "tags", "alias", "aliases"),
    *("sources", "summary", "description", "private"),
)
OWN_WORDS = " ".join(_OWN_NAMES)
"""The words that kbtui itself writes as headings, names of folders and of properties."""
_OWN = frozenset(map(str.casefold, _OWN_NAMES))
_BOOKKEEPING = frozenset({"type", "created", "updated", "private"})
_CACHE_LIMIT = 32_768  # characters; the claims of longer texts aren't kept
_LABELS = frozenset({"tags", "tag", "aliases", "alias", "related", "summary", "description"})
_PIECE = re.compile(
    r"(?<!`)(?P<ticks>`{1,9})(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    r"|\[\[(?P<link>[^\[\]]*)\]\]"
    r"|\[(?P<text>[^\[\]]*)\]"
    r"|(?<=\])\((?P<target>(?:[^()]|\([^()]*\))*)\)"
    r"|<(?P<address>[A-Za-z][\w+.-]*:[^<>\s]+|[^<>\s]+@[^<>\s]+)>"
    r"|<(?P<html>[^<>]+)>"
    r"|%%(?P<comment>.*?)%%"
    r"|(?<!\S)#(?P<tag>[\w/-]+)"
    r"|(?<!\S)\^(?P<anchor>[\w-]+)"
    r"|\$(?=\S)(?P<formula>[^$]+)(?<=\S)\$(?!\d)"
    r"|(?<!\S)(?P<field>[\w-]+)::"
)
_MARKS_OF_HTML = re.compile(r"</?[A-Za-z][\w-]*|[\w-]+=|/?>|<!--|--(?=>)")
_MARKERS = " \t>#*+-.:)[]^!`~"
_MARKUP = re.compile(r"[`\[<%#^$]|::|-->")
_WORD = re.compile(r"[^\W_]+")
_NAMED = re.compile(r"[^\W\d_]{2}")
_LINE_BY_LINE = frozenset({"paragraph", "item", "task", "quote"})
_ELEMENTS = re.compile(r"</?[A-Za-z][^<>]*>|<!--|-->|%%")
_CALLOUT = re.compile(r"\[!(?P<kind>[\w-]+)(?:\|[^\]]*)?\][+-]?")
_CELL = re.compile(r"(?<!\\)\|")
_PARTS_OF_DEFINITION = re.compile(r"\]:|\s[\"'(]")
_SEPARATORS = {"link": re.compile("[|#]"), "target": re.compile(r"\s[\"'(]")}
_READ = frozenset({"text", "comment", "html"})
_FENCE = re.compile(r"(?:[`~]{3,})\s*(?P<info>.*)")
_SCHEME = re.compile(r"^(?:https?://(?:www\.)?|mailto:)")
_KEY = re.compile(r"(?P<key>[^\s#\-'\"\[{][^:]*|\"[^\"]*\"|'[^']*'):(?:\s+|$)")
_YAML_ITEM = re.compile(r"^(?:-\s+)+")
_YAML_MARKS = re.compile(r"[\[\]{},\"']|(?:^|\s)[|>][+-]?\d?$")
_CALLOUTS = re.compile(
    "abstract|attention|bug|caution|check|cite|danger|done|error|example|fail|failure|faq|help|hint"
    "|important|info|missing|note|question|quote|success|summary|tip|tldr|todo|warning"
)
_LANGUAGES = re.compile(
    r"bash|bat|bib|c|c#|c\+\+|cmake|conf|console|cpp|cs|csharp|css|csv|dart|dataview|dataviewjs|diff"
    r"|docker|dockerfile|dotenv|elixir|env|erlang|fish|go|graphql|hcl|html|http|ini|java|javascript"
    r"|js|json5?|jsonc|jsx|julia|kotlin|latex|lua|make|makefile|markdown|math|md|mermaid|nginx|nix"
    r"|none|objc|perl|php|plain|plaintext|powershell|properties|proto|ps1|py|pycon|python|query|rb?"
    r"|regex|rs|ruby|rust|sass|scala|scss|sh|shell|sql|svg|swift|systemd|tasks|terraform|tex|text"
    r"|toml|tsx?|txt|typescript|vim|xml|ya?ml|zsh"
)
_PLAIN_VALUES = frozenset({"true", "false", "null", "yes", "no", "~"})


Form = Literal["line", "title", "whole", "label", "name"]


class Claim(NamedTuple):
    """Something that a text states.

    Attributes:
        text: The statement, without the marks around it.
        form: A ``line``; a ``title``, which is shorter: a heading, the value of a property; or a
            ``whole``, of which only the parts have to be said: a row. Of these a part is a
            ``label``, if it is read on its own (a cell, a link's text), or a ``name``, if it isn't
            worded in another way either (a tag, an address, code).
        key: The property at the top of a file that it stands in, or "".
    """

    text: str
    form: Form = "line"
    key: str = ""

    @property
    def is_optional(self) -> bool:
        """Whether the file says the same without it: a tag, another name, a summary."""
        return self.key in _LABELS

    @property
    def is_own(self) -> bool:
        """Whether kbtui itself writes so: a heading of a template, the day of a change."""
        return self.key in _BOOKKEEPING or is_own(self.text)

    @property
    def is_fact(self) -> bool:
        """Whether it tells something by itself, which no part does, and no title of one word."""
        is_told = self.form in {"line", "whole"} or (
            self.form == "title" and len(_WORD.findall(self.text)) > 1
        )
        return is_told and not self.is_own


def is_own(name: str) -> bool:
    """Return whether a heading, folder or property is one of kbtui's own."""
    return name.casefold() in _OWN


def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the claims of a whole file, each once."""
    return _kept(text) if len(text) < _CACHE_LIMIT else _kept.__wrapped__(text)


@lru_cache(maxsize=256)  # several guards compare the same few files
def _kept(text: str) -> tuple[Claim, ...]:
    return tuple(dict.fromkeys([each for _, each in _claims(read(text))]))


def claims_in(text: str) -> tuple[Claim, ...]:
    """Return the claims of a text that isn't a whole file: a line, or several."""
    return tuple(dict.fromkeys([each for _, each in _claims(read_body(text))]))


def facts_of(text: str) -> list[str]:
    """Return what a whole file tells, in any kind of Markdown, without kbtui's own words."""
    return list(dict.fromkeys(each.text for each in claims_of(text) if each.is_fact))


def changed_facts(before: str, after: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the facts removed and those added between two files, by normal form."""
    was, now = (dict.fromkeys(facts_of(text)) for text in (before, after))
    removed = {normalise(fact): fact for fact in was if fact not in now}
    added = {normalise(fact): fact for fact in now if fact not in was}
    return without_facts(removed, added), without_facts(added, removed)


def lines_where(text: str, is_true: Callable[[Claim], object]) -> list[str]:
    """Return the lines of a text of whose claims something is true.

    Code, comments, HTML and the like are true as a whole or not at all.
    """
    document = read_body(text)
    wrong = {line for line, claim in _claims(document) if not is_true(claim)}
    for block in document.blocks:
        lines = range(block.first, block.stop)
        if block.kind not in _LINE_BY_LINE and not wrong.isdisjoint(lines):
            wrong.update(lines)
    return [line for number, line in enumerate(text.split("\n")) if number not in wrong]


def without_label(data: bytes, label: Claim, before: bytes | None) -> bytes:
    """Return a file without a label in its properties; its summary is that of `before` again."""
    values = frontmatter.parse(data).values
    known = frontmatter.parse(before).values if before is not None else {}
    value, key = values.get(label.key), label.key
    left: Any = known.get(key)
    if isinstance(value, list):
        left = [each for each in value if label not in _in_property(f"- {each}", key)]
        if not left and before is not None and key not in known:
            left = None
    return frontmatter.set_keys(data, {key: left})


def _claims(document: Document) -> list[tuple[int, Claim]]:
    found: list[tuple[int, Claim]] = []
    lines = document.text.split("\n")
    for line in document.visible_lines():
        # What stands before a line's text is a marker, or the name of a footnote.
        marker = lines[line.line].partition(line.text)[0].strip(_MARKERS)
        named = [Claim(marker, "name")] if _NAMED.search(marker) else []
        found += [(line.line, each) for each in (*named, *_claims_of(line)) if each.text]
    return found


def _claims_of(line: VisibleLine) -> Iterable[Claim]:
    match line.kind:
        case "property":
            return _in_property(line.text, line.under)
        case "code":
            return _in_code(line.text)
        case "definition":
            parts = map(_plain, _PARTS_OF_DEFINITION.split(line.text))
            return [Claim(line.text, "whole"), *(Claim(part, "name") for part in parts)]
        case "row":
            cells = (_in_prose(cell, "label") for cell in _CELL.split(line.text))
            return [Claim(line.text, "whole"), *chain.from_iterable(cells)]
        case "heading":
            return _in_prose(line.text, "title")
        case _:
            return _in_prose(line.text)


def _in_prose(text: str, form: Form = "line", key: str = "") -> Iterable[Claim]:
    """Return a line without HTML and the marks of comments, and what its markup sets apart."""
    if not _MARKUP.search(text):
        return [Claim(text.strip(), form, key)]
    return _in_marked_prose(text, form, key)


def _in_marked_prose(text: str, form: Form, key: str) -> Iterator[Claim]:
    bare = _CALLOUT.sub(lambda found: _unless(found["kind"], _CALLOUTS), text)
    yield Claim(_ELEMENTS.sub(" ", bare).strip(), form, key)
    for found in _PIECE.finditer(bare):
        kind, piece = found.lastgroup or "", found[found.lastgroup or 0]
        if kind == "html":
            piece = _MARKS_OF_HTML.sub(" ", f"<{piece}>")
        parts = _SEPARATORS[kind].split(piece) if kind in _SEPARATORS else [piece]
        for part in map(_plain, parts):
            if not part.isdigit():
                yield Claim(part, "label" if kind in _READ else "name", key)


def _in_code(text: str) -> Iterator[Claim]:
    if fence := _FENCE.fullmatch(text):
        yield Claim(_unless(fence["info"].strip("{} "), _LANGUAGES), "title")
    else:
        yield Claim(text.lstrip("#/;*- ") or text)  # also the text of a comment


def _in_property(text: str, top: str) -> list[Claim]:
    """Return the key and the values of a line of YAML, whichever way it is written."""
    if text.startswith("#"):
        return [Claim(text.lstrip("# "))]
    claims: list[Claim] = []
    dash = _YAML_ITEM.match(text)
    at = dash.end() if dash else 0
    while found := _KEY.match(text, at):
        claims.append(Claim(found["key"].strip("\"' "), "name", "" if dash else top))
        at = found.end()
    rest = text[at:]
    is_sentence = top in {"summary", "description"}
    for part in [rest.strip("\"'")] if is_sentence else _YAML_MARKS.split(rest):
        if part.strip().casefold() not in _PLAIN_VALUES:
            claims += _in_prose(part.strip(), "line" if is_sentence else "title", top)
    return claims


def _plain(part: str) -> str:
    return _SCHEME.sub("", part.strip(" ^!<>\"'()"))


def _unless(word: str, known: re.Pattern[str]) -> str:
    return "" if known.fullmatch(word.casefold()) else word

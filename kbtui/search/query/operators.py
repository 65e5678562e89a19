"""Queries with operators: parsed by ``whoosh.qparser``, and run on a corpus by Whoosh's searcher.

`parser` imports this module only for a query that has operators, and writes its words so that none
of Whoosh's plugins reads anything into them. Words that stand side by side are optional; a field, a
phrase, and what AND, OR, brackets or a sign apply to are conditions.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from whoosh import query
from whoosh.qparser import QueryParser, plugins, syntax

from kbtui.search.index import analyser
from kbtui.search.index.bm25f import SCORED_FIELDS
from kbtui.search.index.segment import FILTER_FIELDS, WRITTEN
from kbtui.search.index.whoosh_reader import (
    ArrayAnd,
    ArrayAndNot,
    ArrayAny,
    ArrayNot,
    ArrayOr,
    CorpusReader,
    CorpusSearcher,
    Known,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.index.whoosh_reader import Texts

_EVERYWHERE = tuple(SCORED_FIELDS)
_ANYWHERE = ("title", "headings", "label", "tags", "body", WRITTEN)
_FIELDS: Mapping[str, Sequence[str]] = {
    "title": ("title",),
    "heading": ("headings", "label", "title"),
}
Kind = Literal["word", "misspelt", "phrase", "letters"]
_SIGN = r"(?<![^\s(])"
_MAX_EXPANSIONS = 512
_EXPANSION_WEIGHT = 0.8
_FULFILLED = 1e-6
# Characters that mean something to Whoosh stand in its queries as characters of private use.
_ESCAPE, _ESCAPE_END = 0xE000, 0xE080
_NAMES = frozenset({"AND", "OR", "NOT"})
_IN_ARRAYS: Mapping[type[query.Query], Callable[[list[query.Query]], query.Query]] = {
    query.And: ArrayAnd,
    query.Or: ArrayAny,
    query.AndNot: lambda parts: ArrayAndNot(*parts),
    query.Not: lambda parts: ArrayNot(*parts),
}
_BY_LETTERS = (query.Prefix, query.Wildcard, query.FuzzyTerm)


def _escaped(text: str, kept: str) -> str:
    """Return a text in which no character means anything to Whoosh, but those `kept`."""
    return "".join(
        chr(_ESCAPE + ord(c))
        if c.isascii() and not (c.isalnum() or c.isspace() or c in kept)
        else c
        for c in text
    ) + (chr(_ESCAPE) if text in _NAMES else "")


def _plain(text: str) -> str:
    return "".join(
        chr(ord(c) - _ESCAPE) if _ESCAPE < ord(c) < _ESCAPE_END else c for c in text
    ).replace(chr(_ESCAPE), "")


class _Side(syntax.GroupNode):  # type: ignore[misc]
    """What stands side by side; no ``OrGroup``, with which Whoosh would join an explicit OR."""

    qclass = query.Or


class _Must(syntax.Wrapper):  # type: ignore[misc]
    """What has a plus sign."""

    def query(self, parser: QueryParser) -> query.Query:
        return self.nodes[0].query(parser)


class _Conditions(plugins.Plugin):  # type: ignore[misc]
    """Tells conditions from optional words in groups inside of others."""

    def filters(self, _parser: QueryParser) -> list[tuple[Any, int]]:
        return [(self.do_groups, 700)]  # after the operators

    def do_groups(self, parser: QueryParser, group: syntax.GroupNode) -> syntax.GroupNode:
        for place, node in enumerate(group):
            if isinstance(node, syntax.GroupNode):
                self.do_groups(parser, node)
                group[place] = _joined(node) if isinstance(node, _Side) else node
        return group


def _split(group: syntax.GroupNode, *, quoted: bool) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the conditions, the exclusions and the optional words of a group."""
    required, excluded, optional = [], [], []
    for node in map(_without_double_not, group):
        if isinstance(node, syntax.NotGroup):
            excluded.append(node.nodes[0])
        elif (
            (isinstance(node, syntax.GroupNode) and not isinstance(node, _Side))
            or (quoted and isinstance(node, plugins.PhrasePlugin.PhraseNode))
            or (node.has_fieldname and node.fieldname)
        ):
            required.append(node)
        else:
            optional.append(node)
    return required, excluded, optional


def _without_double_not(node: Any) -> Any:
    while isinstance(node, syntax.NotGroup) and isinstance(node.nodes[0], syntax.NotGroup):
        node = node.nodes[0].nodes[0]
    return node


def _joined(group: _Side) -> syntax.SyntaxNode:
    required, excluded, optional = _split(group, quoted=True)
    found: Any = None
    if required:
        found = syntax.AndGroup(required)
        found = syntax.AndMaybeGroup([found, syntax.OrGroup(optional)]) if optional else found
    elif optional:
        found = _Side(optional)
    if not excluded:
        return found or group
    without = syntax.OrGroup(excluded)
    return syntax.AndNotGroup([found, without]) if found else syntax.NotGroup([without])


@cache
def _parser(fields: tuple[str, ...]) -> QueryParser:
    def sign(pattern: str, group: type[syntax.Wrapper]) -> tuple[Any, int]:
        # Associative to the right, so that NOT NOT is read.
        tagger = plugins.OperatorsPlugin.OpTagger(
            _SIGN + pattern, group, syntax.PrefixOperator, leftassoc=False
        )
        return tagger, 0

    operators = plugins.OperatorsPlugin(
        [
            sign(r"-(?=\S)", syntax.NotGroup),
            sign(r"\+(?=\S)", _Must),
            sign(r"NOT(?=[\s(])", syntax.NotGroup),
        ],
        And=r"(?<![^\s)])AND(?![^\s(])",
        Or=r"(?<![^\s)])OR(?![^\s(])",
        AndNot=None,
        AndMaybe=None,
        Not=None,
        Require=None,
    )
    names = "|".join(fields)
    return QueryParser(
        None,
        None,
        plugins=[
            plugins.FieldsPlugin(rf"(?P<text>{names}):(?=\S)", remove_unknown=False),
            plugins.WildcardPlugin(),
            plugins.PhrasePlugin(),
            plugins.RangePlugin(),
            plugins.GroupPlugin(),
            plugins.FuzzyTermPlugin(),
            operators,
            _Conditions(),
        ],
        group=_Side,
    )


@dataclass(frozen=True, slots=True)
class Operators:
    """A query with operators as Whoosh's queries, not yet looked up in a corpus."""

    required: tuple[query.Query, ...]
    excluded: tuple[query.Query, ...]
    optional: tuple[query.Query, ...]

    @property
    def has_more_than_words(self) -> bool:
        """Whether plain words say less."""
        words = all(isinstance(leaf, query.Term) for leaf in self.optional)
        return bool(self.required or self.excluded) or not words

    def letters(self) -> list[query.Query]:
        """Return what is looked for by its letters, and in every field."""
        return [
            leaf
            for leaf in self._positive()
            if isinstance(leaf, _BY_LETTERS) and not leaf.fieldname
        ]

    def positive(self) -> list[tuple[Kind, str]]:
        """Return what a document may have, in the order of the query, with its kind."""
        return [
            (_kind(leaf), _text_of(leaf))
            for leaf in self._positive()
            if not leaf.fieldname and not isinstance(leaf, query.TermRange)
        ]

    def _positive(self) -> list[query.Query]:
        leaves = [leaf for each in (*self.required, *self.optional) for leaf in _positive(each)]
        return sorted(leaves, key=lambda leaf: leaf.startchar or 0)

    def __str__(self) -> str:
        parts = [f"+{_plain(str(each))}" for each in self.required]
        parts += [f"-{_plain(str(each))}" for each in self.excluded]
        parts += [_plain(str(each)) for each in self.optional]
        return " ".join(parts).replace("None:", "")


def read(
    parts: Iterable[tuple[str, str, str, str]], fields: tuple[str, ...], *, quoted: bool
) -> Operators:
    """Parse a query.

    Args:
        parts: What stands before a text, the text, what stands after it, and operators in it.
        fields: The names of the fields that there are.
        quoted: Phrases are conditions.

    Raises:
        Exception: of any type: Whoosh can't read it.
    """
    source = " ".join(
        f"{before}{_escaped(text, kept)}{after}" for before, text, after, kept in parts
    )
    parser = _parser(fields)
    top = parser.process(source)
    split = _split(top, quoted=quoted) if isinstance(top, _Side) else ([top], [], [])
    queries = [[node.query(parser) for node in part] for part in split]
    return Operators(*(tuple(each for each in part if each is not None) for part in queries))


def _text_of(leaf: query.Query) -> str:
    """Return the words of a leaf, as they were typed."""
    return _plain(" ".join(leaf.words) if isinstance(leaf, query.Phrase) else leaf.text) + (
        "*" if isinstance(leaf, query.Prefix) else ""
    )


def _kind(leaf: query.Query) -> Kind:
    if isinstance(leaf, query.Phrase):
        return "phrase"
    if isinstance(leaf, query.FuzzyTerm):
        return "misspelt"
    return "letters" if isinstance(leaf, _BY_LETTERS) else "word"


def _positive(found: query.Query) -> Iterator[query.Query]:
    if isinstance(found, query.Not):
        return
    if isinstance(found, query.AndNot):
        yield from _positive(found.a)
    elif found.is_leaf():
        yield found
    else:
        for child in found.children():
            yield from _positive(child)


@dataclass(frozen=True, slots=True)
class Found:
    """The documents that fulfil all conditions, and the score of every document by its words."""

    mask: Mask
    scores: NDArray[np.float64]
    terms: frozenset[str]


def run(corpus: Corpus, operators: Operators, weights: Mapping[str, float], texts: Texts) -> Found:
    """Run a query on a corpus with Whoosh's searcher.

    Args:
        corpus: The documents.
        operators: The query.
        weights: The terms of its words, with their weights.
        texts: Returns the texts of chunks, to look for phrases.
    """
    reader = CorpusReader(corpus, texts)
    searcher = CorpusSearcher(reader)
    terms = [Word(term, weight) for term, weight in weights.items()]
    held = set(weights)
    for leaf in operators.letters():
        found = _expanded(reader, leaf, _ANYWHERE)
        held.update(each.text for each in found)
        terms += _weighted(corpus, found)
    mask: Mask = corpus.live.copy()
    for each in operators.required:
        mask &= searcher.documents(_bound(reader, each))
    for each in operators.excluded:
        mask &= ~searcher.documents(_bound(reader, each))
    scores = searcher.scores(ArrayOr(terms))
    if not operators.optional:
        # What fulfils the conditions is found, even by one that isn't about words.
        scores[mask] = np.maximum(scores[mask], _FULFILLED)
    return Found(mask, scores, frozenset(held))


def _bound(reader: CorpusReader, found: query.Query) -> query.Query:
    """Return a condition with its words replaced by the terms of a corpus."""
    if found.is_leaf():
        return _bound_leaf(reader, found)
    if isinstance(found, query.AndMaybe):
        return _bound(reader, found.a)  # what may be there as well is no condition
    return _IN_ARRAYS[type(found)]([_bound(reader, child) for child in found.children()])


def _bound_leaf(reader: CorpusReader, leaf: query.Query) -> query.Query:
    name = leaf.fieldname
    if isinstance(leaf, query.TermRange):
        return ArrayOr(_expanded(reader, leaf, (name,)))
    value = _text_of(leaf)
    if name == "path":
        return Known(reader.corpus.containing("path", analyser.fold(value)))
    if name in FILTER_FIELDS:
        by_letters = isinstance(leaf, _BY_LETTERS)
        terms = _expanded(reader, leaf, (name,)) if by_letters else None
        return ArrayOr(terms if by_letters else [query.Term(name, analyser.fold(value))])
    fields = _FIELDS.get(name, _EVERYWHERE)
    if isinstance(leaf, _BY_LETTERS):
        return ArrayOr(_expanded(reader, leaf, fields if name else _ANYWHERE))
    words = ArrayAnd(
        [
            ArrayOr(
                [query.Term(field, term) for term in terms for field in fields]
                if name
                else [*map(Word, terms)]
            )
            for terms in _needed(reader.corpus, value, fields)
        ]
    )
    if isinstance(leaf, query.Phrase) and not name:
        return Known(_saying(reader, words, value, leaf.slop))
    return words


def _needed(corpus: Corpus, text: str, fields: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield for each word of a text the terms of which a document must have one."""
    for start, end, terms in analyser.spans(text):
        if len(terms[0]) == 1 and analyser.is_unspaced(terms[0]):
            # A single character of such a script is only indexed as part of bigrams.
            yield corpus.expand(terms[0], fields) or terms
        else:
            yield analyser.forms_of(text[start:end], corpus.languages)


def _expanded(reader: CorpusReader, leaf: query.Query, fields: Sequence[str]) -> list[query.Term]:
    """Return the terms of fields that a prefix, a pattern, a range or a misspelt word matches."""
    found: list[query.Term] = []
    for field in fields:
        fielded = copy.copy(leaf)
        fielded.fieldname = field
        if isinstance(leaf, _BY_LETTERS):
            fielded.text = analyser.fold(_plain(leaf.text))
        if isinstance(leaf, query.Wildcard) and fielded.text[0] in "*?":
            terms: Iterable[Any] = reader.terms_like(field, fielded.text)
        else:
            terms = (text for _, text in fielded.expanded_terms(reader))
        for term in terms:
            text = term.decode("utf-8", "replace") if isinstance(term, bytes) else term
            found.append(query.Term(field, text))
    return sorted(found, key=lambda term: (len(term.text), term.text))[:_MAX_EXPANSIONS]


def _weighted(corpus: Corpus, terms: Sequence[query.Term]) -> Iterator[query.Term]:
    """Yield terms that were found by their letters with their weights."""
    texts = [*dict.fromkeys(term.text for term in terms)]
    rarities = dict(zip(texts, corpus.rarities(texts), strict=True))
    by_field: dict[str, list[str]] = {}
    for term in terms:
        by_field.setdefault(term.fieldname, []).append(term.text)
    for field, held in by_field.items():
        for text, weight in zip(held, corpus.boosts(field, held), strict=True):
            rarity = rarities[text] if field in SCORED_FIELDS else 1
            yield query.Term(field, text, boost=_EXPANSION_WEIGHT * weight * rarity)


def _saying(reader: CorpusReader, words: query.Query, phrase: str, within: int) -> Mask:
    """Return the documents with all `words` whose text has a phrase.

    The words may be up to `within` words apart, as in Whoosh's ``Phrase``.
    """
    mask = CorpusSearcher(reader).documents(words)
    pattern = phrase_in_folded(phrase, within)
    if pattern is None:
        return mask
    numbers = np.flatnonzero(mask)
    squeezed = analyser.is_unspaced(phrase)
    for number, text in zip(numbers.tolist(), reader.texts(numbers), strict=True):
        folded = analyser.fold(text)
        mask[number] = pattern.search("".join(folded.split()) if squeezed else folded) is not None
    return mask


def phrase_in_folded(phrase: str, within: int = 1) -> re.Pattern[str] | None:
    """Compile a pattern that finds a phrase in a folded text; None without words."""
    words = analyser.words(phrase)
    if not words:
        return None
    if analyser.is_unspaced(phrase):
        return re.compile(re.escape(analyser.fold("".join(phrase.split()))))
    between = rf"(?:[\W_]+[^\W_]+){{0,{within - 1}}}[\W_]+"
    first, *others = map(re.escape, words)
    # A pattern that begins with letters is looked for by them, ten times as fast.
    begin = rf"{first}(?<![^\W_]{first})"
    return re.compile(rf"{between.join((begin, *others))}(?![^\W_])")

"""The Markdown that notes are written in: CommonMark, GFM, footnotes, wikilinks, tags.

markdown-it-py does the work; two inline rules of the notes world are added. Importing this module
imports markdown-it-py, so it is imported by what runs in a thread.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from mdit_py_plugins.footnote import footnote_plugin

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline

_WIKILINK = re.compile(r"(!?)\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\\?\|([^\[\]\n]*))?\]\]")
_TAG = re.compile(r"#(?=[^\d\W]|\d+[^\d\s])[\w/-]+")


def _wikilink(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    match = _WIKILINK.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    embed, target, heading, alias = match.groups()
    if not target and not heading:
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        shown = target.strip() + (f" > {heading[1:].strip()}" if heading and target else "")
        token.content = (alias or shown or (heading or "")[1:]).strip()
        token.meta = {
            "target": target.strip(),
            "heading": (heading or "")[1:].strip(),
            "embed": bool(embed),
        }
    state.pos = match.end()
    return True


def _tag(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    if state.src[state.pos] != "#" or (state.pos and not state.src[state.pos - 1].isspace()):
        return False
    match = _TAG.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    if not silent:
        state.push("tag", "", 0).content = match.group()
    state.pos = match.end()
    return True


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    parser = MarkdownIt("gfm-like", {"html": True, "maxNesting": 20}).use(footnote_plugin)
    parser.inline.ruler.before("link", "wikilink", _wikilink)
    parser.inline.ruler.before("image", "wikilink_embed", _wikilink)
    parser.inline.ruler.before("wikilink", "tag", _tag)
    parser.inline.add_terminator_char("#")
    return parser


def parse(text: str) -> SyntaxTreeNode:
    """Parse Markdown without frontmatter into a tree; any text is valid."""
    return SyntaxTreeNode(_parser().parse(text))

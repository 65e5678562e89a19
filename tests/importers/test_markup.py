"""HTML becomes Markdown that says the same, and nothing that wasn't shown."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from kbtui.importers.markup import to_markdown

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h2>Plan</h2><p>One <b>bold </b>and <i>two</i>.</p>", "## Plan\n\nOne **bold** and *two*."),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", "- a\n  - b\n- c"),
        ("<ol><li>a</li><li>b</li></ol>", "1. a\n2. b"),
        ("<pre><code class='language-py'>x = 1\n\ny &lt; 2</code></pre>", "```py\nx = 1\n\ny < 2\n```"),
        ("<a href='https://e.org/a b'>e</a>", "[e](https://e.org/a%20b)"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ("<blockquote>said</blockquote>", "> said"),
        ("snake_case and 2*3*4&nbsp;m", "snake_case and 2*3*4 m"),
        ("<p>one<br>two</p>", "one\\\ntwo"),
        ("<div>one</div><div><br></div><div>\\</div>", "one\n\n\\"),
        ("<p>left <b>open", "left **open**"),
        ("<dl><dt>a</dt><dd>b</dd></dl><div style='display:none'><p>c</div>d", "a\n:   b\n\nd"),
        ("<div><p style='display:none'>a</div>seen", "seen"),
        ("<ul><li>a<p>b</p></li></ul><p>c", "- a\n\n  b\n\nc"),
        ("<ul><li>a</li>\n<ul>\n<li>b</li></ul><li>c</li></ul>d", "- a\n  - b\n- c\n\nd"),
        ("<ol><li>a<li>b<ol><li>c</ol></li><ul><li>d</ul></ol>", "1. a\n2. b\n   1. c\n   - d"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl><ul><li>e<li>f<table><tr><td>g</table></ul>",
         "a\n:   b\n\nc\n:   d\n\n- e\n- f\n\n  | g |\n  | --- |"),
        ("a<iframe src='x' srcdoc='&lt;p&gt;b&lt;ul&gt;&lt;li&gt;c'></iframe>d", "a\n\nb\n\n- c\n\nd"),
        ("<img src='data:image/gif;base64,AA' data-src='https://e.org/a.png' alt=b>", "![b](https://e.org/a.png)"),
        ("<ol start=9><li>a</li><li>b<pre>x\n y</pre></li></ol>", "9. a\n10. b\n\n    ```\n    x\n     y\n    ```"),
        ("<ol start=½><li></li><li>a</ol>", "2. a"),
        (f"<table><tr><td colspan={'9' * 5000}>a</table>", "| a |\n| --- |"),
        ("<table><tr><td colspan=2>a<br>b</td></tr><tr><td>c<td><img src=d alt=e></tr></table>",
         "| a b | |\n| --- | --- |\n| c | ![e](d) |"),
        ("<h2>a <img src=b alt=c> <code>d`e</code></h2>", "## a c `` d`e ``"),
        (
            "<ul><li><input type=checkbox> a</li><li><label><input type=checkbox checked> b</label>",
            "- [ ] a\n- [x] b",
        ),
        ("<input type=checkbox checked>a<hr>b <q>c</q> x<sup>2</sup>", '[x] a\n\n---\n\nb "c" x<sup>2</sup>'),
        ("<p>kept <![CDATtype:]]>", "kept <![CDATtype:]]>"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_shown_becomes_markdown(html: str, text: str) -> None:
    assert to_markdown(html) == text


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>seen",
        "<style>p {}</style>seen",
        "<div style='display: none'>secret</div>seen",
        "<!-- secret -->seen",
        "<a href='java\nscript:alert(1)'>seen</a>",
        "<a href=' javascript:alert(1)'>seen</a>",
        "<img src='data:image/png;base64,AAAA' alt='seen'>",
        "<button>Copy</button>seen",
        "seen\x1b\x00",
    ],
)
def test_what_is_hidden_or_active_is_left_out(html: str) -> None:
    assert to_markdown(html) == "seen"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div><object><table><tr><td>flour<td>2 kg</table></object></div>", "| flour | 2 kg |\n| --- | --- |"),
        ("<table><tr><th>a<tr><td>1<td>2|3</table>", "| a |  |\n| --- | --- |\n| 1 | 2\\|3 |"),
        ("<table><thead><tr><th>a</thead><tfoot><tr><td>c</tfoot><tbody><tr><td>b</table>",
         "| a |\n| --- |\n| c |\n| b |"),
        ("<table><tr></tr></table>after", "after"),
        ("<table><tr><td rowspan=2>x<td>y<tr><td>z</table>", "| x | y |\n| --- | --- |\n|  | z |"),
        ("<table><tr><td>a<td><table><tr><td>in<td>ner<tr><td>q</table></table>", "| a | in, ner; q |\n| --- | --- |"),
        ("<iframe src='https://e.org/x' title='A talk'></iframe>", "[A talk](https://e.org/x)"),
        ("<audio controls><source src='song.mp3'></audio>", "[song.mp3](song.mp3)"),
        ("<textarea>typed here</textarea>", "typed here"),
        ("<p>a</p><input value='typed'><details><summary>b</summary>c</details>", "a\n\ntyped\n\nb\n\nc"),
        ("<pre>a:<br>  b<br>c</pre>", "```\na:\n  b\nc\n```"),
        (("<style>.k{vertical-align:super;color:red}.b{font-weight:700}</style><p><span>10</span>"
         "<span class='c k'>6</span> <span class=b>cells</span></p>"), "10<sup>6</sup> **cells**"),
        ("<STYLE>.b{font-weight:700}</STYLE><p><span class=b>loud</span></p>", "**loud**"),
        ("<math><msup><mi>x</mi><mn>2</mn></msup></math>", "x<sup>2</sup>"),
        (("<math><semantics><mfrac><mn>1</mn><mn>2</mn></mfrac><annotation>\\frac12</annotation>"
         "</semantics></math><span class='katex-html' aria-hidden=true><span>1</span>2</span>"), "$\\frac12$"),
    ],
)  # fmt: skip
def test_tables_of_every_shape_and_what_is_embedded_stay(html: str, text: str) -> None:
    assert to_markdown(html) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<strike>40</strike> 50", "~~40~~ 50"),
        ("a <mark>b</mark>", "a ==b=="),
        ("10<sup>6</sup> H<sub>2</sub>O", "10<sup>6</sup> H<sub>2</sub>O"),
        ("10<span style='vertical-align: super'>6</span>", "10<sup>6</sup>"),
        ("<span style='text-decoration-line: line-through'>40</span>", "~~40~~"),
        ("a<span style='font-weight: 700'> b </span>c", "a **b** c"),
        ("<b style='font-weight: normal'>all <i>of</i> it</b>", "all *of* it"),
        ("<p style='font-style: italic'>said</p>", "*said*"),
    ],
)
def test_marks_by_tag_or_by_style_keep_their_meaning(html: str, text: str) -> None:
    assert to_markdown(html) == text


def test_hidden_words_are_counted() -> None:
    dropped: Counter[str] = Counter()
    html = (
        "<script>x = 1</script><div style='display:none'>one <p>two</p></div><button>Copy</button>"
    )
    assert to_markdown(f"{html}seen", dropped=dropped) == "seen"
    assert dropped == {"div": 1, "button": 1}


def test_depth_costs_the_form_and_not_the_words() -> None:
    assert to_markdown("<div>" * 50 + "fifty" + "</div>" * 50) == "fifty"
    assert to_markdown("<div>" * 5000 + "deep" + "</div>" * 5000) == "deep"
    assert to_markdown("<li>" * 100_000 + "deep").endswith("- deep")
    assert to_markdown("<div>" * 5000 + "<p style='display:none'>not seen</p>seen") == "seen"


def test_a_long_list_that_word_wrote_has_no_conditions_in_it() -> None:
    item = "<p><![if !supportLists]>1. <![endif]>tea</p>\n"
    assert to_markdown(item * 600) == "\n\n".join(["1. tea"] * 600)


@pytest.mark.parametrize(
    "piece", ["<!--", "<p ", "</", "<?", "<![if ", "<![CDATA[", "<a href=x ", "<!--x>"]
)
@pytest.mark.parametrize("end", ["", ">", "]>"])
def test_what_nobody_ends_is_looked_through_a_few_times_at_most(
    piece: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = 0

    def counted(name: str) -> Callable[[HTMLParser, int], int]:
        of_parser = getattr(HTMLParser, name)

        def look(parser: HTMLParser, begin: int) -> int:
            nonlocal looked_at
            found: int = of_parser(parser, begin)
            looked_at += (len(parser.rawdata) if found < 0 else found) - begin
            return found

        return look

    looks = (
        "parse_starttag",
        "parse_endtag",
        "parse_comment",
        "parse_pi",
        "parse_html_declaration",
    )
    for name in looks:
        monkeypatch.setattr(HTMLParser, name, counted(name))
    html = piece * 20_000 + end
    to_markdown(html)
    assert looked_at <= 4 * len(html)


def test_lists_that_only_indent_make_no_code() -> None:
    assert to_markdown("<p>a</p><ul><ul><ul><p>x</p></ul></ul></ul><p>b</p>") == "a\n\nx\n\nb"

"""The child process that reads documents; it imports nothing else of kbtui.

Each input line is JSON with the `path` and `kind` of a file, and is answered by a line of JSON:
``{"title", "parts": [[place, text], ...], "markdown", "problem"}``. Memory and file writes are
limited here, time by the parent.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import resource
import sys
import time
import types
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

_MEMORY = 2 << 30
_MAX_UNPACKED = 512 << 20
_MAX_CHARACTERS = 20_000_000  # characters
_MAX_CELLS = 100  # in a row; of a wider one those that are filled
_PICTURES = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
_MAX_PIXELS = 64_000_000
_LYING = range(5, 9)  # orientations in Exif that turn a picture by a quarter
_SMALL = (200, 120)
_SHARP = (960, 576)
_SECONDS = 45.0  # after which what was read so far has to do
_OLE = b"\xd0\xcf\x11\xe0"
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_BROKEN_WORD = re.compile(
    "[\x02\xad\ufffe]\\s*"
)  # a hyphen that only the end of the line asked for
_PLACES = {"sub_symbol": "<sub>", "sup_symbol": "<sup>"}
"""What keeps 10<sup>6</sup> from becoming 106."""
_RAISED = re.compile(r"vertical-align\s*:\s*(super|sub)(?!\w)", re.IGNORECASE)
_RULE = re.compile(r"([^{}@]{1,300})\{([^{}]{1,2000})\}")
_IN_LINES = frozenset(("a", "b", "em", "font", "i", "small", "span", "strong"))
_PICTURE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_ANCHOR = re.compile(r"\[([^][]*)\]\(#[^)]*\)")
_SLIDE = re.compile(r"^\s*<!-- Slide number: (\d+) -->\s*$", re.MULTILINE)
_BLANK = re.compile(r"\n\s*\n\s*\n+")
_HEADING = re.compile(r"^#{1,4}\s+(\S.{0,120})", re.MULTILINE)
_PROTECTED = "it is protected by a password"

Part = tuple[str, str]


class RefusedDocumentError(Exception):
    """A document can't be read; the message is worded to follow "because"."""


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # keeps libraries' output out of the answers
    os.dup2(nowhere, 2)
    _limit()
    # markitdown would detect the file type with a neural network, but it is known here.
    sys.modules["magika"] = types.ModuleType("magika")
    # Saves half a second of importing libraries that markitdown doesn't need for these formats.
    sys.modules.update(dict.fromkeys(("pandas", "pdfminer")))  # type: ignore[arg-type]
    for line in sys.stdin.buffer:
        task = json.loads(line)
        answers.write(json.dumps(_answer(task["path"], task["kind"])).encode() + b"\n")
        answers.flush()


def _limit() -> None:
    for what, most in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_FSIZE, 0)):
        with contextlib.suppress(ValueError, OSError):  # macOS has no limit of the first kind
            resource.setrlimit(what, (most, most))
    with contextlib.suppress(OSError):
        os.nice(10)


def _answer(path: str, kind: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 — bytes, and no name is made of it
            title, found = _READERS[kind](file)
            parts, is_cut = _collect(found)
    except RefusedDocumentError as error:
        return {"problem": str(error)}
    except MemoryError:
        return {"problem": "it needs too much memory"}
    except ImportError as error:
        return {"missing": str(error.name)}
    except Exception as error:  # noqa: BLE001 — the libraries raise anything for a damaged file
        return {"problem": f"it is damaged ({type(error).__name__})"}
    if not any(text for _, text in parts):
        return {"problem": _EMPTY.get(kind, "there is no text in it")}
    return {
        "title": _tidy(title),
        "parts": parts,
        "markdown": kind != "pdf",
        "problem": "only its beginning is read, it is too long" if is_cut else "",
    }


_EMPTY = {"pdf": "it holds pictures of pages, and no text"}


def _collect(found: Iterator[Part]) -> tuple[list[Part], bool]:
    parts: list[Part] = []
    left = _MAX_CHARACTERS
    deadline = time.monotonic() + _SECONDS
    for place, text in found:
        shown = _tidy(text)
        parts.append((" ".join(_tidy(place).split())[:120], shown[:left]))
        left -= len(shown)
        if left < 0 or time.monotonic() > deadline:
            return parts, True
    return parts, False


def _tidy(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    text = _INVISIBLE.sub("", _BROKEN_WORD.sub("", text))
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    return _BLANK.sub("\n\n", lines).strip("\n")


def _pdf(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        raise RefusedDocumentError(
            _PROTECTED if "password" in str(error) else "it is damaged"
        ) from None

    def pages() -> Iterator[Part]:
        for number in range(len(pdf)):
            try:
                page = pdf[number]
                text = page.get_textpage()
                yield f"page {number + 1}", text.get_text_bounded()
                text.close()
                page.close()
            except pypdfium2.PdfiumError:
                yield f"page {number + 1}", ""

    return pdf.get_metadata_dict().get("Title", ""), pages()


def _picture_size(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    """Return a picture's size and that of its pixels when downscaled, without decoding it."""
    with _picture_errors():
        _, sizes = _open_picture(file)
    return "", iter([(" ".join(map(str, sizes)), "-")])


def _picture(file: IO[bytes], *, sharp: bool = False) -> tuple[str, Iterator[Part]]:
    """Return a downscaled picture as base64 of its pixels; the place holds both sizes.

    If `sharp`, a larger one follows, as base64 of a PNG.
    """
    from PIL import Image, ImageOps

    with _picture_errors():
        picture, sizes = _open_picture(file)
        picture.draft("RGB", _SHARP if sharp else _SMALL)
        shown = ImageOps.exif_transpose(picture).convert("RGBA")
    shown.thumbnail(_SHARP)
    paper = Image.new("RGBA", shown.size, "white")  # drawings are made for a white background
    larger = Image.alpha_composite(paper, shown).convert("RGB")
    small = larger.resize(sizes[2:], Image.Resampling.BICUBIC)
    parts = [(" ".join(map(str, sizes)), base64.b64encode(small.tobytes()).decode())]
    if sharp:
        file_of_larger = io.BytesIO()
        larger.save(file_of_larger, "PNG", compress_level=1)
        parts.append(("png", base64.b64encode(file_of_larger.getvalue()).decode()))
    return "", iter(parts)


@contextlib.contextmanager
def _picture_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, SyntaxError, ValueError):
        raise RefusedDocumentError("it is damaged, or no picture") from None


def _open_picture(file: IO[bytes]) -> tuple[Any, tuple[int, int, int, int]]:
    """Return a picture whose pixels aren't read, its size as shown, and that downscaled."""
    from PIL import ExifTags, Image

    Image.MAX_IMAGE_PIXELS = None  # checked below, with a message
    picture = Image.open(file, formats=_PICTURES)
    width, height = picture.size
    if width * height > _MAX_PIXELS:
        raise RefusedDocumentError(f"{width} x {height} pixels are too many")
    if picture.getexif().get(ExifTags.Base.Orientation, 1) in _LYING:
        width, height = height, width
    scale = min(1.0, _SMALL[0] / width, _SMALL[1] / height)
    return picture, (width, height, max(1, round(width * scale)), max(1, round(height * scale)))


def _open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open a document that is a zip, rejecting zip bombs."""
    head = file.read(4)
    file.seek(0)
    if head == _OLE:
        raise RefusedDocumentError(f"{_PROTECTED}, or of an old format")
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        raise RefusedDocumentError("it is damaged") from None
    size = sum(info.file_size for info in archive.infolist())
    if size > _MAX_UNPACKED:
        raise RefusedDocumentError(f"it unpacks to {size >> 20:,} MB")
    if any(info.flag_bits & 1 for info in archive.infolist()):
        raise RefusedDocumentError(_PROTECTED)
    return archive


def _markdown(name: str, file: IO[bytes], ending: str) -> str:
    from markitdown import StreamInfo, converters

    _open_zip(file)
    file.seek(0)
    found = getattr(converters, name)().convert(file, StreamInfo(extension=ending), **_PLACES)
    return _PICTURE.sub(r"\1", found.markdown)


def _docx(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    return "", iter([("", _markdown("DocxConverter", file, ".docx"))])


def _pptx(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    _, *slides = _SLIDE.split(_markdown("PptxConverter", file, ".pptx"))
    numbered = zip(slides[::2], slides[1::2], strict=True)
    return "", ((f"slide {number}", text) for number, text in numbered)


def _xlsx(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    """Yield each sheet as a table, row by row, without loading the whole file as pandas would."""
    import openpyxl

    _open_zip(file)
    file.seek(0)
    book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)

    def sheets() -> Iterator[Part]:
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # the declared ones may be wrong
            yield f"sheet {sheet.title}", "\n".join(_rows(sheet))

    return "", sheets()


def _rows(sheet: Any) -> Iterator[str]:
    left = _MAX_CHARACTERS
    deadline = time.monotonic() + _SECONDS
    for row in sheet.iter_rows(values_only=True):
        cells = ["" if value is None else " ".join(str(value).split()) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if len(cells) > _MAX_CELLS:
            cells = list(filter(None, cells))
        if cells:
            line = f"| {' | '.join(cells)} |"
            left -= len(line)
            yield line
        if left < 0 or time.monotonic() > deadline:
            return


def _html(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    title, text = _page(file.read())
    return title, iter([("", text)])


def _article(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    """Return the article of a web page, or the whole page if none is found."""
    import trafilatura

    data = file.read()
    title, text = _page(data)
    found = trafilatura.extract(data, output_format="markdown", include_formatting=True)
    return title, iter([("", found or text)])


def _page(data: bytes) -> tuple[str, str]:
    """Return the title and Markdown of a web page, without scripts and images."""
    from bs4.dammit import UnicodeDammit
    from markitdown.converters import HtmlConverter

    html = UnicodeDammit(data, is_html=True).unicode_markup
    if html is None or "\0" in html[:4096]:
        raise RefusedDocumentError("it is not text")
    html = _with_places(html.encode("utf-8", "replace").decode())
    found = HtmlConverter().convert_string(html, **_PLACES)
    return found.title or "", _ANCHOR.sub(r"\1", _PICTURE.sub(r"\1", found.markdown))


def _with_places(html: str) -> str:
    """Return a page with what a style raises or lowers in ``sup`` and ``sub``."""
    if not _RAISED.search(html):
        return html
    from bs4 import BeautifulSoup
    from soupsieve import SelectorSyntaxError

    tree = BeautifulSoup(html, "html.parser")
    rules = [rule for sheet in tree("style") for rule in _RULE.findall(sheet.get_text())]
    styled = [(each, str(each["style"])) for each in tree.select("[style]")]
    for selector, style in rules:
        with contextlib.suppress(SelectorSyntaxError):
            found = tree.select(selector.strip()) if _RAISED.search(style) else ()
            styled += [(each, style) for each in found]
    for each, style in styled:
        if (place := _RAISED.search(style)) and each.name in _IN_LINES:
            each.name = {"super": "sup", "sub": "sub"}[place[1].lower()]
    return str(tree)


def _epub(file: IO[bytes]) -> tuple[str, Iterator[Part]]:
    import posixpath
    from urllib.parse import unquote

    from defusedxml import ElementTree

    archive = _open_zip(file)
    if "META-INF/rights.xml" in archive.namelist():
        raise RefusedDocumentError("it is protected against copying")

    def read(name: str) -> Any:
        return ElementTree.parse(io.BytesIO(archive.read(name)))

    try:
        rootfile = read("META-INF/container.xml").find(".//{*}rootfile").get("full-path")
        package = read(rootfile)
        files = {item.get("id"): item.get("href") for item in package.iterfind(".//{*}item")}
        order = [files[each.get("idref")] for each in package.iterfind(".//{*}itemref")]
    except (KeyError, AttributeError, SyntaxError, TypeError):
        raise RefusedDocumentError("it is damaged") from None
    title = package.findtext(".//{http://purl.org/dc/elements/1.1/}title") or ""
    folder = posixpath.dirname(rootfile)

    def chapters() -> Iterator[Part]:
        for number, href in enumerate(order, 1):
            name = posixpath.normpath(posixpath.join(folder, unquote(href)))
            with contextlib.suppress(KeyError):  # listed but missing
                own, text = _page(archive.read(name))
                heading = _HEADING.search(text)
                chapter = heading.group(1) if heading else own if own != title else ""
                if text.strip():
                    yield chapter or f"part {number}", text

    return title, chapters()


_READERS: dict[str, Callable[[IO[bytes]], tuple[str, Iterator[Part]]]] = {
    "pdf": _pdf,
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "html": _html,
    "page": _article,
    "epub": _epub,
    "picture": _picture,
    "sharp picture": partial(_picture, sharp=True),
    "picture size": _picture_size,
}

if __name__ == "__main__":
    main()

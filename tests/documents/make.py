"""Makes small documents of each kind, sound ones and hostile ones."""

from __future__ import annotations

import io
import zipfile
import zlib

PAGES = (
    ["The first page tells of nothing."],
    ["On the second page there is more.", "The kestrel nests in the old mill above Tarn."],
    ["The third page ends it."],
)
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"


def pdf(pages: object = PAGES, *, encrypted: bool = False, title: str = "") -> bytes:
    """A PDF with these lines on each page; a page without any has a picture."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    kids = []
    for lines in pages:  # type: ignore[attr-defined]
        shown = b" T* ".join(b"(%s) Tj" % line.encode() for line in lines)
        content = b"BT /F1 12 Tf 14 TL 50 700 Td %s ET" % shown if lines else b"0 0 99 99 re f"
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        kids.append(len(objects) + 1)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
    refs = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(kids), refs)
    extra = b""
    if title:
        objects.append(b"<< /Title (%s) >>" % title.encode())
        extra = b" /Info %d 0 R" % len(objects)
    if encrypted:
        objects.append(
            b"<< /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>" % (b"5a" * 32, b"a5" * 32)
        )
        extra += b" /Encrypt %d 0 R /ID [<%s> <%s>]" % (len(objects), b"00" * 16, b"00" * 16)
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    offsets = []
    for number, each in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for offset in offsets:
        out.write(b"%010d 00000 n \n" % offset)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R%s >>\n" % (len(objects) + 1, extra))
    out.write(b"startxref\n%d\n%%%%EOF\n" % start)
    return out.getvalue()


def zipped(files: dict[str, str | bytes], bomb: int = 0) -> bytes:
    """A zip with these members; `bomb`: so many bytes come out of the last one."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
        if bomb:
            packed.infolist()[-1].file_size = bomb
    return out.getvalue()


def docx(*paragraphs: str, bomb: int = 0) -> bytes:
    """A Word file; the first paragraph is a heading."""
    said = "".join(
        f"<w:p><w:pPr><w:pStyle w:val='{'Normal' if i else 'Heading1'}'/></w:pPr>"
        f"<w:r><w:t>{text}</w:t></w:r></w:p>"
        for i, text in enumerate(paragraphs)
    )
    files: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'>"
        f"<Override PartName='/word/document.xml' ContentType='{_WORD}'/></Types>",
        "_rels/.rels": "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>"
        f"<Relationship Id='r1' Type='{_OFFICE}' Target='word/document.xml'/></Relationships>",
        "word/styles.xml": f"<w:styles xmlns:w='{W}'><w:style w:type='paragraph' w:styleId='Heading1'>"
        "<w:name w:val='heading 1'/></w:style></w:styles>",
        "word/document.xml": f"<w:document xmlns:w='{W}'><w:body>{said}</w:body></w:document>",
    }
    return zipped(files, bomb)


def pptx(*slides: str) -> bytes:
    """A presentation with a title on each slide."""
    from pptx import Presentation

    show = Presentation()
    for text in slides:
        show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = text
    out = io.BytesIO()
    show.save(out)
    return out.getvalue()


def xlsx(**sheets: list[list[object]]) -> bytes:
    """A workbook."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def epub(**chapters: str) -> bytes:
    """A book; each chapter has its name as heading."""
    files: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container'>"
        "<rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>",
        "OPS/book.opf": "<package xmlns='http://www.idpf.org/2007/opf'><metadata>"
        "<dc:title xmlns:dc='http://purl.org/dc/elements/1.1/'>The Mill</dc:title></metadata><manifest>"
        + "".join(f"<item id='{name}' href='{name}.xhtml'/>" for name in chapters)
        + "</manifest><spine>"
        + "".join(f"<itemref idref='{name}'/>" for name in chapters)
        + "</spine></package>",
    }
    for name, text in chapters.items():
        files[f"OPS/{name}.xhtml"] = (
            f"<html><head><title>The Mill</title></head><body><h1>{name}</h1><p>{text}</p></body></html>"
        )
    return zipped(files)


HTML = """<!DOCTYPE html><html><head><title>Kestrels</title><style>p {color: red}</style>
<script>document.title = "scripted secret"</script></head><body><h1>On kestrels</h1>
<p>Before.</p><p onclick="steal()">The kestrel nests in the old mill above Tarn.</p>
<a href="javascript:alert(1)">press</a><p>After.</p></body></html>"""


def cut(data: bytes) -> bytes:
    """The first half of a file."""
    return data[: len(data) // 2]


def scrambled(data: bytes) -> bytes:
    """A file whose middle was overwritten; its beginning and end are what they were."""
    third = len(data) // 3
    return data[:third] + zlib.compress(data, 0)[:third][::-1] + data[2 * third :]

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from kbtui.documents import documents as module
from kbtui.documents.documents import Documents, DocumentText, is_picture
from kbtui.errors import KbtuiError, UnreadableError
from kbtui.workspace.layout import Workspace
from kbtui.workspace.opening import create_workspace

PATH = "knowledge/p.png"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "ws")


def save(workspace: Workspace, picture: Image.Image, path: str = PATH, **options: object) -> None:
    picture.save(workspace.place(path), **options)


def test_a_picture_is_made_small_and_says_how_large_it_is(workspace: Workspace) -> None:
    save(workspace, Image.new("RGB", (1000, 200), (250, 10, 20)))
    with Documents(workspace) as documents:
        picture = documents.picture(PATH)
    assert (picture.width, picture.height, picture.columns, picture.rows) == (1000, 200, 200, 40)
    assert picture.pixels == bytes((250, 10, 20)) * 8_000


def test_what_shines_through_lies_on_white(workspace: Workspace) -> None:
    save(workspace, Image.new("RGBA", (2, 2), (0, 0, 0, 0)))
    with Documents(workspace) as documents:
        assert documents.picture(PATH).pixels == b"\xff" * 12


def test_a_photo_is_turned_as_the_camera_was(workspace: Workspace) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    save(workspace, Image.new("RGB", (40, 20)), "knowledge/p.jpg", exif=exif)
    with Documents(workspace) as documents:
        picture = documents.picture("knowledge/p.jpg")
    assert (picture.columns, picture.rows) == (20, 40)


def test_a_bomb_and_what_is_no_picture_are_refused_in_a_sentence(workspace: Workspace) -> None:
    save(workspace, Image.new("1", (20_000, 20_000)))
    workspace.place("knowledge/t.png").write_text("<svg onload=alert(1)>")
    save(workspace, Image.effect_noise((90, 90), 50), "knowledge/cut.png")
    cut = workspace.place("knowledge/cut.png")
    cut.write_bytes(cut.read_bytes()[:900])
    with Documents(workspace) as documents:
        with pytest.raises(UnreadableError, match="20000 x 20000 pixels are too many"):
            documents.picture(PATH)
        for path in ("knowledge/t.png", "knowledge/cut.png"):
            with pytest.raises(UnreadableError, match="damaged, or no picture"):
                documents.picture(path)
        with pytest.raises(KbtuiError):
            documents.picture("../p.png")


@pytest.mark.parametrize(
    ("sizes", "pixels"),
    [("1 1 1 1", ""), ("1 1 2 2", "AAAA"), ("1 1 0 0", ""), ("x", "AAAA"), ("1 1 1 1", "§")],
)
def test_an_answer_of_another_form_is_no_picture(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, sizes: str, pixels: str
) -> None:
    save(workspace, Image.new("RGB", (1, 1)))
    monkeypatch.setattr(
        module.Documents,
        "convert",
        lambda *_: DocumentText(parts=((sizes, pixels),) if pixels else ()),
    )
    with pytest.raises(UnreadableError, match="no picture"):
        Documents(workspace).picture(PATH)


def test_pictures_are_known_by_their_ending() -> None:
    assert [is_picture(name) for name in ("a.PNG", "b.jpeg", "c.svg", "d.md")] == [
        True,
        True,
        False,
        False,
    ]

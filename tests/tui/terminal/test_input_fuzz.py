"""Random and mutated bytes through the door of input: nothing is raised, no paste is ever a key.

A number decides what is sent and where it is cut, so a find can be repeated. KBTUI_FUZZ_BYTES makes
the slow test send more: 10000000 takes some minutes.
"""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING

import pytest
from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

from kbtui.tui.terminal.input_events import InputEvents
from kbtui.tui.terminal.input_tokens import InputTokenizer, Pasted, Sequence, Typed

if TYPE_CHECKING:
    from collections.abc import Iterator

START, END = b"\x1b[200~", b"\x1b[201~"
MARK = "鍵"  # stands in every paste, and nowhere else
MANY_BYTES = int(os.environ.get("KBTUI_FUZZ_BYTES", "1000000"))
_PIECES = [
    *(each.encode() for each in ANSI_SEQUENCES_KEYS),
    *(b"\x1b[<35;10;5M", b"\x1b[<0;200;100m", b"\x1b[M !!", b"\x1b[I", b"\x1b[O", b"\x1b[12;40R"),
    *(b"\x1b[97;5u", b"\x1b[97:65;2:3;65u", b"\x1b[57441;2u", b"\x1b[48;40;120;800;1200t"),
    *(b"\x1b]11;rgb:0/0/0\x07", b"\x1b]52;c;YQ==\x1b\\", b"\x1bP>|a\x1b\\", b"\x1b_Gi=1\x1b\\"),
    *(b"\x1b[?62;22c", b"\x1b[?2026;2$y", b"\x1b[?2048;1$y", b"9" * 40, b"\x9b", b"\xff\xfe"),
    *("é漢👩‍💻".encode(), b"some words\r", b"\x03", b"\0", b"\x1b", b"\x1b\x1b", b"\x1b\\"),
]


def _noise(chance: random.Random) -> bytes:
    kind = chance.random()
    if kind < 0.3:
        return chance.randbytes(chance.randint(1, 60))
    noise = bytearray(b"".join(chance.choices(_PIECES, k=chance.randint(1, 6))))
    if kind < 0.8:
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(noise))
            match chance.randrange(4):
                case 0:
                    noise[at] = chance.randrange(256)
                case 1:
                    del noise[at : at + chance.randint(1, 4)]
                case 2:
                    noise[at:at] = chance.randbytes(2)
                case 3:
                    noise[at:at] = noise[at : at + 8] * chance.randint(1, 5)
            if not noise:
                break
    return bytes(noise)


def _without(noise: bytes, *parts: bytes) -> bytes:
    while any(part in noise for part in parts):  # what is left may make another
        for part in parts:
            noise = noise.replace(part, b"")
    return noise


def _stream(chance: random.Random) -> Iterator[tuple[bytes, bool]]:
    """Yield noise, and pastes of noise between marks, and whether it is a paste."""
    while True:
        cut = chance.choice(_PIECES)
        noise = _noise(chance) + cut[: chance.randint(0, len(cut))]
        yield _without(noise, START, END, MARK.encode()), False
        body = _without(_noise(chance), END)
        yield START + MARK.encode() + body + b"\x1b\\" + MARK.encode() + END, True


def _pieces(chance: random.Random, size: int) -> Iterator[tuple[bytes, float, bool]]:
    """Yield what is read at once, the seconds that pass after it, and if a paste begins in it.

    An opening bracket that is cut twice with long pauses is typed, as far as anybody can tell, and
    after ten seconds Ctrl+C may end a paste.
    """
    sent = 0
    for data, is_paste in _stream(chance):
        if sent >= size:
            return
        sent += len(data)
        if not is_paste:
            yield data, chance.choice((0.0, 0.2, 2.0)), False
            continue
        cuts = sorted(chance.sample(range(1, len(data)), chance.choice((0, 0, 1, 3))))
        for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            pause = chance.choice((0.0, 0.3, 9.0)) if end > len(START) else 0.05
            yield data[start:end], pause, start == 0
    yield b"", 60.0, False


def _fuzz(seed: int, size: int) -> None:
    chance = random.Random(seed)
    tokenizer, reader, now = InputTokenizer(0.1), InputEvents(), 0.0
    sent = pasted = 0
    for data, pause, is_start in _pieces(chance, size):
        sent += is_start
        now += 0.001
        tokens = [*tokenizer.feed(data, now)]
        now += pause
        while (due := tokenizer.deadline) is not None and due <= now:
            tokens += tokenizer.tick(max(due, now))
        assert len(tokenizer._rest) < 20_000
        for token in tokens:
            if isinstance(token, Typed | Sequence):
                for message in reader.read(token):
                    if isinstance(message, events.Key):
                        assert message.character != MARK, (seed, token)
            elif isinstance(token, Pasted):
                pasted += 1
                assert token.text.startswith(MARK), (seed, token)
                assert token.text.endswith(MARK), (seed, token)
    assert 0 < pasted == sent, seed


@pytest.mark.parametrize("seed", range(20))
def test_bytes_that_nobody_meant_raise_nothing_and_no_paste_is_typed(seed: int) -> None:
    _fuzz(seed, 5_000)


@pytest.mark.parametrize("seed", range(5))
def test_no_bytes_at_all_make_the_reader_of_input_fail(seed: int) -> None:
    chance = random.Random(seed)
    tokenizer, reader, now = InputTokenizer(0.1), InputEvents(), 0.0
    for _ in range(300):
        data = _noise(chance) if chance.random() < 0.5 else chance.randbytes(50)
        data = re.sub(rb"\x1b", chance.choice((b"\x1b", START, END, b"\x1b[")), data)
        for token in [*tokenizer.feed(data, now), *tokenizer.tick(now + 0.2)]:
            if isinstance(token, Typed | Sequence):
                list(reader.read(token))
        now += chance.choice((0.0, 0.3, 12.0))


@pytest.mark.slow
def test_a_million_bytes_that_nobody_meant_raise_nothing_and_no_paste_is_typed() -> None:
    for seed in range(10):
        _fuzz(1_000 + seed, MANY_BYTES // 10)

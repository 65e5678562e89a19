"""What a process freed is the system's again, where that can be asked for."""

from __future__ import annotations

import platform
import resource
from pathlib import Path

import pytest

from kbtui.freed import give_back


def test_what_was_freed_before_something_that_is_needed_is_given_back() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("other allocators do so by themselves, or can't be asked")
    texts = [bytes([number % 256]) * 600 for number in range(60_000)]
    last = texts[-1]  # pins what stands before it
    del texts
    before = _resident()
    give_back()
    assert before - _resident() > 20 << 20
    assert last


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

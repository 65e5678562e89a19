"""Files of a user's own, such as settings and caches, replaced whole.

Those of a workspace are written by `kbtui.workspace.durable`, which trusts no name in between.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(file: Path, data: bytes) -> None:
    """Write a file that only its user may read; after a crash it is the old or the new one.

    Raises:
        OSError: The disk refuses; what was there before stays.
    """
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

"""Whether something stands at a path, where being wrong about it would change a model.

``os.path`` takes what it cannot look at for missing: a file beside a model would then be left out
without a word, and one of others replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

__all__ = ["is_file", "is_there"]

_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP})


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether there is anything at a path, be it a link that leads nowhere.

    Raises:
        OSError: The system cannot tell.
    """
    return _status(path, follow=False) is not None


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at a path, or a link to one.

    Raises:
        OSError: The system cannot tell.
    """
    status = _status(path, follow=True)
    return status is not None and stat.S_ISREG(status.st_mode)


def _status(path: str | os.PathLike[str], *, follow: bool) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError as error:
        if error.errno not in _MISSING:
            raise
    except ValueError:
        pass  # A null character, which no name has.
    return None

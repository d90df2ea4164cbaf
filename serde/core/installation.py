"""Another distribution that installs a package ``serde``: pip lets both write into one folder.

pyserde does. What is installed later overwrites what has the same name (``__init__.py``,
``py.typed``), and what is uninstalled takes it away from the other. A module of pyserde's that
this package has not tells; looking for it costs one call of the operating system.
"""

from __future__ import annotations

import warnings
from pathlib import Path

__all__ = ["CLASH", "LOST", "lies_beside_pyserde", "warn_of_pyserde"]

CURE = "pip uninstall pyserde && pip install --force-reinstall --no-deps serde-relay"
CLASH = (
    "pyserde and serde-relay are installed in one environment, where each overwrites files of "
    f"the other's package serde; keep pyserde elsewhere: {CURE}"
)
LOST = (
    "serde/__init__.py of serde-relay is gone, as uninstalling pyserde leaves it; "
    "put it back: pip install --force-reinstall --no-deps serde-relay"
)
_FOLDER = Path(__file__).parents[1]


def lies_beside_pyserde() -> bool:
    """Whether the folder of this package has modules of pyserde."""
    return (_FOLDER / "de.py").exists()


def warn_of_pyserde() -> None:
    """Warn whoever imports ``serde`` that two distributions share its folder."""
    warnings.warn(CLASH, RuntimeWarning, stacklevel=2)

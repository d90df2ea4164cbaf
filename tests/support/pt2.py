"""Archives of ``torch.export`` made of others: members exchanged, programs edited."""

from __future__ import annotations

import copy
import io
import json
import random
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "torch"

MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"


def members_of(path: Path) -> dict[str, bytes]:
    """Return the members of an archive by their names without its folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def archive_of(
    members: Mapping[str, bytes], *, folder: str = "any/", compression: int = zipfile.ZIP_STORED
) -> bytes:
    """Return an archive of members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(folder + name, content)
    return file.getvalue()


def edited(name: str, member: str, edit: Callable[[Any], Any]) -> bytes:
    """Return a golden archive in which the JSON of one member is edited in place, or replaced."""
    members = members_of(GOLDEN / f"{name}.pt2")
    document = json.loads(members[member])
    found = edit(document)
    members[member] = json.dumps(document if found is None else found).encode()
    return archive_of(members)


def changed(name: str, changes: Mapping[str, bytes | None]) -> bytes:
    """Return a golden archive with other members, None for those that are left out."""
    members: dict[str, bytes | None] = {**members_of(GOLDEN / f"{name}.pt2"), **changes}
    return archive_of({key: each for key, each in members.items() if each is not None})


def runs_of(name: str) -> list[tuple[list[np.ndarray], list[np.ndarray], dict[str, np.ndarray]]]:
    """Return arguments, outputs and new values by name of each run of a golden archive."""
    runs = []
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        for turn in sorted({key.partition(".")[0] for key in arrays}):
            own = {key.partition(".")[2]: arrays[key] for key in arrays if key[0] == turn}
            new = {key: each for key, each in own.items() if key.endswith("_new")}
            given = [each for key, each in own.items() if key.startswith("input.")]
            runs.append((given, [e for k, e in own.items() if k.startswith("output.")], new))
    return runs


def mutate(document: Any, rng: random.Random) -> Any:
    """Return JSON with one to four values exchanged, dropped or replaced."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, key = rng.choice(places)
        other, other_key = rng.choice(places)
        try:
            _change(holder, key, other[other_key], rng)
        except (KeyError, IndexError):
            continue
    return document


def _change(holder: Any, key: Any, other: Any, rng: random.Random) -> None:
    kind = rng.randrange(8)
    if kind == 0:
        del holder[key]
    elif kind <= 2:
        holder[key] = copy.deepcopy(other)
    elif kind == 3 and isinstance(holder, dict):
        holder[rng.choice(("as_tensor", "as_int", "as_name", "as_expr", "x"))] = holder.pop(key)
    elif kind == 4 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(other))
    else:
        holder[key] = rng.choice(_VALUES)


_VALUES = (
    None, True, -1, 0, 1, 7, 2**31, 2**63, 10**400, 0.5, float("inf"), "", "x", "as_int", [], {},
    [[]], "Symbol('s0')", "Mul(Integer(2), Symbol('s0'))", {"as_int": 3}, {"as_int": -3},
    {"as_none": True}, {"as_tensor": {"name": "x"}}, {"as_tensors": [{"name": "x"}]},
    "torch.ops.aten.add.Tensor",
)  # fmt: skip


def _places(value: Any) -> Any:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in pairs:
        yield value, key
        if isinstance(each, dict | list):
            yield from _places(each)


def write(tmp_path: Path, data: bytes, name: str = "a.pt2") -> Path:
    """Write an archive into a folder."""
    path = tmp_path / name
    path.write_bytes(data)
    return path

"""Write ``serde/torch/source/schemas.json``: PyTorch's own schemas of the operators that are read.

    python tools/torch_schemas.py

For each operator its overloads in PyTorch's order: the name, the parameters (name, type, whether
it may be left out, whether it goes by its name alone) and whether it gives several values.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch

from serde.torch.host import EVALUATORS
from serde.torch.ops.table import OPS

TARGET = Path(__file__).parents[1] / "serde/torch/source/schemas.json"
RENAMED = {"SymInt": "int", "Device": "device", "Layout": "layout", "MemoryFormat": "format"}
_UNREAD = re.compile(r"Dimname|Dict\(|AnyEnum|CellParams|\.\.\.")
INTERNAL = re.compile(r"::(_|cudnn|miopen|mkldnn|native|slow|thnn|special_)|_backward|_copy$")
NEEDED = ("aten::__", "aten::native_channel", "aten::view_copy", "aten::_unique2")


def read(schema: Any) -> list[Any] | None:
    """Return an overload; None where it writes, or names dimensions."""
    text = re.sub(r"\((\w+!?)( ?-> ?\*)?(\|\w+)*\)", "", str(schema))
    inside = re.fullmatch(r"[^(]+\((.*)\) -> (.*)", text)
    if inside is None or re.search(r"Tensor\(\w+!", str(schema)) or _UNREAD.search(text):
        return None
    types = re.findall(
        r"([\w\[\]?]+) (\w+)(?:=|,|$)", re.sub(r"=\[[^\]]*\]|=\([^)]*\)", "=0", inside[1])
    )
    kinds = {name: kind for kind, name in types}
    found = []
    for each in schema.arguments:
        kind = kinds.get(each.name, "any")
        for old, new in RENAMED.items():
            kind = re.sub(rf"\b{old}\b", new, kind)
        found.append([each.name, kind, int(each.has_default_value()) + 2 * int(each.kwarg_only)])
    several = inside[2].endswith("[]") or (inside[2].startswith("(") and "," in inside[2])
    return [schema.overload_name, found, int(several)]


def main() -> None:
    """Write the file."""
    known = {*EVALUATORS, *(name for name, _ in OPS.imported())}
    bases = {each.partition(".")[0] for each in known}
    found: dict[str, list[Any]] = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name
        if name not in bases or not name.startswith(("aten::", "prim::")):
            continue
        if INTERNAL.search(name) and not name.startswith(NEEDED):
            continue
        overload = read(schema)
        if overload is not None:
            found[name].append(overload)
    lines = [
        f"{json.dumps(n)}: {json.dumps(x, separators=(',', ':'))}" for n, x in sorted(found.items())
    ]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Imports point down only, and modules stay small; read from the source, not run."""

import ast
import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import serde
import serde.core.homes as core
import serde.relay.ir.homes as ir
import serde.walk.homes as walk
from serde.relay.ir.builders import builder_names

PACKAGE = Path(serde.__file__).parent
FORMATS = {"onnx", "mxnet", "coreml", "nnef", "torch", "relax", "relayfile", "tflite"}
GROUND = [
    *("records", "_version", "_moved", "texts", "markup"),
    *("progress", "garbage_collection", "parsing"),
    *("installation", "report", "errors"),
    *("lossy", "outcome", "limits", "systems", "weights", "allocation", "optional", "lazy"),
    *("homes", "core"),
]
"""The modules of ``core``, and those beside it: each may use those before it."""

LAYERS = [
    {*GROUND},
    {"relay"},
    {"bridge", "engine", "io", "walk"},
    FORMATS,
    {"api", "checking", "conversion", "fleet", "target", "viewing"},
    {"command", "compat", "testing", "__main__"},
]
LAYER_OF = {part: level for level, parts in enumerate(LAYERS) for part in parts}
CATEGORIES = {
    *("elementwise", "activation", "reduce", "shape", "index", "linalg", "conv", "pool"),
    *("norm", "recurrent", "attention", "image", "vision", "quant", "random", "control"),
}
SOURCES = sorted(PACKAGE.rglob("*.py"))
PARTS = sorted({path.relative_to(PACKAGE).parts[0] for path in SOURCES})
each_part = pytest.mark.parametrize("part", PARTS)


def sources_of(part: str) -> list[Path]:
    """The modules of a folder, or the module itself."""
    return [path for path in SOURCES if path.relative_to(PACKAGE).parts[0] == part]


def module_parts(path: Path) -> tuple[str, ...]:
    """Parts of a module's name below `serde`, such as ("relay", "op", "conv")."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def part_of(parts: Sequence[str]) -> str:
    """The folder of serde that a module is in; in the ground each module is a part."""
    return parts[1] if parts[0] == "core" and len(parts) > 1 else parts[0]


def is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def runtime_nodes(
    tree: ast.Module, kinds: type | tuple[type, ...] = STATEMENTS, *, typed: bool = False
) -> Iterator[ast.AST]:
    """Every node of some kinds that runs: all but the bodies of `if TYPE_CHECKING`, unless `typed`.

    Nodes below one of another kind are passed over.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        children = ast.iter_child_nodes(node)
        if not typed and isinstance(node, ast.If) and is_type_checking(node.test):
            children = iter(node.orelse)
        pending.extend(each for each in children if isinstance(each, kinds))


@dataclass(frozen=True)
class Facts:
    """What a module names: parts of serde that it imports, modules anywhere, texts by line.

    Parts that it loads by their names, as strings, count; their line is 0.
    """

    parts: list[tuple[int, str]]
    modules: set[str]
    texts: set[tuple[int, str]]


@cache
def facts_of(path: Path) -> Facts:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    texts = runtime_nodes(tree, ast.AST) if NAME_OF_FORMAT.search(source) else ()
    named = [each for each in NAMED.findall(source) if each in MODULES]
    return Facts(
        [*imported_parts(tree), *((0, part_of(each.split(".")[1:])) for each in named)],
        imported_modules(tree),
        {
            (node.lineno, node.value)
            for node in texts
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        },
    )


def imported_parts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and part of serde of everything a module imports from serde."""
    for node in runtime_nodes(tree, typed=True):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            names = [node.module or ""]
            if node.module in ("serde", "serde.core"):
                homes = HOMES_IN_CORE if node.module == "serde.core" else {}
                found = [homes.get(alias.name, alias.name) for alias in node.names]
                names = [f"{node.module}.{each}" for each in found]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "serde" and rest:
                yield node.lineno, part_of(rest.split("."))


HOMES_IN_CORE = {name: home for home, names in core.HOMES.items() for name in names.split()}
NAMED = re.compile(r'"(serde\.[a-z_0-9.]+)(?::\w+)?"')
LOADS_FROM_ABOVE = {
    "bridge/formats.py": "FORMATS, each bridge when its format is first used",
    "relax/frontend/nnef.py": "an importer under the name that TVM has for it",
    "relay/__init__.py": "relay.frontend and relay.to_onnx, as TVM's are called",
    "relay/op/contrib/onnx.py": "a target of Relay, as TVM's are called",
    "relay/op/foreign.py": "kernels of users for operators that Relay does not know",
}
"""Modules that load by name what stands above them, and what that is."""


def allowed(importer: str, imported: str) -> bool:
    """Whether the part `importer` of serde may import the part `imported`."""
    if importer == imported or imported in ("optional", "_version", "lazy"):
        return True
    if importer in FORMATS and imported in FORMATS:
        return False
    if LAYER_OF[importer] == LAYER_OF[imported] == 0:
        return GROUND.index(imported) < GROUND.index(importer)
    return LAYER_OF[imported] <= LAYER_OF[importer]


@each_part
def test_imports_point_down(part: str) -> None:
    """The package itself names its public functions and resolves them lazily."""
    wrong = [
        f"{path}: line {line}: imports {imported}"
        for path in sources_of(part)
        if module_parts(path) and path.relative_to(PACKAGE).as_posix() not in LOADS_FROM_ABOVE
        for line, imported in facts_of(path).parts
        if not allowed(part_of(module_parts(path)), imported)
    ]
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    tops = {part_of(module_parts(path)) for path in SOURCES if module_parts(path)}
    assert tops <= set(LAYER_OF)


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("onnx", "relay", True),
        ("onnx", "mxnet", False),
        ("relay", "onnx", False),
        ("relay", "weights", True),
        ("weights", "relay", False),
        ("report", "errors", False),
        ("relay", "optional", True),
        ("command", "api", True),
        ("api", "command", False),
        ("io", "bridge", True),
    ],
)
def test_the_rule_itself(importer: str, imported: str, expected: bool) -> None:
    assert allowed(importer, imported) is expected


def test_an_upward_import_is_seen_inside_a_function() -> None:
    tree = ast.parse("def f():\n    import serde.onnx.codec\n    from serde import command\n")
    assert sorted(imported_parts(tree)) == [(2, "onnx"), (3, "command")]


def test_imports_for_type_checkers_count() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import serde.command.cli\n"
    assert list(imported_parts(ast.parse(source))) == [(3, "command")]


@pytest.mark.parametrize("name", LOADS_FROM_ABOVE)
def test_an_exception_is_one(name: str) -> None:
    path = PACKAGE / name
    own = part_of(module_parts(path))
    assert not all(allowed(own, imported) for _, imported in facts_of(path).parts)


NAME_OF_FORMAT = re.compile("|".join(sorted(FORMATS)))
NAMES_FORMATS = {
    "core/optional.py": "packages that bear the name of a format",
    "api.py": "import_model and import_to_gluon, which return MXNet's own objects",
    "bridge/formats.py": "FORMATS",
    "compat": "drop-ins for these packages",
    "relax/frontend/__init__.py": "importers by their formats, as those of TVM are",
    "relay/op/contrib/__init__.py": "a target of Relay",
    "target": "ONNX as a target",
    "relay/op/vision/per_class.py": "values of an attribute of Relay",
}
"""Files and folders that name a format, besides its own folder, and what they name it for."""


def formats_named(path: Path) -> list[tuple[int, str]]:
    """Lines and names of formats that a module names and has no leave to."""
    own = module_parts(path)[:1]
    if path.relative_to(PACKAGE).as_posix() in NAMES_FORMATS or set(own) & set(NAMES_FORMATS):
        return []
    texts = facts_of(path).texts.union(each for each in facts_of(path).parts if each[0])
    formats = FORMATS - {"relayfile"} | {"serde.relayfile"}
    return [each for each in sorted(texts) if each[1] in formats and (each[1],) != own]


@each_part
def test_only_its_folder_names_a_format(part: str) -> None:
    found = {path: formats_named(path) for path in sources_of(part)}
    assert {name: named for name, named in found.items() if named} == {}


def module_name(path: Path) -> str:
    """Full name of a module."""
    return ".".join(("serde", *module_parts(path)))


MODULES = {module_name(path): path for path in SOURCES}


def imported_modules(tree: ast.Module) -> set[str]:
    """Modules of serde that a module imports anywhere, for type checkers too."""
    found = set()
    for node in runtime_nodes(tree, typed=True):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & MODULES.keys() or {node.module} & MODULES.keys()
    return found


def find_circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that import each other, over however many others."""
    reached = dict(imports)
    for _ in range(len(reached).bit_length()):  # Each turn doubles the length of the ways.
        reached = {
            name: found.union(*(reached[each] for each in found)) for name, found in reached.items()
        }
    return [
        {other for other in found if name in reached[other]}
        for name, found in reached.items()
        if name in found
    ]


def test_modules_import_in_no_circle() -> None:
    assert find_circles({name: facts_of(path).modules for name, path in MODULES.items()}) == []


def test_a_circle_is_found_and_a_diamond_is_none() -> None:
    diamond = {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}
    assert find_circles(diamond) == []
    assert find_circles({**diamond, "d": {"a"}})[0] == {"a", "b", "c", "d"}


ORDER_IN_RELAY = {
    **{"ir": 0, "lowering": 1, "op": 2, "text": 3, "run": 3, "transform": 4, "tvm": 5},
    **dict.fromkeys(["analysis", "dataflow_pattern", "testing"], 6),
}
"""Folders of relay may import those before them; the last have nothing but names of TVM's."""

NAMES_ABOVE_IN_RELAY = {
    "ir/attrs.py": "what TVM sets of an attribute of operators, when it is first asked for",
    "ir/builders.py": "modules that TVM has beside builders of quantised operators",
    "transform/homes.py": "names of passes that only users of TVM call",
}
"""Modules that load by name what stands above them in relay, and what that is."""


@pytest.mark.parametrize("folder", sorted(ORDER_IN_RELAY))
def test_folders_of_relay_import_down(folder: str) -> None:
    wrong = [
        (name, imported)
        for name, path in MODULES.items()
        if name.startswith(f"serde.relay.{folder}.")
        for imported in {*facts_of(path).modules, *named_in_relay(path)}
        if imported.split(".")[1] == "relay"
        and (imported == "serde.relay" or imported.split(".")[2] != folder)
        and (imported == "serde.relay" or level(imported) >= level(name))
    ]
    assert wrong == []


def named_in_relay(path: Path) -> set[str]:
    """Folders of relay that a module names in texts, such as "serde.relay.tvm.passes."."""
    if path.relative_to(PACKAGE / "relay").as_posix() in NAMES_ABOVE_IN_RELAY:
        return set()
    found = NAMED_IN_RELAY.findall(path.read_text(encoding="utf-8"))
    return {f"serde.relay.{each}" for each in found if each in ORDER_IN_RELAY}


NAMED_IN_RELAY = re.compile(r'"(?:serde\.relay\.)?(\w+)\.[\w.]*"')


@pytest.mark.parametrize("name", NAMES_ABOVE_IN_RELAY)
def test_an_exception_in_relay_is_one(name: str) -> None:
    found = NAMED_IN_RELAY.findall((PACKAGE / "relay" / name).read_text(encoding="utf-8"))
    assert "tvm" in found


def level(name: str) -> int:
    """How high the folder of relay is that a module is in."""
    return ORDER_IN_RELAY[name.split(".")[2]]


def size_limit(path: Path) -> int:
    """The most lines that a module may have."""
    if path.name == "__init__.py":
        return 60
    names = {path.stem, *path.relative_to(PACKAGE).parts[:-1]}
    return 500 if names & CATEGORIES and names & {"op", "ops"} else 600


@each_part
def test_no_module_outgrows_its_limit(part: str) -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources_of(part)}
    assert {path: long for path, long in lines.items() if long > size_limit(path)} == {}


def test_no_module_of_relay_bears_the_name_of_an_operator() -> None:
    """Once it is loaded it would stand in the place of the builder."""
    modules = {path.stem for path in (PACKAGE / "relay").iterdir()}
    assert modules & set(builder_names()) == set()


@pytest.mark.parametrize("homes", [core, ir, walk], ids=lambda homes: homes.__package__)
def test_names_of_a_package_are_those_of_its_modules(homes: ModuleType) -> None:
    """None is a module too, and each is what its module has."""
    package = importlib.import_module(homes.__package__)
    modules = {path.stem for path in Path(homes.__file__).parent.iterdir()}
    names = [name for each in homes.HOMES.values() for name in each.split()]
    assert sorted(names) == package.__all__
    assert modules & set(names) == set()
    for module, each in homes.HOMES.items():
        home = importlib.import_module(f"{homes.__package__}.{module}")
        assert all(getattr(package, name) is getattr(home, name) for name in each.split())

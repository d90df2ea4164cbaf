"""Graphs of TorchScript as graphs of serde."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any as AnyValue, Final

from serde.core.optional import require
from serde.torch.arguments import example_types
from serde.torch.model import TRACED_FUNCTION, Argument, Graph, Node, Ref, TorchModel
from serde.torch.script.attributes import Attributes, Path as AttributePath
from serde.torch.script.inputs import Inputs

if TYPE_CHECKING:
    from serde.torch.options import TorchImportOptions

__all__ = ["Reader"]

_SCRIPTED: Final = re.compile(r'File "([^"\n]+)", line (\d+)')
_TRACED: Final = re.compile(r"^(.+)\((\d+)\): ", re.MULTILINE)
_SUFFIX: Final = re.compile(r"\.\d+$")


class Reader:
    """Reads one graph.

    Args:
        graph: The graph, of which all calls are inlined.
        schema: The schema of the method or function, which names parameters.
        module: The module of PyTorch's C++ side; None for a function.
        options: Examples or shapes of inputs that are lists, and of optional ones that are given.
    """

    def __init__(
        self, graph: AnyValue, schema: AnyValue, module: AnyValue, options: TorchImportOptions
    ) -> None:
        self._graph = graph
        self._schema = schema
        self._is_module = module is not None
        self._taken: set[str] = set()
        self._attributes = Attributes(module, self._fresh)
        self._options = options
        self._constants: dict[str, Argument] = {}
        self._paths: dict[str, AttributePath] = {}
        self._schemas: dict[str, tuple[str, list[str]]] = {}
        self._parse = require("torch")._C.parse_schema
        self._count = 0
        self._changed = self._find_changed()
        self._state = self._fresh("attributes")

    def model(self, *, version: str, path: Path | None, live: AnyValue) -> TorchModel:
        """Return the program.

        Raises:
            FormatError: The graph holds what no program does.
            OptionError: An option does not fit its inputs.
        """
        self._read_inputs()
        nodes = self._read_blocks()
        outputs, names = self._results()
        values = [each.value for each in self._inputs.found]
        if self._changed:
            nodes += self._give_changed(outputs, names)
        held = self._hold_changed()
        head = [*self._inputs.nodes, *self._attributes.nodes, *held]
        graph = Graph(values, [*head, *nodes], outputs, self._attributes.values)
        return TorchModel(
            graph, self._inputs.found, names, self._attributes.weights, "torchscript", version,
            path, live, self._inputs.notes, constants=self._inputs.constants,
        )  # fmt: skip

    def _fresh(self, name: str) -> str:
        """Return a name that no value of the graph has: those have no blanks."""
        wanted = f"{name} "
        while wanted in self._taken:
            wanted += "'"
        self._taken.add(wanted)
        return wanted

    def _read_inputs(self) -> None:
        values, arguments = list(self._graph.inputs()), list(self._schema.arguments)
        if self._is_module:
            self._paths[values[0].debugName()] = ()
            values, arguments = values[1:], arguments[1:]
        declared = [each.name for each in arguments]
        names = [
            # Those of *inputs that were traced have one name.
            f"{name}_{place}" if declared.count(name) > 1 else name
            for place, name in enumerate(declared)
        ]
        examples = example_types(self._options, names)
        self._inputs = Inputs(self._options.input_shapes, examples, self._fresh)
        for value, argument, name in zip(values, arguments, names, strict=True):
            default = argument.default_value if argument.has_default_value() else None
            self._inputs.add(value, name, argument.has_default_value(), default)

    # Outputs.

    def _results(self) -> tuple[list[Argument], list[str]]:
        """Return what the program gives, tuples that are made at its end taken apart."""
        values = list(self._graph.outputs())
        while len(values) == 1 and values[0].node().kind() == "prim::TupleConstruct":
            values = list(values[0].node().inputs())
        taken = {each.name for each in self._inputs.found}
        names = []
        for place, value in enumerate(values):
            name = _SUFFIX.sub("", value.debugName())
            if not name.isidentifier() or name.startswith("_") or name in taken:
                name = "output" if len(values) == 1 else f"output_{place}"
            taken.add(name)
            names.append(name)
        return [self._argument(each) for each in values], names

    # Nodes.

    def _read_blocks(self) -> list[Node]:
        """Read the nodes, blocks inside them without recursion."""
        nodes: list[Node] = []
        pending: list[tuple[Iterator[AnyValue], list[Node]]] = [(self._graph.nodes(), nodes)]
        open_: list[tuple[AnyValue, Graph]] = []
        while pending:
            source, target = pending[-1]
            node = next(source, None)
            if node is None:
                pending.pop()
                if open_:
                    block, graph = open_.pop()
                    graph.outputs = [self._argument(each) for each in block.outputs()]
                continue
            found = self._node(node)
            if found is None:
                continue
            target.append(found)
            traced = _traced_function(node)
            blocks = list(node.blocks()) if traced is None else [traced]
            graphs = [Graph(_names(each.inputs()), [], []) for each in blocks]
            found.blocks = graphs
            for block, graph in reversed(list(zip(blocks, graphs, strict=True))):
                inner: list[Node] = []
                graph.nodes = inner
                pending.append((block.nodes(), inner))
                open_.append((block, graph))
        return nodes

    def _node(self, node: AnyValue) -> Node | None:
        """Return a node; None for one whose value is known already."""
        kind = node.kind()
        if kind == "prim::Constant":
            self._read_constant(node)
            return None
        if kind == "prim::GetAttr" and self._read_attribute(node):
            return None
        if kind in ("prim::GetAttr", "prim::SetAttr"):
            return self._access(node, kind)
        op, names = self._operator(node, kind)
        if kind == "prim::CreateObject":
            op = "prim::DictConstruct"
        if _traced_function(node) is not None:
            op = TRACED_FUNCTION
            self._rename(_traced_function(node))
        inputs = list(node.inputs())
        names += [str(place) for place in range(len(names), len(inputs))]
        given = [(name, self._argument(each)) for name, each in zip(names, inputs, strict=False)]
        if kind == "prim::isinstance":
            given.append(("types", [each.kind() for each in node.tys("types")]))
        outputs = list(node.outputs())
        gives_list = len(outputs) == 1 and outputs[0].type().kind() == "ListType"
        return Node(
            op,
            self._name(node, outputs, kind),
            given,
            _names(outputs),
            gives_list,
            _where(repr(node.sourceRange())),
        )

    def _name(self, node: AnyValue, outputs: Sequence[AnyValue], kind: str) -> str:
        """Return the name of a node: its result's, behind the module that it is in."""
        self._count += 1
        own = outputs[0].debugName() if outputs else f"{kind.partition('::')[2]}_{self._count}"
        module = node.scopeName().rpartition("/")[2].removeprefix("__module").lstrip(".")
        return f"{module}/{own}" if module else own

    def _operator(self, node: AnyValue, kind: str) -> tuple[str, list[str]]:
        """Return an operator with its overload, and the names of its parameters."""
        text = node.schema()
        if text.startswith("("):  # "(no schema)"
            return kind, []
        if text not in self._schemas:
            schema = self._parse(text)
            name = f"{schema.name}.{schema.overload_name}".rstrip(".")
            self._schemas[text] = name, [each.name for each in schema.arguments]
        op, names = self._schemas[text]
        return op, list(names)

    def _rename(self, graph: AnyValue) -> None:
        """Give the values of a graph of its own names that no other graph has."""
        self._count += 1
        values = list(graph.inputs())
        for node in graph.nodes():
            values += node.outputs()
        for value in values:
            value.setDebugName(f"function_{self._count}_{value.debugName()}")

    def _read_constant(self, node: AnyValue) -> None:
        output = node.output()
        name = output.debugName()
        own = f"constant_{name}" if name.isdigit() else _SUFFIX.sub("", name)
        self._constants[name] = self._attributes.as_argument(output.toIValue(), own)

    def _read_attribute(self, node: AnyValue) -> bool:
        """Read an attribute of a module; whether it was of one."""
        owner = self._paths.get(node.input().debugName())
        if owner is None:
            return False
        path = (*owner, node.s("name"))
        name = node.output().debugName()
        if path in self._changed:
            return False
        if self._attributes.is_module(path):
            self._paths[name] = path
        else:
            self._constants[name] = self._attributes.argument(path)
        return True

    # Attributes that the program sets. They are entries of a dict, as those of its own objects.

    def _find_changed(self) -> list[AttributePath]:
        """Return the attributes of modules that some node sets."""
        paths: dict[str, AttributePath] = {}
        if self._is_module:
            paths[next(self._graph.inputs()).debugName()] = ()
        found: dict[AttributePath, None] = {}
        pending = [self._graph]
        while pending:
            for node in pending.pop().nodes():
                pending.extend(node.blocks())
                if node.kind() not in ("prim::GetAttr", "prim::SetAttr"):
                    continue
                owner = paths.get(next(node.inputs()).debugName())
                if owner is None:
                    continue
                path = (*owner, node.s("name"))
                if node.kind() == "prim::SetAttr":
                    found[path] = None
                elif self._attributes.is_module(path):
                    paths[node.output().debugName()] = path
        return list(found)

    def _hold_changed(self) -> list[Node]:
        """Return the node that makes a dict of the attributes that are set."""
        if not self._changed:
            return []
        flat = [
            x for path in self._changed for x in (".".join(path), self._attributes.argument(path))
        ]
        return [Node("prim::DictConstruct", "attributes", _number(flat), [self._state])]

    def _access(self, node: AnyValue, kind: str) -> Node:
        """Return what gets or sets an attribute of an object, or one of a module that is set."""
        inputs = list(node.inputs())
        owner, name = inputs[0].debugName(), node.s("name")
        given: list[Argument] = [self._argument(inputs[0]), name]
        if owner in self._paths:
            given = [Ref(self._state), ".".join((*self._paths[owner], name))]
        op = "aten::__getitem__.Dict_str" if kind == "prim::GetAttr" else "aten::_set_item.str"
        given += [self._argument(each) for each in inputs[1:]]
        outputs = list(node.outputs())
        where = _where(repr(node.sourceRange()))
        label = self._name(node, outputs, kind)
        return Node(op, label, _number(given), _names(outputs), where=where)

    def _give_changed(self, outputs: list[Argument], names: list[str]) -> list[Node]:
        """Return nodes that give the last values of attributes that are set, as further outputs."""
        nodes = []
        for path in self._changed:
            name = ".".join(path)
            value = self._fresh(f"{name}_new")
            given = _number([Ref(self._state), name])
            nodes.append(Node("aten::__getitem__.Dict_str", name, given, [value]))
            outputs.append(Ref(value))
            names.append(f"{name}_new")
        return nodes

    def _argument(self, value: AnyValue) -> Argument:
        name = value.debugName()
        return self._constants[name] if name in self._constants else Ref(name)


def _number(values: Sequence[Argument]) -> list[tuple[str, Argument]]:
    """Return arguments that have no names by their numbers."""
    return [(str(place), each) for place, each in enumerate(values)]


def _traced_function(node: AnyValue) -> AnyValue:
    """Return the graph of a function of Python with a gradient of its own, as it was traced."""
    if node.kind() != "prim::PythonOp" or "Subgraph" not in node.attributeNames():
        return None
    return node.g("Subgraph")


def _names(values: Iterator[AnyValue] | Sequence[AnyValue]) -> list[str]:
    return [each.debugName() for each in values]


def _where(text: str) -> str:
    """Return file and line of the innermost call that is not in PyTorch's own code."""
    text = text.encode().decode("unicode_escape") if "\\n" in text else text
    places = _SCRIPTED.findall(text) or _TRACED.findall(text)
    own = [each for each in places if "/site-packages/torch/" not in each[0]]
    return "".join(f"{path.strip()}:{line}" for path, line in (own or places)[:1])

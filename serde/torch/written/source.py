"""The text of ``model.py``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from serde.core.records import dataclass
from serde.relay.ir.types import TensorType
from serde.torch import program as tree
from serde.torch.names import Names, identifier
from serde.torch.program import Expression, Statement, TorchProgram
from serde.torch.written.carried import find_names, source_of
from serde.torch.written.chains import chain_blocks
from serde.torch.written.classes import (
    ClassDef,
    HeldMember,
    LayerMember,
    ListMember,
    Member,
    main_class,
)
from serde.torch.written.fold import cuts, fold
from serde.torch.written.layout import WIDTH, Writer, break_lines
from serde.torch.written.naming import name_variables
from serde.torch.written.rows import chain_layers
from serde.torch.written.runs import inside

__all__ = ["LOADER", "module_of", "write_source"]

_REACHES: Final = (10**9, 120, 40)
"""How far apart a value and its reader may be to hinder a cut between blocks."""

_CRITERIA: Final = {
    "SoftmaxOutput": "F.nll_loss of its logarithm",
    "LogisticRegressionOutput": "F.binary_cross_entropy",
    "LinearRegressionOutput": "F.mse_loss",
    "MAERegressionOutput": "F.l1_loss",
    "SVMOutput": "F.multi_margin_loss",
}
"""What trains as a loss of MXNet does, but for factors, given what that predicts."""

_CALLED: Final = frozenset([
    "F", "Path", "Tensor", "bool", "float", "int", "len", "list", "math", "nn", "range", "self",
    "torch",
])  # fmt: skip
"""Names that ``forward`` may read beside those of its variables and of what the program calls."""

LOADER: Final = '''
    @classmethod
    def from_pretrained(cls, folder):
        """Return the model with the weights that lie beside this file."""
        from safetensors.torch import load_file

        model = cls()
        model.load_state_dict(load_file(Path(folder) / "model.safetensors"))
        return model.eval()
'''


@dataclass(slots=True)
class Module:
    """A file of Python.

    Attributes:
        classes: Its classes; the last is the model.
        inputs: Names of the parameters of the model's ``forward``, by variable.
        places: Names in the state dictionary by the names that weights have in the program.
        read: Names of the module, and of Python, that its functions read.
    """

    classes: list[ClassDef]
    inputs: Mapping[str, str]
    places: Mapping[str, str]
    read: frozenset[str]


def module_of(program: TorchProgram) -> Module:
    """Return the classes of a program: those of which the text is shortest."""
    plain = main_class(program)
    reaches = {cuts(plain, reach): reach for reach in reversed(_REACHES)}
    folded = [fold(main_class(program), reach) for reach in sorted(reaches.values(), reverse=True)]
    classes = min(folded, key=_lines)
    for each in classes:
        chain_layers(each)
        chain_blocks(each)
    read = _names_read(program)
    return Module(classes, _input_names(program, read), classes[-1].places(), read)


def _lines(classes: Sequence[ClassDef]) -> int:
    """Return about how many lines classes take."""
    return sum(9 + len(each.members) + len(each.body) for each in classes)


def _input_names(program: TorchProgram, read: frozenset[str]) -> dict[str, str]:
    """Return the parameters of ``forward`` by variable, none of which hides what it reads."""
    names = Names(read, first=1, joint="_")
    found: dict[str, str] = {}
    for each in program.inputs:
        wanted = identifier(each.name) or "x"
        hides = wanted in names and wanted not in found.values()
        found[each.value] = names.reserve(f"_{wanted}" if hides else wanted)
    return found


def _names_read(program: TorchProgram) -> frozenset[str]:
    """Return the names of the module, and of Python, that a program reads."""
    pending = [*program.results]
    for each in tree.statements_of(program.body):
        pending += tree.expressions_of(each)
    applied = (each for each in inside(pending) if isinstance(each, tree.Apply))
    called = {each.function.partition(".")[0] for each in applied}
    return _CALLED | called | find_names(program.functions)


def write_source(program: TorchProgram, module: Module) -> str:
    """Return the text of the file."""
    texts = [
        line for each in module.classes for line in ("", "", *_class_lines(program, module, each))
    ]
    body = "\n".join(texts)
    functions = source_of(program.functions)
    code = f"{functions}{body}"
    imports = ["from pathlib import Path", ""]
    if re.search(r"\bmath\.", code):
        imports.insert(0, "import math")
    if re.search(r"\btorch\.", code):
        imports.append("import torch")
    if re.search(r"\bF\.", code):
        imports.append("import torch.nn.functional as F")
    imports.append(
        "from torch import Tensor, nn"
        if re.search(r"(?<!\.)\bTensor\b", code)
        else "from torch import nn"
    )
    head = "\n".join([*_describe(program, module), "", *imports])
    return f"{head}\n{code}\n{LOADER}"


def _describe(program: TorchProgram, module: Module) -> list[str]:
    """Return the description of the file."""
    facts = program.facts
    origin = " ".join(str(facts[each]) for each in ("source", "version") if facts.get(each))
    title = f"A model that was converted from {origin}." if origin else "A converted model."
    first, *rest = _paragraph(title)
    lines = [f'"""{first}', *rest, ""]
    if facts.get("description"):
        lines += [*_paragraph(str(facts["description"])), ""]
    lines.append("Inputs:")
    names = module.inputs
    for each in program.inputs:
        type_ = TensorType(each.shape, each.dtype or "float32") if each.shape is not None else None
        lines += _entry(names[each.value], type_, each.name)
    lines.append("")
    lines.append("Outputs:")
    types = program.output_types or [None] * len(program.outputs)
    for name, type_ in zip(program.outputs, types, strict=True):
        lines += _entry(name, type_, name)
    heads: Mapping[str, str] = facts.get("heads", {})
    if heads:
        lines += ["", "Losses of the source, which give predictions here:"]
        for name, what in heads.items():
            hint = f"; train by {_CRITERIA[what]}" if what in _CRITERIA else ""
            lines += _paragraph(f"{name}: {what}{hint}", "    ")
    return [*lines, '"""']


def _paragraph(text: str, indent: str = "") -> list[str]:
    inner = f"{indent}    " if indent else ""
    return textwrap.wrap(_plain(text), WIDTH, initial_indent=indent, subsequent_indent=inner)


def _plain(text: str) -> str:
    """Return a text that cannot end a comment or a string in three quotes."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown.replace("\\", "/").replace('"""', "'''")


def _entry(name: str, type_: TensorType | None, source: str) -> list[str]:
    what = "a list of tensors" if type_ is None else f"{type_.dtype} {shape_text(type_)}"
    return _paragraph(
        f"{name}: {what}{'' if name == source else f', {source} of the source'}", "    "
    )


def shape_text(type_: TensorType) -> str:
    """Return a shape as a comment has it."""
    lengths = ", ".join(str(dim) if str(dim).strip("?") else "?" for dim in type_.shape)
    return f"({_plain(lengths)}{',' if type_.rank == 1 else ''})"


def _class_lines(program: TorchProgram, module: Module, each: ClassDef) -> Iterator[str]:
    is_main = each is module.classes[-1]
    yield f"class {each.name}(nn.Module):"
    yield from break_lines("def __init__(", ["self", *each.parameters], "):", 4)
    yield "        super().__init__()"
    places = each.places()
    for name, member in each.members.items():
        yield from _member_lines(Writer(stored=places), name, member)
    yield ""
    inputs = module.inputs if is_main else dict(zip(each.inputs, "xyzuvw", strict=False))
    scope = Names(module.read.union(inputs.values()), first=1, joint="")
    names = name_variables(each.body, each.results, inputs, scope, closures=program.hop)
    lists = {x.value for x in program.inputs if x.shape is None} if is_main else set()
    arguments = [f"{inputs[x]}: list[Tensor]" if x in lists else inputs[x] for x in each.inputs]
    yield from break_lines("def forward(", ["self", *arguments], "):", 4)
    writer = Writer(names, places)
    body, results = _inline_result(each)
    yield from _single_blanks(_Body(writer, scope, hop=program.hop).lines(body, 8))
    yield from _return_lines(writer, results)


def _single_blanks(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines without blank ones at the beginning of a block, or one behind the other."""
    before = ":"
    for line in lines:
        if line or not (before == "" or before.endswith(":")):
            yield line
        before = line


def _inline_result(each: ClassDef) -> tuple[Sequence[Statement], Sequence[Expression]]:
    """Return statements and results, the last statement in the result if that is all it is."""
    last = each.body[-1] if each.body else None
    if not isinstance(last, tree.Assign) or isinstance(last.value, tree.Chain):
        return each.body, each.results
    if len(last.targets) == 1 and list(each.results) == [tree.Local(last.targets[0])]:
        return each.body[:-1], [last.value]
    return each.body, each.results


def _member_lines(writer: Writer, name: str, member: Member) -> Iterator[str]:
    made = member.constructor()
    if isinstance(member, HeldMember) and not member.trained:
        call = tree.Apply("self.register_buffer", (tree.Literal(name), made))
        yield from writer.lines("", call, "", 8)
    else:
        yield from writer.lines(f"self.{name} = ", made, "", 8)
    layers = [(name, member)]
    if isinstance(member, ListMember):
        layers = [(f"{name}[{place}]", each) for place, each in enumerate(member.items)]
    for path, layer in layers:
        if isinstance(layer, LayerMember):
            for each in layer.fixed:
                yield f"        self.{path}.{each}.requires_grad_(False)"


def _return_lines(writer: Writer, results: Sequence[Expression]) -> list[str]:
    if len(results) == 1:
        return writer.lines("return ", results[0], "", 8)
    items = list(map(writer.text, results))
    flat = f"        return {', '.join(items)}"
    if len(items) > 1 and len(flat) <= WIDTH:
        return [flat]
    return writer.lines("return ", tree.Items(tuple(results)), "", 8)


class _Body:
    """Writes statements; a shape is a comment where it changes."""

    def __init__(self, writer: Writer, scope: Names, *, hop: bool = False) -> None:
        self._writer = writer
        self._scope = scope
        self._hop = hop
        self._functions = 0
        self._block = ""
        self._shape: str | None = None

    def lines(self, body: Sequence[Statement], indent: int) -> Iterator[str]:
        for each in body:
            if isinstance(each, tree.Assign):
                yield from self._assign(each, indent)
            elif isinstance(each, tree.If):
                yield from self._conditional(each, indent)
            else:
                yield from self._loop(each, indent)

    def _assign(self, each: tree.Assign, indent: int) -> Iterator[str]:
        if isinstance(each.value, tree.Chain):
            target = self._writer.variables[each.targets[0]]
            yield from self._chain(target, each.value, indent)
            return
        text = self._text(each)
        names = [self._writer.variables.get(name, name) for name in each.targets]
        if each.split:
            names[1:] = ["_" if set(names[1:]) == {"_"} else f"({', '.join(names[1:])})"]
        targets = ", ".join(names)
        if targets == text:
            return
        head = f"{targets} = " if targets else ""
        if each.annotation:
            head = f"{targets}: {each.annotation} = "
        if len(each.targets) > 1 and isinstance(each.value, tree.Items):
            yield f"{' ' * indent}{head}{text}"
            return
        found = self._writer.lines(head, each.value, "", indent)
        type_ = each.types[0] if len(each.types) == 1 else None
        comment = None if type_ is None else shape_text(type_)
        if comment is not None and comment != self._shape:
            self._shape = comment
            if len(found) == 1 and len(found[0]) + len(comment) + 4 <= WIDTH:
                found = [f"{found[0]}  # {comment}"]
            elif len(comment) + indent + 2 <= WIDTH:
                found = [f"{' ' * indent}# {comment}", *found]
        yield from found

    def _text(self, each: tree.Assign) -> str:
        """Return what is assigned on one line, several values without brackets."""
        if len(each.targets) > 1 and isinstance(each.value, tree.Items) and not each.value.is_list:
            return ", ".join(map(self._writer.text, each.value.items))
        return self._writer.text(each.value)

    def _chain(self, target: str, each: tree.Chain, indent: int) -> Iterator[str]:
        first, *rest = map(self._writer.text, each.arguments)
        pad = " " * indent
        if first != target:
            yield f"{pad}{target} = {first}"
        self._block = self._block or self._scope.reserve("block")
        yield f"{pad}for {self._block} in self.{each.name}:"
        yield from break_lines(f"{target} = {self._block}(", [target, *rest], ")", indent + 4)

    def _conditional(self, each: tree.If, indent: int) -> Iterator[str]:
        if self._hop:
            yield from self._cond(each, indent)
            return
        yield from self._writer.lines("if ", each.condition, ":", indent)
        yield from self._inner(each.then, indent)
        other = list(self._inner(each.other, indent))
        if other != [" " * (indent + 4) + "pass"]:
            yield " " * indent + "else:"
            yield from other

    def _loop(self, each: tree.Loop, indent: int) -> Iterator[str]:
        if self._hop and each.condition is not None:
            yield from self._while_loop(each, indent)
            return
        if each.condition is not None:
            yield from self._writer.lines("while ", each.condition, ":", indent)
        elif each.limit is not None:
            counter = self._writer.variables[each.counter]
            call = tree.Apply("range", (each.limit,))
            yield from self._writer.lines(f"for {counter} in ", call, ":", indent)
        yield from self._inner(each.body, indent)

    def _cond(self, each: tree.If, indent: int) -> Iterator[str]:
        """Write a conditional as ``torch.cond``, its branches as functions."""
        names = self._function_names("then", "otherwise")
        targets = [self._writer.variables[name] for name in each.targets]
        for name, body in zip(names, (each.then, each.other), strict=True):
            yield from self._function(name, (), self._inner(body, indent), targets, indent)
        condition = self._writer.text(each.condition)
        arguments = [condition, *names, "()"]
        yield from break_lines(f"{', '.join(targets)} = torch.cond(", arguments, ")", indent)

    def _while_loop(self, each: tree.Loop, indent: int) -> Iterator[str]:
        """Write a loop as ``torch.while_loop``, of tensors that it carries."""
        names = self._function_names("goes_on", "body")
        carried = [self._writer.variables[name] for name in each.carried]
        if each.condition is not None:
            asked = self._writer.lines("return ", each.condition, "", indent + 4)
            yield from self._function(names[0], carried, [], [], indent, asked)
        inner = self._inner(each.body, indent)
        yield from self._function(names[1], carried, inner, carried, indent)
        joined = f"{', '.join(carried)}{',' if len(carried) == 1 else ''}"
        head = f"{joined} = torch.while_loop("
        yield from break_lines(head, [*names, f"({joined})"], ")", indent)

    def _function_names(self, *titles: str) -> list[str]:
        self._functions += 1
        return [self._scope.reserve(f"{title}_{self._functions}") for title in titles]

    def _function(
        self,
        name: str,
        parameters: Sequence[str],
        body: Sequence[str],
        results: Sequence[str],
        indent: int,
        last: Sequence[str] = (),
    ) -> Iterator[str]:
        """Write a function inside ``forward``."""
        yield ""
        yield from break_lines(f"def {name}(", list(parameters), "):", indent)
        yield from body
        returned = ", ".join(results)
        if len(results) == 1 and parameters:
            returned = f"({returned},)"  # A loop carries a tuple, a branch gives what it gives.
        yield from last or [f"{' ' * (indent + 4)}return {returned}"]
        yield ""

    def _inner(self, body: Sequence[Statement], indent: int) -> list[str]:
        self._shape = None
        found = list(self.lines(body, indent + 4))
        self._shape = None
        return found or [" " * (indent + 4) + "pass"]

"""Pages of the site that are no files: the repository's own texts, and the reference.

README.md is the first page, and links to what the site does not have lead to the repository. Pages
of the reference are lists of names that mkdocstrings fills in from docstrings, and lists made from
the dataclasses of options.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

HOME = "https://github.com/serde-relay/serde"
TEXTS = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_PICTURE = re.compile(r"<!-- picture: (\w+) -->")
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def write_pages(folder: Path, pictures: Mapping[str, str]) -> None:
    """Write the Markdown of every page into a folder.

    Args:
        folder: The folder, which holds those of docs/ already.
        pictures: What stands on a page in the place of the comment ``<!-- picture: NAME -->``, by
            name; what has none there is left out.
    """
    for source, target in TEXTS.items():
        (folder / target).write_text((ROOT / source).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "reference").mkdir()
    for name, text in reference_pages().items():
        (folder / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    known = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for path in folder.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        text = _PICTURE.sub(lambda found: pictures.get(found[1], ""), text)
        name = path.relative_to(folder).as_posix()
        path.write_text(with_links(text, name, known), encoding="utf-8")


def with_links(markdown: str, source: str, known: Collection[str]) -> str:
    """Let links lead to where files are on the site, or to the repository; drop Sphinx's roles.

    Args:
        markdown: The text of a page.
        source: Its name on the site.
        known: The names of all files of the site.
    """
    at_root = {target: name for name, target in TEXTS.items()}
    folder = "" if source in at_root else posixpath.dirname(f"docs/{source}")

    def lead(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, found[1]))
        anchor = found[2] or ""
        inside = TEXTS.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is None or inside not in known:
            if (ROOT / path).exists() and not path.startswith("docs/"):
                return f"]({HOME}/blob/main/{path}{anchor})"
            return found[0]
        return f"]({posixpath.relpath(inside, posixpath.dirname(source) or '.')}{anchor})"

    markdown = re.sub(r":(?:class|func|meth):(?=`)", "", markdown)
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(lead, part) for part in parts)


def reference_pages() -> dict[str, str]:
    """Return the Markdown of each page of the reference by its name."""
    return {
        "functions": functions_page(),
        "classes": classes_page(),
        "options": options_page(),
        "errors": page("Errors", "", ["serde.errors"], members=True),
        "relay": relay_page(),
        "passes": passes_page(),
        "builders": builders_page(),
        "formats": formats_page(),
        "target": names_page("ONNX as a target", "serde.target", "serde.target"),
        "serving": names_page("Servers", "serde.fleet.serving", "serde.serving"),
        "extending": extending_page(),
        "commands": commands_page(),
    }


def page(title: str, text: str, identifiers: Iterable[str], *, members: bool = False) -> str:
    """Return a page with the documentation of names, each by its full path."""
    parts = [f"# {title}", text, *(documented(name, members=members) for name in identifiers)]
    return "\n\n".join(part for part in parts if part) + "\n"


def documented(identifier: str, *, heading: str = "", members: bool | None = None) -> str:
    """Return the block that mkdocstrings replaces by what a docstring says."""
    options = []
    if heading:
        options += [f'heading: "{heading}"', f'toc_label: "{heading}"']
    if members is not None:
        options.append(f"members: {str(members).lower() if not members else 'null'}")
    if not options:
        return f"::: {identifier}"
    return "\n".join([f"::: {identifier}", "    options:", *(f"      {each}" for each in options)])


def _public() -> dict[str, str]:
    """The full path of each public name of ``serde``."""
    import serde

    homes: dict[str, str] = vars(serde)["_HOMES"]
    return {name: f"{home}.{name}" for name, home in sorted(homes.items())}


def _is_class(path: str) -> bool:
    module, _, name = path.rpartition(".")
    return isinstance(getattr(import_module(module), name, None), type)


def _is_module(name: str, path: str) -> bool:
    return path.endswith(f".{name}.{name}")


def functions_page() -> str:
    """Return the page on the functions of ``serde``."""
    found = [
        documented(path, heading=f"serde.{name}")
        for name, path in _public().items()
        if not _is_module(name, path) and not _is_class(path)
    ]
    found += [
        documented(f"{home}.{name}", heading=f"serde.serving.{name}")
        for name, home in _homes_in("serde.fleet.serving")
    ]
    text = (
        "Beside the parameters below, functions that read or write a model take the options of its "
        "format: [which](options.md). `help(serde.convert)` lists them too."
    )
    return "\n\n".join(["# Functions", text, *found]) + "\n"


def _homes_in(package: str) -> list[tuple[str, str]]:
    """Names that a package offers, and the modules that have them."""
    module: Any = import_module(package)
    return [(name, getattr(module, name).__module__) for name in module.__all__]


def classes_page() -> str:
    """Return the page on the classes of ``serde``, and those that its functions return."""
    returned = {
        "Params": "serde.mxnet.live.Params",
        "ModelDiff": "serde.checking.difference.ModelDiff",
        "Bisection": "serde.checking.bisection.Bisection",
        "Tolerance": "serde.checking.tolerance.Tolerance",
        "Limits": "serde.core.limits.Limits",
    }
    public = {
        f"serde.{name}": path
        for name, path in _public().items()
        if not path.startswith("serde.errors.") and not _is_module(name, path) and _is_class(path)
    }
    found = [documented(path, heading=name) for name, path in {**public, **returned}.items()]
    text = "What `serde.to_relay` returns stands among the [names of Relay](relay.md)."
    return "\n\n".join(["# Classes", text, *found]) + "\n"


def options_page() -> str:
    """Return the lists of options: of every source, of every format, of the passes between."""
    from serde.api import convert
    from serde.conversion.signature import attribute_texts, option_default

    parts = [
        "# Options of every format",
        "Keyword arguments of the functions, and flags of the command line: `input_shapes` is "
        "`--input-shape`, and `serde convert --help-all` spells each.",
    ]
    public: Any = convert
    for group in public.groups():
        texts = attribute_texts(group.cls)
        rows = [
            _row(item.name, str(item.type), repr(option_default(item)), texts.get(item.name, ""))
            for item in dataclasses.fields(group.cls)
            if item.name in texts or item.metadata.get("help")
        ]
        if rows:
            title = group.title[0].upper() + group.title[1:]
            parts.append("\n".join([f"## {title}", "", *rows]))
    return "\n\n".join(parts) + "\n"


def _row(name: str, kind: str, default: str, text: str) -> str:
    text = re.sub(r":(?:class|func|meth):([\w.]+)", r"`\1`", text)
    return f"- **`{name}`** (`{kind}`, default: `{default}`): {text}"


def relay_page() -> str:
    """Return the page on the public names of ``serde.relay`` but builders and passes."""
    return names_page("Relay", "serde.relay", "relay")


def passes_page() -> str:
    """Return the page on ``relay.transform``."""
    return names_page("Passes", "serde.relay.transform", "relay.transform")


def names_page(title: str, package: str, spelled: str) -> str:
    """Return the page on the public names of a package that loads them when they are used."""
    module: Any = import_module(package)
    parts = [f"# {title}", f"`from serde import relay`, then `{spelled}.NAME`."]
    if not spelled.startswith("relay"):
        parts = [f"# {title}", f"Names of `{spelled}`."]
    for name in module.__all__:
        found = getattr(module, name)
        home = getattr(found, "__module__", None)
        if home is None or not home.startswith("serde.") or not hasattr(found, "__qualname__"):
            continue
        path = f"{home}.{found.__qualname__}"
        parts.append(documented(path, heading=f"{spelled}.{name}"))
    return "\n\n".join(parts) + "\n"


def builders_page() -> str:
    """Return the page on the builders of calls, from their stubs."""
    folder = ROOT / "serde" / "relay" / "_builders"
    text = "`from serde import relay`; [operators](../operators.md) in one line each."
    parts = ["# Builders of Relay", text]
    for stub in sorted(folder.rglob("*.pyi")):
        place = stub.relative_to(folder).with_suffix("").parts
        names = place[:-1] if place[-1] == "__init__" else place
        if place[-1].startswith("_") and place[-1] != "__init__":
            continue
        path = ".".join(["serde.relay._builders", *names]) if names else "serde.relay"
        parts.append(documented(path, heading=".".join(["relay", *names])))
    return "\n\n".join(parts) + "\n"


def formats_page() -> str:
    """Return the page on what each format covers, from the docstrings of the packages."""
    from serde.bridge.formats import FORMATS

    parts = ["# Versions of formats", "What is covered, and what deviates."]
    for name, module in sorted(FORMATS.items()):
        parts.append(documented(_package(name, module), heading=name, members=False))
    return "\n\n".join(parts) + "\n"


def _package(name: str, module: str) -> str:
    """The package of a format; two that are one package's have the docstring of their module."""
    package = module.rpartition(".")[0]
    return module if name == "tvm" else package


def extending_page() -> str:
    """Return the page on what a package that adds a format, or an engine, derives from."""
    names = (
        "serde.bridge.contract.Bridge",
        "serde.bridge.options.ImportOptions",
        "serde.bridge.options.ExportOptions",
        "serde.testing.suite.BridgeSuite",
        "serde.compat.mx2onnx",
        "serde.compat.onnx2mx",
    )
    text = "[Add a format](../add-a-format.md) builds one on a page."
    return page("For other packages", text, names)


def commands_page() -> str:
    """Return the help of every command, as the command line prints it."""
    import click

    from serde.command.base import WHOLE_HELP
    from serde.command.cli import COMMANDS, find_command

    parts = ["# Help of every command"]
    for name in COMMANDS:
        command = find_command(name)
        context = click.Context(
            command,
            info_name=f"serde {name}",
            help_option_names=["-h", "--help"],
            terminal_width=100,
        )
        context.meta[WHOLE_HELP] = True
        parts.append(f"## serde {name}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts) + "\n"

"""Lines of readers that no bytes of a file can reach, each with what does reach it.

The reasons are few, and each is tested elsewhere: a system call that fails (the fault tests have
each do so), another system or release, objects and options that a caller hands over, what stands
at the place that is written to, links, files beyond the largest that are read, and processes that
are started anew, for which the fuzzer forks.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["REASONS", "UNREACHED", "unreached_lines"]

REASONS: Final[Mapping[str, str]] = {
    "system": "a system call fails",
    "platform": "another system, or another release of a package",
    "live": "an object, a text or an option that a caller hands over, not a file",
    "state": "what stands at the target, or beside it",
    "link": "a symbolic or hard link, a folder or a device in the place of a file",
    "large": "a file beyond the bound on its size, or with more parts than are read",
    "process": "a process started anew, for which the fuzzer forks",
}

UNREACHED: Final[Mapping[str, Mapping[str, str]]] = {
    "coreml/blobs.py": {
        "found = (stored_source(weight)": "live",
        "return [each for each in": "live",
    },
    "coreml/reader.py": {
        'if hasattr(source, "get_spec"):': "live",
        'if hasattr(source, "SerializeToString"):': "live",
        'raise OptionError(f"expected a path, bytes or a Core ML model': "live",
        'raise FormatError(f"a manifest of': "large",
    },
    "io/contained.py": {
        "if stat.S_ISLNK(mode):": "link",
        "if error.errno not in _MISSING:": "system",
        "if opened.size > limit:": "large",
    },
    "io/archives.py": {
        "except OSError as error:": "system",
        'raise stream.error(f"more than {MAX_ARCHIVE_MEMBERS} members")': "large",
    },
    "mxnet/arrays.py": {
        "class NDArrayWeight(Weight):": "live",
        "class _SparseNDArrayWeight(NDArrayWeight):": "live",
        "def _dtype_name(": "live",
        "def as_weight(": "live",
        "def _array_weight(": "live",
        "def weights_of(": "live",
        "def _name(": "live",
    },
    "mxnet/codec.py": {
        "def load_params(": "live",
        "def _with_arrays(": "live",
        "return _with_arrays(first, second)": "live",
        "source = source.encode()": "live",
        "return item.encode()": "live",
        "return bool(_JSON_HEAD.match(source[:256].encode(": "live",
        'raise OptionError(f"expected a path or bytes, found': "live",
        'raise OptionError(f"expected a symbol and parameters, found': "live",
        'raise OptionError("an epoch chooses among files': "live",
        "except OSError as error:": "system",
        "if member.size > MAX_SYMBOL_JSON_BYTES:": "large",
        "def _is_original(": "state",
        "originals.insert(0, Path(path))": "state",
    },
    "mxnet/symbol_json.py": {
        "def symbol_text(": "live",
        "if len(data) > MAX_SYMBOL_JSON_BYTES:": "large",
        "if count > MAX_SYMBOL_CONTAINERS:": "large",
        "if len(raw) > MAX_NODES:": "large",
    },
    "nnef/codec.py": {
        "def _of_graph(": "live",
        "return _of_graph(source)": "live",
        'raise OptionError(f"expected a path or an nnef.Graph': "live",
    },
    "nnef/graphs.py": {
        "except _UNSOUND as error:": "live",
        'raise TypeError(f"expected the name of a tensor': "live",
        'raise ValueError(f"{operation.name} without its operand': "live",
        'raise ValueError(f"{operation.name} has no operand': "live",
        "if dtype is None and signature is not None and not signature.inputs:": "live",
        'raise TypeError("expected a tensor or a number': "live",
        "if isinstance(value, np.ndarray) and value.ndim:": "live",
        'raise TypeError(f"expected a number, found': "live",
        'yield name, f"{operation.op} gives a tensor without a name"': "live",
        "if operation.dtype not in _ELEMENTS:": "live",
        "if len(operation.results()) != 1:": "live",
    },
    "nnef/text/apart.py": {
        "if not can_start():": "platform",
        "except subprocess.TimeoutExpired:": "process",
        "if done.returncode and done.returncode == -_SIGPROF:": "process",
    },
    "nnef/text/apart_worker.py": {"def main(": "process"},
    "onnx/codec.py": {
        'raise OptionError(f"external threshold': "live",
        "limit = min(limit, external_threshold)": "live",
        'raise OptionError(f"{data[0]}: another run has': "state",
        "return _layout(model, data_name(target, digest)": "state",
        "return is_written(target": "state",
        "if total_length(layout.pieces) > MAX_PROTOBUF_BYTES:": "large",
    },
    "onnx/external.py": {"if not any(os.path.commonpath(": "link", "if opened.names > 1:": "link"},
    "onnx/model.py": {
        "def nbytes(": "live",
        'raise OptionError(f"initializer {tensor.name!r} is given twice")': "live",
        "if total > MAX_PROTOBUF_BYTES:": "large",
    },
    "onnx/reader.py": {
        "return _from_message(source, ExternalFiles(base))": "live",
        'raise OptionError(f"expected a path, bytes or a ModelProto': "live",
        "if count >= MAX_TENSORS:": "large",
    },
    "onnx/text.py": {"except FormatError:": "large"},
    "relax/codec.py": {
        "return from_live(source, params, function)": "live",
        'raise OptionError(f"expected a folder or a tvm.IRModule': "live",
        "return replace(from_live(module, params, function), files=files)": "live",
        "if opened.size > MAX_SCRIPT_BYTES:": "large",
    },
    "relax/loading.py": {
        'if changed or main != "main":': "live",
        'raise OptionError(f"params: {name} is no tensor': "live",
        "if function:": "live",
        "given = []": "live",
        "if not isinstance(given, Iterable) or isinstance(given, str):": "live",
        "if len(found) > len(own) or len(wanted) != len(found):": "live",
    },
    "relax/text/reading.py": {
        "answer = answer_parse(request, list(arrays.values()))": "platform",
        "except ImportError:": "platform",
        "except (OSError, ValueError):": "platform",
    },
    "relay/text/parser.py": {
        "def parse_expr(": "live",
        "def single_expression(": "live",
        "for header, data in self._init.type_definitions.items():": "live",
    },
    "relayfile/codec.py": {
        "def _from_memory(": "live",
        "def _weights_of(": "live",
        "def is_live(": "live",
        "return _load_pair((source, params), allow)": "live",
        "return _from_memory(": "live",
        "return source.encode()": "live",
        'raise OptionError(f"expected a path, text or a module': "live",
        'raise OptionError(f"expected a graph and parameters': "live",
        'raise OptionError("a RelayModel has its own': "live",
        "weights, path = _weights_of(second)": "live",
        "if isinstance(first, (IRModule, Function)):": "live",
        "content = _content(first)": "live",
        'return _bind_weights(_graph(content, None), weights, "<bytes>", path)': "live",
        "return _bind_weights(_read_graph(content), weights, content, path)": "live",
        "if params == path:": "live",
    },
    "relayfile/json_graph.py": {"if len(nodes) > MAX_NODES:": "large"},
    "torch/codec.py": {'raise OptionError(f"expected a path or a module': "live"},
    "io/zips.py": {
        "if len(found) > MAX_TORCH_ARCHIVE_MEMBERS:": "large",
        "if wanted > max(CHUNK_BYTES": "large",
    },
    "torch/pt2/document.py": {"if count > MAX_TORCH_CONTAINERS:": "large"},
    "torch/pt2/reader.py": {"def load_archive(": "live"},
    "torch/script/source.py": {"if torch is None:": "platform"},
}
"""By module: how a statement begins, and why no file reaches it."""


def unreached_lines(path: Path, reasons: Mapping[str, str]) -> set[int]:
    """Return the lines of the statements that begin as told, with all that is inside them.

    Raises:
        ValueError: No statement begins so.
    """
    if not reasons:
        return set()
    text = path.read_text()
    lines = text.splitlines()
    found: set[int] = set()
    places = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.stmt, ast.ExceptHandler))
    ]
    for wanted in reasons:
        spans = [each for each in places if lines[each[0] - 1].strip().startswith(wanted)]
        if not spans:
            raise ValueError(f"{path}: no statement begins with {wanted!r}")
        for first, last in spans:
            found.update(range(first, last + 1))
    return found

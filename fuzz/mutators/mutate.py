"""Cases changed in a few places, each by what its file holds."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator

from fuzz.case import Case
from fuzz.mutators.archives import Members, is_tar, is_zip, read_tar, read_zip, write_tar, write_zip
from fuzz.mutators.blob import mutate_blob, reduce_blob
from fuzz.mutators.document import Document, Pool, change, reductions
from fuzz.mutators.protobuf import ProtobufDocument, read_message
from fuzz.mutators.text import TextDocument
from fuzz.mutators.trees import JsonDocument

__all__ = ["learn", "mutate", "reduce_case"]

_PROTOBUF = (".onnx", ".mlmodel", ".pb")
_TEXT = (".nnef", ".quant", ".relay", ".py", ".txt", ".onnxtxt", ".textproto")


def _document(name: str, data: bytes) -> Document | None:
    """Return a file as a tree; None where it is bytes to all that is known."""
    if data[:64].lstrip()[:1] in (b"{", b"["):
        found = JsonDocument.read(data)
        if found is not None:
            return found
    if name.endswith(_PROTOBUF):
        fields = read_message(data)
        return None if fields is None else ProtobufDocument(fields)
    if name.endswith(_TEXT) or (len(data) > 2 and data[:500].isascii() and data[:1].isalnum()):
        return TextDocument.read(data)
    return None


def _archive(data: bytes) -> tuple[Members, Callable[[Members, bytes], bytes]] | None:
    """Return the members of an archive, and what writes them; None where it is none."""
    members, write = None, write_zip
    if is_zip(data):
        members = read_zip(data)
    elif is_tar(data):
        members, write = read_tar(data), write_tar
    return None if not members else (members, write)


def learn(case: Case, pool: Pool, rng: random.Random) -> None:
    """Keep the parts of a case, to be put into others."""
    for name, content in _leaves(case.files.items()):
        document = _document(name, content)
        if document is not None:
            pool.add(document, rng)


def _leaves(files) -> Iterator[tuple[str, bytes]]:
    for name, content in files:
        archive = _archive(content)
        if archive is None:
            yield name, content
        else:
            yield from _leaves(archive[0])


def mutate(case: Case, pool: Pool, rng: random.Random) -> Case:
    """Return a case with a few changes: mostly of its structure, sometimes of its bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 10))):
        names = list(case.files)
        weights = [1 + min(len(case.files[name]), 4000) for name in names]
        name = rng.choices(names, weights)[0]
        if rng.randrange(60) == 0 and len(names) > 1:
            case = _mutate_files(case, name, rng)
        else:
            case = case.with_file(name, mutate_file(name, case.files[name], pool, rng))
    return case


def _mutate_files(case: Case, name: str, rng: random.Random) -> Case:
    """Return a case without a file, or with its content in the place of another's."""
    if name == case.main or rng.randrange(2):
        return case.with_file(name, case.files[rng.choice(list(case.files))])
    return case.without(name)


def mutate_file(name: str, data: bytes, pool: Pool, rng: random.Random) -> bytes:
    """Return the content of a file with one change."""
    if rng.randrange(25) == 0:
        return mutate_blob(data, rng)
    archive = _archive(data)
    if archive is not None:
        return _mutate_archive(*archive, data, pool, rng)
    document = _document(name, data)
    if document is None:
        return mutate_blob(data, rng)
    change(document, pool, rng)
    return document.content()


def _mutate_archive(
    members: Members,
    write: Callable[[Members, bytes], bytes],
    data: bytes,
    pool: Pool,
    rng: random.Random,
) -> bytes:
    place = rng.choices(range(len(members)), [1 + min(len(each[1]), 4000) for each in members])[0]
    name, content = members[place]
    kind = rng.randrange(40)
    if kind == 0:
        del members[place]
    elif kind == 1:
        members.insert(place, members[rng.randrange(len(members))])
    elif kind == 2:
        members[place] = (rng.choice(("", "/x", "../x", name + "x", name.upper())), content)
    elif kind == 3:
        members[place] = (name, members[rng.randrange(len(members))][1])
    else:
        members[place] = (name, mutate_file(name, content, pool, rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Two members of one name are meant.
        return write(members, data)


def reduce_case(case: Case, still: Callable[[Case], bool]) -> Case:
    """Return the smallest case found of which something still holds.

    Args:
        case: Of which it holds.
        still: Whether it does; raises ``TimeoutError`` when there is no more time.
    """
    try:
        for name in list(case.files):
            if name != case.main and still(case.without(name)):
                case = case.without(name)
        for name in sorted(case.files, key=lambda each: -len(case.files[each])):
            for smaller in _reduced(name, case.files[name]):
                shorter = next(smaller, None)
                while shorter is not None:
                    candidate = case.with_file(name, shorter)
                    kept = still(candidate)
                    if kept:
                        case = candidate
                    try:
                        shorter = smaller.send(kept)
                    except StopIteration:
                        break
                break
    except TimeoutError:
        pass
    return case


def _reduced(name: str, data: bytes):
    """Yield what makes a file smaller, the one that knows most first."""
    archive = _archive(data)
    if archive is not None:
        yield _reduce_archive(*archive, data)
        return
    document = _document(name, data)
    yield reduce_blob(data) if document is None else reductions(document)


def _reduce_archive(members: Members, write: Callable[[Members, bytes], bytes], data: bytes):
    for name, content in list(members):
        place = members.index((name, content))
        if (yield write(members[:place] + members[place + 1 :], data)):
            del members[place]
            continue
        for smaller in _reduced(name, content):
            shorter = next(smaller, None)
            while shorter is not None:
                kept = yield write([*members[:place], (name, shorter), *members[place + 1 :]], data)
                if kept:
                    members[place] = (name, shorter)
                try:
                    shorter = smaller.send(kept)
                except StopIteration:
                    break
            break

"""JSON that is nested more deeply than Python's parser can follow."""

import gc
import json

import pytest

from serde.core.parsing import parse_json

FAR = "[" * 200 + "]" * 200


class Garbage:
    """What refers to itself; its finalizer needs some depth of recursion."""

    failures = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        try:
            json.loads(FAR)
        except RecursionError:
            Garbage.failures += 1


@pytest.mark.wide
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, b"[" * 100_000])
@pytest.mark.parametrize("objects", range(100, 1000, 100))
def test_no_finalizer_runs_at_the_limit_of_recursion(text: str | bytes, objects: int) -> None:
    Garbage.failures = 0
    kept = gc.get_threshold()
    gc.collect()
    gc.set_threshold(objects + 1, 1000, 1000)
    try:
        Garbage()
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(text)
    finally:
        gc.set_threshold(*kept)
    gc.collect()
    assert Garbage.failures == 0

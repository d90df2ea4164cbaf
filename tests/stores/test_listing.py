"""Sources are found by globs and folders of any store, without a listing of everything."""

from __future__ import annotations

import glob
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from serde.errors import OptionError, StoreError
from serde.fleet.stores.listing import expand
from serde.fleet.stores.store import Store

KEYS = [
    "a/net-0000.params",
    "a/net-symbol.json",
    "a/notes.txt",
    "a/b/one.onnx",
    "a/b/two[1].onnx",
    "a/b/pack.mlpackage/Manifest.json",
    "a/b/pack.mlpackage/Data/weights.bin",
    "a/b/three_nnef/graph.nnef",
    "a/b/three_nnef/w.dat",
    "a/.hidden/four.onnx",
    "a/served/MAR-INF/MANIFEST.json",
    "a/served/net-symbol.json",
    "z.onnx",
]
MODELS = [
    "a/b/one.onnx",
    "a/b/pack.mlpackage",
    "a/b/three_nnef",
    "a/b/two[1].onnx",
    "a/net-symbol.json",
    "a/served",
]


@pytest.fixture(params=["local", "memory", "s3"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The same files in three kinds of stores; what stands before their names."""
    if request.param == "s3":
        bucket = request.getfixturevalue("bucket")
        for key in KEYS:
            bucket.put(key)
        return f"{bucket.url}/"
    if request.param == "local":
        for key in KEYS:
            (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / key).write_bytes(b"x")
        return f"{tmp_path}/"
    import fsspec

    fs = fsspec.filesystem("memory")
    for key in KEYS:
        fs.pipe_file(f"/{tmp_path.name}/{key}", b"x")
    return f"memory://{tmp_path.name}/"


def names(tree: str, pattern: str, **options: Any) -> list[str]:
    """What a pattern gives, without what stands before all names."""
    return [found.url.removeprefix(tree) for found in expand(tree + pattern, **options)]


@pytest.mark.wide
@pytest.mark.parametrize("folder", ["a/", "a"])
def test_a_folder_gives_its_models_once_each(tree: str, folder: str) -> None:
    assert sorted(names(tree, folder)) == MODELS


def test_a_glob_gives_what_its_names_match(tree: str) -> None:
    assert names(tree, "a/*.params") == ["a/net-0000.params"]
    assert names(tree, "a/b/[!o]*.onnx") == ["a/b/two[1].onnx"]
    assert sorted(names(tree, "*/b/*")) == [
        "a/b/one.onnx", "a/b/pack.mlpackage", "a/b/three_nnef", "a/b/two[1].onnx",
    ]  # fmt: skip
    assert names(tree, "a/ne?-symbol.json") == ["a/net-symbol.json"]
    assert names(tree, "nothing*") == []


@pytest.mark.wide
def test_two_asterisks_stand_for_any_number_of_folders(tree: str) -> None:
    assert sorted(names(tree, "**/*.onnx")) == ["a/b/one.onnx", "a/b/two[1].onnx", "z.onnx"]
    assert sorted(names(tree, "a/**")) == MODELS
    assert names(tree, "a/**/*.mlpackage") == ["a/b/pack.mlpackage"]


def test_globs_of_files_are_those_of_python(tree: str, tmp_path: Path) -> None:
    if not tree.startswith("/"):
        pytest.skip("Python's glob knows local files")
    for pattern in ("**/*.onnx", "a/*.json", "*/*/*.onnx", "a/b/two[[]1].onnx"):
        theirs = glob.glob(pattern, root_dir=tmp_path, recursive=True)
        assert sorted(names(tree, pattern)) == sorted(theirs)


@pytest.mark.wide
def test_a_package_has_the_size_of_all_its_files(tree: str) -> None:
    (glob_found,) = expand(f"{tree}a/b/*.mlpackage")
    (named,) = expand(f"{tree}a/b/pack.mlpackage")
    (below,) = [each for each in expand(f"{tree}a/") if each.url.endswith(".mlpackage")]
    assert glob_found.size == named.size == below.size == 2
    assert glob_found.checksum == named.checksum == below.checksum != ""


@pytest.mark.wide
def test_what_is_not_there_is_left_to_who_reads_it(tree: str) -> None:
    (found,) = expand(f"{tree}a/prefix")
    assert (found.url, found.size, found.checksum) == (f"{tree}a/prefix", None, "")


@pytest.mark.wide
def test_a_file_changes_its_checksum_with_its_content(tree: str, tmp_path: Path) -> None:
    (before,) = expand(f"{tree}z.onnx")
    if tree.startswith("/"):
        (tmp_path / "z.onnx").write_bytes(b"other")
    else:
        import fsspec

        fs, path = fsspec.url_to_fs(f"{tree}z.onnx")
        fs.pipe_file(path, b"other")
    (after,) = expand(f"{tree}z.onnx")
    assert after.size == 5
    assert after.checksum != before.checksum


@pytest.mark.wide
def test_the_limit_ends_a_listing_in_one_line(tree: str) -> None:
    found = expand(f"{tree}a/**", 3)
    with pytest.raises(OptionError, match=r"more than 3 names to look at; narrow the pattern"):
        list(found)


@pytest.mark.wide
def test_a_large_bucket_is_listed_page_by_page(bucket: Any, monkeypatch: Any) -> None:
    """What a million keys take: a page is asked for when the one before was used up."""
    pages: list[str] = []

    def page(self: Store, action: Any, path: str) -> Any:
        pages.append(path)
        start = 1000 * (len(pages) - 1)
        keys = [{"Key": f"m/{start + n:07d}.onnx", "Size": 1, "ETag": '"e"'} for n in range(1000)]
        return {"Contents": keys, "IsTruncated": True, "NextContinuationToken": str(start)}

    monkeypatch.setattr(Store, "ask", page)
    found = expand(f"{bucket.url}/**/*.onnx", 10_000)
    for _ in range(1500):
        next(found)
    assert len(pages) == 2
    with pytest.raises(OptionError, match="more than 10,000 names"):
        list(found)
    assert len(pages) == 11


@pytest.mark.wide
def test_only_what_is_below_the_fixed_part_is_listed(bucket: Any) -> None:
    for number in range(30):
        bucket.put(f"other/{number}.onnx")
    bucket.put("wanted/net-1.onnx")
    bucket.faults.requests.clear()
    assert [each.url for each in expand(f"{bucket.url}/wanted/**/net-*.onnx", 1)] == [
        f"{bucket.url}/wanted/net-1.onnx"
    ]
    assert len(bucket.faults.requests) == 1


@pytest.mark.wide
def test_the_names_of_a_flat_folder_are_asked_for_by_their_beginning(bucket: Any) -> None:
    for number in range(30):
        bucket.put(f"flat/{number:02d}.onnx")
    found = [each.url for each in expand(f"{bucket.url}/flat/07*", 1)]
    assert found == [f"{bucket.url}/flat/07.onnx"]


@pytest.mark.parametrize("seed", range(30))
def test_asterisks_match_what_they_do_in_python(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        path = tmp_path.joinpath(*("".join(rng.choices("ab", k=2)) for _ in range(3)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".onnx").touch()
    parts = ["".join(rng.choices("ab*?", k=rng.randrange(1, 6))) for _ in range(3)]
    for place in rng.sample(range(3), 2):
        parts[place] = rng.choice(["**", parts[place]])
    pattern = "/".join([*(part if part == "**" else re.sub(r"\*+", "*", part) for part in parts)])
    pattern += "/*.onnx"
    theirs = glob.glob(pattern, root_dir=tmp_path, recursive=True)
    found = [each.url.removeprefix(f"{tmp_path}/") for each in expand(f"{tmp_path}/{pattern}")]
    assert sorted(found) == sorted({*theirs})


@pytest.mark.parametrize("pattern", ["*a" * 60 + "b", "**/" + "*a" * 60 + "b", "**/a*/" * 40 + "x"])
def test_a_pattern_of_many_asterisks_takes_no_time(tmp_path: Path, pattern: str) -> None:
    folder = tmp_path.joinpath(*["a" * 12] * 60)
    folder.mkdir(parents=True)
    for below in (tmp_path, folder):
        (below / ("a" * 250)).touch()
    assert list(expand(f"{tmp_path}/{pattern}")) == []


@pytest.mark.parametrize("pattern", ["[z-a].onnx", "**/[z-a]*", "a/[b-a]/x.onnx"])
def test_a_pattern_that_is_none_is_one_line(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OptionError, match="no sound pattern: bad character range"):
        list(expand(f"{tmp_path}/{pattern}"))


@pytest.mark.wide
def test_folders_in_folders_by_the_thousand_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(1200):
        os.mkdir("d")
        os.chdir("d")
    (tmp_path / "net.onnx").touch()
    try:
        assert [each.url for each in expand(f"{tmp_path}/**")] == [f"{tmp_path}/net.onnx"]
    finally:  # Which Python's own functions cannot.
        monkeypatch.chdir(tmp_path)
        subprocess.run(["rm", "-r", "d"], check=True)


def test_a_link_that_leads_back_ends_no_listing(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"x")
    os.symlink(tmp_path, tmp_path / "loop")
    assert [each.url for each in expand(f"{tmp_path}/**")] == [f"{tmp_path}/net.onnx"]


def test_a_missing_bucket_is_told(s3: Any) -> None:
    with pytest.raises(StoreError, match=r"^s3://no-such-bucket/.*there is no such bucket$"):
        list(expand("s3://no-such-bucket/*.onnx"))

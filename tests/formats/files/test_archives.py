"""Tar archives: what is taken out, and the attacks that are not."""

import gzip
import io
import os
import random
import tarfile

import pytest

from serde.core.limits import MAX_ARCHIVE_MEMBERS
from serde.errors import FormatError
from serde.io.archives import is_tar, tar_extract, tar_names

CONTENT = random.Random(4).randbytes(1500)
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def tar(members, form="pax"):
    """The bytes of an archive of TarInfo objects or (name, content) pairs."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=FORMATS[form]) as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return file.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def take(tmp_path, data, wanted=lambda name: name.endswith(".w")):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(data)
    return {name: file.read() for name, file in tar_extract(path, wanted).items()}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1500])
def test_chosen_members_are_copied_out(tmp_path, pack, form, size):
    members = [("skip.txt", b"x" * 700), ("d/a.w", CONTENT[:size]), ("./b.w", b"b")]
    assert take(tmp_path, pack(tar(members, form))) == {"d/a.w": CONTENT[:size], "b.w": b"b"}
    assert os.listdir(tmp_path) == ["a.tar.gz"]


@pytest.mark.parametrize("form", FORMATS)
def test_long_names(tmp_path, form):
    name = "d" * 90 + "/" + "e" * 80 + ".w"
    assert take(tmp_path, tar([(name, b"1"), ("s.w", b"2")], form)) == {name: b"1", "s.w": b"2"}


@pytest.mark.parametrize("form", ["gnu", "pax"])
def test_longer_and_foreign_names(tmp_path, form):
    name = "é" * 300 + ".w"
    assert take(tmp_path, tar([(name, b"1")], form)) == {name: b"1"}


def test_directories_are_passed_over(tmp_path):
    data = tar([special("d.w", tarfile.DIRTYPE), ("d.w/x.w", b"1")])
    assert take(tmp_path, data, lambda name: name == "d.w/x.w") == {"d.w/x.w": b"1"}


def test_names_are_listed(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(tar([("a", b"1"), special("l", tarfile.SYMTYPE, "a"), ("./b", CONTENT)]))
    assert list(tar_names(path)) == ["a", "b"]


@pytest.mark.parametrize("name", ["../a.w", "/a.w", "d/../a.w", "C:/a.w", "..\\a.w", "\\a.w"])
def test_names_that_lead_out_are_never_taken(tmp_path, name):
    assert take(tmp_path, tar([(name, b"1"), ("b.w", b"2")])) == {"b.w": b"2"}


LINKS = {
    "symbolic link": (tarfile.SYMTYPE, "/etc/hostname"),
    "hard link": (tarfile.LNKTYPE, "b.w"),
    "device": (tarfile.CHRTYPE, ""),
    "FIFO": (tarfile.FIFOTYPE, ""),
}


@pytest.mark.parametrize("kind", LINKS)
def test_links_and_devices_are_refused(tmp_path, kind):
    with pytest.raises(FormatError, match=f"expected a file, found a {kind}"):
        take(tmp_path, tar([special("a.w", *LINKS[kind])]))


def test_duplicates_are_refused(tmp_path):
    with pytest.raises(FormatError, match=r"a\.w occurs twice"):
        take(tmp_path, tar([("a.w", b"1"), ("./a.w", b"2")]))


@pytest.mark.wide
def test_too_many_members_are_refused(tmp_path):
    block = tar([("a", b"")])[:1024][:512]
    with pytest.raises(FormatError, match=f"more than {MAX_ARCHIVE_MEMBERS} members"):
        take(tmp_path, gzip.compress(block * (MAX_ARCHIVE_MEMBERS + 1)))


def test_bombs_are_refused(tmp_path):
    """Compressed twice over, so that the ratio exceeds what one pass of gzip can reach."""
    info = tarfile.TarInfo("a.w")
    info.size = 2**40
    with pytest.raises(FormatError, match="out of proportion"):
        take(tmp_path, gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(2**20)))


def test_a_claim_beyond_the_end_is_refused(tmp_path):
    info = tarfile.TarInfo("a.w")
    info.size = 2**20
    with pytest.raises(FormatError, match="expected 1048576 bytes, found 1000"):
        take(tmp_path, info.tobuf() + bytes(1000))


def test_a_huge_header_is_refused(tmp_path):
    info = special("././@LongLink", b"L")
    info.size = 2**30
    with pytest.raises(FormatError, match="a header of 1073741824 bytes"):
        take(tmp_path, gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(2**20)))


PAX = {
    "length 0": b"0 path=a.w\n",
    "length too great": b"99999 path=a.w\n",
    "length no number": b"xx path=a.w\n",
    "negative length": b"-1 path=a.w\n",
    "no value": b"11 patha.w\n",
    "no newline": b"11 path=a.w ",
    "size no number": b"13 size=0x10\n",
    "negative size": b"11 size=-5\n",
    "not UTF-8": b"12 path=\xff.w\n",
    "sparse": b"22 GNU.sparse.major=1\n",
}


@pytest.mark.parametrize("case", PAX)
def test_damaged_extended_headers_are_refused(tmp_path, case):
    info = special("x", tarfile.XHDTYPE)
    info.size = len(PAX[case])
    data = info.tobuf() + PAX[case].ljust(512, b"\0") + tar([("b.w", b"1")])
    with pytest.raises(FormatError):
        take(tmp_path, data)


@pytest.mark.parametrize("length", range(0, 4096 + 512, 100))
def test_truncation_is_refused_or_harmless(tmp_path, length):
    data = tar([("a.w", CONTENT), ("b.w", CONTENT)])[:length]
    try:
        found = take(tmp_path, data)
    except FormatError:
        return
    assert all(content == CONTENT for content in found.values())


@pytest.mark.parametrize("cut", range(1, 64, 3))
def test_truncated_gzip_is_refused(tmp_path, cut):
    data = gzip.compress(tar([("a.w", CONTENT), ("b.w", CONTENT)]))
    with pytest.raises(FormatError):
        take(tmp_path, data[: len(data) * cut // 64])


def test_a_damaged_checksum_is_refused(tmp_path):
    data = bytearray(tar([("a.w", CONTENT)], "gnu"))
    data[3] ^= 1
    with pytest.raises(FormatError, match="expected a tar header"):
        take(tmp_path, bytes(data))


def test_what_is_a_tar(tmp_path):
    path = tmp_path / "f"
    for data in (tar([("a", b"1")]), gzip.compress(tar([("a", b"1")]))):
        path.write_bytes(data)
        assert is_tar(path)
    for data in (b"", bytes(1024), b"x" * 1024, gzip.compress(b"x" * 1024), b"\x1f\x8bjunk"):
        path.write_bytes(data)
        assert not is_tar(path)
    assert not is_tar(tmp_path)

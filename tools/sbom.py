"""Writes what a wheel brings and asks for, as CycloneDX 1.6.

    python tools/sbom.py dist/serde_relay-1.0.0-py3-none-any.whl > serde-relay.cdx.json

Bundled are the files that ``serde/viewing/assets/bundled.json`` names, with version, source and
hash; required is what the wheel's metadata says.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

BUNDLED = "serde/viewing/assets/bundled.json"


def describe(wheel: Path) -> dict[str, Any]:
    """Return the bill of materials of a wheel.

    Raises:
        ValueError: A bundled file is not the one that is said.
    """
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        place = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(place).decode())
        bundled = [_bundled(each, archive) for each in json.loads(archive.read(BUNDLED))]
    required = [_required(each) for each in metadata.get_all("Requires-Dist", [])]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": metadata["Name"],
                "version": metadata["Version"],
                "purl": f"pkg:pypi/{metadata['Name']}@{metadata['Version']}",
                "licenses": [{"license": {"id": metadata["License-Expression"]}}],
                "hashes": [_hash(wheel.read_bytes())],
            }
        },
        "components": [*bundled, *required],
    }


def _bundled(facts: dict[str, str], archive: zipfile.ZipFile) -> dict[str, Any]:
    found = _hash(archive.read(f"{BUNDLED.rpartition('/')[0]}/{facts['file']}"))
    if found["content"] != facts["sha256"]:
        raise ValueError(f"{facts['file']}: expected sha256 {facts['sha256']}, found {found}")
    return {
        "type": "library",
        "name": facts["name"],
        "version": facts["version"],
        "purl": f"pkg:npm/{facts['name'].replace('@', '%40')}@{facts['version']}",
        "licenses": [{"license": {"id": facts["license"]}}],
        "hashes": [found],
        "scope": "required",
    }


def _required(requirement: str) -> dict[str, Any]:
    spec, _, marker = requirement.partition(";")
    name = re.match(r"[A-Za-z0-9._-]+", spec)
    if name is None:
        raise ValueError(f"expected a requirement, found {requirement!r}")
    return {
        "type": "library",
        "name": name[0],
        "purl": f"pkg:pypi/{name[0].lower()}",
        "scope": "optional" if "extra ==" in marker else "required",
        "properties": [{"name": "serde:requirement", "value": requirement}],
    }


def _hash(data: bytes) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}


if __name__ == "__main__":
    print(json.dumps(describe(Path(sys.argv[1])), indent=2))

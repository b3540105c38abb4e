"""B6: a handle and its file say which snapshot of a table they are."""

from __future__ import annotations

import datetime
import pickle
import weakref
from pathlib import Path

import pyarrow as pa
import pytest

import prejoin
from prejoin.cache.versions import decode, encode
from prejoin.typing import Version

AT = datetime.datetime(2026, 12, 1, 6, 0, 0, 5, datetime.timezone.utc)


def made() -> prejoin.PreparedBuild:
    return prejoin.prepare(pa.table({"id": [1, 2], "name": ["ada", "bob"]}), "id")


@pytest.mark.parametrize("version", [None, "v7", 12, 2**70, 1.5, True, ("users", 3, ("x", None)), ()])
def test_versions_travel_as_text(version: Version) -> None:
    text = encode(version)
    assert text is None if version is None else decode(text or "") == version
    handle = made()._label("users", text, AT)
    assert handle.version == version


@pytest.mark.parametrize("version", [float("nan"), float("inf"), b"x", object(), {"a": 1}, [1], AT])
def test_other_versions_are_refused(version: object) -> None:
    with pytest.raises(prejoin.PlanError, match="a version is text, a number or a tuple"):
        encode(version)  # type: ignore[arg-type]


def test_text_that_is_no_json_stays_text() -> None:
    assert made()._label("users", "snapshot 7", AT).version == "snapshot 7"


def test_one_handle_for_each_snapshot(tmp_path: Path) -> None:
    build = made()
    assert (build.name, build.version, build.loaded_at) == (None, None, None)
    first = build._label("users", '"1"', AT)
    assert first is build is build._label("users", '"1"', AT)
    other = build._label("users", '"2"', AT)
    assert other is not build
    assert (build.version, other.version) == ("1", "2")
    other.save(tmp_path / "file")
    opened = prejoin.open(tmp_path / "file")
    assert (opened.name, opened.version, opened.loaded_at) == ("users", "2", AT)
    assert opened._label("users", '"2"', AT) is opened
    renamed = opened._label("people", None, AT)
    renamed.save(tmp_path / "copy")
    copy = prejoin.open(tmp_path / "copy")
    assert (copy.name, copy.version) == ("people", None)
    assert copy.fingerprint == opened.fingerprint == build.fingerprint
    assert copy.to_table() == build.to_table()
    info = prejoin.inspect(tmp_path / "file")
    assert (info["name"], info["version"], info["loaded_at"]) == ("users", "2", AT)
    handle = other.share()
    shared = pickle.loads(pickle.dumps(handle)).open()
    assert (shared.name, shared.version) == ("users", "2")


def test_handles_are_referenced_weakly() -> None:
    build = made()
    reference = weakref.ref(build)
    assert reference() is build
    del build
    assert reference() is None

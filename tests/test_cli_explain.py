"""``dmlgpu explain``: what it prints, and what it says to bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dmlgpu
from dmlgpu.cli import main
from dmlgpu.planning.profiles import PROFILES

H200 = ("--shape", "4096x4096", "--axis", "0", "--profile", "h200")


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["explain", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_prints_the_passes(capsys: pytest.CaptureFixture[str]) -> None:
    found = dmlgpu.explain("cumsum", (4096, 4096), axis=0, profile="h200")
    assert explained(capsys, "cumsum", *H200) == (0, f"{found}\n", "")


def test_json_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--type", "float16", "--exclusive", "--reverse", "--in-place", "--json")
    status, out, err = explained(capsys, "cumprod", *H200, *options)
    found = dmlgpu.explain(
        "cumprod",
        (4096, 4096),
        axis=0,
        dtype="float16",
        exclusive=True,
        reverse=True,
        in_place=True,
        profile="h200",
    )
    assert (status, json.loads(out), err) == (0, found.as_dict(), "")
    assert {"passes", "traffic", "dispatches", "serial_links"} <= json.loads(out).keys()
    keys = {"kernel", "workgroups", "invocations", "bytes_read", "bytes_written"}
    assert all(keys <= one.keys() for one in json.loads(out)["passes"])


def test_options_reach_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = explained(capsys, "cumsum", *H200, "--precision", "compensated")
    assert out.startswith(f"cumsum of float32, shape 4096x4096, axis 0, on {PROFILES['h200'].summary}\n")
    _, out, _ = explained(capsys, "cumsum", *H200, "--monotone")
    assert out == f"{dmlgpu.explain('cumsum', (4096, 4096), axis=0, monotone=True, profile='h200')}\n"
    _, out, _ = explained(capsys, "round", "--shape", "2^20", "--mode", "half-away", "--profile", "m3")
    assert "1. elementwise_units" in out


def test_without_a_profile_it_is_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = explained(capsys, "cumsum", "--shape", "16x2^10", "--axis", "1")
    assert status == 0
    assert f"on {dmlgpu.default_device().summary}\n" in out


def test_help_names_the_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = explained(capsys, "--help")
    assert (status, err) == (0, "")
    for name, profile in PROFILES.items():
        assert name in out
        assert profile.summary in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("cumsum", "--shape", "4x4", "--profile", "h200"), "--axis is missing, and --shape has 2 dimensions: give"),
        (("cumsum", "--shape", "4x4", "--axis", "2", "--profile", "h200"), "axis 2 is out of range"),
        (("cumsum", "--shape", "1x1x1x1x1x1x1x1x1", "--profile", "h200"), "9 dimensions; at most 8 are supported"),
        (("cumsum", "--shape", "4by4"), "'4by4' is no shape: write sizes with an x between"),
        (("cumsum", "--shape", "0", "--profile", "h200"), "give sizes of 1 or more"),
        (("cumsum", "--shape", "9999999999^99", "--profile", "h200"), "at most 2^32-1 are supported"),
        (("cumsum", "--shape", "99999999999", "--profile", "h200"), "at most 2^32-1 are supported"),
        (("cumsum", "--axis", "0"), "required: --shape"),
        (("cummax", "--shape", "4"), "invalid choice: 'cummax'"),
        (("cumsum", "--shape", "4", "--profile", "h100"), "invalid choice: 'h100'"),
        (("cumsum", "--shape", "4", "--type", "complex64"), "invalid choice: 'complex64'"),
        (("cumsum", "--shape", "4", "--profile", "m3", "--device", "0"), "--device and --profile are both given"),
        (("cumprod", "--shape", "4", "--monotone", "--profile", "m3"), "monotone is True, which is for sums"),
        (("round", "--shape", "4", "--type", "int8", "--profile", "m3"), "dtype is int8, whose elements round"),
        (("cumsum", "--shape", "4", "--device", "no such"), "no such"),
    ],
)
def test_bad_input_is_one_sentence(arguments: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = explained(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.startswith("dmlgpu: error: ")
    assert err.count("\n") == 1
    assert says in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("explain cumsum --shape 3 --mode toward_zero", "--mode is for round, and cumsum rounds nothing to integers"),
        ("export cumprod --shape 3 -o made --mode half_even", "--mode is for round, and cumprod rounds nothing"),
        ("explain cumsum --shape 2^40", "error: shape (1099511627776,) has 1099511627776 elements; at most 2^32-1"),
    ],
)
def test_what_fits_no_operator(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

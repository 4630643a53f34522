"""Published rows: options wherever they stand, pictures in every form, and the files of a subset."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.choicerows import (
    data_files,
    inline_choices,
    lettered_choices,
    picture,
    pictured_rows,
    right_letter,
    split_choices,
)
from memharness.datafile import Row
from memharness.media import MediaStore
from memharness.types import Choice, DataError, Text, UserError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg(colour: str = "red") -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", (8, 6), colour).save(out, "JPEG")
    return out.getvalue()


def row(**values: Any) -> Row:
    return Row(values, "data: record 0")


def texts(choices: tuple[Choice, ...]) -> dict[str, str]:
    return {choice.key: part.text for choice in choices for part in choice.parts if isinstance(part, Text)}


# ----------------------------------------------------------------------------------------------------------- options


def test_lettered_options_leave_out_what_is_absent() -> None:
    published = row(A="a dog", B=" a cat ", C="nan", D=None, question="x", AB="no option")
    assert texts(lettered_choices(published)) == {"A": "a dog", "B": "a cat"}
    assert texts(lettered_choices(row(A="1", B=2, C=0.5, D=float("nan")))) == {"A": "1", "B": "2", "C": "0.5"}
    assert texts(lettered_choices(row(A="None", B="NA"))) == {"A": "None", "B": "NA"}
    assert lettered_choices(row(A="", B="", question="x")) == ()
    assert "".join(texts(lettered_choices(row(**dict.fromkeys("ABCDEFGH", "x"))))) == "ABCDEFGH"


@pytest.mark.parametrize(
    ("options", "gap"),
    [({"A": "x", "C": "y"}, "B"), ({"B": "x", "C": "y"}, "A"), ({"A": "x"}, "B"), ({"A": "x", "B": "", "C": "z"}, "B")],
)
def test_a_gap_between_options_is_refused(options: Mapping[str, str], gap: str) -> None:
    with pytest.raises(DataError, match=rf"record 0: {gap}: is missing, though there is .*; options have no gaps"):
        lettered_choices(row(**options))


def test_an_option_of_another_kind_is_refused() -> None:
    with pytest.raises(DataError, match="record 0: B: must be text, not a list"):
        lettered_choices(row(A="x", B=["y"]))


def test_options_inside_a_text() -> None:
    question = "Which is right?\nOptions: A: The cup is on the book., B: 3, maybe 4, C: It is 5: no more., D: None"
    words, choices = inline_choices(row(question=question), "question")
    assert words == "Which is right?"
    assert texts(choices) == {
        "A": "The cup is on the book.",
        "B": "3, maybe 4",
        "C": "It is 5: no more.",
        "D": "None",
    }
    words, choices = inline_choices(row(question="Hint: choose.\nQuestion: x?\nChoices:\n(A) one\n(B) two"), "question")
    assert words == "Hint: choose.\nQuestion: x?"
    assert texts(choices) == {"A": "one", "B": "two"}


@pytest.mark.parametrize("text", ["What is this?", "Options: none", "Options: A: only one", "Options: B: x, C: y"])
def test_a_text_without_options_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="record 0: question: has no options: expected `Options: A"):
        inline_choices(row(question=text), "question")


WORD = st.text("abc ", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(st.lists(WORD, min_size=2, max_size=6), st.sampled_from([", ", "\n", "; "]), st.sampled_from([": ", ". ", ") "]))
def test_options_written_into_a_text_are_read_again(words: list[str], between: str, mark: str) -> None:
    text = between.join(f"{letter}{mark}{word}" for letter, word in zip("ABCDEF", words, strict=False))
    assert list(texts(split_choices(text)).values()) == words


def test_the_right_letter_is_one_of_the_options() -> None:
    choices = lettered_choices(row(A="x", B="y"))
    assert right_letter(row(answer=" B "), choices) == "B"
    with pytest.raises(DataError, match="record 0: answer: 'C' is not among the options A, B"):
        right_letter(row(answer="C"), choices)
    with pytest.raises(DataError, match="record 0: answer: 'b' is not among the options A, B"):
        right_letter(row(answer="b"), choices)
    for absent in ({}, {"answer": None}, {"answer": " "}):
        with pytest.raises(DataError, match="record 0: answer: is missing; use a split whose answers are public"):
            right_letter(row(**absent), choices)


# ---------------------------------------------------------------------------------------------------------- pictures


def test_a_picture_in_every_published_form(tmp_path: Path) -> None:
    media = MediaStore()
    (tmp_path / "images").mkdir()
    (tmp_path / "images/one.jpg").write_bytes(jpeg())
    forms = [
        {"bytes": jpeg(), "path": "one.jpg"},
        jpeg(),
        base64.b64encode(jpeg()).decode(),
        "images/one.jpg",
        "datasets/example/images/one.jpg",
        {"bytes": None, "path": "images/one.jpg"},
    ]
    found = [picture(row(image=form), "image", tmp_path, media) for form in forms]
    assert len({image.sha256 for image in found}) == 1
    assert [image.source for image in found] == ["one.jpg", "", "", *["images/one.jpg"] * 3]
    assert all((image.width, image.height) == (8, 6) for image in found)


def test_a_picture_that_is_not_at_hand_is_missing(tmp_path: Path) -> None:
    image = picture(row(image="images/none.jpg"), "image", tmp_path, MediaStore())
    assert (image.missing, image.source) == (True, "images/none.jpg")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (None, "is missing"),
        ("", "is missing"),
        (5, "must be a picture, not a whole number"),
        ("not base64!", "is neither base64 nor the name of a picture"),
        ("../secret.jpg", "lies outside the data folder"),
        ("/etc/secret.jpg", "lies outside the data folder"),
        (b"no picture", "is not a readable picture"),
        (base64.b64encode(b"no picture").decode(), "is not a readable picture"),
        ({"path": None}, "is missing"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path: Path, value: object, problem: str) -> None:
    with pytest.raises(DataError, match=f"data: record 0: image: .*{problem}"):
        picture(row(image=value), "image", tmp_path, MediaStore())


def test_rows_with_pictures_from_parquet_and_json_lines(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    media = MediaStore()
    published = [{"index": n, "question": "x", "image": {"bytes": jpeg(), "path": f"{n}.jpg"}} for n in range(3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(published), tmp_path / "data.parquet")
    (tmp_path / "one.jpg").write_bytes(jpeg())
    lines = [{"id": "a", "image_path": "somewhere/one.jpg"}, {"id": "b", "image": base64.b64encode(jpeg()).decode()}]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name, count in (("data.parquet", 3), ("data.jsonl", 2)):
        rows = list(pictured_rows(tmp_path / name, media))
        assert len(rows) == count
        assert {image.sha256 for _, (image,) in rows} == {picture(row(image=jpeg()), "image", tmp_path, media).sha256}
        assert not any("image" in found.values or "image_path" in found.values for found, _ in rows)
    with pytest.raises(DataError, match="image: is missing"):
        list(pictured_rows(write_lines(tmp_path, {"id": "a"}), media))


def write_lines(folder: Path, *lines: Mapping[str, Any]) -> Path:
    path = folder / "lines.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


def test_the_files_of_a_subset(tmp_path: Path) -> None:
    subsets = {"en": ("EN.tsv", "en/dev-*.parquet"), "cn": ("CN.tsv",)}
    (tmp_path / "en").mkdir()
    shards = [tmp_path / f"en/dev-0000{n}-of-00002.parquet" for n in range(2)]
    for path in reversed(shards):
        path.touch()
    assert data_files("b", tmp_path, None, subsets) == data_files("b", tmp_path, "en", subsets) == shards
    assert data_files("b", tmp_path / "any.tsv", "cn", subsets) == [tmp_path / "any.tsv"]
    assert data_files("b", tmp_path / "CN.tsv", "cn", subsets) == [tmp_path / "CN.tsv"]
    with pytest.raises(UserError, match=r"subset 'en': CN.tsv is cn; name the file or the folder of en"):
        data_files("b", tmp_path / "CN.tsv", "en", subsets)
    with pytest.raises(DataError, match=r"photo.jpg: expected a .tsv or .parquet file, as it was published"):
        data_files("b", tmp_path / "photo.jpg", None, subsets, (".tsv", ".parquet"))
    with pytest.raises(DataError, match=r"holds no CN.tsv; name the file with --data$"):
        data_files("b", tmp_path, None, {"all": ["CN.tsv"]})
    with pytest.raises(DataError, match=r"holds no CN.tsv; name the file with --data, or another --subset"):
        data_files("b", tmp_path, "cn", subsets)
    with pytest.raises(UserError, match=r"subset 'cm': b has en, cn \(did you mean cn\?\)"):
        data_files("b", tmp_path, "cm", subsets)
    (tmp_path / "only.tsv").touch()
    for path in shards:
        path.unlink()
    (tmp_path / "PREPARED.json").touch()
    assert data_files("b", tmp_path, None, subsets) == [tmp_path / "only.tsv"]

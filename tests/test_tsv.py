from __future__ import annotations

import base64
import csv
import io
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from memharness.datafile import Row
from memharness.media import MediaStore
from memharness.tsv import marked, read_pictured, read_tsv
from memharness.types import DataError

HEADER = ("index", "question", "A", "B", "answer", "image")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHARNESS_HOME", str(tmp_path / "home"))


def jpeg(colour: str = "red", size: tuple[int, int] = (8, 8)) -> bytes:
    out = io.BytesIO()
    Pillow.new("RGB", size, colour).save(out, "JPEG")
    return out.getvalue()


def coded(colour: str = "red") -> str:
    return base64.b64encode(jpeg(colour)).decode()


def table(*rows: Sequence[str], header: Sequence[str] = HEADER) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows((header, *rows))
    return out.getvalue()


def row(index: str = "1", image: str | None = None, **cells: str) -> list[str]:
    values = {"index": index, "question": "Which?", "A": "x", "B": "y", "answer": "A", "image": image or coded()}
    return [{**values, **cells}[name] for name in HEADER]


Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str | bytes) -> Path:
        path = tmp_path / "data.tsv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


def pictured(path: Path) -> list[Any]:
    return list(read_pictured(path, MediaStore()))


# ------------------------------------------------------------------------------------------------------ plain tables


def test_cells_with_line_breaks_tabs_and_quotes(write: Write) -> None:
    path = write(table(row(question='one\ntwo\t"three"'), row("2")))
    first, second = read_tsv(path)
    assert first.values["question"] == 'one\ntwo\t"three"'
    assert first.where == f"{path}: record 1 (line 2)"
    assert second.where == f"{path}: record 2 (line 4)"  # the first one takes two lines


def test_unquoted_cells_may_hold_quotes(write: Write) -> None:
    (only,) = read_tsv(write('index\tquestion\n1\ta 5" disk\n'))
    assert only.values == {"index": "1", "question": 'a 5" disk'}


def test_empty_and_nan_are_absent_and_none_is_a_word(write: Write) -> None:
    (only,) = read_tsv(write(table(["1", "nan", "NaN", "None", "", "NA"])))
    assert only.values == {"index": "1", "question": None, "A": None, "B": "None", "answer": None, "image": "NA"}


def test_crlf_lines_and_a_missing_last_line_break(write: Write) -> None:
    path = write(table(row(), row("2")).replace("\n", "\r\n").removesuffix("\r\n"))
    assert [one.values["index"] for one in read_tsv(path)] == ["1", "2"]
    assert {one.values["image"] for one in read_tsv(path)} == {coded()}


def test_blank_lines_are_passed_over(write: Write) -> None:
    text = table(row(), row("2"))
    header, *lines = text.splitlines(keepends=True)
    assert [one.values["index"] for one in read_tsv(write(header + lines[0] + "\n" + lines[1] + "\n\n"))] == ["1", "2"]


def test_a_byte_order_mark_is_passed_over_and_told(write: Write) -> None:
    plain, with_mark = write(table(row())), b"\xef\xbb\xbf" + table(row()).encode()
    assert not marked(plain)
    path = write(with_mark)
    assert marked(path)
    assert [one.values["index"] for one in read_tsv(path, ("index",))] == ["1"]


def test_a_wrong_header(write: Write) -> None:
    with pytest.raises(DataError, match=r"data.tsv: line 1: the header lacks answer, hint; it has 'index', 'question'"):
        list(read_tsv(write("index\tquestion\n1\tx\n"), ("index", "hint", "answer")))
    with pytest.raises(DataError, match=r"line 1: the header lacks question; it has 'index,question'; is it tab-sep"):
        list(read_tsv(write("index,question\n1,x\n"), ("question",)))
    with pytest.raises(DataError, match=r"line 1: the header names 'A' twice"):
        list(read_tsv(write("index\tA\tA\n1\tx\ty\n")))
    with pytest.raises(DataError, match=r"line 1: no header: the file is empty"):
        list(read_tsv(write("")))


def test_a_file_that_is_cut_off(write: Write) -> None:
    whole = table(row(), row("2", question="two\nlines"))
    end = whole.rindex("lines")
    with pytest.raises(DataError, match=r"data.tsv: record 2 \(line 3\): the file ends inside a quoted cell"):
        list(read_tsv(write(whole[: end + 2])))
    with pytest.raises(DataError, match=r"record 2 \(line 3\): has 1 cells where the header has 6: cut off"):
        list(read_tsv(write(whole[: whole.rindex('\t"two')])))
    with pytest.raises(DataError, match=r"line 1\): the file ends inside a quoted cell"):
        list(read_tsv(write(whole[:4])))


@given(st.integers(min_value=1))
def test_a_file_cut_anywhere_gives_whole_records_or_a_data_error(place: int) -> None:
    rows = [row(str(n), question="one\ntwo") for n in range(3)]
    whole = table(*rows)
    cut = whole[: place % len(whole)]
    for number, found in enumerate(records(cut)):
        last = found.values["image"]
        assert list(found.values.values())[:-1] == rows[number][:-1]
        assert last is None or rows[number][-1].startswith(last)


def records(text: str) -> list[Row]:
    """The records of a file with this text, up to the error, if there is one."""
    found: list[Row] = []
    with tempfile.NamedTemporaryFile(suffix=".tsv") as file:
        file.write(text.encode())
        file.flush()
        try:
            found.extend(read_tsv(Path(file.name)))
        except DataError as error:
            assert file.name in str(error)
    return found


def test_too_many_cells(write: Write) -> None:
    with pytest.raises(DataError, match=r"record 1 \(line 2\): has 3 cells where the header has 2"):
        list(read_tsv(write("index\tquestion\n1\ta\tb\n")))


def test_words_behind_a_quoted_cell(write: Write) -> None:
    with pytest.raises(DataError, match=r"record 1 \(line 2\): not a tab-separated record"):
        list(read_tsv(write('index\tquestion\n1\t"a"b\n')))


def test_a_quote_that_is_never_closed_fills_no_memory(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memharness.tsv.CELL", 1000)
    limit = csv.field_size_limit(1000)
    try:
        with pytest.raises(DataError, match="a cell of more than 1000 characters: a quote is not closed"):
            list(read_tsv(write('index\tquestion\n1\t"' + "x\n" * 2000)))
    finally:
        csv.field_size_limit(limit)


def test_not_utf_8(write: Write) -> None:
    text = table(row(), row("2", question="café")).encode("latin-1")
    with pytest.raises(DataError, match=r"data.tsv: line 3: byte 9, after 1 tabs: not UTF-8"):
        list(read_tsv(write(text)))
    with pytest.raises(DataError, match=r"line 1: byte 1, after 0 tabs: not UTF-8"):
        list(read_tsv(write(table(row()).encode("utf-16"))))


def test_no_such_file_a_folder_and_a_pointer(tmp_path: Path, write: Write) -> None:
    with pytest.raises(DataError, match="no such file"):
        list(read_tsv(tmp_path / "none.tsv"))
    with pytest.raises(DataError, match="a folder, not a file"):
        list(read_tsv(tmp_path))
    with pytest.raises(DataError, match="only a Git LFS pointer"):
        list(read_tsv(write("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")))


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\r\ufeff"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4))
def test_what_is_written_is_read_again(rows: list[tuple[str, str, str]]) -> None:
    read = records(table(*rows, header=("a", "b", "c")))
    wanted = [[None if cell.strip().lower() in ("", "nan") else cell for cell in cells] for cells in rows]
    assert [list(one.values.values()) for one in read] == wanted


# ---------------------------------------------------------------------------------------------------------- pictures


def test_base64_lists_and_references_to_rows_before_and_after(write: Write) -> None:
    listed = str([coded("red"), coded("blue")])
    path = write(table(row("9", "2"), row("1", coded("green")), row("2", listed), row("1000001", "1")))
    media = MediaStore()
    found = {one.values["index"]: images for one, images in read_pictured(path, media)}
    assert [len(found[name]) for name in ("9", "1", "2", "1000001")] == [2, 1, 2, 1]
    assert found["9"] == found["2"]
    assert found["1000001"] == found["1"]
    assert [image.source for image in found["2"]] == ["2_1", "2_2"]
    assert found["1"][0].source == "1"
    assert (found["1"][0].width, found["1"][0].mime) == (8, "image/jpeg")
    assert media.path(found["1"][0]).read_bytes() == jpeg("green")


def test_the_picture_cell_is_not_passed_on(write: Write) -> None:
    ((only, _),) = read_pictured(write(table(row())), MediaStore())
    assert "image" not in only.values


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row("1", "7")], r"record 1 \(line 2\): image: points to row '7', which is not there or holds no picture"),
        ([row("1", "2"), row("2", "3"), row("3")], r"record 1 .*: image: points to row '2'"),
        ([row("1", "1")], r"record 1 .*: image: points to row '1'"),
        ([row("1"), row("1")], r"record 2 \(line 3\): index: '1' is already the id of .*record 1"),
        ([row("")], r"record 1 .*: index: is missing"),
        ([row("1", "nan")], r"record 1 .*: image: is missing"),
        ([row("1", "!" * 100)], r"record 1 .*: image: is not base64"),
        ([row("1", coded()[:-1])], r"record 1 .*: image: is not base64"),
        ([row("1", base64.b64encode(b"no picture" * 20).decode())], r"record 1 .*: image: is not a readable picture"),
        ([row("1", "[" + coded())], r"record 1 .*: image: starts as a list and is none"),
        ([row("1", str([coded(), 5]))], r"record 1 .*: image: is a list that holds something that is no picture"),
        ([row("1", "[" + " " * 70 + "]")], r"record 1 .*: image: is a list that holds something that is no picture"),
    ],
)
def test_broken_pictures_and_indexes(write: Write, rows: list[list[str]], problem: str) -> None:
    path = write(table(*rows))
    with pytest.raises(DataError, match=problem) as caught:
        pictured(path)
    assert str(caught.value).startswith(str(path))


def test_index_and_image_must_be_there(write: Write) -> None:
    with pytest.raises(DataError, match="the header lacks image, index"):
        pictured(write("question\nx\n"))


def test_real_files(shared: Path) -> None:
    for name in ("EN", "CN"):
        read = pictured(shared / f"data/mmbench/MMBench_samples_{name}.tsv")
        assert len(read) == 20
        for one, images in read:
            published = shared / f"data/mmbench/{one.values['index']}.jpg"
            assert images[0].sha256 == MediaStore().digest(published)


def test_memory_holds_one_record(tmp_path: Path) -> None:
    out = io.BytesIO()
    Pillow.effect_noise((600, 500), 90).save(out, "JPEG", quality=90)
    cell = base64.b64encode(out.getvalue()).decode()
    path = tmp_path / "large.tsv"
    with path.open("w") as file:
        file.write("index\timage\n")
        file.writelines(f"{n}\t{cell}\n" for n in range(60))
    assert path.stat().st_size > 50 * len(cell) > 10_000_000
    media = MediaStore()
    tracemalloc.start()
    rows: Iterator[Any] = read_pictured(path, media)
    assert sum(len(images) for _, images in rows) == 60
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * len(cell)

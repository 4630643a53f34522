"""Plots as files: the same bytes each time, labels inside the picture, and the CSV of what is shown."""

from __future__ import annotations

import csv
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from memharness.report.plots import KINDS, plot
from memharness.report.plots.kinds import prepared
from memharness.report.plots.runs import together
from memharness.report.plots.style import GREYS, look, styled
from memharness.types import UserError
from tests.report.plots.test_rows import scored, written

LONG = "a method with a very long name that says nearly everything that there is to say about it"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Three runs, with scores of two categories over nine clusters and a trace each."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for at, (method, budget) in enumerate([("graphmemix", 128), (LONG, 512), ("oracle", 1024)]):
        lines = [
            scored(f"q{n}", ((n + at) % 5) / 5, "a category of a long name" if n % 3 else "b", f"c{n % 9}")
            for n in range(90)
        ]
        forest = {"climb": [1.0, 1.1 + at], "gains": [0.1, 0.2]}
        records = [{"question": f"q{n}", "context": "c", "trace": {"forest": forest}} for n in range(90)]
        run = written(folder / str(at), lines, records) | {
            "method": method, "budget": budget, "control": at == 2, "data_state": "sample",
        }  # fmt: skip
        made.append(run)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bytes_twice_and_the_rows_beside(kind: str, runs: list[dict[str, Any]], tmp_path: Path) -> None:
    files = [tmp_path / name / "plot.svg" for name in ("one", "two")]
    plot(kind, runs, files[0])
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "none"}):  # a user's own
        beside, rows = plot(kind, runs, files[1])
    assert files[0].read_bytes() == files[1].read_bytes()
    assert ET.fromstring(files[0].read_text()).tag == "{http://www.w3.org/2000/svg}svg"
    assert beside == tmp_path / "two" / "plot.csv"
    read = list(csv.DictReader(beside.open(newline="")))
    assert len(read) == len(rows)
    assert [row["name"] for row in read] == [row["name"] for row in rows]
    assert [float(row["value"]) for row in read] == [row["value"] for row in rows]
    assert sorted(path.name for path in files[1].parent.iterdir()) == ["plot.csv", "plot.svg"]


@pytest.mark.parametrize("kind", KINDS)
def shown(figure: Any) -> dict[str, Any]:
    """The extent of every text that the drawn figure shows; ticks beyond their axis are not drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    beyond = set()
    for axes in figure.axes:
        for axis, side in ((axes.xaxis, "x"), (axes.yaxis, "y")):
            low, high = getattr(axes.bbox, f"interval{side}")
            for label in axis.get_ticklabels(which="both"):
                box = label.get_window_extent()
                middle = (getattr(box, f"{side}0") + getattr(box, f"{side}1")) / 2
                if not low - 2 <= middle <= high + 2:
                    beyond.add(id(label))
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return {
        f"{text.get_text()}#{at}": text.get_window_extent() for at, text in enumerate(texts) if id(text) not in beyond
    }


@pytest.mark.parametrize("kind", KINDS)
def test_no_label_lies_outside_or_on_another(kind: str, runs: list[dict[str, Any]]) -> None:
    gathered = together(runs, None, apart_in="budget" if kind == "sweep" else None)
    rows, draw = prepared(kind, gathered, "budget", "tokens")
    with styled():
        figure = draw(gathered, rows)
        boxes = shown(figure)
    assert len(boxes) > 12
    for words, box in boxes.items():
        assert box.x0 >= -1, words
        assert box.y0 >= -1, words
        assert box.x1 <= figure.bbox.x1 + 1, words
        assert box.y1 <= figure.bbox.y1 + 1, words
    for (one, a), (other, b) in combinations(boxes.items(), 2):
        assert not a.padded(-1).overlaps(b.padded(-1)), (one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_every_point_lies_inside_its_axes(kind: str, runs: list[dict[str, Any]]) -> None:
    gathered = together(runs, None, apart_in="budget" if kind == "sweep" else None)
    rows, draw = prepared(kind, gathered, "budget", "tokens")
    with styled():
        figure = draw(gathered, rows)
        shown(figure)
    points = 0
    for axes in figure.axes:
        box = axes.get_window_extent()
        for line in axes.lines:
            for x, y in line.get_transform().transform(list(zip(*line.get_data(), strict=True))):
                points += 1
                assert box.x0 <= x <= box.x1, (line.get_label(), x)
                assert box.y0 <= y <= box.y1, (line.get_label(), y)
        for bar in axes.patches:
            points += 1
            assert box.x1 >= bar.get_window_extent().x1
    assert points > 5


def test_a_name_with_dollar_signs_is_words(runs: list[dict[str, Any]], tmp_path: Path) -> None:
    plot("cost", [{**runs[0], "method": r"a $\frac{ of $b"}], tmp_path / "p.svg")
    assert (tmp_path / "p.svg").is_file()


def test_png_is_a_picture_and_made_folders(runs: list[dict[str, Any]], tmp_path: Path) -> None:
    from PIL import Image

    plot("cost", runs, tmp_path / "deep" / "plot.PNG", of="seconds")
    with Image.open(tmp_path / "deep" / "plot.PNG") as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert len(picture.convert("L").getcolors(256) or []) > 20


def test_greys_of_phases_differ_in_lightness() -> None:
    def light(colour: str) -> float:
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    steps = sorted(light(colour) for colour in GREYS)
    assert min(b - a for a, b in pairwise(steps)) > 0.14


def test_runs_differ_in_more_than_colour() -> None:
    looks = [look(number) for number in range(40)]
    assert len({tuple(map(str, one.values())) for one in looks}) == 40
    for one, other in pairwise(looks):
        assert one["marker"] != other["marker"]
        assert one["linestyle"] != other["linestyle"]


@pytest.mark.parametrize(
    ("kind", "out", "more", "message"),
    [
        ("costs", "p.svg", {}, r"plot costs: no such plot \(did you mean cost\?\); there are cost, sweep, "),
        ("cost", "p.pdf", {}, r"p\.pdf: name a file that ends in \.svg or \.png"),
        ("cost", "folder.svg", {}, "is a folder; name a file"),
        ("cost", "file/p.svg", {}, "file/p.svg"),
        ("cost", "p.svg", {"of": "token"}, r"--cost token: no such cost \(did you mean tokens\?\)"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    runs: list[dict[str, Any]], tmp_path: Path, kind: str, out: str, more: dict[str, Any], message: str
) -> None:
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=message):
        plot(kind, runs, tmp_path / out, **more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.svg"]

"""Charts: where points stand, what is left out, and that names keep their looks and their words."""

import itertools
import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

import numpy as np

from gossamer.report import chart_pages, chart_picture, chart_values, style
from gossamer.report.chart_curves import MOST_POINTS, Extent, Looks, thinned
from gossamer.report.chart_text import tick_words
from gossamer.report.errors import ReportError

Json = dict[str, Any]
SVG = "{http://www.w3.org/2000/svg}"


def series(x: Any, y: Any, **more: Any) -> Json:
    return {"name": "", "x": x, "y": y, **more}


def chart(*curves: Json, **more: Any) -> Json:
    return {"title": "T", "x": "steps", "y": "loss", "series": list(curves), **more}


def figure(*drawn: Json, **more: Any) -> chart_values.Figure:
    (found,) = chart_values.figures_of({"figure": "f", "charts": list(drawn), **more})
    return found


def named(*names: str) -> Json:
    """Series of these names, each a line of two points."""
    return chart(*(series([0, 1], [0, 1], name=name) for name in names))


def picture(drawn: Json) -> Any:
    found = figure(drawn)
    with style.settings():
        return chart_picture.picture("", found.charts, 1)


def axes_of(drawn: Json) -> Any:
    (axes,) = picture(drawn).axes
    return axes


def lines_of(axes: Any) -> list[Any]:
    return [line for line in axes.lines if line.get_linestyle() != "None"]


def marks_of(axes: Any) -> Any:
    """Places of all markers."""
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    return np.concatenate([mark.get_xydata() for mark in marks if mark.get_marker() in "osD^vP"])


def labels_of(axis: Any) -> list[Any]:
    """The labels of the ticks that are seen."""
    low, high = axis.get_view_interval()
    ticks = zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
    return [label for at, label in ticks if low <= at <= high]


def svg(drawn: Json) -> str:
    return chart_pages.svg(figure(drawn))


def words_of(text: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(text).iter(f"{SVG}text")]


def test_points_stand_where_their_ticks_are() -> None:
    axes = axes_of(chart(series([1, 1000, 1e6], [1e-6, 1e-2, 1]), log_x=True, log_y=True))
    (line,) = lines_of(axes)
    at = axes.transAxes.inverted().transform(axes.transData.transform(line.get_xydata()))
    assert at[1][0] == pytest.approx((at[0][0] + at[2][0]) / 2)
    assert at[1][1] == pytest.approx(at[0][1] + (at[2][1] - at[0][1]) * 4 / 6)
    ticks = dict(
        zip(
            axes.get_yticks(),
            axes.yaxis.get_major_formatter().format_ticks(axes.get_yticks()),
            strict=True,
        )
    )
    assert ticks[1e-6] == "10⁻⁶"
    assert ticks[1.0] == "10⁰"


@pytest.mark.parametrize(
    ("values", "log", "words"),
    [
        ([0, 0.25, 0.5], False, "0 0.25 0.50"),
        ([-5, 0, 5], False, "-5 0 5"),
        ([0, 1000, 2000], False, "0 1\u202f000 2\u202f000"),
        ([0, 5000, 10000], False, "0 5k 10k"),
        ([0, 500000, 1000000], False, "0 500k 1M"),
        ([0, 2e-6, 1e-5], False, "0 0.2x10⁻⁵ 1.0x10⁻⁵"),
        ([0.1, 1, 10, 100], True, "0.1 1 10 100"),
        ([0.01, 0.1, 1], True, "10⁻² 10⁻¹ 10⁰"),
        ([1e-4, 2e-4, 5e-4], True, "10⁻⁴ 2x10⁻⁴ 5x10⁻⁴"),
    ],
)
def test_labels_tell_the_values_apart(values: list[float], log: bool, words: str) -> None:
    signs = words.replace("x", "\N{MULTIPLICATION SIGN}").replace("-", "\N{MINUS SIGN}")
    assert tick_words(values, log) == signs.split(" ")


@pytest.mark.parametrize("log", [False, True])
def test_labels_never_touch(log: bool) -> None:
    for low, span in itertools.product((-9, -2.3, 0.4, 6.1), (0.02, 0.3, 1.7, 4.4, 40)):
        ends = [10.0**low, 10.0 ** (low + span)] if log else [low, low + span]
        drawn = picture(chart(series(ends, ends), log_x=log, log_y=log))
        drawn.canvas.draw()
        (axes,) = drawn.axes
        for labels, along in ((labels_of(axes.xaxis), 0), (labels_of(axes.yaxis), 1)):
            boxes = sorted(
                (box.get_points()[0][along], box.get_points()[1][along])
                for box in (label.get_window_extent() for label in labels)
            )
            assert boxes, (low, span)
            for (_, end), (begin, _) in itertools.pairwise(boxes):
                assert end < begin, (low, span, [label.get_text() for label in labels])


def test_values_without_a_place_leave_gaps() -> None:
    linear = axes_of(chart(series([0, 1, 2, 3, 4, 5, 6], [1, 2, None, 3, 4, None, 5])))
    (line,) = lines_of(linear)
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False, False, True, False]
    log = axes_of(chart(series([0, 1, 2, 3, 4], [1, 2, 0, 3, -4]), log_y=True))
    (line,) = lines_of(log)
    assert np.isnan(line.get_ydata()).tolist() == [False, False, True, False, True]
    assert len(marks_of(log)) == 3
    text = svg(chart(series([0, 1, 2, 3, 4], [1, 2, 0, 3, -4]), log_y=True))
    assert "nan" not in text


def test_a_point_alone_is_seen_in_a_long_series() -> None:
    y: list[float | None] = [1.0] * 40
    y[19] = y[21] = None
    assert marks_of(axes_of(chart(series(list(range(40)), y)))).tolist() == [[20.0, 1.0]]


@pytest.mark.parametrize("log", [False, True])
def test_a_long_series_keeps_its_ends_and_its_peak(log: bool) -> None:
    x = list(range(1, 50001))
    y = [100.0 if k == 31234 else math.sin(k) for k in x]
    (line,) = lines_of(axes_of(chart(series(x, y), log_x=log)))
    found = line.get_xydata()
    assert (250 if log else 380) <= len(found) <= MOST_POINTS
    assert (found[0][0], found[-1][0]) == (1, 50000)
    assert found[found[:, 1].argmax()].tolist() == [31234, 100]
    middle = math.sqrt(50000) if log else 25000
    assert (found[:, 0] < middle).mean() == pytest.approx(0.5, abs=0.17)


def test_a_long_series_keeps_wide_gaps() -> None:
    y = [None if 4000 <= k < 6000 else k % 7 for k in range(10000)]
    (curve,) = (drawn := figure(chart(series(list(range(10000)), y))).charts[0]).series
    kept = thinned(drawn, curve, Extent((0.0, 9999.0), 300.0))
    runs = [key for key, _ in itertools.groupby(kept == -1)]
    assert runs == [False, True, False]


def test_a_band_is_around_its_line_and_ends_at_the_edge() -> None:
    curve = series([1, 2, 3], [1, 0.1, 0.01], low=[0.5, -1, 0.005], high=[2, 0.2, 0.02])
    axes = axes_of(chart(curve, log_y=True))
    (band,) = axes.collections
    assert 0 < band.get_alpha() < 0.5
    corners = {(float(x), float(y)) for x, y in band.get_paths()[0].vertices}
    floor = float(axes.get_ylim()[0])
    assert corners == {(1, 0.5), (1, 2), (2, 0.2), (2, floor), (3, 0.005), (3, 0.02)}


@pytest.mark.parametrize(
    ("log", "y", "most"), [(False, [1, 2, 3], 3 * 2), (True, [1, 2, 3], 10**2 * 3)]
)
def test_a_far_band_does_not_flatten_the_line(log: bool, y: list[float], most: float) -> None:
    curve = series([1, 2, 3], y, low=[1, 1e-6 if log else -1e6, 3], high=[1, 1e6, 3])
    low, high = axes_of(chart(curve, log_y=log)).get_ylim()
    assert (high / low < most * 1.7) if log else (high - low < most * 1.1)


def test_points_have_markers_and_error_bars_and_no_line() -> None:
    spread = {"low": [0.5, 1.5, 2.5], "high": [1.5, 2.5, 3.5]}
    axes = axes_of(chart(series([1, 2, 3], [1, 2, 3], points=True, **spread)))
    assert lines_of(axes) == []
    assert len(marks_of(axes)) == 3
    (bars,) = axes.collections
    assert [segment[:, 1].tolist() for segment in bars.get_segments()] == [
        [0.5, 1.5],
        [1.5, 2.5],
        [2.5, 3.5],
    ]


def test_words_are_escaped_and_never_cut() -> None:
    name = "<script>" + "w" * 300
    text = svg({**named(name), "title": 'a < b & "c"\x01\ud800 $x_1$'})
    assert "<script>" not in text
    words = words_of(text)
    assert 'a < b & "c"\ufffd\ufffd $x_1$' in words
    assert name in "".join(words)
    assert not [word for word in words if "…" in word]


def test_long_words_make_it_higher() -> None:
    def height(drawn: Json) -> float:
        return float(ElementTree.fromstring(svg(drawn)).attrib["viewBox"].split()[3])

    drawn = named("")
    for place in ("title", "caption", "x"):
        before = height(drawn)
        drawn = {**drawn, place: "words " * 100}
        assert height(drawn) > before, place
    assert height({**drawn, **named("words " * 100), "caption": ""}) > height(named("a"))


@pytest.mark.parametrize("columns", [1, 2])
def test_no_words_overlap_or_leave_the_picture(columns: int) -> None:
    long = "words of a label that is far too long for an axis of this length " * 2
    drawn = [
        {**named("ring", "a " * 80), "caption": long, "x": long, "y": long},
        named(*(f"series {k}" for k in range(12))),
    ]
    found = figure(*drawn, title=long)
    with style.settings():
        page = chart_picture.picture(found.title, found.charts, columns)
        page.canvas.draw()
        paper = page.bbox
        boxes = [(text.get_text(), text.get_window_extent()) for text in page.texts]
        for axes in page.axes:
            boxes.append(("plot", axes.get_window_extent()))
            labels = [*labels_of(axes.xaxis), *labels_of(axes.yaxis)]
            boxes += [(each.get_text(), each.get_window_extent()) for each in labels]
    boxes = [(words, box) for words, box in boxes if words]
    for words, box in boxes:
        inside = paper.x0 <= box.x0 and box.x1 <= paper.x1
        assert inside and paper.y0 <= box.y0 and box.y1 <= paper.y1, words
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 1 or b.y1 <= a.y0 + 1
        assert apart, (one, other)


def test_it_fits_any_width_and_follows_light_or_dark() -> None:
    text = svg(named("ring", "torus"))
    head = ElementTree.fromstring(text)
    assert head.attrib["width"] == "100%"
    assert head.attrib["style"].startswith("max-width:")
    assert "height" not in head.attrib
    dark = text[text.index("prefers-color-scheme: dark") : text.index("</style>")]
    body = text[text.index("</style>") :]
    used = set(re.findall(r"(fill|stroke): (#\w{6})", body))
    assert len(used) > 5
    for part, colour in used:
        assert f'[style*="{part}: {colour}"]' in dark
    assert not re.search(r"#[ab]0[0-9a-f]{4}|var\(", text), "no colour that stands for another"


@pytest.mark.parametrize(
    "y",
    [
        [],
        [3],
        [0, 0, 0],
        [5, 5],
        [-1e308, 1e308],
        [1e-320, 1e300],
        [None],
        [-3, -2],
        [1, 1 + 1e-15],
        [1e300, -1e300],
        [2e-300, 1e300],
    ],
)
@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_every_shape_is_well_formed_and_the_same_again(
    y: list[Any], log_x: bool, log_y: bool
) -> None:
    drawn = chart(series([float(k) for k in range(len(y))], y), log_x=log_x, log_y=log_y)
    text = svg(drawn)
    assert ElementTree.fromstring(text).tag == f"{SVG}svg"
    assert not re.search(r"\bnan\b|\binf\b", text)
    assert text == svg(drawn)


def test_without_a_point_it_says_so() -> None:
    assert "no data" in words_of(svg(chart()))
    assert "no data" in words_of(svg(chart(series([1], [-1]), log_y=True)))
    assert "no data" not in words_of(svg(chart(series([1], [1]))))


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (chart(series([1, 2], [1])), "series '' of 'T' needs one y .* got x 2, y 1"),
        (chart(series([1, 2], [1, 2], low=[1, 2])), "low 2, high none"),
        (chart(series([1, 2], [1, 2], low=[1], high=[1, 2])), "low 1, high 2"),
        (chart({"name": "a", "x": [1]}), "not figures: no 'y'"),
        (chart(series([1], ["a"])), "not figures"),
        (chart(series("1", "1")), "a list of numbers"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(found: Json, says: str) -> None:
    with pytest.raises(ReportError, match=says):
        figure(found)
    with pytest.raises(ReportError, match="columns must be 1 or more"):
        figure(named("a"), columns=0)


def test_twelve_series_differ_in_more_than_colour() -> None:
    names = [letter * 6 for letter in "abcdefghijkl"]
    (drawn,) = figure(named(*names)).charts
    looks = [Looks([drawn]).of(curve) for curve in drawn.series]
    assert len({(look.marker, look.is_hollow) for look in looks}) == 12, "also in grey"
    words = words_of(svg(named(*names)))
    assert [word for word in words if word in names] == names


def lightness(colour: str) -> float:
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2


@pytest.mark.parametrize("which", [0, 1])
def test_colours_are_seen_on_their_paper(which: int) -> None:
    """With the contrast that WCAG asks of text, in the light and in the dark."""
    paper = lightness(style.COLOURS["paper"][which])
    for name, pair in style.COLOURS.items():
        if name.startswith("series") or name in ("ink", "muted"):
            low, high = sorted((lightness(pair[which]), paper))
            assert (high + 0.05) / (low + 0.05) >= 4.5, name


@pytest.mark.parametrize("count", [1, 2, 6, 12, 40])
def test_the_legend_stands_below_the_plot(count: int) -> None:
    names = [f"series {k}" for k in range(count)]
    drawn = picture(named(*names))
    drawn.canvas.draw()
    (axes,) = drawn.axes
    entries = [text for text in drawn.texts if text.get_text() in names]
    assert len(entries) == count
    for entry in entries:
        assert entry.get_window_extent().y1 < axes.get_window_extent().y0


def test_a_name_has_one_colour_in_all_charts_of_a_figure() -> None:
    both = figure(named("ring", "torus"), named("torus", "ring"))
    with style.settings():
        first, second = chart_picture.picture("Both", both.charts, 2).axes
    colours = [[line.get_color() for line in lines_of(axes)] for axes in (first, second)]
    assert colours[0] == colours[1][::-1]
    assert len(set(colours[0])) == 2
    assert words_of(chart_pages.svg(both)).count("ring") == 1, "the same names: one legend"
    others = figure(named("ring", "torus"), named("torus"))
    assert words_of(chart_pages.svg(others)).count("torus") == 2
    pictures = "".join(chart_pages.inline(both, "a"))
    assert len(set(re.findall(r"stroke: var\(--(series-\d)\)", pictures))) == 2


def test_a_series_may_take_the_colour_of_another() -> None:
    drawn = named("ring", "torus", "torus, bound")
    drawn["series"][2] |= {"like": "torus", "dashed": True}
    ring, torus, bound = lines_of(axes_of(drawn))
    assert ring.get_color() != torus.get_color() == bound.get_color()
    assert (torus.is_dashed(), bound.is_dashed()) == (False, True)

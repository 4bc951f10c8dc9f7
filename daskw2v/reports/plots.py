"""Curves and the map of the report, drawn by Bokeh.

Plots name the colours of the page's style sheet in their tags, or in a column `paint` of their data. The page's script
resolves tags, and writes the colours of the column `paint` into a column `colour`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from bokeh.core.properties import value
from bokeh.embed import json_item
from bokeh.model import Model
from bokeh.models import ColumnDataSource, HoverTool, PanTool, Plot, Range1d, TapTool, WheelZoomTool
from bokeh.plotting import figure
from bokeh.resources import Resources

from daskw2v.reports.text import shown
from daskw2v.reports.training import TrainingPoint
from daskw2v.reports.wordmap import WordMap

SERIES_COLOURS = 6  # colours that the page has for curves; further curves reuse them, dashed

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
_CURVE_HEIGHT = 200  # pixels
_MAP_HEIGHT = 620  # pixels
_MAX_DOTS = 60  # a curve of at most as many points shows each point as a dot
_LARGEST_DOT, _SMALLEST_DOT = 11.0, 3.5  # of the most and the least frequent words, in pixels
_MAX_LABEL = 24  # characters
_UNPAINTED = "gray"  # colour until the page's script has resolved the column `paint`


class Drawing(NamedTuple):
    """A plot of the page.

    Parameters
    ----------
    item
        The plot as JSON for BokehJS.
    across, up
        Titles of the x axis and of the y axis, which the page shows as text outside of the plot; "" for none.
    """

    item: Mapping[str, Any]
    across: str = ""
    up: str = ""


def bokeh_scripts() -> list[str]:
    """Return the scripts of BokehJS that the plots of this module need."""
    scripts: list[str] = Resources("inline", components=["bokeh"]).js_raw
    return [script.replace("</script", r"<\/script") for script in scripts]


def draw_training_curves(points: Sequence[TrainingPoint]) -> dict[str, Drawing]:
    """Draw the curves of a training, of at least one point: "loss", "alpha" and "speed".

    The mean loss of a pair and the learning rate are drawn against the tokens seen, words per second against time.
    """
    progress = [point.progress for point in points]
    in_hours = points[-1].elapsed > 2 * 3600
    times = [point.elapsed / (3600 if in_hours else 1) for point in points]
    rates = {"learning rate": [point.alpha for point in points]}
    factor, unit = _choose_unit(max(point.words_per_second for point in points), "words/s")
    speeds = {"speed": [point.words_per_second / factor for point in points]}
    across = "hours" if in_hours else "seconds"
    return {
        "loss": draw_over_tokens(progress, {"loss": [point.loss for point in points]}),
        "alpha": draw_over_tokens(progress, rates, "0.0000", first_colour=1, from_zero=True),
        "speed": _draw_curves(times, across, speeds, "0.00", y_name=unit, first_colour=2, from_zero=True),
    }


def draw_over_tokens(
    progress: Sequence[int], lines: Mapping[str, Sequence[float | None]], form: str = "0.000", **style: Any
) -> Drawing:
    """Draw lines, such as the scores of evaluation sets, against the tokens seen.

    Parameters
    ----------
    progress
        Number of tokens seen at each point, added up over all epochs; at least one point.
    lines
        Values of each line at the points, by the line's name; None for a missing value.
    form, style
        As in `_draw_curves`.
    """
    factor, unit = _choose_unit(max(progress), "tokens seen")
    return _draw_curves([tokens / factor for tokens in progress], unit, lines, form, **style)


def _choose_unit(largest: float, noun: str) -> tuple[float, str]:
    """Return the factor by which to divide numbers up to `largest`, and a unit such as "million words" for `noun`."""
    units = ((1e9, "billion "), (1e6, "million "), (1e3, "thousand "))
    factor, prefix = next((unit for unit in units if largest >= unit[0]), (1, ""))
    return factor, prefix + noun


def _draw_curves(
    x: Sequence[float],
    x_name: str,
    lines: Mapping[str, Sequence[float | None]],
    form: str,
    *,
    y_name: str = "",
    first_colour: int = 0,
    from_zero: bool = False,
) -> Drawing:
    """Draw lines that share their x values.

    Names of lines are in the data only, not in titles, axes or legends: if one of these contained $$, Bokeh would fetch
    MathJax.

    Parameters
    ----------
    x, x_name
        The x values of the points, and the title of the x axis.
    lines
        The y values of each line, by the line's name; None for a missing value.
    form
        Bokeh's number format of y values in tooltips.
    y_name
        Title of the y axis.
    first_colour
        Number of the first line's colour, 0 to `SERIES_COLOURS` - 1.
    from_zero
        Whether the y axis begins at 0.
    """
    plot = figure(height=_CURVE_HEIGHT, sizing_mode="stretch_width", toolbar_location=None, tools="")
    plot.x_range = _axis_range(x)
    plot.y_range = _axis_range([score for values in lines.values() for score in values if score is not None], from_zero)
    drawn = []
    for number, (name, values) in enumerate(lines.items()):
        y = np.array([np.nan if score is None else score for score in values])
        source = ColumnDataSource({"x": np.array(x, float), "y": y, "name": [shown(name)] * len(y)})
        colour = f"--series-{(first_colour + number) % SERIES_COLOURS}"
        dash = "solid" if number < SERIES_COLOURS else "dashed"
        line = plot.line("x", "y", source=source, line_width=2, line_join="round", line_dash=dash)
        drawn.append(line)
        _tag_colours(line.glyph, line_color=colour)
        if len(y) <= _MAX_DOTS:
            dots = plot.scatter("x", "y", source=source, size=6)
            _tag_colours(dots.glyph, line_color=colour, fill_color=colour)
    plot.xgrid.visible = False
    tooltip = _format_tooltip(f"@name <b>@y{{{form}}}</b> {y_name}<br>@x{{0,0.[00]}} {x_name}")
    plot.add_tools(HoverTool(tooltips=tooltip, mode="vline", renderers=drawn, show_arrow=False, attachment="above"))
    return Drawing(_to_json(plot), x_name, y_name)


def choose_cluster_colours(words: WordMap) -> list[str]:
    """Return the name of a colour of the page for each cluster of a map, so that near clusters have different colours.

    Clusters are coloured in order. Each gets the colour whose nearest cluster so far is farthest away.
    """
    middles = words.positions[[cluster.word for cluster in words.clusters]]
    distances = np.linalg.norm(middles[:, None] - middles, axis=2)
    colours: list[int] = []
    for away in distances:
        nearest = [min(away[: len(colours)][np.equal(colours, c)], default=np.inf) for c in range(SERIES_COLOURS)]
        colours.append(int(np.argmax(nearest)))
    return [f"--series-{colour}" for colour in colours]


def draw_map(words: WordMap) -> Drawing:
    """Draw a map: a dot for each word, larger for frequent words, and empty layers of labels for the page's script."""
    colours = np.full(len(words.words), "--dot", dtype="<U10")
    for cluster, colour in zip(words.clusters, choose_cluster_colours(words), strict=True):
        colours[cluster.members] = colour
    x, y = words.positions[:, 0], words.positions[:, 1]
    pan, wheel = PanTool(name="pan"), WheelZoomTool()
    tools: dict[str, Any] = {"tools": [pan, wheel], "active_drag": pan, "active_scroll": wheel}
    ranges = {"x_range": _axis_range(x), "y_range": _axis_range(y)}
    size = {"height": _MAP_HEIGHT, "sizing_mode": "stretch_both"}
    plot = figure(name="map", toolbar_location=None, **size, **tools, **ranges)
    plot.axis.visible = plot.grid.visible = False
    n = len(words.words)
    sizes = _SMALLEST_DOT + (_LARGEST_DOT - _SMALLEST_DOT) / np.sqrt(1 + np.arange(n) / 20)
    source = ColumnDataSource(
        {
            "x": x,
            "y": y,
            "word": [shown(word) for word in words.words],
            "label": [shown(word, _MAX_LABEL) for word in words.words],
            "rank": np.arange(1, n + 1, dtype=np.int32),
            "size": sizes.astype(np.float32),
            "paint": list(colours),
            "colour": [_UNPAINTED] * n,
        },
        name="words",
    )
    dots = plot.scatter("x", "y", size="size", source=source, fill_color="colour", fill_alpha=0.5, line_color=None)
    dots.nonselection_glyph = dots.selection_glyph = None
    _add_marks(plot, "labels", "--ink", 0, "12px")
    # Labels of clusters have different colours, and a background in the map's colour: they cover dots
    glyph = _add_labels(plot, _make_layer("clusters"), "bold 14px").glyph
    glyph.update(background_fill_alpha=0.75, padding=2, border_radius=3)
    _tag_colours(glyph, background_fill_color="--raised")
    _add_marks(plot, "matches", "--strong", 9, "13px")
    _add_marks(plot, "near", "--accent", 8, "13px")
    _add_marks(plot, "found", "--strong", 13, "bold 15px")
    tooltip = _format_tooltip("<b>@word</b><br>number @rank{0,0} by frequency")
    hover = HoverTool(tooltips=tooltip, renderers=[dots], limit=3, show_arrow=False, attachment="above")
    plot.add_tools(hover, TapTool(renderers=[dots]))
    return Drawing(_to_json(plot))


def _add_marks(plot: Any, name: str, colour: str, size: float, font: str) -> None:
    """Add an empty layer of labels to a map, which the page's script fills.

    Parameters
    ----------
    plot, name
        The map, and the name of the layer's data.
    colour, font
        Colour of the page, and font as "bold 14px", of the labels.
    size
        Size of a dot beside each label, in pixels; 0 for none.
    """
    source = _make_layer(name)
    if size:
        ring = plot.scatter("x", "y", source=source, size=size, line_width=2, fill_alpha=0.25)
        _tag_colours(ring.glyph, line_color=colour, fill_color=colour)
    _tag_colours(_add_labels(plot, source, font).glyph, text_color=colour)


def _make_layer(name: str) -> ColumnDataSource:
    """Return an empty data source of labels with a name, by which the page's script finds and fills it."""
    columns = ("x", "y", "label", "offset", "align", "paint", "colour")
    return ColumnDataSource({column: [] for column in columns}, name=name)


def _add_labels(plot: Any, source: ColumnDataSource, font: str) -> Any:
    """Add the labels of a data source to a plot, in a font such as "bold 14px"; return Bokeh's renderer."""
    style, _, height = font.rpartition(" ")
    fields = {"x_offset": "offset", "text_align": "align", "text_color": "colour"}
    face = {"text_font": value(_FONT), "text_font_size": height, "text_font_style": style or "normal"}
    return plot.text("x", "y", "label", source=source, text_baseline="middle", **fields, **face)


def _axis_range(values: Sequence[float] | npt.NDArray[Any], from_zero: bool = False) -> Range1d:
    """Return the range of an axis, a little wider than the range of the values; about 0..1 without values."""
    low, high = (float(np.min(values)), float(np.max(values))) if len(values) else (0.0, 1.0)
    low = 0.0 if from_zero else low
    margin = (high - low) / 20 or abs(high) / 20 or 1.0
    return Range1d(low if from_zero else low - margin, high + margin)


def _format_tooltip(content: str) -> str:
    """Return the HTML of a tooltip in the page's colours; Bokeh escapes the values that replace @name in `content`."""
    style = "margin: -5px; padding: 5px 9px; max-width: 22rem; overflow-wrap: anywhere; font-family: var(--sans)"
    return f'<div style="background: var(--raised); color: var(--ink); {style}">{content}</div>'


def _tag_colours(model: Model, **colours: str) -> None:
    """Tag a Bokeh model with the name of a colour of the page for each of its properties, as `line_color="--line"`.

    The page's script resolves the names, by its light or dark theme.
    """
    model.tags = [f"{name}={variable}" for name, variable in colours.items()]


def _to_json(plot: Plot) -> Mapping[str, Any]:
    """Style a plot with its axes and its grid; return the plot as JSON for BokehJS."""
    plot.background_fill_color = plot.border_fill_color = plot.outline_line_color = None
    plot.min_border_left = plot.min_border_right = 8
    for axis in plot.axis:
        axis.major_label_text_font, axis.major_label_text_font_size = _FONT, "12px"
        axis.minor_tick_line_color = None
        _tag_colours(axis, major_label_text_color="--soft", axis_line_color="--line", major_tick_line_color="--line")
    for grid in plot.grid:
        _tag_colours(grid, grid_line_color="--line")
    item: Mapping[str, Any] = json_item(plot)
    return item

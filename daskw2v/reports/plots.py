"""Curves and the map, drawn by Bokeh.

Plots name the colours of the page's style sheet in their tags, or in a column `paint` of their data; the page's script
resolves them, the column into a column `colour`.
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
_MAP_HEIGHT = 620
_FEW = 60  # a curve of at most this many points shows each as a dot
_LARGEST, _SMALLEST = 11.0, 3.5  # sizes of the dots of the most and the least frequent words
_LONGEST_LABEL = 24  # characters
_UNPAINTED = "gray"  # until the page's script has painted a column


class Drawing(NamedTuple):
    """A plot as JSON for BokehJS, and the titles of its axes, which the page shows in its own text."""

    item: Mapping[str, Any]
    across: str = ""
    up: str = ""


def library() -> list[str]:
    """Return the parts of BokehJS that these plots need."""
    scripts: list[str] = Resources("inline", components=["bokeh"]).js_raw
    return [script.replace("</script", r"<\/script") for script in scripts]


def training_curves(steps: Sequence[TrainingPoint]) -> dict[str, Drawing]:
    """Draw the mean loss of a pair and the learning rate against the tokens seen, and words per second against time."""
    progress = [step.progress for step in steps]
    hours = steps[-1].elapsed > 2 * 3600
    times = [step.elapsed / (3600 if hours else 1) for step in steps]
    rates = {"learning rate": [step.alpha for step in steps]}
    factor, unit = _unit(max(step.words_per_second for step in steps), "words/s")
    speeds = {"speed": [step.words_per_second / factor for step in steps]}
    across = "hours" if hours else "seconds"
    return {
        "loss": over_tokens(progress, {"loss": [step.loss for step in steps]}),
        "alpha": over_tokens(progress, rates, "0.0000", first_colour=1, from_zero=True),
        "speed": _curves(times, across, speeds, "0.00", y_name=unit, first_colour=2, from_zero=True),
    }


def over_tokens(
    progress: Sequence[int], lines: Mapping[str, Sequence[float | None]], form: str = "0.000", **style: Any
) -> Drawing:
    """Draw named lines, such as the scores of sets, against the tokens seen, their values in a number format."""
    factor, unit = _unit(max(progress), "tokens seen")
    return _curves([tokens / factor for tokens in progress], unit, lines, form, **style)


def _unit(largest: float, what: str) -> tuple[float, str]:
    """Return the factor to divide numbers by, and the name of their unit."""
    units = ((1e9, "billion "), (1e6, "million "), (1e3, "thousand "))
    factor, name = next((unit for unit in units if largest >= unit[0]), (1, ""))
    return factor, name + what


def _curves(
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
    """
    plot = figure(height=_CURVE_HEIGHT, sizing_mode="stretch_width", toolbar_location=None, tools="")
    plot.x_range = _range_of(x)
    plot.y_range = _range_of([score for values in lines.values() for score in values if score is not None], from_zero)
    drawn = []
    for number, (name, values) in enumerate(lines.items()):
        y = np.array([np.nan if score is None else score for score in values])
        source = ColumnDataSource({"x": np.array(x, float), "y": y, "name": [shown(name)] * len(y)})
        colour = f"--series-{(first_colour + number) % SERIES_COLOURS}"
        dash = "solid" if number < SERIES_COLOURS else "dashed"
        line = plot.line("x", "y", source=source, line_width=2, line_join="round", line_dash=dash)
        drawn.append(line)
        _coloured(line.glyph, line_color=colour)
        if len(y) <= _FEW:
            dots = plot.scatter("x", "y", source=source, size=6)
            _coloured(dots.glyph, line_color=colour, fill_color=colour)
    plot.xgrid.visible = False
    tooltip = _tooltip(f"@name <b>@y{{{form}}}</b> {y_name}<br>@x{{0,0.[00]}} {x_name}")
    plot.add_tools(HoverTool(tooltips=tooltip, mode="vline", renderers=drawn, show_arrow=False, attachment="above"))
    return Drawing(_finished(plot), x_name, y_name)


def cluster_colours(words: WordMap) -> list[str]:
    """Return a colour of the page for each cluster: the colour whose other clusters are farthest away."""
    middles = words.positions[[cluster.word for cluster in words.clusters]]
    distances = np.linalg.norm(middles[:, None] - middles, axis=2)
    taken: list[int] = []
    for away in distances:
        nearest = [min(away[: len(taken)][np.equal(taken, c)], default=np.inf) for c in range(SERIES_COLOURS)]
        taken.append(int(np.argmax(nearest)))
    return [f"--series-{colour}" for colour in taken]


def map_plot(words: WordMap) -> Drawing:
    """Draw the map: a dot for each word, larger for frequent words. The page's script adds the labels."""
    colours = np.full(len(words.words), "--dot", dtype="<U10")
    for cluster, colour in zip(words.clusters, cluster_colours(words), strict=True):
        colours[cluster.members] = colour
    x, y = words.positions[:, 0], words.positions[:, 1]
    pan, wheel = PanTool(name="pan"), WheelZoomTool()
    plot = figure(
        name="map",
        height=_MAP_HEIGHT,
        sizing_mode="stretch_both",
        toolbar_location=None,
        tools=[pan, wheel],
        active_drag=pan,
        active_scroll=wheel,
        x_range=_range_of(x),
        y_range=_range_of(y),
    )
    plot.axis.visible = plot.grid.visible = False
    n = len(words.words)
    sizes = _SMALLEST + (_LARGEST - _SMALLEST) / np.sqrt(1 + np.arange(n) / 20)
    source = ColumnDataSource(
        {
            "x": x,
            "y": y,
            "word": [shown(word) for word in words.words],
            "label": [shown(word, _LONGEST_LABEL) for word in words.words],
            "rank": np.arange(1, n + 1, dtype=np.int32),
            "size": sizes.astype(np.float32),
            "paint": list(colours),
            "colour": [_UNPAINTED] * n,
        },
        name="words",
    )
    dots = plot.scatter("x", "y", size="size", source=source, fill_color="colour", fill_alpha=0.5, line_color=None)
    dots.nonselection_glyph = dots.selection_glyph = None
    _marks(plot, "labels", "--ink", 0, "12px")
    # Labels of clusters have colours of their own, and a background in the map's colour: they cover dots.
    glyph = _labels(plot, _layer("clusters"), "bold 14px").glyph
    glyph.update(background_fill_alpha=0.75, padding=2, border_radius=3)
    _coloured(glyph, background_fill_color="--raised")
    _marks(plot, "matches", "--strong", 9, "13px")
    _marks(plot, "near", "--accent", 8, "13px")
    _marks(plot, "found", "--strong", 13, "bold 15px")
    tooltip = _tooltip("<b>@word</b><br>number @rank{0,0} by frequency")
    plot.add_tools(
        HoverTool(tooltips=tooltip, renderers=[dots], limit=3, show_arrow=False, attachment="above"),
        TapTool(renderers=[dots]),
    )
    return Drawing(_finished(plot))


def _marks(plot: Any, name: str, colour: str, size: float, font: str) -> None:
    """Add an empty layer of labels in a colour, beside dots if they have a size."""
    source = _layer(name)
    if size:
        ring = plot.scatter("x", "y", source=source, size=size, line_width=2, fill_alpha=0.25)
        _coloured(ring.glyph, line_color=colour, fill_color=colour)
    _coloured(_labels(plot, source, font).glyph, text_color=colour)


def _layer(name: str) -> ColumnDataSource:
    """Return an empty source of labels of this name, which the page's script fills."""
    columns = ("x", "y", "label", "offset", "align", "paint", "colour")
    return ColumnDataSource({column: [] for column in columns}, name=name)


def _labels(plot: Any, source: ColumnDataSource, font: str) -> Any:
    style, _, height = font.rpartition(" ")
    return plot.text(
        "x",
        "y",
        "label",
        source=source,
        x_offset="offset",
        text_align="align",
        text_baseline="middle",
        text_font=value(_FONT),
        text_font_size=height,
        text_font_style=style or "normal",
        text_color="colour",
    )


def _range_of(values: Sequence[float] | npt.NDArray[Any], from_zero: bool = False) -> Range1d:
    """Return a range a little wider than the values; about 0..1 without values."""
    low, high = (float(np.min(values)), float(np.max(values))) if len(values) else (0.0, 1.0)
    low = 0.0 if from_zero else low
    room = (high - low) / 20 or abs(high) / 20 or 1.0
    return Range1d(low if from_zero else low - room, high + room)


def _tooltip(content: str) -> str:
    """Return the HTML of a tooltip in the page's colours; Bokeh escapes the values that replace @name."""
    style = "margin: -5px; padding: 5px 9px; max-width: 22rem; overflow-wrap: anywhere; font-family: var(--sans)"
    return f'<div style="background: var(--raised); color: var(--ink); {style}">{content}</div>'


def _coloured(model: Model, **colours: str) -> None:
    """Tag a Bokeh model with the page's colour for each of its properties; the page has a light and a dark theme."""
    model.tags = [f"{name}={variable}" for name, variable in colours.items()]


def _finished(plot: Plot) -> Mapping[str, Any]:
    """Style axes and grid, and return the plot as JSON."""
    plot.background_fill_color = plot.border_fill_color = plot.outline_line_color = None
    plot.min_border_left = plot.min_border_right = 8
    for axis in plot.axis:
        axis.major_label_text_font, axis.major_label_text_font_size = _FONT, "12px"
        axis.minor_tick_line_color = None
        _coloured(axis, major_label_text_color="--soft", axis_line_color="--line", major_tick_line_color="--line")
    for grid in plot.grid:
        _coloured(grid, grid_line_color="--line")
    item: Mapping[str, Any] = json_item(plot)
    return item

"use strict";
// The map: labels of words where there is room, search, and the nearest words of the selected word.

report.ready.then(() => {
  const element = (id) => document.getElementById(id);
  const drawn = report.documents.get("map");
  const plot = drawn.get_model_by_name("map");
  const source = drawn.get_model_by_name("words");
  const { x, y, word, label, size } = source.data;
  const near = report.read("near-words");
  const holder = element("plot-map");
  let selected = null;

  // Labels beside dots, the most frequent words first, without overlap.

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  const widths = Array.from(label, (text) => pen.measureText(text).width);
  const height = 15;

  function visible() {
    const { x_range, y_range, inner_width, inner_height } = plot;
    const across = inner_width / (x_range.end - x_range.start);
    const down = inner_height / (y_range.end - y_range.start);
    return (i) => [(x[i] - x_range.start) * across, (y_range.end - y[i]) * down];
  }

  // A word's label on one side of its dot: its box, and how to draw it.
  function beside(at, i, side, grown) {
    const [left, middle] = at(i);
    const [offset, width] = [size[i] / 2 + 3 * grown, widths[i] * grown];
    const box =
      side > 0
        ? [left - offset, middle - height / 2, left + offset + width, middle + height / 2]
        : [left - offset - width, middle - height / 2, left + offset, middle + height / 2];
    const outside = box[0] < 0 || box[2] > plot.inner_width || box[1] < 0 || box[3] > plot.inner_height;
    return { i, box, outside, offset: side * offset, align: side > 0 ? "left" : "right" };
  }

  const meets = (boxes, box) => boxes.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3]);

  const columns = (labels) => ({
    x: labels.map(({ i }) => x[i]),
    y: labels.map(({ i }) => y[i]),
    label: labels.map(({ i, hidden }) => (hidden ? "" : label[i])),
    offset: labels.map(({ offset }) => offset),
    align: labels.map(({ align }) => align),
  });

  function place() {
    const at = visible();
    const boxes = [];
    const marked = selected === null ? [] : [selected, ...near.ids[selected]];
    const shown = marked.map((i) => {
      // Each marked word has a dot. Its label is shown if there is room; that of the selected word always.
      const grown = i === selected ? 1.35 : 1.1;
      const sides = [1, -1].map((side) => beside(at, i, side, grown));
      const free = sides.find(({ box, outside }) => !outside && !meets(boxes, box));
      const chosen = free ?? sides.find(({ outside }) => !outside) ?? sides[0];
      const hidden = !free && i !== selected;
      if (!hidden) boxes.push(chosen.box);
      return { ...chosen, hidden };
    });
    drawn.get_model_by_name("found").data = columns(shown.slice(0, 1));
    drawn.get_model_by_name("near").data = columns(shown.slice(1));
    const most = Math.min(250, (plot.inner_width * plot.inner_height) / 2500);
    const placed = [];
    for (let i = 0; i < label.length && placed.length < most; i++) {
      if (marked.includes(i)) continue;
      const beneath = beside(at, i, 1, 1);
      if (beneath.outside || meets(boxes, beneath.box)) continue;
      boxes.push(beneath.box);
      placed.push(beneath);
    }
    drawn.get_model_by_name("labels").data = columns(placed);
  }

  let waiting = false;
  function placeSoon() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      place();
    });
  }

  // The visible part of the map.

  const bounds = (values) => {
    const low = values.reduce((a, b) => Math.min(a, b));
    const high = values.reduce((a, b) => Math.max(a, b));
    return { middle: (low + high) / 2, extent: high - low || 1 };
  };
  const [all_x, all_y] = [bounds(x), bounds(y)];

  const wholeScale = () => 1.1 * Math.max(all_x.extent / plot.inner_width, all_y.extent / plot.inner_height);

  const whole = () => lookAt(all_x.middle, all_y.middle, wholeScale());

  function lookAt(middle_x, middle_y, scale) {
    // The same scale in both directions.
    const [half_width, half_height] = [(scale * plot.inner_width) / 2, (scale * plot.inner_height) / 2];
    plot.x_range.setv({ start: middle_x - half_width, end: middle_x + half_width });
    plot.y_range.setv({ start: middle_y - half_height, end: middle_y + half_height });
  }

  const scaleNow = () => (plot.x_range.end - plot.x_range.start) / plot.inner_width;

  function zoom(factor) {
    const { x_range, y_range } = plot;
    lookAt((x_range.start + x_range.end) / 2, (y_range.start + y_range.end) / 2, scaleNow() / factor);
  }

  // The selected word and its nearest words.

  function say(strong, text) {
    const bold = document.createElement("b");
    bold.append(Object.assign(document.createElement("bdi"), { textContent: strong }));
    element("status").replaceChildren(bold, text);
  }

  function select(i) {
    selected = i;
    say(word[i], `number ${(i + 1).toLocaleString("en")} by frequency. Nearest on this map:`);
    element("nearest").replaceChildren(
      ...near.ids[i].map((j, k) => {
        const item = document.createElement("li");
        const button = Object.assign(document.createElement("button"), { type: "button" });
        button.append(
          Object.assign(document.createElement("bdi"), { textContent: word[j] }),
          Object.assign(document.createElement("span"), { textContent: (near.cosines[i][k] / 1000).toFixed(2) }),
        );
        button.addEventListener("click", () => show(j));
        item.append(button);
        return item;
      }),
    );
    placeSoon();
  }

  function show(i) {
    select(i);
    lookAt(x[i], y[i], Math.min(scaleNow(), wholeScale() / 4));
  }

  const lower = Array.from(word, (text) => text.toLowerCase());

  function find(text) {
    const exact = word.indexOf(text);
    return exact >= 0 ? exact : lower.indexOf(text.toLowerCase());
  }

  function matches(text) {
    const wanted = text.toLowerCase();
    const found = [];
    for (const fits of [(w) => w.startsWith(wanted), (w) => w.includes(wanted)]) {
      for (let i = 0; i < lower.length && found.length < 12; i++) {
        if (fits(lower[i]) && !found.includes(i)) found.push(i);
      }
    }
    return found;
  }

  element("query").addEventListener("input", ({ target }) => {
    const text = target.value.trim();
    const options = (text ? matches(text) : []).map((i) =>
      Object.assign(document.createElement("option"), { value: word[i] }),
    );
    element("suggestions").replaceChildren(...options);
    if (text && word.includes(text)) show(word.indexOf(text));
  });

  element("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = element("query").value.trim();
    if (!text) return;
    const exact = find(text);
    const i = exact >= 0 ? exact : (matches(text)[0] ?? -1);
    if (i >= 0) {
      show(i);
    } else {
      say(text, `is not among the ${word.length.toLocaleString("en")} words of this map.`);
      element("nearest").replaceChildren();
    }
  });

  element("nearer").addEventListener("click", () => zoom(1.6));
  element("farther").addEventListener("click", () => zoom(1 / 1.6));
  element("whole").addEventListener("click", whole);

  source.selected.properties.indices.change.connect(() => {
    if (source.selected.indices.length) select(source.selected.indices[0]);
  });

  // Wheel and touch scroll the page until the map has been clicked or tapped; then they zoom and move the map.
  const pan = drawn.get_model_by_name("pan");
  const touch = matchMedia("(pointer: coarse)").matches;
  let taken = false;
  function take(yes) {
    taken = yes;
    if (touch) pan.active = yes;
    holder.classList.toggle("taken", yes);
  }
  take(false);
  holder.addEventListener("click", () => take(true), { capture: true });
  holder.addEventListener("pointerleave", () => touch || take(false));
  document.addEventListener("pointerdown", ({ target }) => holder.contains(target) || take(false));
  holder.addEventListener("wheel", (event) => taken || event.stopPropagation(), { capture: true });

  for (const range of [plot.x_range, plot.y_range]) {
    range.properties.start.change.connect(placeSoon);
    range.properties.end.change.connect(placeSoon);
  }
  // Resizing keeps center and scale; the first time, the whole map is shown.
  let sized = false;
  let width = 0;
  function resize() {
    const { x_range, y_range, inner_width, inner_height } = plot;
    if (!(inner_width > 0 && inner_height > 0)) return;
    if (sized) {
      const scale = (x_range.end - x_range.start) / width;
      lookAt((x_range.start + x_range.end) / 2, (y_range.start + y_range.end) / 2, scale);
    } else {
      sized = true;
      whole();
      if (near.first !== null) select(near.first);
      place();
      document.documentElement.dataset.ready = "yes";
    }
    width = inner_width;
    placeSoon();
  }
  for (const side of ["inner_width", "inner_height"]) {
    plot.properties[side].change.connect(() => requestAnimationFrame(resize));
  }
  resize();
});

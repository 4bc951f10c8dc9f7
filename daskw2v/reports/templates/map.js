"use strict";
// The map: labels of clusters and words where there is room, search, and the nearest words of the selected word.

report.ready.then(() => {
  const element = (id) => document.getElementById(id);
  const drawn = report.documents.get("map");
  const plot = drawn.get_model_by_name("map");
  const source = drawn.get_model_by_name("words");
  const { x, y, word, label, size } = source.data;
  const near = report.read("on-map");
  const holder = element("plot-map");
  let selected = null;
  let matching = []; // words that contain what is typed

  // Labels beside dots, the most frequent words first, without overlap.

  const pen = document.createElement("canvas").getContext("2d");
  const widthsOf = (texts, font) => {
    pen.font = `${font} system-ui, sans-serif`;
    return Array.from(texts, (text) => pen.measureText(text).width);
  };
  const widths = widthsOf(label, "12px");
  const height = 15;
  const clusters = Array.from(document.querySelectorAll("#clusters bdi"), (e) => e.textContent);
  const clusterWidths = widthsOf(clusters, "bold 14px");

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
    return { i, box, outside: leaves(box), offset: side * offset, align: side > 0 ? "left" : "right", text: label[i] };
  }

  // A cluster's label, above the word in its middle.
  function above(at, cluster) {
    const i = near.clusters[cluster];
    const [left, middle] = at(i);
    const [half, tall] = [clusterWidths[cluster] / 2 + 4, 11];
    const box = [left - half, middle - tall, left + half, middle + tall];
    return { i, box, outside: leaves(box), offset: 0, align: "center", text: clusters[cluster], paint: near.paint[cluster] };
  }

  const leaves = (box) => box[0] < 0 || box[2] > plot.inner_width || box[1] < 0 || box[3] > plot.inner_height;

  const meets = (boxes, box) => boxes.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3]);

  const columns = (labels) => ({
    x: labels.map(({ i }) => x[i]),
    y: labels.map(({ i }) => y[i]),
    label: labels.map(({ text, hidden }) => (hidden ? "" : text)),
    offset: labels.map(({ offset }) => offset),
    align: labels.map(({ align }) => align),
    paint: labels.map(({ paint }) => paint ?? "--ink"),
    colour: report.coloured(labels.map(({ paint }) => paint ?? "--ink")),
  });

  const fill = (layer, labels) => (drawn.get_model_by_name(layer).data = columns(labels));

  function place() {
    const at = visible();
    const boxes = [];
    const marked = selected === null ? [] : [selected, ...near.ids[selected]];
    // A marked word has a dot. Its label is shown if there is room; that of the selected word always.
    const mark = (i) => {
      const grown = i === selected ? 1.35 : 1.1;
      const sides = [1, -1].map((side) => beside(at, i, side, grown));
      const free = sides.find(({ box, outside }) => !outside && !meets(boxes, box));
      const chosen = free ?? sides.find(({ outside }) => !outside) ?? sides[0];
      const hidden = !free && i !== selected;
      if (!hidden) boxes.push(chosen.box);
      return { ...chosen, hidden };
    };
    const shown = marked.map(mark);
    fill("found", shown.slice(0, 1));
    fill("near", shown.slice(1));
    const matched = matching.filter((i) => !marked.includes(i));
    fill("matches", matched.map(mark));
    const most = Math.min(250, (plot.inner_width * plot.inner_height) / 2500);
    const placeAll = (count, shape, limit) => {
      const placed = [];
      for (let n = 0; n < count && placed.length < limit; n++) {
        const one = shape(n);
        if (one === null || one.outside || meets(boxes, one.box)) continue;
        boxes.push(one.box);
        placed.push(one);
      }
      return placed;
    };
    fill("clusters", placeAll(clusters.length, (cluster) => above(at, cluster), clusters.length));
    const taken = new Set([...marked, ...matched]);
    fill("labels", placeAll(label.length, (i) => (taken.has(i) ? null : beside(at, i, 1, 1)), most));
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

  const approach = (i) => lookAt(x[i], y[i], Math.min(scaleNow(), wholeScale() / 4));

  function show(i) {
    select(i);
    approach(i);
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

  // As text is typed, all words that contain it are marked; the whole map is shown, unless it is a word.
  element("query").addEventListener("input", ({ target }) => {
    const text = target.value.trim();
    const wanted = text.toLowerCase();
    const options = (text ? matches(text) : []).map((i) =>
      Object.assign(document.createElement("option"), { value: word[i] }),
    );
    element("suggestions").replaceChildren(...options);
    matching = text ? [...lower.keys()].filter((i) => lower[i].includes(wanted)) : [];
    const count = matching.length === 1 ? "1 word contains" : `${matching.length.toLocaleString("en")} words contain`;
    element("count").textContent = text ? `${count} it` : "";
    if (text && word.includes(text)) show(word.indexOf(text));
    else if (matching.length) whole();
    placeSoon();
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
  document.querySelectorAll("#clusters button").forEach((button, cluster) => {
    button.addEventListener("click", () => {
      holder.scrollIntoView({ block: "nearest" });
      approach(near.clusters[cluster]);
    });
  });

  function move(across, up) {
    const { x_range, y_range } = plot;
    const middle = (range, share) => (range.start + range.end) / 2 + share * (range.end - range.start);
    lookAt(middle(x_range, across), middle(y_range, up), scaleNow());
  }

  const keys = {
    ArrowLeft: () => move(-0.15, 0),
    ArrowRight: () => move(0.15, 0),
    ArrowUp: () => move(0, 0.15),
    ArrowDown: () => move(0, -0.15),
    "+": () => zoom(1.6),
    "-": () => zoom(1 / 1.6),
    0: whole,
  };
  holder.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
    event.preventDefault();
    keys[event.key]();
  });

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

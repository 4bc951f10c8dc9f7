"use strict";
// Draws the curves and the map, in the colours of the page.

const report = {
  read: (id) => JSON.parse(document.getElementById(id).textContent),
  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim(),
  coloured: (names) => {
    const resolved = new Map([...new Set(names)].map((name) => [name, report.colour(name)]));
    return Array.from(names, (name) => resolved.get(name));
  },
  documents: new Map(), // by name of the plot
};

// The tags of a Bokeh model name the page's colours for its properties: "line_color=--series-0". The column `paint` of
// data names them for the column `colour`.
report.paint = (drawn) => {
  for (const model of drawn.all_models) {
    for (const tag of model.tags) {
      const [property, colour] = tag.split("=");
      model.setv({ [property]: report.colour(colour) });
    }
    if (model.data?.paint) model.data = { ...model.data, colour: report.coloured(model.data.paint) };
  }
};

report.ready = (async () => {
  Bokeh.set_log_level("warn");
  for (const holder of document.querySelectorAll("[data-plot]")) {
    await Bokeh.embed.embed_item(report.read(`data-${holder.dataset.plot}`), holder.id);
    const drawn = Bokeh.documents.at(-1);
    report.paint(drawn);
    report.documents.set(holder.dataset.plot, drawn);
  }
})();

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  report.documents.forEach(report.paint);
});

"""The page in a real browser: it draws, it finds words, and it fetches nothing."""

import json

import pytest
from browser import Browser, find_browser
from examples import HARMFUL

from daskw2v import report
from daskw2v.reports.text import shown

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_browser() is None, reason="no chromium is installed"),
]

STATE = """(() => {
  const drawn = report.documents.get("map");
  const plot = drawn.get_model_by_name("map");
  const found = drawn.get_model_by_name("found").data;
  const words = drawn.get_model_by_name("words").data;
  return {
    status: document.getElementById("status").textContent,
    nearest: [...document.querySelectorAll("#nearest bdi")].map((e) => e.textContent),
    found: [...found.label],
    place: [found.x[0], found.y[0]],
    middle: [(plot.x_range.start + plot.x_range.end) / 2, (plot.y_range.start + plot.y_range.end) / 2],
    width: plot.x_range.end - plot.x_range.start,
    labels: drawn.get_model_by_name("labels").data.x.length,
    options: document.getElementById("suggestions").children.length,
  };
})()"""

SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"

SEARCH = f"""(async (text) => {{
  const query = document.getElementById("query");
  query.value = text;
  query.dispatchEvent(new Event("input", {{ bubbles: true }}));
  document.querySelector("#search button[type=submit]").click();
  await {SETTLED};
}})"""

TYPE = f"""(async (text) => {{
  const query = document.getElementById("query");
  query.value = text;
  query.dispatchEvent(new Event("input", {{ bubbles: true }}));
  await {SETTLED};
  const layer = (name) => report.documents.get("map").get_model_by_name(name).data;
  const words = layer("words");
  const at = new Map(Array.from(words.x, (x, i) => [`${{x}} ${{words.y[i]}}`, words.word[i]]));
  const marked = layer("matches");
  return {{
    matches: Array.from(marked.x, (x, i) => at.get(`${{x}} ${{marked.y[i]}}`)),
    count: document.getElementById("count").textContent,
  }};
}})"""

CLUSTERS = """(() => {
  const drawn = report.documents.get("map").get_model_by_name("clusters").data;
  return {
    labels: [...drawn.label],
    colours: [...drawn.colour],
    listed: [...document.querySelectorAll("#clusters bdi")].map((e) => e.textContent),
    painted: new Set(report.documents.get("map").get_model_by_name("words").data.colour).size,
  };
})()"""

# Tables and boxes that show less than they hold
CLIPPED = """(() => {
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  return [...document.querySelectorAll("main *")]
    .filter((e) => e.closest("[data-plot], .hidden") === null && e.clientWidth > 0)
    .filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
    .map((e) => `${e.tagName} ${e.className} ${e.scrollWidth} > ${e.clientWidth}`);
})()"""

MIDDLE = """(() => {
  const map = document.getElementById("plot-map");
  map.scrollIntoView({ block: "center", behavior: "instant" });
  const box = map.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""

TOOLTIPS = """(() => {
  const texts = (root) => [...root.querySelectorAll("*")].flatMap((e) => [
    ...(e.matches(".bk-Tooltip") ? [e.shadowRoot.textContent] : []),
    ...(e.shadowRoot ? texts(e.shadowRoot) : []),
  ]);
  return texts(document);
})()"""

CANVASES = """(() => {
  const count = (root) => [...root.querySelectorAll("*")].reduce(
    (n, e) => n + (e.tagName === "CANVAS") + (e.shadowRoot ? count(e.shadowRoot) : 0), 0);
  return [...document.querySelectorAll("[data-plot]")].map((holder) => [holder.dataset.plot, count(holder) > 0]);
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.end()


@pytest.fixture(scope="module")
def url(tmp_path_factory, trained, earlier, evaluation):
    target = tmp_path_factory.mktemp("page") / "page.html"
    report(trained, target, evaluation=evaluation, other=earlier, other_evaluation=evaluation)
    return target.as_uri()


def test_page__draws_and_finds_words(browser, url, trained):
    async def conversation(page):
        await page.load(url)
        assert dict(await page.ask(CANVASES)) == dict.fromkeys(["loss", "alpha", "speed", "scores", "map"], True)
        first = await page.ask(STATE)
        assert first["labels"] > 20
        assert first["found"] == [first["status"].split("number")[0]]

        await page.ask(f"{SEARCH}('king')")
        king = await page.ask(STATE)
        assert king["found"] == ["king"]
        assert king["status"].startswith("kingnumber 1 by frequency")
        assert king["middle"] == pytest.approx(king["place"], abs=1e-4)
        assert king["width"] < first["width"] / 2
        expected = trained.most_similar("king", topn=8, restrict_vocab=2000)
        assert king["nearest"] == [shown(word) for word, _ in expected]

        await page.ask(f"document.querySelector('#nearest button').click(), {SETTLED}")
        assert (await page.ask(STATE))["found"] == [shown(expected[0][0], 24)]

        await page.ask(f"{SEARCH}('QUEE')")  # another case, and a part
        assert (await page.ask(STATE))["found"] == ["queen"]

        await page.ask(f"{SEARCH}('nowhere')")
        lost = await page.ask(STATE)
        assert "is not among the 197 words" in lost["status"]
        assert lost["nearest"] == []

        await page.ask(f"document.getElementById('whole').click(), {SETTLED}")
        assert (await page.ask(STATE))["width"] == pytest.approx(first["width"])
        assert page.problems == []
        assert page.requests == [url]

    browser.visit(conversation)


def test_map__marks_what_is_typed(browser, url, trained):
    async def conversation(page):
        await page.load(url)
        shown_words = [shown(word) for word in trained.vocabulary.words]
        for typed, contain in (("QUEE", "word contains"), ("wa", "words contain")):
            expected = {word for word in shown_words if typed.lower() in word.lower()}
            found = await page.ask(f"{TYPE}({json.dumps(typed)})")
            state = await page.ask(STATE)
            assert set(found["matches"]) == expected - {state["status"].split("number")[0], *state["nearest"]}
            assert found["count"] == f"{len(expected)} {contain} it"
        assert await page.ask(f"{TYPE}('')") == {"matches": [], "count": ""}
        assert page.problems == []

    browser.visit(conversation)


def test_map__is_moved_by_keys(browser, url):
    async def press(page, key):
        for kind in ("keyDown", "keyUp"):
            await page.call("Input.dispatchKeyEvent", type=kind, key=key, **({"text": key} if len(key) == 1 else {}))
        await page.ask(SETTLED)
        return await page.ask(STATE)

    async def conversation(page):
        await page.load(url)
        await page.ask("document.getElementById('plot-map').focus()")
        whole = await page.ask(STATE)
        right, up = await press(page, "ArrowRight"), await press(page, "ArrowUp")
        assert right["middle"][0] > whole["middle"][0]
        assert up["middle"][1] > right["middle"][1]
        assert (await press(page, "+"))["width"] == pytest.approx(whole["width"] / 1.6)
        assert (await press(page, "-"))["width"] == pytest.approx(whole["width"])
        again = await press(page, "0")
        assert again["middle"] == pytest.approx(whole["middle"], abs=1e-6)
        await page.ask("document.getElementById('query').focus()")
        for key in "queen":
            await press(page, key)
        assert (await press(page, "\r"))["found"] == ["queen"]
        assert page.problems == []

    browser.visit(conversation)


@pytest.mark.parametrize("dark", [False, True])
def test_map__labels_and_colours_clusters(browser, url, dark):
    async def conversation(page):
        await page.load(url, dark=dark)
        state = await page.ask(CLUSTERS)
        assert len(state["listed"]) == 3
        assert state["labels"]
        assert set(state["labels"]) <= set(state["listed"])
        colours = await page.ask("[0, 1, 2, 3, 4, 5].map((n) => report.colour(`--series-${n}`))")
        assert set(state["colours"]) <= set(colours)
        assert state["painted"] == 3
        first = await page.ask(STATE)
        await page.ask("document.querySelector('#clusters').parentElement.open = true")
        await page.ask(f"document.querySelector('#clusters button').click(), {SETTLED}")
        assert (await page.ask(STATE))["width"] < first["width"] / 2
        assert page.problems == []

    browser.visit(conversation)


@pytest.mark.parametrize("width", [360, 400])
def test_page__clips_no_column_on_a_phone(browser, url, width):
    async def conversation(page):
        await page.load(url, width)
        assert await page.ask(CLIPPED) == []
        assert await page.ask("document.documentElement.scrollWidth") == width

    browser.visit(conversation)


def test_page__shows_harmful_words_as_they_are(browser, url):
    async def conversation(page):
        await page.load(url)
        for word in HARMFUL:
            wanted = shown(word)
            await page.ask(f"{SEARCH}({json.dumps(wanted)})")
            state = await page.ask(STATE)
            assert state["found"] == [shown(word, 24)]
            assert state["status"].startswith(wanted)
            x, y = await page.ask(MIDDLE)
            await page.mouse("mouseMoved", x + 200, y)
            await page.mouse("mouseMoved", x, y)
            await page.until(f"{TOOLTIPS}.some((text) => text.includes({json.dumps(wanted)}))")
        assert await page.ask("window.broken === undefined")
        assert page.problems == []
        assert page.requests == [url]

    browser.visit(conversation)


def test_map__leaves_the_page_its_wheel_until_it_is_clicked(browser, url):
    async def conversation(page):
        await page.load(url)
        x, y = await page.ask(MIDDLE)
        before = await page.ask(STATE), await page.ask("scrollY")
        await page.mouse("mouseMoved", x, y)
        await page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        await page.until(f"scrollY < {before[1]}")
        assert (await page.ask(STATE))["width"] == before[0]["width"]

        await page.ask("new Promise((done) => setTimeout(done, 400))")  # the wheel's scrolling ends
        x, y = await page.ask(MIDDLE)
        await page.mouse("mousePressed", x, y, button="left", clickCount=1)
        await page.mouse("mouseReleased", x, y, button="left", clickCount=1)
        scrolled = await page.ask("scrollY")
        await page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        await page.until(f"{STATE}.width < {before[0]['width']}")
        assert await page.ask("scrollY") == scrolled
        assert page.problems == []

    browser.visit(conversation)


def test_map__leaves_touch_to_the_page_until_it_is_tapped(browser, url):
    async def conversation(page):
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        await page.load(url, 390)
        active = "report.documents.get('map').get_model_by_name('pan').active"
        assert await page.ask(active) is False
        x, y = await page.ask(MIDDLE)
        await page.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        await page.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        await page.until(active)
        assert page.problems == []

    browser.visit(conversation)


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1440, True)])
def test_page__fits_its_window_and_its_light(browser, url, width, dark):
    async def conversation(page):
        await page.load(url, width, dark=dark)
        assert await page.ask("document.documentElement.scrollWidth") == width
        paper, ink = await page.ask("['--paper', '--ink'].map(report.colour)")
        assert (paper < ink) == dark
        colour = "[...report.documents.get('map').get_model_by_name('map').renderers].at(1).glyph.text_color.value"
        assert await page.ask(colour) == ink
        assert page.problems == []

    browser.visit(conversation)

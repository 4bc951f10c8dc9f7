"""Dead links of a static site; links to other sites are not checked."""

from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Page(NamedTuple):
    """The targets of a page's links, and the anchors that links may point to."""

    links: list[str]
    anchors: set[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page([], set())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.page.links.extend(values[name] for name in ("href", "src") if name in values)
        self.page.anchors.update(values[name] for name in ("id", "name") if name in values)


def read_page(path: Path) -> Page:
    """Read the links and anchors of a page."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def dead_links(site: Path) -> list[str]:
    """List the links to missing pages, files and anchors of a site, as `page: link`."""
    pages = {path.resolve(): read_page(path) for path in sorted(site.resolve().rglob("*.html"))}
    return [
        f"{path.relative_to(site.resolve())}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not _leads(link, path, pages)
    ]


def _leads(link: str, path: Path, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.exists()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors

"""Links of a static site that lead nowhere; those to other sites are not followed."""

from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Page(NamedTuple):
    """Where a page's links lead, and the anchors that others may lead to."""

    links: list[str]
    anchors: set[str]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page([], set())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.page.links.extend(found[name] for name in ("href", "src") if name in found)
        self.page.anchors.update(found[name] for name in ("id", "name") if name in found)


def read_page(path: Path) -> Page:
    """Read the links and anchors of a page."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def dead_links(site: Path) -> list[str]:
    """List links to pages, files and anchors of a site that are not there, as `page: link`."""
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

"""Renders the Markdown guides at /docs/guides."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import PurePosixPath

from markdown_it import MarkdownIt
from markdown_it.token import Token

from frontdesk.doors.docs.markup import contents_list, page, sample
from frontdesk.settings import Settings

GUIDES = (  # in reading order
    "quick-start",
    "booking-over-rest",
    "booking-over-mcp",
    "confirmations",
    "consent-receipts",
    "errors-and-retries",
    "time-zones",
    "going-to-production",
    "connecting-a-fhir-system",
    "operating",
)
PATH = "/docs/guides"
DEMO_URL = "http://127.0.0.1:8080"
_CAPTIONS = {"bash": "Shell", "python": "Python", "json": "JSON", "yaml": "Practice file", "sql": "SQL"}


def guide_page(name: str, settings: Settings, assets: Mapping[str, str]) -> str:
    tokens = _tokens(_source(name).replace(DEMO_URL, settings.public_url).replace("- [ ] ", "- ☐ "))
    headings = [(_anchor(text), text) for text in _texts(tokens, "h2")]
    contents = contents_list("On this page", ((f"#{anchor}", "", text) for anchor, text in headings))
    contents += contents_list("Guides", ((f"{PATH}/{each}", "", title_of(each)) for each in GUIDES))
    _prepare(tokens, assets)
    parts = [_render(part) for part in _parts(tokens)]
    main = f'<section class="hero guide">{parts[0]}</section>' + "".join(
        f'<section class="guide" aria-labelledby="{anchor}">{part}</section>'
        for (anchor, _), part in zip(headings, parts[1:], strict=True)
    )
    return page(f"{title_of(name)} · frontdesk", PATH, contents, main, assets)


def index_page(assets: Mapping[str, str]) -> str:
    """The list of guides, each with its first paragraph."""
    contents = contents_list("Guides", ((f"{PATH}/{each}", "", title_of(each)) for each in GUIDES))
    items = "".join(
        f'<li><a href="{PATH}/{each}">{escape(title_of(each))}</a><p>{escape(_opening(each))}</p></li>'
        for each in GUIDES
    )
    lead = "From the first call to production. The test suite runs every command shown here."
    main = (
        f'<section class="hero"><h1>Guides</h1><p class="lead">{lead}</p></section>'
        f'<section class="guide"><ul class="guides" id="guides">{items}</ul></section>'
    )
    return page("Guides · frontdesk", PATH, contents, main, assets)


@cache
def title_of(name: str) -> str:
    return _texts(_tokens(_source(name)), "h1")[0]


def _opening(name: str) -> str:
    tokens = _tokens(_source(name))
    first = next(index for index, token in enumerate(tokens) if token.type == "paragraph_open")
    return "".join(" " if child.type == "softbreak" else child.content for child in tokens[first + 1].children or ())


@cache
def _source(name: str) -> str:
    return (files("frontdesk.doors.docs") / "guides" / f"{name}.md").read_text(encoding="utf-8")


def _markdown() -> MarkdownIt:
    """Renders code like the reference page, and tables that scroll on narrow screens."""
    markdown = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    markdown.add_render_rule("fence", _fence)
    markdown.add_render_rule("table_open", lambda *_: '<div class="wide"><table>')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>")
    return markdown


def _fence(_renderer: object, tokens: Sequence[Token], index: int, *_: object) -> str:
    language = tokens[index].info.split(" ")[0]
    return sample(_CAPTIONS[language], escape(tokens[index].content.rstrip("\n"), quote=False))


def _tokens(text: str) -> list[Token]:
    return _markdown().parse(text)


def _texts(tokens: Sequence[Token], tag: str) -> list[str]:
    return [
        tokens[index + 1].content.replace("`", "")
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == tag
    ]


def _anchor(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")


def _prepare(tokens: Sequence[Token], assets: Mapping[str, str]) -> None:
    """Add heading anchors, and rewrite the addresses of guides and images."""
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag != "h1":
            token.attrSet("id", _anchor(tokens[index + 1].content))
        for child in token.children or ():
            if child.type == "link_open":
                child.attrSet("href", re.sub(r"^([a-z-]+)\.md", rf"{PATH}/\1", str(child.attrs["href"])))
            elif child.type == "image":
                name = PurePosixPath(str(child.attrs["src"])).name
                child.attrSet("src", f"/docs/assets/{assets[name]}")


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h2":
            parts.append([])
        parts[-1].append(token)
    return parts


def _render(tokens: Sequence[Token]) -> str:
    markdown = _markdown()
    return str(markdown.renderer.render(tokens, markdown.options, {}))

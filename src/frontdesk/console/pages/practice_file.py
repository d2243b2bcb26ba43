"""The practice file: download, upload, preview and import."""

from starlette.responses import PlainTextResponse, Response

from frontdesk.console.forms import Form
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.language import gettext as _
from frontdesk.console.practice_forms.words import changes_of
from frontdesk.desk.practice_files import MAX_FILE_BYTES, STRANDED_CHOICES, StrandingRefused
from frontdesk.domain.errors import Problem
from frontdesk.practice_file import FileError, PracticeFileError
from frontdesk.practice_file.published_schema import schema_line

_MAX_FORM_BYTES = MAX_FILE_BYTES + 64 * 1024  # the file and a few fields
_MAX_SHOWN = 50  # records that change
_FORMATS = {"yaml": "application/yaml", "json": "application/json"}


async def _page(
    request: ConsoleRequest, text: str = "", *, prune: bool = False, errors: tuple[FileError, ...] = ()
) -> Response:
    return request.render(
        "practice_file.html",
        title=_("Practice file"),
        status=422 if errors else 200,
        text=text,
        prune=prune,
        errors=errors,
        largest=MAX_FILE_BYTES // 1024 // 1024,
    )


async def _download(request: ConsoleRequest) -> Response:
    ending = request.param("ending")
    if ending not in _FORMATS:
        raise Problem("not_found", "There is no such page.")
    text = await request.desk.practice_file.export(request.context, as_json=ending == "json")
    if ending == "yaml":
        text = schema_line(request.console.settings.public_url) + text
    headers = {"Content-Disposition": f'attachment; filename="{request.staff.practice_slug}.{ending}"'}
    return PlainTextResponse(text, headers=headers, media_type=f"{_FORMATS[ending]}; charset=utf-8")


async def _preview(request: ConsoleRequest) -> Response:
    form = request.form
    return await _compared(request, _text(form), prune=bool(form.get("prune")))


async def _compared(
    request: ConsoleRequest, text: str, *, prune: bool, changed: bool = False, undecided: bool = False
) -> Response:
    if not text.strip():
        return await _page(request, text, prune=prune, errors=(FileError("$", "choose a file, or paste its text"),))
    try:
        preview = await request.desk.practice_file.preview(request.context, text, prune=prune)
    except PracticeFileError as error:
        return await _page(request, text, prune=prune, errors=error.errors)
    return request.render(
        "practice_preview.html",
        title=_("What the file changes"),
        status=409 if changed or undecided else 200,
        preview=preview,
        changes=changes_of(preview.before, preview.after),
        max_shown=_MAX_SHOWN,
        stranded=preview.found.stranded,
        text=text,
        prune=prune,
        changed=changed,
        undecided=undecided,
    )


async def _apply(request: ConsoleRequest) -> Response:
    form = request.form
    text, prune, version = _text(form), bool(form.get("prune")), form.get("version")
    if not version.isdecimal() or len(version) > 18:
        return await _compared(request, text, prune=prune)
    stranded = STRANDED_CHOICES.get(form.get("stranded"))
    try:
        await request.desk.practice_file.apply(
            request.context, text, prune=prune, version=int(version), stranded=stranded
        )
    except PracticeFileError as error:
        return await _page(request, text, prune=prune, errors=error.errors)
    except StrandingRefused:
        return await _compared(request, text, prune=prune, undecided=True)
    except Problem as problem:
        if problem.code != "conflict":
            raise
        return await _compared(request, text, prune=prune, changed=True)
    return request.redirect("/practice", notice="practice_file_applied")


def _text(form: Form) -> str:
    """The text of the uploaded file, or else the pasted text."""
    return next((text for text in (*form.all("file"), *form.all("text")) if text.strip()), "")


PAGES = (
    Page("GET", "/practice", _page, role="admin"),
    Page("GET", "/practice/file.{ending}", _download, role="admin"),
    Page("POST", "/practice/preview", _preview, role="admin", max_body_bytes=_MAX_FORM_BYTES),
    Page("POST", "/practice/apply", _apply, role="admin", max_body_bytes=_MAX_FORM_BYTES),
)

"""The steps of every form that edits a practice: input, validation, a preview of the changes, and the import.

A form changes the practice's document, which is then imported like an uploaded practice file, at the version that the
form was opened at.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from frontdesk.console.forms import Form
from frontdesk.console.guard import ConsoleRequest, Page
from frontdesk.console.practice_forms.fields import Edited, errors_by_control
from frontdesk.console.practice_forms.words import RecordChange, changes_of
from frontdesk.desk.practice_files import STRANDED_CHOICES, OpenedPractice, Preview, StrandingRefused
from frontdesk.domain.errors import Problem
from frontdesk.practice_file import PracticeFileError

_OF_THE_FRAME = ("csrf", "version", "step", "more", "stranded")  # not of the form itself


@dataclass(frozen=True, slots=True)
class Act:
    """What a form does, for the page and the audit trail."""

    title: str
    operation: str
    subjects: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Editor:
    """A form. Its callables are given the practice and what was typed."""

    path: str  # below /console
    list_path: str  # the page to return to
    template: str
    typed: Callable[[OpenedPractice, Mapping[str, str]], Form]  # from the query of the page
    values: Callable[[OpenedPractice, Form], Mapping[str, object]]  # for the template
    act: Callable[[OpenedPractice, Form], Act]
    edit: Callable[[OpenedPractice, Form], Edited]

    @property
    def pages(self) -> tuple[Page, Page]:
        return (
            Page("GET", self.path, self._open, role="admin"),
            Page("POST", self.path, self._submitted, role="admin"),
        )

    async def _open(self, request: ConsoleRequest) -> Response:
        opened = await request.desk.practice_file.opened(request.context)
        form = self.typed(opened, request.http.query_params)
        return self._form(request, opened, form, opened.version)

    async def _submitted(self, request: ConsoleRequest) -> Response:
        form = request.form
        opened = await request.desk.practice_file.opened(request.context)
        edited, act = self.edit(opened, form), self.act(opened, form)
        if form.get("more") or form.get("step") == "edit":
            return self._form(request, opened, form, form.get("version"))
        if edited.errors:
            return self._form(request, opened, form, form.get("version"), errors=edited.errors)
        try:
            if form.get("version") != str(opened.version):
                return await self._conflict(request, opened, edited)
            if form.get("step") != "apply":
                return await self._preview(request, opened, edited, act)
            await request.desk.practice_file.apply(
                request.context,
                json.dumps(edited.document),
                prune=True,  # the document lists everything but what the form removes
                version=opened.version,
                stranded=STRANDED_CHOICES.get(form.get("stranded")),
                operation=act.operation,
                subjects=act.subjects,
            )
        except PracticeFileError as error:
            errors = errors_by_control(edited, error.errors)
            return self._form(request, opened, form, form.get("version"), errors=errors)
        except StrandingRefused:
            return await self._preview(request, opened, edited, act, undecided=True)
        except Problem as problem:
            if problem.code != "conflict":
                raise
            newest = await request.desk.practice_file.opened(request.context)
            return await self._conflict(request, newest, self.edit(newest, form))
        return request.redirect(self.list_path, notice="practice_changed")

    async def _compared(self, request: ConsoleRequest, edited: Edited) -> Preview:
        return await request.desk.practice_file.preview(request.context, json.dumps(edited.document), prune=True)

    async def _preview(
        self, request: ConsoleRequest, opened: OpenedPractice, edited: Edited, act: Act, *, undecided: bool = False
    ) -> Response:
        preview = await self._compared(request, edited)
        if preview.version != opened.version:
            return await self._conflict(request, opened, edited)
        return request.render(
            "practice_change.html",
            title=act.title,
            status=409 if undecided else 200,
            preview=preview,
            changes=changes_of(preview.before, preview.after),
            stranded=preview.found.stranded,
            undecided=undecided,
            sent=[
                (name, value)
                for name in request.form.fields
                if name not in _OF_THE_FRAME
                for value in request.form.all(name)
            ],
            action=f"/console{self.path}",
            list_path=f"/console{self.list_path}",
        )

    async def _conflict(self, request: ConsoleRequest, opened: OpenedPractice, edited: Edited) -> Response:
        """The form with what was typed, and what it would change in the practice as it is now."""
        errors: dict[str, str] = {}
        changes: Sequence[RecordChange] = ()
        try:
            preview = await self._compared(request, edited)
            changes = changes_of(preview.before, preview.after)
        except PracticeFileError as error:
            errors = errors_by_control(edited, error.errors)
        return self._form(request, opened, request.form, opened.version, errors=errors, conflict=changes)

    def _form(
        self,
        request: ConsoleRequest,
        opened: OpenedPractice,
        form: Form,
        version: int | str,
        *,
        errors: Mapping[str, str] | None = None,
        conflict: Sequence[RecordChange] | None = None,
    ) -> Response:
        return request.render(
            self.template,
            title=self.act(opened, form).title,
            status=409 if conflict is not None else 422 if errors else 200,
            typed=form,
            version=version,
            errors=errors or {},
            conflict=conflict,
            keeps_own_calendar=opened.directory.practice.keeps_own_calendar,
            action=f"/console{self.path}",
            list_path=f"/console{self.list_path}",
            **self.values(opened, form),
        )

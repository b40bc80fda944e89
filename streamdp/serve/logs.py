"""A collector's door: log records of OpenTelemetry over HTTP, as its protocol has them (docs/serve.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from streamdp.decode.fields import PER_SECOND, RefusedError
from streamdp.decode.otlp import LogRecords, Piece, pieces
from streamdp.page.errors import AskError, headers_of, kind_of
from streamdp.questions.answers import Answer
from streamdp.serve.bodies import MOST, Shape, Uploads, too_many
from streamdp.serve.otlp import FORMS, JSON, Form
from streamdp.serve.stored import ServiceContext
from streamdp.settings import Settings
from streamdp.settings.memory import longest_record

WITHIN = 2.0
"""Seconds that a collector waits for what the stream says of its records; they are safe before."""

SHOWN = 3
"""Reasons that a collector is told."""

_encode = msgspec.json.Encoder().encode


class Logs:
    """Answers to ``/v1/logs``: ``stands`` gives what the service stands on, ``uploads`` takes bodies."""

    def __init__(self, stands: Callable[[], ServiceContext], uploads: Uploads) -> None:
        self._stands, self._uploads = stands, uploads

    async def take(self, request: Request) -> Response:
        """Log records in, and what became of them out."""
        kind = kind_of(request)
        form = FORMS.get(kind, JSON)
        try:
            if kind not in FORMS:
                raise AskError(415, f"say what the body is, with content-type: one of {', '.join(FORMS)}")
            return form.response(form.success(*await self._take(request, form)))
        except AskError as error:
            return _wrong(form, error)

    async def _take(self, request: Request, form: Form) -> tuple[int, str]:
        """How many records were refused, and what there is to say. Raises AskError."""
        stands = self._stands()
        found, said = await self._uploads.read(request, lambda body: _read(body, form, stands.settings))
        refused = [each for each in found if isinstance(each, Answer)]
        lines = [each for each in found if isinstance(each, bytes)]
        answers = await stands.door.take(lines, WITHIN) if lines else []
        if any(answer.status == "pending" and answer.line is None for answer in answers):
            raise AskError(503, "the disk is slow: send these again in a moment", 5.0)
        refused += [each for each in answers if each.status == "refused" and each.reason != "joined"]
        reasons = Counter(f"{each.reason}: {each.detail}" for each in refused).most_common(SHOWN)
        return len(refused), "; ".join([*(f"{count} x {reason}" for reason, count in reasons), *said])

    async def elsewhere(self, request: Request) -> Response:
        """What else a collector may send."""
        what = request.url.path.rpartition("/")[2]
        kind = kind_of(request)
        error = AskError(404, f"this service takes logs (/v1/logs): send {what} elsewhere")
        return _wrong(FORMS.get(kind, JSON), error)


def _wrong(form: Form, error: AskError) -> Response:
    """Why nothing was taken; a full disk may have room again, which a collector is told by 503."""
    status = 503 if error.status == 507 else error.status
    return form.response(form.failure(error.message), status, headers_of(error))


def _read(body: bytes, form: Form, settings: Settings) -> tuple[list[bytes | Answer], list[str]]:
    """The records of a body as lines of the journal, and what there is to say. Raises AskError."""
    try:
        found = form.pieces(body, longest_record(settings))
    except RefusedError as refused:
        if refused.reason == "missing_field":
            return [], [f"{refused.detail}: there was nothing to take"]
        status = 413 if refused.reason == "too_large" else 400
        raise AskError(status, f"the body is no logs data: {refused.detail}; nothing was taken") from None
    except UnicodeDecodeError as error:
        raise AskError(400, f"the body is no text at byte {error.start}: nothing was taken") from None
    lines = lines_of(found, settings)
    if lines and all(isinstance(line, Answer) and line.reason == "too_large" for line in lines):
        raise AskError(413, "every log record is too long: nothing was taken")
    return lines, []


def lines_of(found: Sequence[Piece], settings: Settings) -> list[bytes | Answer]:
    """Log records as the stream reads its lines, each on one; or why it is none. Raises AskError."""
    if len(found) > MOST:
        raise too_many()
    records = LogRecords(settings.kept, longest_record(settings))
    lines: list[bytes | Answer] = []
    for piece in found:
        try:
            lines.append(_line(piece, records, settings))
        except RefusedError as refused:
            lines.append(Answer(status="refused", reason=refused.reason, detail=refused.detail))
    return lines


def _line(piece: Piece, records: LogRecords, settings: Settings) -> bytes:
    """A log record as the stream reads one. Raises RefusedError."""
    record = records.of(piece)
    kept, name = record.kept(settings.kept), record.id
    if settings.format == "otlp":
        return piece.alone()
    if settings.format == "log":
        return record.line()
    if settings.format == "text":
        return " ".join(record.text.split()).encode()
    time = None if record.time is None else record.time * PER_SECOND.get(settings.time_unit, 1.0)
    own = {settings.text_field: record.text, settings.time_field: time, settings.id_field: name}
    return _encode({**kept, **{key: value for key, value in own.items() if value is not None}})


def one_by_one(
    shape: Shape, records: Iterable[bytes | Answer], settings: Settings
) -> tuple[Shape, list[bytes | Answer]]:
    """The same where a stream reads OpenTelemetry's, of which a line may hold several. Raises AskError."""
    found: list[bytes | Answer] = []
    for record in records:
        try:
            inside = pieces(record) if isinstance(record, bytes) else None
        except (RefusedError, UnicodeDecodeError):  # the stream says why
            inside = None
        found += [record] if inside is None else lines_of(inside, settings)
        if len(found) > MOST:
            raise too_many()
    return ("array" if shape == "one" and len(found) != 1 else shape), found

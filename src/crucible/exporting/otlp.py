"""Spans to a collector by OTLP over HTTP, with OpenTelemetry's own exporter: its environment variables say where to and
with which headers. It runs on a thread of its own; whoever gives it spans hears whether they were taken."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from crucible.model.errors import InvalidRequest, Unreachable
from crucible.model.span import Link, Moment, Span

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event, ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import Link as OtelLink
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
    from opentelemetry.trace.status import Status, StatusCode
except ImportError as error:
    raise InvalidRequest(f"traces need OpenTelemetry ({error}): pip install 'crucible[otel]'") from error

# The exporter tries again by itself within this time; after that the caller hears of it.
TIMEOUT_S = 10
# It tells of every try at length; the caller says it in a line.
_TALKATIVE = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class OtlpSink:
    def __init__(self, version: str) -> None:
        logging.getLogger(_TALKATIVE).setLevel(logging.CRITICAL)
        self._exporter = OTLPSpanExporter(timeout=TIMEOUT_S)
        self._resource = Resource.create({"service.name": "crucible", "service.version": version})
        self._scope = InstrumentationScope("crucible", version)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="crucible-traces")

    async def take(self, spans: Sequence[Span]) -> None:
        made = [self._made(span) for span in spans]
        loop = asyncio.get_running_loop()
        try:
            taken = await loop.run_in_executor(self._thread, self._exporter.export, made)
        except Exception as error:  # whatever its HTTP library raises
            raise Unreachable(f"the collector of traces did not answer: {error}") from error
        if taken is not SpanExportResult.SUCCESS:
            raise Unreachable("the collector of traces did not take them; look at OTEL_EXPORTER_OTLP_ENDPOINT")

    async def close(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _made(self, span: Span) -> ReadableSpan:
        parent = None if span.parent_id is None else _context(span.trace_id, span.parent_id)
        failed = Status(StatusCode.ERROR, span.error) if span.error is not None else Status(StatusCode.UNSET)
        return ReadableSpan(
            name=span.name,
            context=_context(span.trace_id, span.span_id),
            parent=parent,
            resource=self._resource,
            attributes=dict(span.attributes),
            events=[_event(moment) for moment in span.moments],
            links=[_link(link) for link in span.links],
            kind=SpanKind.SERVER if span.name == "submit" else SpanKind.INTERNAL,
            status=failed,
            start_time=_nanoseconds(span.started_at),
            end_time=_nanoseconds(span.ended_at),
            instrumentation_scope=self._scope,
        )


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _event(moment: Moment) -> Event:
    return Event(moment.name, dict(moment.attributes), _nanoseconds(moment.at))


def _link(link: Link) -> OtelLink:
    return OtelLink(_context(link.trace_id, link.span_id))


def _nanoseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000

"""Where traces go, and what a server without OpenTelemetry does."""

import asyncio
import logging
import sys

import pytest

from crucible.exporting.otlp import OtlpSink
from crucible.main import span_sink
from crucible.model.errors import Unreachable
from crucible.model.span import Span
from making import NOW

SPAN = Span(trace_id="a" * 32, span_id="b" * 16, parent_id=None, name="job", started_at=NOW, ended_at=NOW)


def test_no_endpoint_means_no_traces() -> None:
    assert span_sink({}) is None
    assert span_sink({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}) is None


def test_a_server_without_the_library_says_what_to_install_and_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "crucible.exporting.otlp")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with caplog.at_level(logging.WARNING):
        assert span_sink({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}) is None
    assert "pip install 'crucible[otel]'" in caplog.text


def test_a_collector_that_is_not_there_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gave() -> None:
        sink = OtlpSink("1")
        try:
            with pytest.raises(Unreachable):
                await sink.take([SPAN])
        finally:
            await sink.close()

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("crucible.exporting.otlp.TIMEOUT_S", 0.2)
    asyncio.run(gave())

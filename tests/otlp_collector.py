"""Takes traces as OpenTelemetry's collector does: OTLP over HTTP, protobuf, on a free port of loopback."""

import gzip
import http.server
import threading
from types import TracebackType

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """`answers` is the status that it gives; 503 says: come back."""

    def __init__(self) -> None:
        self.answers = 200
        self.asked = 0
        self.requests: list[ExportTraceServiceRequest] = []
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, self.headers["Content-Type"], body)
                reply = ExportTraceServiceResponse().SerializeToString()
                self.send_response(collector.answers)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def take(self, path: str, kind: str, body: bytes) -> None:
        assert (path, kind) == ("/v1/traces", "application/x-protobuf")
        self.asked += 1
        if self.answers == 200:
            request = ExportTraceServiceRequest()
            request.ParseFromString(body)
            self.requests.append(request)

    def __enter__(self) -> "Collector":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self, trace_id: str) -> list[Span]:
        return [
            span
            for request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if span.trace_id.hex() == trace_id
        ]

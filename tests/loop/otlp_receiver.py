"""A receiver of OTLP/HTTP traces that remembers which services took part in which trace."""

from __future__ import annotations

import gzip
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class OtlpReceiver:
    """Listens on a free port of this machine until closed."""

    def __init__(self) -> None:
        requests: list[ExportTraceServiceRequest] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                requests.append(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        self._requests = requests
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def services_by_trace(self) -> dict[str, set[str]]:
        """Names of the services with a span in each trace."""
        found: dict[str, set[str]] = defaultdict(set)
        for request in self._requests:
            for resource in request.resource_spans:
                names = [a.value.string_value for a in resource.resource.attributes if a.key == "service.name"]
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        found[span.trace_id.hex()].update(name.removeprefix("oarlock-") for name in names)
        return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

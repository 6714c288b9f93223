"""How a request of each protocol names its operation, and how answers and errors travel back."""

from typing import Any

from crucible.lab.aws import checks, json11, models, query, words, xml
from crucible.lab.aws.errors import AwsError, missing
from crucible.lab.aws.models import Operation
from crucible.lab.http import Request, Response

REQUEST_ID = "x-amzn-requestid"


class FormWire:
    """The EC2 and Query protocols: forms in, XML out."""

    def __init__(self, service: str) -> None:
        self.protocol = models.protocol(service)
        self._service = service

    def read(self, request: Request) -> tuple[Operation, dict[str, Any]]:
        form = request.body.decode("ascii", "replace") if request.method == "POST" and request.body else request.query
        given = query.fields(form)
        name = given.get("Action") or missing("Action")
        operation = models.operation(self._service, name)
        if operation is None:
            raise words.no_such_action(self.protocol, name)
        if given.get("Version", operation.version) != operation.version:
            raise AwsError("NoSuchVersion", f"The requested version ({given['Version']}) does not exist.")
        values = query.decode(operation, given)
        checks.request(operation, values)
        return operation, values

    def answer(self, operation: Operation, values: dict[str, Any], request_id: str) -> Response:
        return _xml(200, xml.answer(operation, values, request_id), request_id)

    def error(self, error: AwsError, request_id: str) -> Response:
        if self.protocol == "ec2":
            return _xml(error.status, xml.ec2_error(error, request_id), request_id)
        namespace = models.service(self._service).metadata["xmlNamespace"]
        return _xml(error.status, xml.query_error(error, request_id, namespace), request_id)


class JsonWire:
    """JSON 1.1."""

    protocol = "json"

    def __init__(self, service: str) -> None:
        self._service = service

    def read(self, request: Request) -> tuple[Operation, dict[str, Any]]:
        prefix, _, name = request.headers.get("x-amz-target", "").partition(".")
        operation = models.operation(self._service, name)
        if operation is None or prefix != models.target_prefix(self._service):
            raise words.no_such_action("json", name)
        values = json11.decode(operation, request.body)
        checks.request(operation, values)
        return operation, values

    def answer(self, operation: Operation, values: dict[str, Any], request_id: str) -> Response:
        checks.answer(operation, values)
        return _json(200, json11.answer(operation, values), request_id)

    def error(self, error: AwsError, request_id: str) -> Response:
        return _json(error.status, json11.error(error), request_id)


Wire = FormWire | JsonWire


def wire_of(service: str) -> Wire:
    return JsonWire(service) if models.protocol(service) == "json" else FormWire(service)


def _xml(status: int, body: bytes, request_id: str) -> Response:
    return Response(
        status=status, headers={"content-type": "text/xml;charset=UTF-8", REQUEST_ID: request_id}, body=body
    )


def _json(status: int, body: bytes, request_id: str) -> Response:
    return Response(status=status, headers={"content-type": json11.CONTENT_TYPE, REQUEST_ID: request_id}, body=body)

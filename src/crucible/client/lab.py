"""The Lab that a server buys in, asked through that server: a part of Client. `crucible lab` asks the Lab itself."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from crucible.client import lab_shapes as shapes
from crucible.client.transport import Transport


class LabCalls:
    _http: Transport

    def lab(self, *, everything: bool = False) -> shapes.LabStatus:
        """`everything`: machines that have ended, too."""
        return cast(shapes.LabStatus, self._http.call("GET", "/v1/lab", query={"all": everything}))

    def lab_bill(self) -> shapes.LabBill:
        return cast(shapes.LabBill, self._http.call("GET", "/v1/lab/bill"))

    def lab_events(self, after: int = 0, *, machine: str | None = None, limit: int = 200) -> list[shapes.LabNote]:
        """Oldest first; of more than `limit` the newest."""
        query = {"after": after, "machine": machine, "limit": limit}
        return cast(list[shapes.LabNote], self._http.call("GET", "/v1/lab/events", query=query)["items"])

    def lab_console(self, machine: str) -> str:
        return str(self._http.call("GET", f"/v1/lab/machines/{quote(machine, safe='')}/console")["text"])

    def lab_preempt(
        self, machines: Sequence[str] = (), *, notice_s: float | None = None, region: str | None = None
    ) -> list[shapes.LabMachine]:
        """These or none of them; without a name all spot machines, or those of `region`."""
        which: dict[str, Any] = {"machines": list(machines)} if machines else {"all": True, "region": region}
        said = self._http.call("POST", "/v1/lab/preempt", body={**which, "notice_s": notice_s})
        return cast(list[shapes.LabMachine], said["items"])

    def lab_faults(self) -> list[shapes.LabFault]:
        return cast(list[shapes.LabFault], self._http.call("GET", "/v1/lab/faults")["items"])

    def lab_fail(self, rule: Mapping[str, Any]) -> shapes.LabFault:
        """Its fields are the options of `crucible lab fail`; `kind` must be there."""
        return cast(shapes.LabFault, self._http.call("POST", "/v1/lab/faults", body=dict(rule)))

    def lab_mend(self, rule: str) -> None:
        self._http.call("DELETE", f"/v1/lab/faults/{quote(rule, safe='')}", is_repeatable=False)

"""Job templates as people ask for them: those that come with Crucible and those that somebody stored. A job that names
one is filled in before it is looked at any further, so that what is stored of it needs no template again."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crucible import spec as specs
from crucible.core.auditing import by
from crucible.core.rights import is_admin
from crucible.engine.context import Context
from crucible.model.account import Principal
from crucible.model.errors import Conflict, InvalidSpec, NotFound
from crucible.model.ids import Digest, UserId
from crucible.model.template import StoredTemplate
from crucible.ports.blobs import Blobs
from crucible.ports.templates import ShippedTemplate
from crucible.spec.filling import apply, fill, naming, no_such_template
from crucible.spec.template import Template, read_template


@dataclass(frozen=True, slots=True)
class TemplateView:
    name: str
    body: str
    stored: StoredTemplate | None  # None: it comes with Crucible
    template: Template | None  # None: this version cannot read what another one stored
    problem: str = ""  # why not


class Templates:
    def __init__(self, context: Context, blobs: Blobs, shipped: Mapping[str, ShippedTemplate]) -> None:
        self._context = context
        self._blobs = blobs
        self._shipped = shipped
        self._read: dict[str, Template] = {}

    async def all(self) -> Sequence[TemplateView]:
        """What comes with Crucible, then what people stored; each by name."""
        shipped = [self._ours(name) for name in sorted(self._shipped)]
        return [
            *shipped,
            *(view(one) for one in await self._context.store.templates() if one.name not in self._shipped),
        ]

    async def find(self, name: str) -> TemplateView:
        if name in self._shipped:
            return self._ours(name)
        stored = await self._context.store.template(name)
        if stored is None:
            raise NotFound(f"there is no template {name}; `crucible template ls` lists them")
        return view(stored)

    def _ours(self, name: str) -> TemplateView:
        text = self._shipped[name].text
        if name not in self._read:
            self._read[name] = read_template(text)
        return TemplateView(name, text, None, self._read[name])

    async def save(self, who: Principal, body: str) -> TemplateView:
        """Raises InvalidSpec, also if its defaults give no valid job; Conflict for a name of ours; Forbidden."""
        template = read_template(body)
        if template.name in self._shipped:
            raise Conflict(f"{template.name} is a template that comes with Crucible; choose another name")
        if all(parameter.default is not None for parameter in template.parameters):
            fill(template, {})
        now = self._context.clock.now()
        new = StoredTemplate(name=template.name, user_id=who.user_id, body=body, created_at=now)
        entry = by(who, now, "template.save", f"template:{new.name}")
        return view(await self._context.store.save_template(new, by=limited_to(who), audit=entry))

    async def remove(self, who: Principal, name: str) -> None:
        if name in self._shipped:
            raise Conflict(f"{name} comes with Crucible and stays")
        entry = by(who, self._context.clock.now(), "template.remove", f"template:{name}")
        if not await self._context.store.remove_template(name, by=limited_to(who), audit=entry):
            raise NotFound(f"there is no template {name}; `crucible template ls` lists them")

    async def fill(self, name: str, given: Mapping[str, Any]) -> str:
        return fill(readable(await self.find(name)), given)

    # --- jobs ---------------------------------------------------------------------------------------------------

    async def resolved(self, spec_yaml: str) -> str:
        """The job itself, of a text that may name a template. Raises InvalidSpec, at the lines of the text."""
        return (await self._resolved(spec_yaml))[0]

    async def with_code(self, spec_yaml: str, code_digest: Digest | None) -> tuple[str, Digest | None]:
        """The same, with the code that a template of ours ships, unless the job brings its own."""
        text, shipped = await self._resolved(spec_yaml)
        if shipped is None or code_digest is not None:
            return text, code_digest
        digest, content = shipped.package()
        if not await self._blobs.has(digest):
            await self._blobs.put(digest, whole(content), len(content))
        return text, digest

    async def _resolved(self, spec_yaml: str) -> tuple[str, ShippedTemplate | None]:
        """With the template that its code comes from."""
        named = naming(spec_yaml)
        if named is None:
            return spec_yaml, None
        specs.load(spec_yaml)
        try:
            found = await self.find(named.name)
        except NotFound:
            raise no_such_template(named, [one.name for one in await self.all()]) from None
        return apply(spec_yaml, readable(found)), None if named.has_code else self._shipped.get(named.name)


def view(stored: StoredTemplate) -> TemplateView:
    try:
        return TemplateView(stored.name, stored.body, stored, read_template(stored.body))
    except InvalidSpec as error:
        return TemplateView(stored.name, stored.body, stored, None, error.message)


def readable(found: TemplateView) -> Template:
    if found.template is None:
        raise Conflict(f"the template {found.name} must be stored anew: {found.problem}")
    return found.template


def limited_to(who: Principal) -> UserId | None:
    """Whose templates somebody may change; None: everybody's."""
    return None if is_admin(who) else who.user_id


async def whole(content: bytes) -> AsyncIterator[bytes]:
    yield content

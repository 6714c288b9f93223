"""What a step is given of the steps before it: the trees that they left, and the items of a list in one of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from crucible.core import datasets
from crucible.core.handing import MAX_LIST_BYTES, Handed, folder, is_in, items_of, source_of, variable
from crucible.core.workflow import Part
from crucible.engine.context import Context
from crucible.engine.trees import Trees
from crucible.model.errors import InvalidRequest
from crucible.model.outputs import OUTPUT, Output
from crucible.model.spec import Step
from crucible.model.sweep import Params

# Trees that a step of many tasks may hand on.
MOST_TREES = 1000


class Handing:
    def __init__(self, context: Context, trees: Trees) -> None:
        self._context = context
        self._trees = trees

    async def gather(self, step: Step, parts: Mapping[str, Part]) -> Handed:
        """Raises InvalidRequest if a step before it has left nothing, or not this."""
        inputs: dict[str, str] = {}
        env: dict[str, str] = {}
        seen: dict[str, Any] = {}
        for name, source in step.inputs.items():
            path, left = await self._left(parts, source)
            inputs |= {folder(name, one, left): f"{OUTPUT}{one.job_id}/{one.task_index}" for one in left}
            env[variable(name)] = "/".join((name if len(left) == 1 else f"{name}.*", *([path] if path else [])))
            seen[name] = {"path": path, "trees": [one.digest for one in left]}
        trials = await self._trials(step.for_each, parts) if step.for_each else ()
        return Handed(inputs, env, trials, {"inputs": seen, "items": trials})

    async def _left(self, parts: Mapping[str, Part], source: str) -> tuple[str, Sequence[Output]]:
        """The path, and the outputs that it is found in."""
        name, _, path = source.partition("/")
        job_id = source_of(parts[name])
        left = () if job_id is None else await self._context.store.outputs(job_id, limit=MOST_TREES)
        if not left:
            raise InvalidRequest(f"{name} has left nothing behind: what it writes into $CRUCIBLE_OUTPUT is kept")
        for one in left if path else ():
            tree, _ = await self._trees.tree(one.uri, one.digest)
            if not is_in(tree, path):
                raise InvalidRequest(f"{name} has left no {path}")
        return path, left

    async def _trials(self, source: str, parts: Mapping[str, Part]) -> Sequence[Params]:
        path, left = await self._left(parts, source)
        if len(left) > 1:
            raise InvalidRequest(f"{source}: a list is read from a step with one task")
        return items_of(await self._read(left[0], path), source)

    async def _read(self, output: Output, path: str) -> bytes:
        tree, stowed = await self._trees.tree(output.uri, output.digest)
        entry = next((one for one in tree.entries if one.path == path and one.link is None), None)
        if entry is None:
            raise InvalidRequest(f"{path} is no file")
        if entry.size > MAX_LIST_BYTES:
            raise InvalidRequest(f"{path} has {entry.size} bytes, and a list has {MAX_LIST_BYTES} at most")
        for one in stowed:
            start = 0
            for piece in one.pieces:
                if piece.sha256 == entry.sha256:
                    key = datasets.object_key(one.name)
                    get = self._trees.at(output.uri).get(key, start=start, length=piece.size)
                    return await self._trees.within(get)
                start += piece.size
        return b""

"""Job templates. A part of StoreContract."""

from dataclasses import replace

import pytest

from crucible.model.errors import Forbidden
from crucible.model.ids import UserId
from crucible.model.template import StoredTemplate
from crucible.ports.templates import TemplateBook
from crucible.testing.specimens import LATER, NOW

ANN, BOB = UserId("ann"), UserId("bob")
MINE = StoredTemplate(name="tune", user_id=ANN, body="template:\n  name: tune  # ä\n", created_at=NOW)
OTHER = StoredTemplate(name="eval", user_id=BOB, body="template: {}\n", created_at=NOW)


class TemplateContract:
    async def test_templates_are_remembered_to_the_letter_and_listed_by_name(self, store: TemplateBook) -> None:
        assert await store.templates() == () and await store.template("tune") is None
        assert await store.save_template(MINE, by=ANN) == MINE
        await store.save_template(OTHER, by=BOB)
        assert await store.templates() == (OTHER, MINE)
        assert await store.template("tune") == MINE

    async def test_the_owner_changes_a_template(self, store: TemplateBook) -> None:
        await store.save_template(MINE, by=ANN)
        after = replace(MINE, body="template: {name: tune}\n", created_at=LATER)
        assert await store.save_template(after, by=ANN) == after
        assert await store.templates() == (after,)

    async def test_nobody_else_changes_or_removes_it(self, store: TemplateBook) -> None:
        await store.save_template(MINE, by=ANN)
        with pytest.raises(Forbidden, match="belongs to ann"):
            await store.save_template(replace(MINE, user_id=BOB, body="mine now"), by=BOB)
        with pytest.raises(Forbidden, match="belongs to ann"):
            await store.remove_template("tune", by=BOB)
        assert await store.templates() == (MINE,)

    async def test_who_may_change_all_leaves_it_to_its_owner(self, store: TemplateBook) -> None:
        await store.save_template(MINE, by=ANN)
        after = await store.save_template(replace(MINE, user_id=BOB, body="mended"), by=None)
        assert after == replace(MINE, body="mended") == await store.template("tune")

    async def test_a_removed_template_is_gone_and_its_name_is_free(self, store: TemplateBook) -> None:
        await store.save_template(MINE, by=ANN)
        assert await store.remove_template("tune", by=None)
        assert not await store.remove_template("tune", by=ANN)
        assert await store.template("tune") is None
        await store.save_template(replace(MINE, user_id=BOB), by=BOB)
        assert await store.remove_template("tune", by=BOB)

"""What every source of prices must do. A test file subclasses PricesContract and gives a `source`, and a `broken` one
that cannot tell its prices now; it adds tests only for what its own source can suffer."""

from datetime import UTC, timedelta

import pytest

from crucible.model.errors import ProviderError
from crucible.ports.prices import Prices, key_of


class PricesContract:
    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @pytest.fixture
    def source(self) -> Prices:
        """One that tells at least two prices."""
        raise NotImplementedError

    @pytest.fixture
    def broken(self) -> Prices:
        raise NotImplementedError

    async def test_it_has_a_name(self, source: Prices) -> None:
        assert source.name
        assert source.name.isprintable()

    async def test_every_price_says_of_what_whence_and_when(self, source: Prices) -> None:
        for price in await source.prices():
            assert price.provider and price.region and price.instance_type and price.source
            assert price.as_of.utcoffset() == timedelta(0), f"{price} is not in UTC"
            assert price.as_of.tzinfo is UTC

    async def test_no_price_is_below_zero(self, source: Prices) -> None:
        assert all(price.price is None or price.price >= 0 for price in await source.prices())

    async def test_nothing_is_told_twice(self, source: Prices) -> None:
        keys = [key_of(price) for price in await source.prices()]
        assert len(keys) >= 2
        assert len(keys) == len(set(keys))

    async def test_asking_again_tells_the_same(self, source: Prices) -> None:
        first, second = await source.prices(), await source.prices()
        assert {key_of(p): p.price for p in first} == {key_of(p): p.price for p in second}

    async def test_trouble_is_an_error_never_a_shorter_list(self, broken: Prices) -> None:
        with pytest.raises(ProviderError) as caught:
            await broken.prices()
        assert caught.value.message

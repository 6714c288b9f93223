"""Which hosts a server asks for objects."""

import pytest

from crucible.blobs.endpoints import Endpoints, guessed_scheme
from crucible.model.errors import InvalidRequest, StorageRefused


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1:9000",
        "https://localhost",
        "https://x.localhost:1",
        "https://10.0.0.5",
        "https://192.168.1.1",
        "https://172.16.0.1:443",
        "https://169.254.169.254",
        "https://[::1]:9000",
        "https://[fd00:ec2::254]",
        "https://[::ffff:169.254.169.254]",
        "https://0.0.0.0",
        "https://100.64.0.1",
    ],
)
def test_an_endpoint_inside_the_network_needs_to_be_listed(url: str) -> None:
    with pytest.raises(StorageRefused, match="--storage-endpoint https://"):
        Endpoints([]).check(url)
    Endpoints([url]).check(url + "/account")


def test_plain_http_needs_to_be_listed() -> None:
    with pytest.raises(StorageRefused, match=r"is plain http.*--storage-endpoint http://objects\.example"):
        Endpoints(["https://objects.example"]).check("http://objects.example")
    Endpoints(["http://objects.example"]).check("http://objects.example:80/")


def test_a_public_endpoint_with_tls_needs_nothing() -> None:
    for url in ("https://objects.example", "https://93.184.215.14:9000"):
        Endpoints([]).check(url)


def test_a_port_is_part_of_what_is_listed() -> None:
    with pytest.raises(StorageRefused):
        Endpoints(["http://127.0.0.1:9000"]).check("http://127.0.0.1:22")


def test_a_host_that_a_job_names_needs_to_be_listed_wherever_it_is() -> None:
    endpoints = Endpoints(["http://10.0.0.5:9000", "https://minio.example"])
    assert endpoints.of_host("10.0.0.5:9000") == "http://10.0.0.5:9000"
    assert endpoints.of_host("minio.example") == endpoints.of_host("minio.example:443") == "https://minio.example"
    for host in ("10.0.0.5", "10.0.0.6:9000", "other.example", "2130706433", "0x7f.1", "metadata.google.internal"):
        with pytest.raises(StorageRefused, match="no place that the operator listed"):
            endpoints.of_host(host)


def test_https_goes_first_where_both_are_listed() -> None:
    assert Endpoints(["http://m:9000", "https://m:9000"]).of_host("m:9000") == "https://m:9000"


def test_minio_in_a_private_network_is_taken_for_plain_http() -> None:
    assert [guessed_scheme(host) for host in ("127.0.0.1:9000", "localhost", "minio.example", "10.1.2.3")] == [
        "http",
        "http",
        "https",
        "http",
    ]


@pytest.mark.parametrize(
    "url", ["", "minio", "ftp://x", "http://", "http://x:port", "https://user:secret@x", "https://x?sig=secret"]
)
def test_what_is_no_endpoint_is_said_and_shows_no_secret(url: str) -> None:
    with pytest.raises(InvalidRequest, match="write https://host:port") as caught:
        Endpoints([url])
    assert "secret" not in caught.value.message

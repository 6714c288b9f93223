"""Buckets of each cloud: where they are and whose credentials open them, from the places where each cloud's own tools
look. Naming one asks nobody; the library is loaded, and credentials are fetched, at the first request."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crucible.blobs.azure_sas import AccountKey
from crucible.blobs.endpoints import Endpoints, guessed_scheme
from crucible.model.errors import StorageRefused
from crucible.model.storage import Address, Scheme

if TYPE_CHECKING:
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, ObjectStore, RetryConfig, S3Config

Environ = Mapping[str, str]

# Each is read by the cloud's own tools or by the library; the first that is set counts.
_ENDPOINTS = {
    Scheme.S3: ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    Scheme.GS: ("CRUCIBLE_GCS_ENDPOINT", "GOOGLE_BASE_URL"),
    Scheme.AZ: ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_ADC = Path(".config/gcloud/application_default_credentials.json")  # below the home folder

# A request of 16 MiB takes less on any line that training is worth doing over.
REQUEST_LIMIT = timedelta(seconds=120)
CONNECT_LIMIT = timedelta(seconds=5)
RETRIES = 4
RETRY_LIMIT = timedelta(seconds=60)


class Bucket:
    def __init__(
        self, uri: str, make: Callable[[], "ObjectStore"], *, lists_exactly: bool = True, key: AccountKey | None = None
    ) -> None:
        self._uri = uri
        self._make = make
        self._store: ObjectStore | None = None
        self.lists_exactly = lists_exactly  # in the order of keys, and from where it is told
        self.key = key  # of Azure

    async def store(self) -> "ObjectStore":
        """Raises StorageRefused."""
        if self._store is None:
            try:
                self._store = await asyncio.to_thread(self._make)
            except Exception as error:
                raise self._refusal(error) from None
        return self._store

    def _refusal(self, error: Exception) -> Exception:
        """The library's words may hold a key."""
        from obstore.exceptions import BaseError

        if not isinstance(error, BaseError | ValueError):
            return error
        return StorageRefused(f"{self._uri} is not set up rightly ({type(error).__name__}); check its credentials")


def bucket_at(address: Address, environ: Environ, endpoints: Endpoints) -> Bucket:
    """Raises StorageRefused."""
    match address.scheme:
        case Scheme.S3:
            return _s3(address, environ, _endpoint(address, environ, endpoints))
        case Scheme.MINIO:
            return _minio(address, environ, endpoints.of_host(address.host))
        case Scheme.GS:
            return _gs(address, environ, _endpoint(address, environ, endpoints))
        case Scheme.AZ:
            return _az(address, environ, _endpoint(address, environ, endpoints))
    raise StorageRefused(f"{address.uri} is no bucket")


def endpoint_of(address: Address, environ: Environ) -> str | None:
    """What would be asked, other than the cloud itself."""
    if address.scheme is Scheme.MINIO:
        return f"{guessed_scheme(address.host)}://{address.host}"
    named = _first(environ, *_ENDPOINTS.get(address.scheme, ()))
    if address.scheme is Scheme.AZ:
        return named or _connection(environ).get("BlobEndpoint")
    return named


def _endpoint(address: Address, environ: Environ, endpoints: Endpoints) -> str | None:
    endpoint = endpoint_of(address, environ)
    if endpoint:
        endpoints.check(endpoint)
    return endpoint


# --- S3 and what speaks like it ------------------------------------------------------------------------


def _s3(address: Address, environ: Environ, endpoint: str | None) -> Bucket:
    region = _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION")
    key, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    known = _Known(key, secret, environ.get("AWS_SESSION_TOKEN")) if key and secret else None

    def make() -> "ObjectStore":
        if known is None:
            return _s3_store_by_chain(address, region, endpoint)
        return _s3_store(address.bucket, region, endpoint, known)

    return Bucket(address.uri, make, lists_exactly=endpoint is None)


def _minio(address: Address, environ: Environ, endpoint: str) -> Bucket:
    key = _first(environ, "MINIO_ACCESS_KEY", "AWS_ACCESS_KEY_ID")
    secret = _first(environ, "MINIO_SECRET_KEY", "AWS_SECRET_ACCESS_KEY")
    if not key or not secret:
        raise StorageRefused(f"no credentials for {address.uri}; set MINIO_ACCESS_KEY and MINIO_SECRET_KEY")
    region = _first(environ, "AWS_REGION", "AWS_DEFAULT_REGION")
    known = _Known(key, secret, None)
    return Bucket(address.uri, lambda: _s3_store(address.bucket, region, endpoint, known), lists_exactly=False)


@dataclass(frozen=True, slots=True, repr=False)
class _Known:
    """Credentials that do not change. Given this way they go before whatever else the library finds."""

    key: str
    secret: str
    token: str | None

    def __call__(self) -> Any:
        return {
            "access_key_id": self.key,
            "secret_access_key": self.secret,
            "token": self.token,
            "expires_at": None,
        }


def _s3_store(bucket: str, region: str | None, endpoint: str | None, credentials: Any) -> "ObjectStore":
    from obstore.store import S3Store

    config: S3Config = {"region": region or "us-east-1"}
    if endpoint:
        config |= {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint}  # of two, the second would win
    return S3Store(
        bucket,
        config=config,
        client_options=_client(endpoint),
        retry_config=_retries(),
        credential_provider=credentials,
    )


def _s3_store_by_chain(address: Address, region: str | None, endpoint: str | None) -> "ObjectStore":
    """Profiles, single sign-on and roles as boto3 finds them; without it, what the library itself knows."""
    if find_spec("boto3") is None:
        return _s3_store(address.bucket, region, endpoint, None)
    import boto3
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        session = boto3.Session()
        chain = Boto3CredentialProvider(session)
    except (BotoCoreError, ValueError):
        raise StorageRefused(
            f"no credentials for {address.uri}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        ) from None
    return _s3_store(address.bucket, region or session.region_name, endpoint, chain)


# --- Google ------------------------------------------------------------------------------------------------


def _gs(address: Address, environ: Environ, endpoint: str | None) -> Bucket:
    config: GCSConfig = {"base_url": endpoint} if endpoint else {}
    if inline := environ.get("GOOGLE_SERVICE_ACCOUNT_KEY"):
        config["service_account_key"] = inline
    else:
        path = _google_file(address, environ)
        config["service_account" if _is_service_account(path) else "application_credentials"] = str(path)
    return Bucket(address.uri, lambda: _gs_store(address.bucket, config, endpoint))


def _google_file(address: Address, environ: Environ) -> Path:
    """Without a file the library would ask a metadata server, which is not there, for a minute."""
    names = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_PATH")
    named = _first(environ, *names)
    path = Path(named) if named else Path(environ.get("HOME", "/")) / _ADC
    if path.is_file():
        return path
    missing = f"{path} is not there" if named else "nothing names any"
    raise StorageRefused(
        f"no credentials for {address.uri}: {missing}; set GOOGLE_APPLICATION_CREDENTIALS to the key file of a "
        "service account"
    )


def _is_service_account(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise StorageRefused(f"{path} is no key file of Google; make one for a service account") from None
    return isinstance(found, dict) and found.get("type", "service_account") == "service_account"


def _gs_store(bucket: str, config: "GCSConfig", endpoint: str | None) -> "ObjectStore":
    from obstore.store import GCSStore

    return GCSStore(bucket, config=config, client_options=_client(endpoint), retry_config=_retries())


# --- Azure ---------------------------------------------------------------------------------------------------


def _az(address: Address, environ: Environ, endpoint: str | None) -> Bucket:
    connection = _connection(environ)
    account = _first(environ, "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT") or connection.get("AccountName")
    key_names = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY", "AZURE_STORAGE_KEY")
    key = _first(environ, *key_names) or connection.get("AccountKey")
    if not account:
        raise StorageRefused(f"no account for {address.uri}; set AZURE_STORAGE_ACCOUNT_NAME and …_ACCOUNT_KEY")
    where = endpoint or f"https://{account}.blob.core.windows.net"
    config: AzureConfig = {"account_name": account, "endpoint": where, "use_emulator": False}
    if key:
        config["account_key"] = key
    signer = AccountKey(account, key, where, address.bucket) if key else None
    return Bucket(address.uri, lambda: _az_store(address.bucket, config, endpoint), key=signer)


def _connection(environ: Environ) -> dict[str, str]:
    pairs = environ.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs) if value}


def _az_store(bucket: str, config: "AzureConfig", endpoint: str | None) -> "ObjectStore":
    from obstore.store import AzureStore

    return AzureStore(bucket, config=config, client_options=_client(endpoint), retry_config=_retries())


# --- all of them -----------------------------------------------------------------------------------------------


def _client(endpoint: str | None) -> "ClientConfig":
    return {
        "allow_http": bool(endpoint and endpoint.startswith("http://")),
        "connect_timeout": CONNECT_LIMIT,
        "timeout": REQUEST_LIMIT,
    }


def _retries() -> "RetryConfig":
    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}
    return {"max_retries": RETRIES, "retry_timeout": RETRY_LIMIT, "backoff": backoff}  # type: ignore[typeddict-item]


def _first(environ: Environ, *names: str) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)

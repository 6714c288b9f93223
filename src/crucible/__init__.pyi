from crucible.client.api import Client as Client
from crucible.client.async_client import AsyncClient as AsyncClient
from crucible.client.handle import Job as Job
from crucible.client.handle import Result as Result
from crucible.client.platform import MLPlatform as MLPlatform
from crucible.client.requirements import Requirements as Requirements
from crucible.client.status import Status as Status
from crucible.model.errors import PlatformError as PlatformError

__version__: str

"""What goes wrong with a store: which faults pass and are tried again, and what is said of others.

Libraries of stores raise errors of their own; they are told apart by the status that the server
answered and by the names of their classes, so that none of these libraries is loaded here.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from serde.core.records import dataclass
from serde.errors import SerdeError, StoreError
from serde.fleet.stores.urls import safe_text, safe_url

__all__ = ["Retries", "is_missing", "is_transient", "retrying", "store_error"]

ResultT = TypeVar("ResultT")

_TRANSIENT_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 509})
_TRANSIENT_CODES: Final = frozenset(
    {"InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "IncompleteBody"}
)
_TRANSIENT_ERRNO: Final = frozenset(
    {
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.EPIPE,
        errno.ETIMEDOUT,
        errno.EBUSY,
        getattr(errno, "EREMOTEIO", errno.EPIPE),
    }
)
_TRANSIENT_NAMES: Final = frozenset(
    {
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "FSTimeoutError",
        "HTTPClientError",
        "IncompleteRead",
        "IncompleteReadError",
        "ProtocolError",
        "ReadTimeoutError",
        "ResponseParserError",
        "ServerDisconnectedError",
        "TimeoutError",
        "Truncated",
    }
)
_UNREACHABLE_NAMES: Final = frozenset(
    {"ClientConnectorDNSError", "ClientConnectorError", "EndpointConnectionError"}
)
_REFUSED_NAMES: Final = frozenset(
    {
        "NoCredentialsError",
        "PartialCredentialsError",
        "DefaultCredentialsError",
        "TokenRetrievalError",
    }
)
_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})


class Truncated(OSError):
    """A transfer that ended before all bytes were there."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often and after how long what may pass is tried again.

    Attributes:
        attempts: Tries in all.
        first: Longest first pause in seconds; each further one may be twice as long.
        longest: Longest pause in seconds.
        patience: Seconds after which what cannot be reached at all is not tried again: the
            libraries of stores have tried it several times by then.
        sleep: What pauses.
    """

    attempts: int = 6
    first: float = 0.2
    longest: float = 10.0
    patience: float = 8.0
    sleep: Callable[[float], None] = time.sleep

    def pause(self, attempt: int) -> None:
        """Pause before the try after `attempt`, for a random part of what is allowed.

        Runs that failed together so come back apart.
        """
        most = min(self.longest, self.first * 2**attempt)
        self.sleep(random.uniform(most / 2, most))


def retrying(
    action: Callable[[], ResultT], url: str, retries: Retries, secrets: tuple[str, ...] = ()
) -> ResultT:
    """Return what an action returns, tried again as long as what fails may pass.

    Args:
        action: What is done; it must be possible to do it twice.
        url: What it is about.
        retries: How often and after how long.
        secrets: Texts that no message may show.

    Raises:
        StoreError: It failed for good, or too often.
    """
    start = time.monotonic()
    for attempt in range(retries.attempts):
        try:
            return action()
        except SerdeError:
            raise
        except Exception as error:
            # A fault of the disk here names no store.
            if isinstance(error, OSError) and error.errno in _DISK:
                raise
            passes = is_transient(error)
            lost = _is_unreachable(error) and time.monotonic() - start > retries.patience
            if not passes or lost or attempt + 1 == retries.attempts:
                tries = attempt + 1 if passes else 1
                raise store_error(error, url, tries, secrets) from error
        retries.pause(attempt)
    raise AssertionError("unreachable")  # pragma: no cover


def _is_unreachable(error: BaseException) -> bool:
    """Whether there is nobody at the address."""
    refused = any(isinstance(each, ConnectionRefusedError) for each in _causes(error))
    return refused or bool(_names(error) & _UNREACHABLE_NAMES)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _names(error: BaseException) -> set[str]:
    return {cls.__name__ for each in _causes(error) for cls in type(each).__mro__}


def _status(error: BaseException) -> int | None:
    """Return the status that a server answered, as far as some error of the chain knows it."""
    for each in _causes(error):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            found = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if isinstance(found, int):
                return found
        if any(cls.__name__ == "HttpProcessingError" for cls in type(each).__mro__):
            continue  # What aiohttp could not parse; its code is none that a server gave.
        for attribute in ("status", "code", "status_code"):
            found = getattr(each, attribute, None) or getattr(response, attribute, None)
            if isinstance(found, int) and 400 <= found < 600:
                return found
    return None


def _code(error: BaseException) -> str:
    """Return the name that a server gave the fault."""
    for each in _causes(error):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""


def is_missing(error: BaseException) -> bool:
    """Whether a store said that there is nothing of that name."""
    status = _status(error)
    if status is not None:
        return status in (404, 410)
    # The web's file system says so of whatever it cannot look at.
    return isinstance(error, FileNotFoundError) and not _names(error) & _TRANSIENT_NAMES


def is_transient(error: BaseException) -> bool:
    """Whether a fault may pass: of the network or of a server that is overloaded."""
    names = _names(error)
    if names & _REFUSED_NAMES:
        return False
    if isinstance(error, (ConnectionError, TimeoutError)) or names & _TRANSIENT_NAMES:
        return True
    if is_missing(error) or isinstance(error, (PermissionError, IsADirectoryError)):
        return False
    status = _status(error)
    if status is not None:
        return status in _TRANSIENT_STATUS or _code(error) in _TRANSIENT_CODES
    return any(isinstance(e, OSError) and e.errno in _TRANSIENT_ERRNO for e in _causes(error))


def store_error(
    error: BaseException, url: str, tries: int = 1, secrets: tuple[str, ...] = ()
) -> StoreError:
    """Return the one line that tells of a fault.

    Args:
        error: What a library raised.
        url: What it is about.
        tries: How often it was tried.
        secrets: Texts that no message may show.
    """
    reason = _reason(error, secrets)
    after = f", after {tries} tries" if tries > 1 else ""
    return StoreError(f"{safe_url(url)}: {reason}{after}")


def _reason(error: BaseException, secrets: tuple[str, ...]) -> str:
    names, status, code = _names(error), _status(error), _code(error)
    if names & _REFUSED_NAMES:
        return (
            "no credentials were found; they come from the environment, as the store's own tools "
            "take them, or from --storage-option"
        )
    if code == "NoSuchBucket":
        return "there is no such bucket"
    if is_missing(error):
        return "there is no such object"
    if isinstance(error, PermissionError) or status in (401, 403):
        found = f" ({code or status})" if code or status else ""
        return f"access is refused{found}; check the credentials and what they may do"
    if any(isinstance(each, ConnectionRefusedError) for each in _causes(error)):
        return "the connection was refused"
    if names & _UNREACHABLE_NAMES:
        return "the store could not be reached"
    if "TimeoutError" in names or "ReadTimeoutError" in names:
        return "the store did not answer in time"
    if names & {"ClientPayloadError", "IncompleteRead", "IncompleteReadError", "Truncated"}:
        return "the transfer was cut off"
    if status is not None:
        return f"the store answered {status}{f' ({code})' if code else ''}"
    return safe_text(f"{type(error).__name__}: {error}", secrets)[:300]

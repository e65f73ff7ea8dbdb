"""Errors of aiohttp as failures of the network."""

import errno
import re

import aiohttp
from aiohttp.http_exceptions import ContentLengthError, TransferEncodingError

from ci_evals.adapters.transport.network import NetworkError, ProxyError, UnreachableError

_UNKNOWN_ENCODING = re.compile(r"Can not decode content-encoding: (\S+)")
_CUT_OFF = (ContentLengthError, TransferEncodingError)


def network_error(error: aiohttp.ClientError) -> NetworkError:
    """Convert an error of aiohttp. Its message names no address, which might hold a password."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return ProxyError(f"{error.status} {error.message}")
    if isinstance(error, aiohttp.InvalidURL):
        return UnreachableError("an address that cannot be used")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError):
        return UnreachableError(_why_unreachable(error))
    return NetworkError(_why_broken(error))


def _why_unreachable(error: aiohttp.ClientConnectorError | aiohttp.ClientConnectorCertificateError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if error.errno == errno.ECONNREFUSED:
        return "connection refused"
    # asyncio's own text repeats the address, as Python writes it.
    return error.strerror or str(error.os_error) or "no connection"


def _why_broken(error: aiohttp.ClientError) -> str:
    if encoding := _UNKNOWN_ENCODING.search(str(error)):
        return f"its answer cannot be decompressed ({encoding[1]})"
    match error:
        case aiohttp.ServerDisconnectedError():
            return "Server disconnected without sending a response."
        case aiohttp.ClientResponseError():
            line, _, _ = error.message.partition("\n")
            return f"the answer is not HTTP ({line.rstrip(':')})"
        case aiohttp.ClientPayloadError() if isinstance(error.__cause__, _CUT_OFF):
            return "it was closed in the middle of the answer"
        case aiohttp.ClientOSError() if error.__cause__:
            return str(error.__cause__)
    return str(error)

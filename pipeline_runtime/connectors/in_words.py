"""Turns errors of a connection to a system into words for a person."""

from __future__ import annotations

import socket
import ssl

from pipeline_runtime.connectors.sdk import CONNECT_S, ConnectorError


def in_words(error: BaseException, where: str) -> ConnectorError:
    """Returns the error in words. `where` is `ConnectionFields.where`."""
    match error:
        case ConnectorError():
            return error
        case ssl.SSLCertVerificationError():
            return ConnectorError(_of_certificate(error, where), lasting=True)
        case ssl.SSLError() if is_about_own(str(error)):
            return ConnectorError(
                f"{where} does not accept the own certificate of the connection, or wants one and there is "
                f"none ({error.reason or error}).",
                lasting=True,
            )
        case ssl.SSLError():
            return ConnectorError(
                f"{where} speaks no TLS, or another version of it ({error.reason or error}). Check the port "
                "and whether TLS is meant."
            )
        case socket.gaierror() if error.errno == socket.EAI_AGAIN:
            return ConnectorError(
                f"The host of {where} is not known here: no name server answers. Check this node's DNS and "
                "its network."
            )
        case socket.gaierror():
            return ConnectorError(
                f"The host of {where} is not known here. Check how it is written, and this node's DNS."
            )
        case ConnectionRefusedError():
            return ConnectorError(f"Nobody listens at {where}: the server does not run, or has another port.")
        case TimeoutError():
            return ConnectorError(f"{where} does not answer within {CONNECT_S:.0f} s.")
        case ConnectionError():
            return ConnectorError(f"{where} has closed the connection.")
        case OSError():
            return ConnectorError(f"{where} cannot be reached: {error.strerror or error}.")
        case _:
            return ConnectorError(f"{where} cannot be used: {type(error).__name__}: {error}")


def is_about_own(said: str) -> bool:
    """Returns whether TLS says that the other side has refused the own certificate, or that it lacks one."""
    alert = said.lower().replace("_", " ")
    return "alert" in alert and ("certificate" in alert or "unknown ca" in alert)


def _of_certificate(error: ssl.SSLCertVerificationError, where: str) -> str:
    code, said = error.verify_code, error.verify_message
    if code == 10:
        return f"The certificate of {where} has expired. Its administrator has to renew it."
    if code == 9:
        return f"The certificate of {where} is not valid yet. Check the clocks of both machines."
    if code in (62, 64):
        return f"The certificate of {where} is for another host ({said})."
    if code in (7, 18, 19, 20, 21):
        return (
            f"The certificate of {where} is signed by an unknown authority ({said}). Give the "
            "certificate of its authority in the connection."
        )
    return f"The certificate of {where} is not accepted: {said}."

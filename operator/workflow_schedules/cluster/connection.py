"""Where the API server is and who asks: a Pod's service account, or the kubeconfig that ``KUBECONFIG`` names.

Never falls back to ``~/.kube/config``. No requests.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

SERVICE_ACCOUNT_DIRECTORY: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class NoConnectionError(Exception):
    """The environment doesn't say how to reach an API server; the message says what to set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An API server's address and the credentials to use there.

    Attributes:
        server: URL without a trailing slash.
        ca_file: PEM file of the server's authority.
        ca_data: the same as PEM text, when there is no file.
        token_file: bearer token that others rotate; re-read by the transport.
        token: bearer token that stays, when there is no file.
        renew_token: asked for another token after the server refused ``token``.
        client_cert_file: PEM file of the client's certificate.
        client_key_file: PEM file of its key.
        verify_tls: False accepts any certificate, as a kubeconfig may ask.
        tls_server_name: name to expect in the certificate, when not that of the URL.
        namespace: where the Lease lives unless settings say otherwise.
    """

    server: str
    ca_file: str | None = None
    ca_data: str | None = None
    token_file: Path | None = None
    token: str | None = None
    renew_token: Callable[[], str | None] | None = None
    client_cert_file: str | None = None
    client_key_file: str | None = None
    verify_tls: bool = True
    tls_server_name: str | None = None
    namespace: str = "default"

    def ssl_context(self) -> ssl.SSLContext | None:
        """Give the TLS settings; None for plain HTTP.

        Raises:
            NoConnectionError: a certificate or key can't be loaded.
        """
        if not self.server.startswith("https://"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file, cadata=self.ca_data)
            if self.client_cert_file:
                context.load_cert_chain(self.client_cert_file, self.client_key_file)
        except (OSError, ValueError) as error:
            message = f"cannot load the certificates for {self.server}: {error}"
            raise NoConnectionError(message) from error
        if not self.verify_tls:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def current_token(self) -> str | None:
        """Read the bearer token as it is now, or None when certificates say who asks.

        Raises:
            OSError: the token file can't be read.
        """
        if self.token_file is not None:
            return self.token_file.read_text().strip()
        return self.token

    def renewed_token(self) -> str | None:
        """Give the token to try after the server refused the last one."""
        if self.token_file is None and self.renew_token is not None:
            return self.renew_token()
        return self.current_token()


def from_environment(
    environment: Mapping[str, str], *, service_account: Path = SERVICE_ACCOUNT_DIRECTORY
) -> Connection:
    """Find the API server: ``KUBECONFIG`` if set, else the service account of the Pod that this runs in.

    Raises:
        NoConnectionError: neither is there, or what is there can't be read.
    """
    if environment.get("KUBECONFIG"):
        return from_kubeconfig(environment["KUBECONFIG"])
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise NoConnectionError(
            "not in a Pod and KUBECONFIG is not set: set KUBECONFIG to the path of a kubeconfig file"
        )
    token_file, ca_file = service_account / "token", service_account / "ca.crt"
    for path in (token_file, ca_file):
        if not path.is_file():
            message = f"{path} is missing: set automountServiceAccountToken: true on the Pod, or KUBECONFIG"
            raise NoConnectionError(message)
    return Connection(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        ca_file=str(ca_file),
        token_file=token_file,
        namespace=_text(service_account / "namespace") or "default",
    )


def from_kubeconfig(path: str, *, context: str | None = None) -> Connection:
    """Read the current (or the named) context of a kubeconfig; several paths may be joined by ``:``.

    Raises:
        NoConnectionError: it is missing or broken, or names no server.
    """
    # Imported here: it costs more than a second and 40 MiB, and a Pod never needs it (its image does not hold it).
    try:
        from kubernetes.config import kube_config  # noqa: PLC0415
        from kubernetes.config.config_exception import ConfigException  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"cannot read the kubeconfig {path}: kubernetes is not installed: pip install 'workflow-schedules[kubeconfig]'"
        raise NoConnectionError(message) from error
    try:
        settings = _Loaded()
        kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            path, context=context, client_configuration=settings, persist_config=False
        )
        contexts, active = kube_config.list_kube_config_contexts(path)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        message = f"cannot use the kubeconfig {path}: {error}"
        raise NoConnectionError(message) from error
    chosen = active if context is None else next(entry for entry in contexts if entry["name"] == context)
    if not settings.host:
        message = f"the kubeconfig {path} names no server in its current context"
        raise NoConnectionError(message)
    connection = settings.connection(namespace=chosen["context"].get("namespace") or "default")
    return replace(connection, renew_token=lambda: from_kubeconfig(path, context=context).token)


class _Loaded:
    """What the kubeconfig loader fills in, without the client library's own configuration object."""

    def __init__(self) -> None:
        self.host = ""
        self.api_key: dict[str, str] = {}
        self.ssl_ca_cert: str | None = None
        self.cert_file: str | None = None
        self.key_file: str | None = None
        self.verify_ssl = True
        self.tls_server_name: str | None = None
        self.refresh_api_key_hook: Callable[[Any], None] | None = None

    def connection(self, *, namespace: str) -> Connection:
        bearer = self.api_key.get("BearerToken", "")
        return Connection(
            server=self.host.rstrip("/"),
            ca_file=self.ssl_ca_cert,
            token=bearer.removeprefix("Bearer ").strip() or None,
            client_cert_file=self.cert_file,
            client_key_file=self.key_file,
            verify_tls=self.verify_ssl,
            tls_server_name=self.tls_server_name,
            namespace=namespace,
        )


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""

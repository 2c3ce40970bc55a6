"""The command `plan codec`: a codec server that shows stored large values in the Temporal UI and CLI."""

from __future__ import annotations

import secrets
import signal
import threading
from typing import Annotated

import typer

from plansurvive.apps.codec.admission import login_of
from plansurvive.apps.codec.codec_server import PORT, CodecServer
from plansurvive.client.cli.terminal import environment, output, signals
from plansurvive.features.keys.sealing import sealing
from plansurvive.features.keys.settings import KeySettings
from plansurvive.plans.errors import PlanError
from plansurvive.runtime.connect import find, storage
from plansurvive.runtime.private_files import secret
from plansurvive.runtime.settings import Settings

NAME = "codec.secret"
"""File in the state directory with the secret that is in the address."""


def codec(
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Port on 127.0.0.1; 0 picks a free one.")
    ] = PORT,
    origin: Annotated[
        list[str] | None, typer.Option("--origin", metavar="URL", help="Origin of a Temporal UI to allow; repeatable.")
    ] = None,
) -> None:
    """Serve large values to the Temporal UI and CLI. Without it they show references only. Runs until Ctrl-C."""
    settings = environment.settings()
    origins = origin or signals.run(ui_origins(settings))
    try:
        login = login_of(settings, environment.environ())
        server = CodecServer(storage(settings), origins, port, sealing(settings).codec, _secret(settings), login)
    except OSError as error:
        text = (
            f"port {port} cannot be used: {error.strerror}; stop the other `plan codec`, or choose a port with --port"
        )
        raise PlanError(text, "PORT_IN_USE") from None
    allowed = ", ".join(sorted(origins)) or "no Temporal UI (add one with --origin)"
    output.show(
        f"Codec server at {server.address} for {allowed}.\n"
        "In the UI: click the glasses at the top right, choose 'Codec Server' and enter this address. "
        f"On the command line: temporal workflow show --codec-endpoint {server.address} ..."
    )
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


def _secret(settings: Settings) -> str:
    """What requests must know if payloads are encrypted: kept, as it becomes a setting of the Temporal UI."""
    if settings.of(KeySettings).keys is None:
        return ""
    settings.make_state_dir()
    return secret(settings.state_dir / NAME, lambda: secrets.token_hex(32), "PLANS_STATE_DIR", "its requests")


async def ui_origins(settings: Settings) -> list[str]:
    """Origins of the Temporal UI of the configured server; empty if unknown."""
    connection = await find(settings)
    if connection is None or connection.ui is None:
        return []
    return [connection.ui, connection.ui.replace("127.0.0.1", "localhost")]

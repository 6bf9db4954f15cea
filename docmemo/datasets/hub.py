"""Downloads a benchmark from the Hugging Face Hub (extra `hub`)."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from docmemo.datasets.homes import Home
from docmemo.errors import DatasetError


def _reason(error: BaseException) -> str:
    """Why a download failed, in one line: the connection's own words where the client only says 'not found'."""
    known = error.__cause__ if isinstance(error.__cause__, Exception) else error
    lines = [line.strip() for line in str(known).splitlines() if line.strip()]
    return f"{type(known).__name__}: {lines[0]}" if lines else type(known).__name__


def download(home: Home, revision: str | None = None) -> tuple[Path, str]:
    """Fetch what the benchmark needs into the hub client's own cache; what is there already is not fetched again.

    Args:
        home: the benchmark.
        revision: commit, tag or branch; None is the home's.

    Returns:
        The folder with the repository's files, and the commit they are from.

    Raises:
        DatasetError: if the client is not installed, or the hub cannot be reached or lacks the revision.
    """
    elsewhere = (
        f"Or, without a network: download {', '.join(home.files)} from {home.url} elsewhere, and run "
        f"`docmemo data get {home.name} --from FOLDER` on the folder they are in."
    )
    try:
        client: Any = importlib.import_module("huggingface_hub")
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError as error:
        raise DatasetError(
            f"{home.title} cannot be downloaded: the hub's client is not installed ({error}).",
            remedy=f"Install it: pip install 'docmemo[hub]' (in a checkout: pip install -e '.[hub]').\n{elsewhere}",
        ) from error
    # the client's HTTP library has changed between its versions; its errors' own base class tells which it is
    transport = errors.HfHubHTTPError.__mro__[1]
    wanted = revision or home.revision
    try:
        folder = Path(
            client.snapshot_download(home.repo, repo_type="dataset", revision=wanted, allow_patterns=list(home.files))
        )
    except (errors.HfHubHTTPError, errors.HFValidationError, transport, OSError) as error:
        raise DatasetError(
            f"{home.title} cannot be downloaded from {home.url} at {wanted}: {_reason(error)}",
            remedy=f"Check the network (HTTPS_PROXY, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE) and the revision.\n"
            f"{elsewhere}",
        ) from error
    return folder, folder.name

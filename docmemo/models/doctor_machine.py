"""What a machine and an installation offer: GPU, disk, optional parts, the lock, MinerU."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from docmemo.config import Params
from docmemo.errors import DocMemoError
from docmemo.models.doctor import Finding, Status
from docmemo.models.lock import LOCK_NAME, ROLES, Difference, load_lock, resolve_role, served_roles
from docmemo.models.mineru_command import find_mineru
from docmemo.settings import Settings

_SPACE = 2 * 2**30
"""Free bytes below which a warning is due: a thousand pages take about 0.5 GB in the store."""
EXTRAS = {"colqwen": ("torch", "colpali_engine"), "llamacpp": ("xllamacpp",), "hub": ("huggingface_hub",)}
"""Extra to the packages that show it is installed."""


def check_machine(params: Params, settings: Settings) -> list[Finding]:
    """GPU, and the folder where finished work is kept."""
    return [_gpu(params), *_home(settings)]


def gpus() -> list[str]:
    """Names and memory of the machine's NVIDIA GPUs, as nvidia-smi tells; [] without any."""
    command = ["nvidia-smi", "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def _torch_gpus() -> int | None:
    """GPUs that torch can use; None where torch is not installed or does not load."""
    if importlib.util.find_spec("torch") is None:
        return None
    try:
        return int(importlib.import_module("torch").cuda.device_count())
    except (ImportError, OSError, RuntimeError):
        return None


def _gpu(params: Params) -> Finding:
    names = gpus()
    wants = params.embed.backend == "colqwen"
    if not names:
        if wants:
            return Finding(
                "machine",
                "GPU",
                "warning",
                "none found (nvidia-smi); ColQwen2.5 on the CPU takes seconds to a minute a page",
                "Use a machine with a GPU for more than a few documents.",
            )
        return Finding("machine", "GPU", "ok", "none; nothing here needs one")
    listing = "; ".join(names)
    usable = _torch_gpus() if wants else None
    if wants and usable == 0:
        return Finding(
            "machine",
            "GPU",
            "problem",
            f"{listing}, but torch cannot use it",
            "Install a torch built for CUDA: `pip install torch --force-reinstall` from its CUDA index.",
        )
    return Finding("machine", "GPU", "ok", listing)


def _home(settings: Settings) -> list[Finding]:
    home = settings.home.absolute()
    remedy = "Set DOCMEMO_HOME to a folder of yours with room."
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home) as file:
            file.write(b"docmemo")
    except OSError as error:
        return [Finding("machine", "DOCMEMO_HOME", "problem", f"{home} cannot be written: {error}", remedy)]
    free = shutil.disk_usage(home).free
    status: Status = "ok" if free >= _SPACE else "warning"
    message = f"{home} is writable, {free / 2**30:.1f} GB free"
    return [Finding("machine", "DOCMEMO_HOME", status, message, remedy if status == "warning" else "")]


def check_install(params: Params) -> list[Finding]:
    """Optional parts: those the parameters need must be there."""
    needed = {"colqwen"} if params.embed.backend == "colqwen" else set()
    found = []
    for extra, packages in EXTRAS.items():
        missing = [name for name in packages if importlib.util.find_spec(name) is None]
        if not missing:
            found.append(Finding("install", extra, "ok", "installed"))
        elif extra in needed:
            message = f"embed.backend is colqwen, but {', '.join(missing)} is not installed"
            found.append(Finding("install", extra, "problem", message, f"`pip install -e '.[{extra}]'`"))
        else:
            found.append(Finding("install", extra, "ok", "not installed, not needed"))
    return found


def check_lock(params: Params, project: Path, reached: Sequence[str]) -> list[Finding]:
    """The model lock against what would run, role by role.

    Args:
        params: all parameters.
        project: holds models.lock.json.
        reached: served roles whose servers answer; of the others only the name is compared.
    """
    try:
        lock = load_lock(project / LOCK_NAME)
    except DocMemoError as error:
        return [Finding("lock", LOCK_NAME, "problem", error.message, error.remedy)]
    found = []
    served = served_roles(params)
    for role in ROLES:
        locked = lock.get(role)
        asked = role not in served or role in reached
        try:
            now = resolve_role(params, role, ask=role in served and asked)
        except DocMemoError as error:
            found.append(Finding("lock", role, "problem", error.message, error.remedy))
            continue
        if not asked and locked is not None:
            locked = {key: value for key, value in locked.items() if key != "served"}
        if locked != now:
            remedy = "`docmemo models lock` accepts what is there now; what depends on it is computed again."
            words = str(Difference(role, lock.get(role), now)).removeprefix(f"{role}: ")
            found.append(Finding("lock", role, "problem", words, remedy))
    if not found:
        found.append(Finding("lock", LOCK_NAME, "ok", "matches what would run"))
    return found


def check_layout(params: Params, settings: Settings) -> list[Finding]:
    """MinerU, where it is chosen."""
    if params.layout.backend != "mineru":
        return []
    try:
        mineru = find_mineru(settings.mineru)
    except DocMemoError as error:
        return [Finding("layout", "MinerU", "problem", error.message, error.remedy)]
    found = [Finding("layout", "MinerU", "ok", f"{mineru.packages} at {mineru.path}")]
    if params.layout.mineru_tier != "flash":
        found.append(_weights(mineru.path, params.layout.mineru_tier))
    return found


def _weights(command: Path, tier: str) -> Finding:
    """Whether the model weights of a tier are there, by MinerU's own check (which knows basic and standard)."""
    known = "standard" if tier == "advanced" else tier
    try:
        done = subprocess.run(
            [str(command), "models", "verify", "--tier", known],
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("layout", "tier", "warning", f"the weights of tier {tier} could not be checked: {error}")
    if done.returncode == 0:
        return Finding("layout", "tier", "ok", f"the weights of tier {known} are there")
    words = " ".join((done.stderr + done.stdout).split())[:200]
    remedy = f"`{command} models download --tier {known}` gets them; tier flash needs none."
    return Finding("layout", "tier", "problem", f"the weights of tier {known} are not there: {words}", remedy)

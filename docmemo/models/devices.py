"""Where local models run: DOCMEMO_DEVICE as a list of devices, without importing torch."""

from __future__ import annotations

import re

from docmemo.errors import ConfigError

_GPUS = re.compile(r"cuda:(\d+(?:,\d+)*)")


def parse_devices(text: str) -> list[str]:
    """Devices that each hold a copy of the model: "auto", "cpu", or "cuda:N" one or more times.

    Args:
        text: auto (the first GPU, else the CPU), cpu, cuda (the first GPU), cuda:1, or several as cuda:0,1.

    Raises:
        ConfigError: if it is none of these.
    """
    text = text.strip().lower()
    if text in ("auto", "cpu"):
        return [text]
    if text == "cuda":
        return ["cuda:0"]
    match = _GPUS.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"DOCMEMO_DEVICE is {text!r}.", remedy="Use auto, cpu, cuda, cuda:1, or several GPUs as cuda:0,1."
        )
    return [f"cuda:{number}" for number in dict.fromkeys(int(number) for number in match.group(1).split(","))]

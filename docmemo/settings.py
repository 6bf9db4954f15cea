"""Environment settings: everything that cannot change a result (places, speed, patience)."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from docmemo.errors import ConfigError


def _default_home() -> Path:
    return Path(platformdirs.user_cache_dir("docmemo"))


class Settings(BaseSettings):
    """Read from DOCMEMO_* environment variables."""

    model_config = SettingsConfigDict(env_prefix="DOCMEMO_", extra="ignore")

    home: Path = Field(default_factory=_default_home)
    """Where the content-addressed store, the journals and locks live, shared by all checkouts."""
    workers: int = Field(
        default_factory=lambda: max(
            1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
        ),
        ge=0,
    )
    """Worker processes for rendering, OCR and layout."""
    page_timeout: float = Field(default=120.0, gt=0)
    """Seconds one page may take before its worker is stopped and the page recorded as failed."""
    concurrency: int = Field(default=8, ge=1)
    """Questions answered at once."""
    attempts: int = Field(default=4, ge=1)
    """Tries of a question before a retryable error is recorded as its failure."""
    retry_wait: float = Field(default=2.0, ge=0)
    """Seconds before the first retry; doubles each time, with jitter."""
    accept_failures: bool = False
    """Let `answer` and `judge` finish although questions failed in a retryable way."""
    base_url: str = ""
    """Address of the OpenAI-compatible server that plays every role, e.g. http://127.0.0.1:8000/v1. A role's own
    DOCMEMO_<ROLE>_BASE_URL and DOCMEMO_<ROLE>_API_KEY (SUMMARIZER, SCHEMA, RERANKER, REASONER, JUDGE) come first."""
    api_key: SecretStr = SecretStr("")
    """Its key; OPENAI_API_KEY when empty and the address is api.openai.com. A role's own server elsewhere does not
    get it."""
    request_timeout: float = Field(default=600.0, gt=0)
    """Seconds until a request to a model is given up; servers on a CPU may take minutes."""
    connect_timeout: float = Field(default=10.0, gt=0)
    """Seconds until a connection is given up."""
    call_attempts: int = Field(default=5, ge=1)
    """Tries of one request on overload, server errors and lost connections."""
    server_patience: float = Field(default=300.0, ge=0)
    """Seconds a run waits for a server that cannot be reached before it stops."""
    budget_usd: float | None = Field(default=None, gt=0)
    """Dollars one run may spend on models; unset is no limit."""
    budget_tokens: int | None = Field(default=None, gt=0)
    """Input and output tokens one run may use."""
    budget_calls: int | None = Field(default=None, gt=0)
    """Requests one run may send."""
    device: str = "auto"
    """Where local models run: auto, cpu, cuda, cuda:1 or a list of GPUs as cuda:0,1."""
    mineru: str = "mineru-kit"
    """The command that runs MinerU, in its own environment."""
    vllm: str = "vllm"
    """The command that `docmemo models serve` starts vLLM with."""
    state: Path = Path(".docmemo")
    """The project's own state folder (Prefect's database); relative to the working directory."""

    @property
    def store_dir(self) -> Path:
        """Finished artifacts by key."""
        return (self.home / "store").absolute()

    @property
    def journal_dir(self) -> Path:
        """SQLite journals of questions and judgements."""
        return (self.home / "journal").absolute()

    @property
    def lock_dir(self) -> Path:
        """Lock files, one per output."""
        return (self.home / "locks").absolute()


def load_settings() -> Settings:
    """Settings from the environment, read anew at each call.

    Raises:
        ConfigError: naming every variable that cannot be used.
    """
    try:
        return Settings()
    except ValidationError as error:
        wrong = [f"DOCMEMO_{str(e['loc'][0]).upper()}: {e['msg']} (got {e['input']!r})" for e in error.errors()]
        raise ConfigError("; ".join(wrong) + ".", remedy="Correct or unset the variable.") from error

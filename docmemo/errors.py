"""The error tree. Every class says whether a retry can help and what the person in front of it can do."""

from __future__ import annotations

from typing import ClassVar

from docmemo.usage import Usage


class DocMemoError(Exception):
    """Base of every error this project raises on purpose.

    Attributes:
        retryable: whether the same work may succeed if simply tried again.
        stops_run: whether going on with other items makes no sense either (the server is gone, the money is spent).
        exit_code: the process exit status a command ends with when this error reaches it.
        remedy: one sentence that tells the user what to do; may be empty.
        usage: what was spent on models before the error.
    """

    retryable: ClassVar[bool] = False
    stops_run: ClassVar[bool] = False
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, remedy: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.usage = usage if usage is not None else Usage()

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class ConfigError(DocMemoError):
    """params.yaml, a preset or a setting is wrong."""

    stops_run = True


class DatasetError(DocMemoError):
    """A dataset cannot be read: missing folder, malformed questions, duplicate ids, unknown documents."""


class ModelLockError(DocMemoError):
    """models.lock.json is missing, incomplete or differs from what would run."""

    stops_run = True


class ArtifactError(DocMemoError):
    """A file of an earlier stage is missing or not what it should be. It may be back next time."""

    retryable = True


class BusyError(DocMemoError):
    """Another process works on the same output."""

    exit_code = 75


class DocumentError(DocMemoError):
    """One document cannot be used. It is recorded with its reason; the run goes on."""


class PasswordProtectedError(DocumentError):
    """The document needs a password to be opened."""


class EmptyDocumentError(DocumentError):
    """The document has no pages."""


class UnreadableDocumentError(DocumentError):
    """The file is damaged, truncated or not a document at all."""


class DocumentChangedError(DocumentError):
    """The file's bytes are no longer those the manifest recorded."""


class AccessDeniedError(DocMemoError):
    """The asker's labels do not allow the document."""


class PageError(DocMemoError):
    """One page cannot be processed. It is recorded with its reason; the document goes on without it."""


class PageTimeoutError(PageError):
    """A page took longer than its limit. Never stored: the next time its stage runs, it is tried again."""

    retryable = True


class WorkerDiedError(PageError):
    """The worker process ended while it held this page. Never stored: tried again when its stage runs again."""

    retryable = True


class ModelError(DocMemoError):
    """A model call failed."""


class ModelLoadError(ModelError):
    """A local model cannot be used: its weights do not fit, it fails its checks, or its device is not there.

    Retryable in the sense that nothing about the question is wrong: it is asked again once that is put right.
    """

    retryable = True
    stops_run = True


class ModelUnavailableError(ModelError):
    """The model or its server could not be reached or was overloaded; trying again may help."""

    retryable = True


class ServerDownError(ModelUnavailableError):
    """The server stayed unreachable for longer than the run's patience; everything finished is kept."""

    stops_run = True


class ModelRequestError(ModelError):
    """The server refused the request as such (HTTP 400, 401, 403, 404, 422); the same request never succeeds."""


class ModelAccessError(ModelRequestError):
    """The key is wrong or lacks a right, or the model does not exist there: no other request would succeed either.

    Retryable in the sense that nothing about the question is wrong: it is asked again once that is put right.
    """

    retryable = True
    stops_run = True


class ContextLengthError(ModelRequestError):
    """The request is longer than the model's context."""


class ImageInputError(ModelRequestError):
    """The server or model takes no images, or not this one, or not so many."""


class ModelResponseError(ModelError):
    """The model answered outside the agreed format, also after being shown its error."""


class TruncatedReplyError(ModelResponseError):
    """The reply was cut at its token limit (finish_reason length)."""


class RefusalError(ModelResponseError):
    """The model or a content filter refused to answer."""


class BudgetError(ModelError):
    """A limit of tokens, calls or dollars was reached."""


class QuestionBudgetError(BudgetError):
    """One question used up what `answer.question_*` allows it; it ends as failed."""


class RunBudgetError(BudgetError):
    """The run used up DOCMEMO_BUDGET_*; what is not asked yet is asked by the next run."""

    retryable = True
    stops_run = True


class IncompleteRunError(DocMemoError):
    """Some questions ended in a retryable failure, so the stage must not be taken as finished."""

    exit_code = 3

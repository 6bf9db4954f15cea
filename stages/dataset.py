"""What the ingest stage says of the dataset as a whole."""

from __future__ import annotations

from docmemo.artifacts import read_json
from docmemo.datasets.ingest import IngestSummary
from stages.common import CORPUS


def read_dataset_info() -> IngestSummary:
    """Format, scorer, counts and digest."""
    return read_json(CORPUS / "dataset.json", IngestSummary)

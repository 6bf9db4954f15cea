from __future__ import annotations

from pathlib import Path

from docmemo.config import EmbedParams
from docmemo.pipeline.embed import EmbedStep
from docmemo.pipeline.pool import WorkPool
from docmemo.retrieval.lexical import LexicalIndex
from tests.pipeline.text_steps import archive, job
from tests.retrieval.build import document, page

MODELS = {"embedder": {"provider": "docmemo", "id": "lexical"}}
DOC = document(page(1, "Revenue rose."), page(2, "Employees left."))


def step(**params: int) -> EmbedStep:
    return EmbedStep(EmbedParams(**params), MODELS)


def test_the_artifact_is_the_index_of_the_pages(tmp_path: Path) -> None:
    with WorkPool(0, 10) as pool:
        result = step(window_tokens=50).compute(job({"render": archive(tmp_path, DOC)}), tmp_path / "out", pool)
    index = LexicalIndex.load(tmp_path / "out")
    assert result.storable
    assert result.failures == {}
    assert (index.n_pages, index.language, index.window_tokens, index.model) == (2, "en", 50, "lexical")
    assert "revenu" in index.vocabulary


def test_equal_pages_give_equal_bytes(tmp_path: Path) -> None:
    made = job({"render": archive(tmp_path, DOC)})
    with WorkPool(0, 10) as pool:
        for name in ("a", "b"):
            step().compute(made, tmp_path / name, pool)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_work_runs_in_a_worker_process(tmp_path: Path) -> None:
    with WorkPool(1, 60) as pool:
        step().compute(job({"render": archive(tmp_path, DOC)}), tmp_path / "out", pool)
    assert LexicalIndex.load(tmp_path / "out").n_pages == 2


def test_other_pictures_of_the_same_text_have_the_same_key(tmp_path: Path) -> None:
    before = step().key(job({"render": archive(tmp_path, DOC, b"one")}))
    other = DOC.model_copy(update={"sha256": "f" * 64, "doc_id": "other.pdf"})
    assert step().key(job({"render": archive(tmp_path, other, b"two")})) == before


def test_text_language_parameters_and_model_change_the_key(tmp_path: Path) -> None:
    made = job({"render": archive(tmp_path, DOC)})
    keys = [
        step().key(made),
        step(window_tokens=60).key(made),
        EmbedStep(EmbedParams(), {"embedder": {"id": "x"}}).key(made),
    ]
    keys.append(step().key(job({"render": archive(tmp_path, DOC.model_copy(update={"language": "de"}))})))
    keys.append(step().key(job({"render": archive(tmp_path, document(page(1, "Revenue fell."), page(2, "x")))})))
    assert all(a != b for i, a in enumerate(keys) for b in keys[:i])


def test_a_document_of_unknown_language_is_looked_at(tmp_path: Path) -> None:
    german = "Die Bank hat den Gewinn und das Kapital für das Jahr mit der Prüfung nicht erhöht, auch im Ausland."
    with WorkPool(0, 10) as pool:
        step().compute(
            job({"render": archive(tmp_path, document(page(1, german), language=""))}), tmp_path / "out", pool
        )
    assert LexicalIndex.load(tmp_path / "out").language == "de"

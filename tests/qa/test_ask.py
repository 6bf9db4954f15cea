"""`docmemo ask` on files as people have them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pymupdf
import pytest
from typer.testing import CliRunner

from docmemo.cli import app

SAMPLE = Path(__file__).resolve().parent.parent.parent / "data" / "sample" / "documents"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Outside of the project, as most people will be."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCMEMO_WORKERS", "0")


def ask(*arguments: str):
    return CliRunner().invoke(app, ["ask", *arguments])


def make_pdf(path: Path, *pages: str) -> Path:
    document = pymupdf.open()
    for text in pages:
        document.new_page().insert_text((72, 100), text)
    document.save(path)
    return path


def test_it_names_the_page_quotes_it_and_calls_the_answer_an_extract(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "Nothing to see here.", "The heron measured 41 units in spring.")
    done = ask(str(made), "How many units did the heron measure?")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1. page 2")
    assert "The heron measured 41 units in spring." in done.stdout
    assert "Low-confidence extract: 41" in done.stdout


def test_json_is_one_object_on_stdout(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "The heron measured 41 units in spring.")
    answer = json.loads(ask(str(made), "How many units did the heron measure?", "--json").stdout)
    assert (answer["outcome"], answer["confidence"], answer["answer"]) == ("answer", "low", "41")
    first = answer["citations"][0]
    assert (first["file"], first["page"]) == (str(made), 1)
    assert len(first["bbox"]) == 4
    assert all(0 <= x <= 1 for x in first["bbox"])


def test_several_files_are_searched_together_and_the_file_is_named(tmp_path):
    one = make_pdf(tmp_path / "one.pdf", "Herons live here.", "Turbines turn here.")
    two = make_pdf(tmp_path / "two.pdf", "A page about orchards.", "The lantern weighs 17 grams.")
    answer = json.loads(ask(str(one), str(two), "How much does the lantern weigh?", "--json").stdout)
    assert answer["citations"][0] | {"bbox": None} == {
        "file": str(two),
        "page": 2,
        "label": "",
        "bbox": None,
        "quote": "The lantern weighs 17 grams.",
    }


def test_files_of_one_name_are_told_apart(tmp_path):
    for folder, grams in (("a", 17), ("b", 19)):
        (tmp_path / folder).mkdir()
        make_pdf(tmp_path / folder / "x.pdf", f"The lantern of {folder} weighs {grams} grams.")
    done = ask("a/x.pdf", "b/x.pdf", "How much does the lantern weigh?")
    assert "a/x.pdf, page 1" in done.stdout
    assert "b/x.pdf, page 1" in done.stdout


def test_a_long_question_and_control_characters_of_a_document_are_harmless(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "The heron measured 41 units in spring.")
    document = pymupdf.open(made)
    document.set_page_labels([{"startpage": 0, "prefix": "\x1b[31mEVIL\x07", "style": "D", "firstpagenum": 1}])
    document.save(tmp_path / "b.pdf")
    done = ask(str(tmp_path / "b.pdf"), "How many units did the heron measure? " * 40)
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout


def test_a_bad_file_among_good_ones_is_reported_and_the_rest_is_searched(tmp_path):
    good = make_pdf(tmp_path / "good.pdf", "The lantern weighs 17 grams.")
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 not really")
    done = ask(str(tmp_path / "bad.pdf"), str(good), "How much does the lantern weigh?", "--json")
    answer = json.loads(done.stdout)
    assert answer["citations"][0]["file"] == str(good)
    assert [f["file"] for f in answer["failed_files"]] == [str(tmp_path / "bad.pdf")]
    assert "bad.pdf" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.pdf", "why?"], "there is no such file"),
        (["why?"], "A file and a question are needed"),
        ([], "Missing argument"),
    ],
)
def test_misuse_is_one_clear_error(arguments, said):
    done = ask(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_a_file_in_the_questions_place_is_noticed(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "text")
    done = ask("why?", str(made))
    assert done.exit_code == 2
    assert "the question comes last" in done.stderr


def test_a_question_no_page_knows_a_word_of_finds_nothing_and_says_so(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "The heron measured 41 units in spring.")
    done = ask(str(made), "Zxqv brrgl?")
    assert done.exit_code == 0
    assert "Nothing found." in done.stdout
    assert "Read 1 of 1 pages" in done.stdout


def test_the_chinese_sample_is_found_and_cited_by_its_page():
    done = ask(str(SAMPLE / "library_report_zh.pdf"), "图书馆从什么时候起不再收取押金？", "--json")
    assert json.loads(done.stdout)["pages"][0]["page"] == 3


def test_neither_prefect_nor_dvc_is_imported(tmp_path):
    made = make_pdf(tmp_path / "a.pdf", "The heron measured 41 units in spring.")
    script = (
        "import sys; from docmemo.cli import app\n"
        f"sys.argv = ['docmemo', 'ask', {str(made)!r}, 'How many units did the heron measure?']\n"
        "try: app()\nexcept SystemExit: pass\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'prefect', 'dvc', 'torch', 'pandas'}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")

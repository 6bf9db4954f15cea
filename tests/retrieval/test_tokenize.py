from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmemo.retrieval.stopwords import languages, stop_words
from docmemo.retrieval.tokenize import analyzer, document_language, normalise, query_language, query_terms


def terms(language: str, text: str) -> list[str]:
    return analyzer(language).terms(text)


def test_words_that_differ_only_in_their_ending_are_one_term() -> None:
    assert terms("en", "manager managers") == terms("en", "manager") * 2
    assert terms("de", "Erhöhung Erhöhungen") == terms("de", "Erhöhung") * 2


def test_question_words_and_words_about_the_document_are_left_out() -> None:
    assert terms("en", "According to the document, which page shows how many of the ...?") == []


def test_ligatures_are_spelled_out() -> None:
    assert terms("en", "ﬁnancial eﬀect oﬃce") == terms("en", "financial effect office")


def test_a_word_broken_at_the_end_of_a_line_is_one_word() -> None:
    whole = terms("en", "information")
    assert terms("en", "infor-\nmation") == whole
    assert terms("en", "infor\u00ad\nmation") == whole
    assert terms("en", "infor\u00admation") == whole
    assert terms("de", "Maß-\nnahmen") == terms("de", "Maßnahmen")


def test_a_hyphen_before_a_name_on_the_next_line_stays() -> None:
    assert terms("en", "Rolls-\nRoyce") == terms("en", "Rolls Royce")


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("en", "1,234,567", ["1234567"]),
        ("en", "$1,234.50", ["1234.50"]),
        ("en", "3.14 and 12.5%", ["3.14", "12.5"]),
        ("en", "in 1,2 or 3", ["1", "2", "3"]),
        ("de", "1.234.567", ["1234567"]),
        ("de", "1.234,5 Euro", ["1234.5", "euro"]),
        ("fr", "1\u202f234\u00a0567", ["1234567"]),
        ("ar", "١٢٣", ["123"]),
        ("zh", "２０２０年", ["2020", "年"]),
        ("en", "10K", ["10k"]),
        ("en", "revenue² 1995³", ["revenu", "1995"]),
    ],
)
def test_numbers_are_compared_without_thousands_separators(language: str, text: str, wanted: list[str]) -> None:
    assert terms(language, text) == wanted


def test_the_same_amount_written_in_english_and_german_is_one_term() -> None:
    assert terms("en", "1,234,567") == terms("de", "1.234.567")


def test_abbreviations_with_points_are_one_word() -> None:
    assert terms("en", "the U.S. market") == terms("en", "US market")


def test_accents_do_not_matter() -> None:
    assert terms("fr", "élève") == terms("fr", "eleve")
    assert terms("es", "según región") == terms("es", "region")


def test_chinese_is_cut_into_pairs_also_over_a_line_end() -> None:
    assert terms("zh", "上海\n市") == ["上海", "海市"]
    assert terms("zh", "GDP增长") == ["gdp", "增长"]


def test_japanese_and_korean_are_cut_into_pairs() -> None:
    assert terms("ja", "東京タワー") == ["東京", "京タ", "タワ", "ワー"]
    assert terms("ko", "서울특별시") == ["서울", "울특", "특별", "별시"]


def test_arabic_vowel_points_and_stretching_do_not_matter() -> None:
    assert terms("ar", "مُعَلِّم") == terms("ar", "معلم")
    assert terms("ar", "كتـــاب") == terms("ar", "كتاب")


def test_arabic_presentation_forms_are_the_plain_letters() -> None:
    assert terms("ar", "\ufe8d\ufedf\ufee4\ufeaa\ufead\ufeb3\ufe94") == terms("ar", "المدرسة")


def test_hebrew_points_do_not_matter() -> None:
    assert terms("he", "הַמּוֹרִים") == terms("he", "המורים")


def test_hindi_words_are_not_cut_at_their_vowels() -> None:
    assert len(terms("hi", "जनसंख्या")) == 1


def test_an_unknown_language_is_neither_stemmed_nor_stopped() -> None:
    assert terms("xx", "the managers") == ["the", "managers"]


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("How many people live in the city?", "en"),
        ("Wie viele Menschen leben in der Stadt?", "de"),
        ("Combien de personnes vivent dans la ville ?", "fr"),
        ("¿Cuántas personas viven en la ciudad?", "es"),
        ("根据文件，收入是多少？", "zh"),
        ("كم عدد السكان؟", "ar"),
    ],
)
def test_the_language_of_a_query_is_told(query: str, language: str) -> None:
    assert query_language(query) == language


def test_a_query_too_short_to_tell_takes_the_documents_language() -> None:
    assert query_language("GDP 2020", "de") == "de"


def test_a_query_in_another_language_is_analysed_in_both() -> None:
    found = query_terms("How many managers work there?", "de")
    assert "manag" in found
    assert set(terms("de", "managers")) <= set(found)
    assert "how" not in found


def test_a_query_in_the_documents_language_keeps_repeated_terms() -> None:
    assert query_terms("sales and sales costs", "en") == ["sale", "sale", "cost"]


def test_the_documents_language_is_told_where_nobody_did() -> None:
    assert document_language(["Die Bank hat den Gewinn und das Kapital für das Jahr mit der Prüfung erhöht"]) == "de"
    assert document_language(["whatever"], "fr") == "fr"


@given(st.text())
def test_any_text_can_be_analysed(text: str) -> None:
    for language in ("", "en", "de", "zh", "ar"):
        assert all(term and not term.isspace() for term in terms(language, text))


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "Z"])))
def test_normalising_twice_changes_nothing_that_matters(text: str) -> None:
    once = normalise(text, "en")
    assert terms("en", once) == terms("en", normalise(once, "en"))


def test_every_list_of_stop_words_is_lower_case_and_not_empty() -> None:
    for language in languages():
        words = stop_words(language)
        assert words
        assert all(word == word.casefold() for word in words)

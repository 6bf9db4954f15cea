"""The main language of a text."""

from __future__ import annotations

import pytest

from docmemo.documents.language import detect_language

SAMPLES = {
    "en": "The report shows that income was higher in the second year and that costs have fallen by a third.",
    "de": "Der Bericht zeigt, dass die Einnahmen im zweiten Jahr höher waren und die Kosten nicht gestiegen sind.",
    "fr": "Le rapport montre que les recettes de la deuxième année sont plus élevées et que les coûts baissent.",
    "es": "El informe muestra que los ingresos del segundo año fueron más altos y que los costes no subieron.",
    "it": "Il rapporto mostra che le entrate del secondo anno sono più alte e che i costi non sono saliti.",
    "pt": "O relatório mostra que as receitas do segundo ano foram mais altas e que os custos não subiram.",
    "nl": "Het rapport laat zien dat de inkomsten in het tweede jaar hoger waren en de kosten niet zijn gestegen.",
    "sv": "Rapporten visar att intäkterna var högre under det andra året och att kostnaderna inte har ökat.",
    "fi": "Raportti osoittaa, että tulot ovat kasvaneet ja että myös kulut ovat nousseet, mutta ei niin paljon.",
    "pl": "Raport pokazuje, że przychody w drugim roku są wyższe oraz że koszty nie wzrosły i to przez rok.",
    "tr": "Rapor, bu yıl gelirin daha yüksek ve giderlerin çok az olduğunu gösteriyor, ancak bir de borç var.",
    "hu": "A jelentés szerint az első évben a bevétel nem volt magas, és a költség is csak egy kicsit nőtt.",
    "cs": "Zpráva ukazuje, že příjmy jsou ve druhém roce vyšší a že se náklady do roku také zvýšily o málo.",
    "ru": "Отчёт показывает, что доходы во втором году были выше и что расходы не выросли.",
    "uk": "Звіт показує, що доходи у другому році були вищі та що витрати не зросли, але вони є.",
    "el": "Η έκθεση δείχνει ότι τα έσοδα ήταν υψηλότερα.",
    "he": "הדוח מראה שההכנסות היו גבוהות יותר.",
    "ar": "يوضح التقرير أن الدخل كان أعلى في السنة الثانية.",
    "hi": "रिपोर्ट बताती है कि आय अधिक थी।",
    "zh": "报告显示第二年的收入较高，成本没有上升。",
    "ja": "報告書によると、二年目の収入は高く、費用は増えていません。",
    "ko": "보고서는 둘째 해의 수입이 더 높았음을 보여 준다.",
}


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_a_sentence_is_told(language: str) -> None:
    assert detect_language(SAMPLES[language]) == language


@pytest.mark.parametrize("text", ["", "   ", "12 345 67", "x = a + b", "foo bar baz qux quux corge"])
def test_nothing_is_claimed_without_evidence(text: str) -> None:
    assert detect_language(text) == ""


def test_a_chinese_paper_with_latin_names_is_chinese() -> None:
    assert detect_language("我们使用 ColQwen 模型在 MMLongBench 上进行实验，结果如表所示。") == "zh"

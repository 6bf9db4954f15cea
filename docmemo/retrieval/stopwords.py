"""Function words and question words by language: left out of the index and of queries.

The base lists are bm25s's (Snowball and NLTK lists). English has its own shorter list, because the base list drops
words that carry meaning in questions about documents ("not", "more", "most", "below", "before" ...). What is added
everywhere are the words people *ask* with: they occur in the question whatever it is about.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from bm25s import stopwords as base

_ENGLISH = """
a an and are as at be been being but by can could did do does doing for from had has have having he her his how i if
in into is it its me my of on or our out over shall she should so some such than that the their them then there these
they this those to was we were what when where which while who whom whose why will with would you your
any each also may might must just about
according document documents page pages following many much please tell give given list based shown show shows
mentioned answer question
"""

_WEAK_ENGLISH = "al et ie eg etc via per vs first second one two new see us use used"

_ASKING = {
    "en": _ENGLISH,
    "de": """wie viel viele vielen welche welcher welches welchem welchen was wer wem wen wessen wo wohin woher
        wann warum wieso weshalb laut gemäß zufolge dokument dokuments dokumente seite seiten bitte nenne nennen
        gibt""",
    "fr": """quel quelle quels quelles combien comment pourquoi quand où qui que quoi lequel laquelle selon
        document documents page pages sont est cette cet ces plus a été""",
    "es": """qué cuál cuáles cuánto cuánta cuántos cuántas cómo dónde cuándo quién quiénes según documento
        documentos página páginas""",
    "it": """quale quali quanto quanta quanti quante come dove quando chi che secondo documento documenti pagina
        pagine""",
    "pt": """qual quais quanto quanta quantos quantas como onde quando quem que segundo documento documentos
        página páginas""",
    "nl": """welke welk wat wie waar wanneer waarom hoe hoeveel volgens document documenten pagina pagina's""",
    "sv": """vilken vilket vilka vad vem var när varför hur många mycket enligt dokumentet dokument sida sidan
        sidor""",
    "da": """hvilken hvilket hvilke hvad hvem hvor hvornår hvorfor hvordan mange meget ifølge dokumentet
        dokument side siden sider""",
    "no": """hvilken hvilket hvilke hva hvem hvor når hvorfor hvordan mange mye ifølge dokumentet dokument side
        siden sider""",
    "fi": """ja on ei se että oli ovat joka mutta kun niin tai kuin myös mikä mitkä mitä kuka missä milloin
        miksi miten kuinka monta paljon mukaan asiakirja asiakirjan sivu sivulla""",
    "pl": """i w z na do że się nie to jest o od za po jak ale a przez dla oraz który która które jaki jaka
        jakie co kto gdzie kiedy dlaczego ile według dokument dokumentu dokumencie strona strony stronie""",
    "cs": """a v ve na z ze do že se je to o od za po jak ale pro který která které jaký jaká jaké co kdo kde
        kdy proč kolik podle dokument dokumentu strana strany straně""",
    "ru": """какой какая какое какие каких сколько кто что где когда почему как согласно документ документа
        документе документу страница странице страницы страниц""",
    "tr": """hangi hangisi ne neden nasıl nerede kim kaç ve bir bu için göre belge belgeye belgede sayfa sayfada""",
    "el": """και το η ο τα της του οι των με σε για από που στο στη στην είναι ποιος ποια ποιο πόσο πόσα πού
        πότε γιατί πώς σύμφωνα έγγραφο σελίδα""",
    "hu": """a az és is hogy nem egy ez volt vagy mint melyik mi ki hol mikor miért hogyan hány mennyi szerint
        dokumentum oldal oldalon""",
    "ro": """și în de la cu pe un o care este sunt din pentru ce cine unde când cum cât câte conform document
        documentul pagina pagini""",
    "id": """yang dan di dari ke ini itu untuk dengan pada adalah dalam apa siapa mana kapan mengapa bagaimana
        berapa menurut dokumen halaman""",
    "ar": """في من على إلى عن مع هذا هذه ذلك التي الذي أن إن كان كانت هو هي ما ماذا متى أين كيف كم لماذا هل وفقا
        حسب المستند الوثيقة صفحة الصفحة و أو لا""",
    "he": """של את על עם זה זו הוא היא מה מי איפה מתי איך כמה למה לפי מסמך עמוד או לא""",
    "hi": """के का की में है और से को पर ने यह वह हैं था थी क्या कौन कहाँ कब क्यों कैसे कितने कितना अनुसार
        दस्तावेज़ पृष्ठ""",
    "zh": """什么 多少 哪些 哪个 哪一 如何 怎么 怎样 为什 是否 根据 文档 文件 本文 请问 几个 页面 該文 甚麼 根據
        的是 是什 么是 了多""",
    "ja": """です ます した する から まで こと もの これ それ どの どれ いく くつ いつ どこ なぜ によ よる ると
        れば 文書 ページ ペー ージ とは""",
    "ko": """무엇 무엇입 엇입 입니 니까 얼마 어디 언제 누구 어떤 따르 르면 문서 페이 이지 하는 있는 합니 습니
        니다""",
}  # fmt: skip

_BASE: dict[str, Iterable[str]] = {
    "de": base.STOPWORDS_GERMAN,
    "fr": base.STOPWORDS_FRENCH,
    "es": base.STOPWORDS_SPANISH,
    "it": base.STOPWORDS_ITALIAN,
    "pt": base.STOPWORDS_PORTUGUESE,
    "nl": base.STOPWORDS_DUTCH,
    "sv": base.STOPWORDS_SWEDISH,
    "da": base.STOPWORDS_DANISH,
    "no": base.STOPWORDS_NORWEGIAN,
    "ru": base.STOPWORDS_RUSSIAN,
    "tr": base.STOPWORDS_TURKISH,
}


@lru_cache(maxsize=64)
def stop_words(language: str) -> frozenset[str]:
    """Lower-case stop words of a language (ISO 639-1); for Chinese, Japanese and Korean character bigrams.

    An unknown language has none.
    """
    words = [*_ASKING.get(language, "").split(), *_BASE.get(language, ())]
    return frozenset(word.casefold() for word in words)


@lru_cache(maxsize=64)
def weak_words(language: str) -> frozenset[str]:
    """Words that make no keyword: stop words, and words that are searched for but say little on their own."""
    words = set(stop_words(language))
    if language == "en":
        words.update(base.STOPWORDS_EN_PLUS, _WEAK_ENGLISH.split())
    return frozenset(words)


def languages() -> list[str]:
    """Languages that have a list."""
    return sorted(_ASKING)

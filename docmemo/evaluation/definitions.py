"""What every printed figure means, in words: the one table the report and the terminal quote from."""

from __future__ import annotations

DEFINITIONS: dict[str, str] = {
    "n_questions": "Questions of the dataset, whatever became of them.",
    "n_answered": "Questions that ran to the end: an answer, or the verdict 'not answerable'. The rest failed.",
    "n_failed": "Questions with an error or without any record. Neither an answer nor 'not answerable'.",
    "n_unscored": "Questions that ran to the end but have no rule score (no gold answer, or judging failed). "
    "In no accuracy and no F1.",
    "n_unjudged": "Questions that ran to the end without an LLM judge's verdict, where a judge was used (no gold "
    "answer, or judging failed). In no accuracy by the judge.",
    "n_documents": "Documents of the dataset, usable or not.",
    "n_documents_failed": "Documents that could not be used, each with its reason.",
    "accuracy.rule": "Mean score by the benchmark's rule (0 to 1 a question) over all questions with a gold "
    "answer; a failed question counts 0, an unscored one is left out.",
    "accuracy.judge": "Share an LLM judge calls correct, over questions with a verdict; a failed question "
    "counts 0. Empty without a judge.",
    "f1.rule": "Generalized F1 of MMLongBench-Doc: harmonic mean of (scores of answerable questions / number "
    "of answerable questions) and (the same scores / number of questions given an answer other than "
    "'not answerable'). A failed question counts as answerable but not as answered.",
    "confusion": "Questions with an answer by the gold (answerable) and without one (unanswerable), each by what "
    "became of them: answered (anything but 'not answerable'), not_answerable, failed. `unknown`: the dataset does "
    "not say.",
    "confusion.abstaining": "Of 'not answerable': precision is the share of unanswerable questions among those it "
    "was said of; recall the share of unanswerable questions it was said of, failed ones counted as missed; f1 their "
    "harmonic mean.",
    "calibration": "The reader's own confidence (0 to 1) against the rule's score and, apart, the judge's verdict, "
    "over questions with both, failed ones left out: means of both in ten bins of equal width, the bin numbered 1 "
    "from 0 to .1. Empty where the reader gives no confidence.",
    "calibration.ece": "Expected calibration error: sum over bins of (share of questions in the bin) x |mean score - "
    "mean confidence|. 0 is perfect.",
    "calibration.brier": "Brier score: mean of (confidence - score) squared. 0 is perfect.",
    "agreement": "Rule and LLM judge over answers that have both; a rule score of .5 or more counts as right. "
    "`agreement` is the share called the same. Empty without a judge.",
    "agreement.kappa": "Cohen's kappa: (share called the same - share expected by chance) / (1 - share expected by "
    "chance), with chance from each one's own share of 'right'. 1 is perfect, 0 is chance.",
    "retrieval.recall_at_k": "Mean share of a question's gold pages among the k best of the first round's "
    "ranking, over questions with gold pages. A gold page the document lacks is missed; a failed question "
    "has what it ranked before it failed.",
    "retrieval.all_hit_at_k": "Share of the same questions with every gold page among the k best.",
    "evidence.recall_at_round": "Mean share of a question's gold pages among all pages read up to that round, "
    "over questions with gold pages. A question that stopped early keeps its pages (natural stop).",
    "evidence.all_hit_at_round": "Share of the same questions with every gold page read up to that round.",
    "evidence.forced": "The same when every question had to run all rounds (force_rounds); natural-stop "
    "figures are then unknown.",
    "evidence.reached": "The same over only those questions that ran the round, `n` of them with gold pages: other "
    "questions each round, mostly the harder ones, so the curve may fall.",
    "rounds.csv": "These curves for all questions with gold pages, and for single_page and multi_page apart "
    "(curves.csv: the natural or forced ones side by side).",
    "feedback.useful_precision": "Gold pages among the pages the reader called useful, pooled over rounds.",
    "feedback.useful_recall": "Pages called useful among the gold pages it read, pooled over rounds.",
    "feedback.irrelevant_precision": "Pages that are not gold among those it called irrelevant, pooled.",
    "feedback.irrelevant_recall": "Pages called irrelevant among the pages it read that are not gold, pooled.",
    "feedback.gold_called_irrelevant": "Times the reader called a gold page irrelevant.",
    "rounds.mean": "Rounds a question, over questions that did not fail.",
    "page_reads.mean": "Pages read a question, a page read again counting again; questions not failed.",
    "distinct_pages.mean": "Different pages read a question; questions not failed.",
    "calls": "Requests to language models, failed ones included. Offline: preparing documents; online: "
    "answering; judge: an LLM judge's own, which is in neither.",
    "tokens": "Input and output tokens of these requests.",
    "seconds": "Working time, offline, online and of judging, summed over documents or questions. Empty is unknown.",
    "cost_usd": "US dollars for these requests. Empty is unknown, which is not 0.",
    "efficiency.calls_ratio": "Model calls while answering, all questions together: this run / baseline, on the same "
    "questions. Preparing documents and judging are not in it. Empty where no model is called.",
    "efficiency.rounds_ratio": "Mean rounds a question: this run / baseline.",
    "efficiency.inverse_calls_ratio": "1 / calls_ratio: how many times as many calls the baseline makes.",
    "efficiency.accuracy_ratio_per_calls_ratio": "(accuracy of this run / accuracy of the baseline) / calls_ratio, "
    "with the judge's accuracy where both have it, else the rule's: accuracy for a call, beside the baseline.",
    "by_evidence_source": "Slices by what the gold evidence is (text, layout, table, chart, figure); a "
    "question with several counts in each.",
    "by_doc_type": "Slices by the benchmark's type of document.",
    "by_answer_format": "Slices by the format of the gold answer.",
    "by_text_layer": "Slices by document: scanned when more than half of its pages have no text layer.",
    "single_page": "Answerable questions with exactly one gold page.",
    "multi_page": "Answerable questions with two or more gold pages.",
    "unanswerable": "Questions whose gold answer is that there is none. F1 does not exist here.",
    "interval": "95% interval over documents: leave-one-document-out variance, t on the logit scale; none "
    "below 10 documents ('too few documents').",
}
"""Key in metrics/scores.json (or its pattern) to the definition."""

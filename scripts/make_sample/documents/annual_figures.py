"""The figures of the annual report: every table and chart draws on these, so they agree."""

from __future__ import annotations

YEARS = ["2020", "2021", "2022", "2023", "2024"]
REVENUE = {
    "Metering": [182.4, 191.0, 204.6, 221.3, 238.9],
    "Valves": [143.7, 139.2, 151.8, 160.4, 158.1],
    "Services": [61.5, 68.3, 77.9, 88.6, 101.2],
    "Digital": [12.9, 19.6, 28.4, 41.7, 57.3],
}
PROFIT = {
    "Metering": [29.2, 30.6, 33.8, 37.6, 42.1],
    "Valves": [18.8, 16.1, 19.5, 20.9, 17.4],
    "Services": [7.4, 8.9, 10.6, 12.4, 15.7],
    "Digital": [-6.1, -5.7, -5.2, -3.8, 2.6],
    "Central costs": [-7.7, -8.0, -8.6, -9.1, -9.6],
}
REGIONS = {"Europe": 262.1, "North America": 148.3, "Asia-Pacific": 97.9, "Rest of world": 47.2}
REGIONS_BEFORE = {"Europe": 249.0, "North America": 128.4, "Asia-Pacific": 90.2, "Rest of world": 44.4}
LEAKAGE = [31.8, 30.2, 28.1, 26.5, 24.9]
ACCIDENTS = [1.42, 1.21, 1.10, 0.93, 0.71]
EMISSIONS = {"Scope 1": [14.8, 14.1, 13.0, 11.9, 10.6], "Scope 2": [21.3, 19.0, 16.2, 12.4, 9.8]}

INCOME = """
| £ million | Note | 2024 | 2023 |
| **Revenue** | 2 | {@is-revenue}555.5 | 512.0 |
| Cost of sales | 3 | (344.4) | (322.6) |
|*Gross profit | | {@is-gross}211.1 | 189.4 |
| Distribution costs | | (46.2) | (43.5) |
| Research and development | 4 | {@is-rd}(38.9) | (35.8) |
| Administrative expenses | | (57.8) | (52.1) |
|*Operating profit | 2 | 68.2 | 58.0 |
| Finance income | | 1.4 | 0.9 |
| Finance costs | 5 | (8.7) | (9.8) |
|*Profit before tax | | 60.9 | 49.1 |
| Income tax | 6 | {@is-tax}(14.6) | (12.0) |
|*Profit for the year | | 46.3 | 37.1 |
| Other comprehensive income: | | | |
| Remeasurement of pension obligation | 11 | 3.1 | (1.9) |
| Exchange differences on foreign operations | | 1.0 | (2.4) |
|*Total comprehensive income | | 50.4 | 32.8 |
| Earnings per share, basic (pence) | 7 | {@is-eps}38.4 | 30.9 |
| Earnings per share, diluted (pence) | 7 | 37.8 | 30.5 |
"""

BALANCE = """
| £ million | Note | 31 Dec 2024 | 31 Dec 2023 |
|!Non-current assets | | | |
| Goodwill | 8 | 96.4 | 96.4 |
| Other intangible assets | 8 | {@bs-intang}48.7 | 42.9 |
| Property, plant and equipment | 9 | 131.2 | 124.8 |
| Right-of-use assets | | 22.6 | 24.1 |
| Deferred tax assets | 6 | 6.3 | 7.0 |
|*Total non-current assets | | 305.2 | 295.2 |
|!Current assets | | | |
| Inventories | 10 | {@bs-inv}92.5 | 98.7 |
| Trade and other receivables | | 104.8 | 99.6 |
| Contract assets | | 14.9 | 11.2 |
| Cash and cash equivalents | | 61.7 | 44.3 |
|*Total current assets | | 273.9 | 253.8 |
|*Total assets | | {@bs-total}579.1 | 549.0 |
|!Current liabilities | | | |
| Trade and other payables | | 88.3 | 82.0 |
| Contract liabilities | | 26.7 | 21.5 |
| Borrowings | 5 | 14.0 | 14.0 |
| Lease liabilities | | 5.1 | 5.0 |
| Current tax | | 7.6 | 6.2 |
|*Total current liabilities | | 141.7 | 128.7 |
|!Non-current liabilities | | | |
| Borrowings | 5 | 118.0 | 132.0 |
| Lease liabilities | | 18.4 | 19.9 |
| Pension obligation | 11 | {@bs-pension}21.5 | 26.3 |
| Provisions | 12 | 9.8 | 10.4 |
|*Total non-current liabilities | | 167.7 | 188.6 |
|*Net assets | | {@bs-net}269.7 | 231.7 |
| Share capital | | 12.1 | 12.0 |
| Share premium | | 58.6 | 57.4 |
| Retained earnings | | 199.0 | 162.3 |
|*Total equity | | 269.7 | 231.7 |
"""

CASH = """
| £ million | 2024 | 2023 |
|!Operating activities | | |
| Operating profit | 68.2 | 58.0 |
| Depreciation and amortisation | {@cf-da}29.4 | 27.6 |
| Share-based payments | 2.1 | 1.8 |
| Contributions to the pension scheme | (6.0) | (6.0) |
| Change in working capital | {@cf-wc}18.4 | (11.9) |
|*Cash generated from operations | 112.1 | 69.5 |
| Interest paid | (8.2) | (9.3) |
| Tax paid | (12.5) | (10.8) |
|*Net cash from operating activities | {@cf-op}91.4 | 49.4 |
|!Investing activities | | |
| Purchase of property, plant and equipment | {@cf-capex}(27.8) | (31.2) |
| Capitalised development | (14.6) | (11.9) |
| Acquisition of businesses, net of cash | – | {@cf-acq}(8.4) |
| Interest received | 1.4 | 0.9 |
|*Net cash used in investing activities | (41.0) | (50.6) |
|!Financing activities | | |
| Repayment of borrowings | (14.0) | (10.0) |
| Payment of lease liabilities | (5.2) | (5.1) |
| Dividends paid | (15.1) | (13.8) |
| Shares issued | 1.3 | 0.7 |
|*Net cash used in financing activities | (33.0) | (28.2) |
|*Increase (decrease) in cash | 17.4 | (29.4) |
| Cash at the beginning of the year | 44.3 | 73.7 |
|*Cash at the end of the year | 61.7 | 44.3 |
"""

STATEMENTS = {"income": INCOME, "balance": BALANCE, "cash": CASH}


def money(value: float) -> str:
    """One decimal, with brackets for a negative figure."""
    return f"({-value:.1f})" if value < 0 else f"{value:.1f}"


def by_year(rows: dict[str, list[float]], total: str) -> list[list[str]]:
    """A table over the five years, its total last."""
    table = [["£ million", *reversed(YEARS)]]
    table += [[name, *(money(v) for v in reversed(data))] for name, data in rows.items()]
    sums = [sum(data[i] for data in rows.values()) for i in range(len(YEARS))]
    return [*table, ["*" + total, *(money(v) for v in reversed(sums))]]

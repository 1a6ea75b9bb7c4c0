"""`runup upgrade calendar`, `gate` and `policy`: update policies and what keeps an update from starting."""

"""Results: the values of a run, from one trial to the whole, as `_results.json` holds them."""

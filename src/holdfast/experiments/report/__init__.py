"""The report on the experiments: how tables and figures are shown and written."""

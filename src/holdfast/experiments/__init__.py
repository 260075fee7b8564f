"""The experiments of the paper: scenes as data, and what runs them."""

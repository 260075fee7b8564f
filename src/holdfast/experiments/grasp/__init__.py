"""The grasp: a row of boxes held by two pushers (Table 1 of the paper)."""

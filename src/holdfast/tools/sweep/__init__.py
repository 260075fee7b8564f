"""What `holdfast sweep PLAN` adds to `holdfast.sweep`: plans in TOML, scenes as tasks, films."""

"""Rules for asking that were raced against the default: research/rules.md has what came of them."""

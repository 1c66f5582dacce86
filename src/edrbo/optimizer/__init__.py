"""ask / tell / recommend."""
